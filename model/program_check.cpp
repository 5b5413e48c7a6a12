// Does a program make sense on a chain? A walk that counts, at each boundary, the values that wait there.
//
// Each repeat is walked twice, because what goes wrong in a second pass (a forward whose input is used up, a step
// without new gradients) goes wrong in every later one. Values that came over the network have no known boundary: they
// count as `arrived`, and serve whatever forward or backward finds nothing at its own boundary.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "model/chain.h"
#include "model/program.h"

namespace causeway {
namespace {

/// Values that wait: produced here at a boundary, or arrived from another cell.
class Waiting {
public:
    explicit Waiting(std::size_t boundaries) : at_(boundaries) {}

    void put(std::size_t boundary) {
        ++at_[boundary];
        newest_ = boundary;
    }
    void arrive() { ++arrived_; }
    [[nodiscard]] bool take(std::size_t boundary) {
        std::uint32_t& count = at_[boundary] > 0 ? at_[boundary] : arrived_;
        return count > 0 && count-- > 0;
    }
    [[nodiscard]] bool take_newest() { return at_[newest_] > 0 && at_[newest_]-- > 0; }
    [[nodiscard]] bool empty() const {
        return arrived_ == 0 && std::ranges::all_of(at_, [](std::uint32_t count) { return count == 0; });
    }

private:
    std::vector<std::uint32_t> at_;
    std::uint32_t arrived_ = 0;
    std::size_t newest_ = 0;
};

class Walk {
public:
    Walk(const Chain& chain, std::vector<LayerInterval> recomputed)
        : chain_(chain),
          recomputed_(std::move(recomputed)),
          activations_(chain.layer_count() + 1),
          gradients_(chain.layer_count() + 1),
          in_flight_(chain.layer_count()),
          gradient_ready_(chain.layer_count()),
          synced_(max_program_slots) {}

    /// The blocks that are recomputed lie in the chain, each layer in one at most.
    Status begin() {
        std::uint32_t free_from = 0;
        for (const LayerInterval& block : recomputed_) {
            TRY(check_layers(make_recompute(block)));
            if (block.begin < free_from) {
                return out_of_bounds(make_recompute(block),
                                     fmt::format("layer {}, which another recompute has", block.begin));
            }
            free_from = block.end;
        }
        return {};
    }

    Status all(const std::vector<Instruction>& instructions, int enclosing) {
        for (const Instruction& instruction : instructions) {
            TRY(check_passes(instruction, enclosing));
            TRY(instruction.code == OpCode::repeat ? repeat(instruction, enclosing) : one(instruction));
        }
        return {};
    }

    Status finish() {
        if (forwards_in_flight()) {
            return out_of_order("the program ends", "every forward has had its backward");
        }
        if (!activations_.empty() || !gradients_.empty() || labels_ > 0) {
            return out_of_order("the program ends", "everything loaded, received or computed is used");
        }
        return {};
    }

    [[nodiscard]] std::uint32_t most_in_flight() const { return most_in_flight_; }

private:
    [[nodiscard]] bool forwards_in_flight() const {
        return std::ranges::any_of(in_flight_, [](std::uint32_t count) { return count > 0; });
    }
    static tl::unexpected<Error> out_of_order(std::string_view what, std::string_view needs) {
        return fail(ErrorKind::invalid, "program_order", fmt::format("program: {} before {}", what, needs));
    }
    static tl::unexpected<Error> out_of_bounds(const Instruction& instruction, std::string_view what) {
        return fail(ErrorKind::invalid, "program_bounds",
                    fmt::format("program: {} names {}", to_string(instruction.code), what));
    }
    static std::string shown(const Instruction& instruction) {
        return fmt::format("{} [{}, {})", to_string(instruction.code), instruction.layers.begin,
                           instruction.layers.end);
    }

    /// Passes are those over batches: there may be one place where they are put away, in the repeat over them itself.
    Status check_passes(const Instruction& instruction, int enclosing) {
        const bool inside = enclosing == static_cast<int>(RepeatOver::batches);
        if (instruction.code == OpCode::stash && instruction.index > 0) {
            if (!gradients_.empty() || std::ranges::find(gradient_ready_, true) != gradient_ready_.end()) {
                return out_of_order("stash of passes", "every gradient is used");
            }
            return inside ? Status{} : out_of_order("stash of passes", "a repeat over batches that holds it");
        }
        if (instruction.code == OpCode::repeat && instruction.over == RepeatOver::clients && !inside) {
            return out_of_order("repeat clients", "a repeat over batches that holds it");
        }
        return {};
    }

    /// Epochs hold batches hold clients hold microbatches; but for batches any may be left out, none may repeat itself.
    Status repeat(const Instruction& instruction, int enclosing) {
        const int over = static_cast<int>(instruction.over);
        if (over <= enclosing) {
            return out_of_order(fmt::format("repeat {} inside {}", to_string(instruction.over),
                                            to_string(static_cast<RepeatOver>(enclosing))),
                                "the order epochs, batches, clients, microbatches");
        }
        TRY(all(instruction.body, over));
        return all(instruction.body, over);
    }

