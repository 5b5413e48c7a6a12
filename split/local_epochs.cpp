// local-epochs: a cell that holds the whole chain trains on its own data, a step per batch. FedAvg and its family.
//
// Source: McMahan et al. 2017, ClientUpdate of algorithm 1.
#include <fmt/format.h>

#include "split/flow.h"

namespace causeway {
extern const Flow local_epochs_flow;
namespace {

bool has_parameters(const Chain& chain, std::size_t layer) {
    return chain.arena_range(ArenaKind::trainable, layer, layer + 1).size() > 0;
}

std::vector<Instruction> one_batch(const FlowInput& input) {
    const LayerInterval layers = input.cell.segment;
    std::vector<Instruction> batch = {
        {.code = OpCode::load}, make_forward(layers), {.code = OpCode::loss}, make_backward(layers)};
    for (std::uint32_t layer = layers.end; input.gradient_rule == GradientRule::present && layer-- > layers.begin;) {
        if (has_parameters(input.chain, layer)) {
            batch.push_back({.code = OpCode::gradient_final, .index = layer});
        }
    }
    batch.push_back(make_step(layers));
    return batch;
}

Result<Program> compile(const FlowInput& input) {
    if (input.stages != 1 || input.cell.segment != whole_chain(input.chain).segment) {
        return fail(ErrorKind::invalid, "bad_flow",
                    fmt::format("local-epochs needs the whole model in one stage, not {} stages; choose a flow that "
                                "moves activations",
                                input.stages));
    }
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, one_batch(input))})}};
}

}  // namespace

const Flow local_epochs_flow{"local-epochs", "every cell trains the whole model on its own data", compile};

}  // namespace causeway
