// local-epochs: a cell that holds the whole chain trains on its own data, a step per batch. FedAvg and its family.
//
// Source: McMahan et al. 2017, ClientUpdate of algorithm 1.
#include <fmt/format.h>

#include "model/memory_plan.h"
#include "split/flow.h"

namespace causeway {
extern const Flow local_epochs_flow;
namespace {

bool has_parameters(const Chain& chain, std::size_t layer) {
    return chain.arena_range(ArenaKind::trainable, layer, layer + 1).size() > 0;
}

/// Forward, loss and backward; a block that is recomputed is a forward and a backward of its own.
std::vector<Instruction> gradient_of(const FlowInput& input) {
    const LayerInterval layers = input.cell.segment;
    const auto blocks = recompute_blocks(input.chain, input.batch.recompute);
    const LayerInterval rest{blocks.empty() ? layers.begin : blocks.back().end, layers.end};
    std::vector<Instruction> list{{.code = OpCode::load}};
    for (const LayerInterval& block : blocks) {
        list.push_back(make_forward(block));
    }
    list.push_back(make_forward(rest));
    list.push_back({.code = OpCode::loss});
    list.push_back(make_backward(rest));
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        list.push_back(make_recompute(*block));
        list.push_back(make_backward(*block));
    }
    return list;
}

std::vector<Instruction> one_batch(const FlowInput& input) {
    const LayerInterval layers = input.cell.segment;
    std::vector<Instruction> batch;
    if (input.batch.step_deadline_ms > 0) {
        batch.push_back({.code = OpCode::deadline, .index = input.batch.step_deadline_ms});
    }
    auto gradient = gradient_of(input);
    if (input.batch.parts == BatchRule::Parts::microbatches) {
        batch.push_back(make_repeat(RepeatOver::microbatches, std::move(gradient)));
    } else {
        batch.insert(batch.end(), gradient.begin(), gradient.end());
    }
    for (std::uint32_t layer = layers.end; input.gradient_rule == GradientRule::present && layer-- > layers.begin;) {
        if (has_parameters(input.chain, layer)) {
            batch.push_back({.code = OpCode::gradient_final, .index = layer});
        }
    }
    batch.push_back(make_step(layers));
    if (input.batch.snapshots == BatchRule::Snapshots::present) {
        batch.push_back({.code = OpCode::snapshot});
    }
    return batch;
}

Result<Program> compile_local_epochs(const FlowInput& input) {
    if (input.stages != 1 || input.cell.segment != whole_chain(input.chain).segment) {
        return fail(ErrorKind::invalid, "bad_flow",
                    fmt::format("local-epochs needs the whole model in one stage, not {} stages; choose a flow that "
                                "moves activations",
                                input.stages));
    }
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, one_batch(input))})}};
}

}  // namespace

const Flow local_epochs_flow{"local-epochs", "every cell trains the whole model on its own data", compile_local_epochs};

}  // namespace causeway