    Status one(const Instruction& instruction) {
        switch (instruction.code) {
            case OpCode::load:
                return load();
            case OpCode::forward:
                return forward(instruction);
            case OpCode::loss:
                return loss();
            case OpCode::backward:
                return backward(instruction);
            case OpCode::send:
                return send(instruction);
            case OpCode::receive:
                return receive(instruction);
            case OpCode::gradient_final:
                return gradient_final(instruction);
            case OpCode::wait:
                return wait(instruction);
            case OpCode::step:
                return step(instruction);
            case OpCode::sync:
                TRY(check_slot_and_ranges(instruction));
                synced_[instruction.index] = true;
                return {};
            case OpCode::snapshot:
                return instruction.keeps_run() ? keep_run() : check_slot_and_ranges(instruction);
            case OpCode::recompute:
                return recompute(instruction);
            default:
                return {};  // stash and deadline consume nothing
        }
    }

    Status load() {
        const bool busy = !activations_.empty() || forwards_in_flight();
        most_in_flight_ = std::max(most_in_flight_, busy ? 2u : 1u);
        activations_.put(0);
        ++labels_;
        return {};
    }

    Status check_layers(const Instruction& instruction) {
        if (instruction.layers.begin < instruction.layers.end && instruction.layers.end <= chain_.layer_count()) {
            return {};
        }
        return out_of_bounds(instruction, fmt::format("layers [{}, {}) of a model of {}", instruction.layers.begin,
                                                      instruction.layers.end, chain_.layer_count()));
    }

    Status check_slot_and_ranges(const Instruction& instruction) {
        const auto& ranges = instruction.ranges.ranges();
        const auto size = chain_.table().arena_size(instruction.arena);
        if (instruction.index >= max_program_slots) {
            return out_of_bounds(instruction, fmt::format("slot {} of {}", instruction.index, max_program_slots));
        }
        if (ranges.empty() || ranges.back().end > size) {
            return out_of_bounds(instruction,
                                 fmt::format("elements outside the {} {} ones", size, to_string(instruction.arena)));
        }
        return {};
    }

    /// What is kept is the model, the optimizer and the place in the program: nothing else may wait for its use.
    Status keep_run() {
        const bool waits = forwards_in_flight() || !activations_.empty() || !gradients_.empty() || labels_ > 0 ||
                           std::ranges::find(gradient_ready_, true) != gradient_ready_.end();
        return waits ? out_of_order("snapshot", "everything loaded is used and every gradient stepped") : Status{};
    }

    /// Which recomputed block a layer is in, or the number of blocks: none.
    [[nodiscard]] std::size_t block_of(std::size_t layer) const {
        const auto holds = [&](const LayerInterval& block) { return layer >= block.begin && layer < block.end; };
        return static_cast<std::size_t>(std::ranges::find_if(recomputed_, holds) - recomputed_.begin());
    }

    Status recompute(const Instruction& instruction) {
        for (std::size_t layer = instruction.layers.begin; layer < instruction.layers.end; ++layer) {
            if (in_flight_[layer] == 0) {
                return out_of_order(shown(instruction), fmt::format("layer {} ran forward", layer));
            }
        }
        present_ = block_of(instruction.layers.begin);
        return {};
    }

    /// Blocks share the memory of what their layers keep: the one that a forward enters has it.
    Status enter_block(const Instruction& instruction, std::size_t layer) {
        const std::size_t block = block_of(layer);
        if (block == recomputed_.size() || block == present_) {
            return {};
        }
        if (layer != recomputed_[block].begin) {
            return out_of_order(shown(instruction), "the first layer of its recomputed block");
        }
        present_ = block;
        return {};
    }

    /// Moves one batch's values from boundary a to b; its layers then owe a backward.
    Status forward(const Instruction& instruction) {
        TRY(check_layers(instruction));
        const auto [begin, end] = instruction.layers;
        if (!activations_.take(begin)) {
            return out_of_order(shown(instruction), fmt::format("there are values at boundary {}", begin));
        }
        activations_.put(end);
        for (std::size_t layer = begin; layer < end; ++layer) {
            TRY(enter_block(instruction, layer));
            most_in_flight_ = std::max(most_in_flight_, ++in_flight_[layer]);
        }
        return {};
    }

    /// Takes the scores and the labels of one batch, and leaves a gradient at the last boundary.
    Status loss() {
        if (!activations_.take(chain_.layer_count())) {
            return out_of_order("loss", "a forward has reached the last layer");
        }
        if (labels_ == 0) {
            return out_of_order("loss", "labels are loaded or received");
        }
        --labels_;
        gradients_.put(chain_.layer_count());
        return {};
    }

