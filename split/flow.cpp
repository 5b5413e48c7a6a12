// The flows that exist, one line each.
#include "split/flow.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/text.h"

// One line per flow; X is applied to the name of its file.
#define CAUSEWAY_FLOWS(X) X(local_epochs) X(split) X(u_shaped) X(batch_major)

namespace causeway {

#define CAUSEWAY_DECLARE(name) extern const Flow name##_flow;
CAUSEWAY_FLOWS(CAUSEWAY_DECLARE)
#undef CAUSEWAY_DECLARE

std::span<const Flow* const> flows() {
#define CAUSEWAY_ENTRY(name) &name##_flow,
    static const std::array entries = {CAUSEWAY_FLOWS(CAUSEWAY_ENTRY)};
#undef CAUSEWAY_ENTRY
    return entries;
}

Result<const Flow*> find_flow(std::string_view name) {
    std::vector<std::string> names;
    for (const Flow* flow : flows()) {
        if (flow->name == name) {
            return flow;
        }
        names.emplace_back(flow->name);
    }
    return fail(ErrorKind::not_found, "unknown_flow",
                fmt::format("there is no flow \"{}\"; {}", name.substr(0, 40), name_hint(name, names)));
}

Result<Program> compile_flow(std::string_view name, const FlowInput& input) {
    TRY_ASSIGN(const Flow* flow, find_flow(name));
    TRY_ASSIGN(Program program, flow->compile(input));
    TRY(check_program(program, input.chain));
    return program;
}

Result<LayerInterval> stage_of(const Chain& chain, const std::vector<std::uint32_t>& cuts, std::uint32_t stage) {
    const auto layers = static_cast<std::uint32_t>(chain.layer_count());
    if (stage > cuts.size()) {
        return fail(ErrorKind::invalid, "bad_cut", fmt::format("there is no stage {} of {}", stage, cuts.size() + 1));
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        if (cuts[i] <= (i == 0 ? 0 : cuts[i - 1]) || cuts[i] >= layers) {
            return fail(
                ErrorKind::invalid, "bad_cut",
                fmt::format("a cut at layer {} of {}: cuts ascend, and every stage has a layer", cuts[i], layers));
        }
    }
    if (!cuts.empty() && !chain.gradient_needed(cuts.front())) {
        return fail(ErrorKind::invalid, "bad_cut",
                    fmt::format("the layers before the cut at {} have no parameters: the raw inputs would leave the "
                                "client; cut after a layer that learns",
                                cuts.front()));
    }
    return LayerInterval{stage == 0 ? 0 : cuts[stage - 1], stage == cuts.size() ? layers : cuts[stage]};
}

namespace {

void collect(const std::vector<Instruction>& instructions, std::vector<bool>& touched) {
    for (const Instruction& instruction : instructions) {
        collect(instruction.body, touched);
        const auto [begin, end] = instruction.layers;
        touched.resize(std::max<std::size_t>(touched.size(), end));
        std::fill(touched.begin() + begin, touched.begin() + end, true);
    }
}

}  // namespace

Status check_two_stages(std::string_view flow, const FlowInput& input) {
    if (input.stages == 2 && input.cuts.size() == 1) {
        return {};
    }
    return fail(ErrorKind::invalid, "bad_flow",
                fmt::format("{} needs two stages and the cut between them, not {} stages and {} cuts", flow,
                            input.stages, input.cuts.size()));
}

std::vector<Instruction> host_batch(LayerInterval layers, std::uint32_t client) {
    return {{.code = OpCode::receive, .index = client, .payload = Payload::labels},
            {.code = OpCode::receive, .index = client, .payload = Payload::activations},
            make_forward(layers),
            {.code = OpCode::loss},
            make_backward(layers),
            {.code = OpCode::send, .index = client, .payload = Payload::gradients},
            make_step(layers)};
}

std::vector<LayerInterval> layers_of(const Program& program) {
    std::vector<bool> touched;
    collect(program.instructions, touched);
    std::vector<LayerInterval> layers;
    for (std::uint32_t layer = 0; layer < touched.size(); ++layer) {
        if (touched[layer] && (layer == 0 || !touched[layer - 1])) {
            layers.push_back({layer, layer});
        }
        if (touched[layer]) {
            layers.back().end = layer + 1;
        }
    }
    return layers;
}

}  // namespace causeway
