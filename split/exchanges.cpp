// See exchanges.h. Two visitors of a program, and the registry's flows compiled beside it.
#include "split/exchanges.h"

#include <algorithm>

namespace causeway {
namespace {

void collect_exchanges(const std::vector<Instruction>& instructions, Exchanges& found) {
    for (const Instruction& instruction : instructions) {
        switch (instruction.code) {
            case OpCode::load:
                found.loads = true;
                break;
            case OpCode::loss:
                found.knows_loss = true;
                break;
            case OpCode::send:
                found.sent.insert(instruction.payload);
                found.cells.insert(instruction.index);
                break;
            case OpCode::receive:
                found.received.insert(instruction.payload);
                found.cells.insert(instruction.index);
                break;
            case OpCode::repeat:
                found.for_clients = found.for_clients || instruction.over == RepeatOver::clients;
                collect_exchanges(instruction.body, found);
                break;
            default:
                break;
        }
    }
}

/// Follows which boundary the newest values and the newest gradient are of, as the interpreter does. Each repeat is
/// walked twice: what its end leaves is what its next pass begins with.
class NewestValues {
public:
    explicit NewestValues(const Chain& chain) : chain_(chain) {}

    void all(const std::vector<Instruction>& instructions) {
        for (const Instruction& instruction : instructions) {
            if (instruction.code == OpCode::repeat) {
                all(instruction.body);
                all(instruction.body);
            } else {
                one(instruction);
            }
        }
    }
    [[nodiscard]] const SentValues& found() const { return found_; }

private:
    void one(const Instruction& instruction) {
        const auto layers = static_cast<std::uint32_t>(chain_.layer_count());
        if (instruction.code == OpCode::load) {
            newest_value_ = 0;
        } else if (instruction.code == OpCode::forward) {
            newest_value_ = instruction.layers.end;
        } else if (instruction.code == OpCode::loss) {
            newest_gradient_ = layers;
        } else if (instruction.code == OpCode::backward) {
            newest_gradient_ = instruction.layers.begin;
        } else if (instruction.code == OpCode::send && instruction.payload == Payload::activations) {
            found_.raw_inputs = found_.raw_inputs || !chain_.gradient_needed(newest_value_);
        } else if (instruction.code == OpCode::send && instruction.payload == Payload::gradients) {
            const bool bare = chain_.arena_range(ArenaKind::trainable, newest_gradient_, layers).size() == 0;
            found_.bare_scores = found_.bare_scores || bare;
        }
    }

    const Chain& chain_;
    std::uint32_t newest_value_ = 0;
    std::uint32_t newest_gradient_ = 0;
    SentValues found_;
};

/// Where the layers that a program works on begin and end inside the chain.
std::vector<std::uint32_t> cuts_of(const Program& program, const Chain& chain) {
    std::set<std::uint32_t> cuts;
    for (const LayerInterval& layers : layers_of(program)) {
        cuts.insert(layers.begin);
        cuts.insert(layers.end);
    }
    cuts.erase(0);
    cuts.erase(static_cast<std::uint32_t>(chain.layer_count()));
    return {cuts.begin(), cuts.end()};
}

}  // namespace

Exchanges exchanges_of(const Program& program) {
    Exchanges found;
    collect_exchanges(program.instructions, found);
    return found;
}

SentValues sent_values_of(const Program& program, const Chain& chain) {
    NewestValues walk(chain);
    walk.all(program.instructions);
    auto found = walk.found();
    const auto exchanges = exchanges_of(program);
    found.raw_inputs = found.raw_inputs && exchanges.loads;
    found.bare_scores = found.bare_scores && exchanges.loads && exchanges.knows_loss;
    return found;
}

std::vector<const Flow*> flows_with(const Program& program, const Chain& chain) {
    const auto exchanges = exchanges_of(program);
    const auto cuts = cuts_of(program, chain);
    std::vector<const Flow*> found;
    for (const Flow* flow : flows()) {
        bool like = false;
        for (std::uint32_t stage = 0; stage <= cuts.size() && !like; ++stage) {
            FlowInput input{.chain = chain, .stages = static_cast<std::uint32_t>(cuts.size()) + 1, .cuts = cuts};
            input.cell = cuts.empty() ? whole_chain(chain) : Cell{.stage = stage};
            const auto compiled = flow->compile(input);
            like = compiled && exchanges_of(*compiled).like(exchanges);
        }
        if (like) {
            found.push_back(flow);
        }
    }
    return found;
}

}  // namespace causeway