    /// Moves one batch's gradient from boundary b down to a; at boundary 0 nobody wants it.
    Status backward(const Instruction& instruction) {
        TRY(check_layers(instruction));
        const auto [begin, end] = instruction.layers;
        if (!gradients_.take(end)) {
            return out_of_order(shown(instruction), fmt::format("there is a gradient at boundary {}", end));
        }
        for (std::size_t layer = begin; layer < end; ++layer) {
            if (in_flight_[layer] == 0) {
                return out_of_order(shown(instruction), fmt::format("layer {} ran forward", layer));
            }
            if (const std::size_t block = block_of(layer); block < recomputed_.size() && block != present_) {
                return out_of_order(shown(instruction), fmt::format("layer {} was recomputed", layer));
            }
            --in_flight_[layer];
            gradient_ready_[layer] = true;
        }
        if (begin > 0) {
            gradients_.put(begin);
        }
        return {};
    }

    Status send(const Instruction& instruction) {
        switch (instruction.payload) {
            case Payload::activations:
                return activations_.take_newest() ? Status{} : out_of_order("send activations", "there are any");
            case Payload::gradients:
                return gradients_.take_newest() ? Status{} : out_of_order("send gradients", "there are any");
            case Payload::labels:
                return labels_ > 0 && labels_-- > 0 ? Status{} : out_of_order("send labels", "there are any");
            case Payload::parameters:
                return {};
        }
        return {};
    }

    Status receive(const Instruction& instruction) {
        if (instruction.payload == Payload::activations) {
            activations_.arrive();
        } else if (instruction.payload == Payload::gradients) {
            gradients_.arrive();
        } else if (instruction.payload == Payload::labels) {
            ++labels_;
        }
        return {};
    }

    Status gradient_final(const Instruction& instruction) {
        if (instruction.index >= chain_.layer_count()) {
            return out_of_bounds(instruction,
                                 fmt::format("layer {} of a model of {}", instruction.index, chain_.layer_count()));
        }
        if (!gradient_ready_[instruction.index]) {
            return out_of_order(fmt::format("gradient_final {}", instruction.index), "its backward");
        }
        return {};
    }

    /// A sync may be waited for by several instructions, and from an earlier pass of a repeat.
    Status wait(const Instruction& instruction) {
        if (instruction.index >= max_program_slots || !synced_[instruction.index]) {
            return out_of_order(fmt::format("wait {}", instruction.index), "a sync in that slot");
        }
        return {};
    }

    /// Gradients of a stepped layer are used up; of a range set the layers that it touches must have some.
    Status step(const Instruction& instruction) {
        if (!instruction.layers.empty()) {
            TRY(check_layers(instruction));
            for (std::size_t layer = instruction.layers.begin; layer < instruction.layers.end; ++layer) {
                TRY(require_gradient(layer));
            }
            std::fill(gradient_ready_.begin() + instruction.layers.begin,
                      gradient_ready_.begin() + instruction.layers.end, false);
            return {};
        }
        TRY(check_slot_and_ranges(instruction));
        if (instruction.arena != ArenaKind::trainable) {
            return out_of_bounds(instruction, "an arena that is not trainable");
        }
        for (const TensorInfo& tensor : chain_.table().tensors) {
            if (tensor.arena == ArenaKind::trainable && touches(instruction.ranges, tensor.range())) {
                TRY(require_gradient(tensor.layer));
            }
        }
        return {};
    }

    static bool touches(const RangeSet& set, Range range) {
        const auto next = std::ranges::upper_bound(set.ranges(), range.begin, {}, &Range::end);
        return next != set.ranges().end() && next->begin < range.end;
    }

    Status require_gradient(std::size_t layer) {
        return gradient_ready_[layer] ? Status{} : out_of_order(fmt::format("step of layer {}", layer), "its backward");
    }

    const Chain& chain_;
    std::vector<LayerInterval> recomputed_;  // ascending
    std::size_t present_ = SIZE_MAX;         // which of them has the memory that they share
    Waiting activations_;
    Waiting gradients_;
    std::vector<std::uint32_t> in_flight_;  // per layer: forwards without their backward
    std::vector<bool> gradient_ready_;      // per layer: a backward since its last step
    std::vector<bool> synced_;              // per slot
    std::uint32_t labels_ = 0;
    std::uint32_t most_in_flight_ = 0;
};

bool keeps_runs(const std::vector<Instruction>& instructions) {
    return std::ranges::any_of(instructions, [](const Instruction& instruction) {
        return (instruction.code == OpCode::snapshot && instruction.keeps_run()) || keeps_runs(instruction.body);
    });
}

}  // namespace

Result<ProgramFacts> examine_program(const Program& program, const Chain& chain) {
    const bool passes = stashed_passes(program) > 0;
    if (passes && count_instructions(program, OpCode::stash) > 1) {
        return fail(ErrorKind::invalid, "program_order", "program: passes are put away in one place only");
    }
    if ((passes || works_for_clients(program)) && keeps_runs(program.instructions)) {
        return fail(ErrorKind::invalid, "program_order",
                    "program: a run that puts passes away or works for several clients cannot be kept");
    }
    Walk walk(chain, recomputed_blocks(program));
    TRY(walk.begin());
    TRY(walk.all(program.instructions, -1));
    TRY(walk.finish());
    return ProgramFacts{walk.most_in_flight()};
}

Status check_program(const Program& program, const Chain& chain) {
    TRY(examine_program(program, chain));
    return {};
}

}  // namespace causeway
