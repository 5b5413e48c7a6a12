// split: a client runs the layers before the cut, a host those after it; smashed data goes up, cut gradients come back.
//
// Both step after every batch. Labels travel with the smashed data, so the host computes the loss. One relay of clients
// is split learning, several with a host segment each are GSFL, one client each SplitFed: who follows whom is the
// mesh's affair (split/grouping.h), the program is the same. Cells are named by their stage.
//
// With an overlap of N a client sends N batches more before it waits for a gradient: the forward of batch b sees the
// parameters after step b - 1 - N, and so does its backward (a stash of weights as in PipeDream), whatever the timing.
//
// Source: Gupta and Raskar 2018, split learning; Thapa et al. 2022, SplitFed.
#include "split/flow.h"

namespace causeway {
extern const Flow split_flow;
namespace {

std::vector<Instruction> split_client_batch(LayerInterval layers, std::uint32_t overlap) {
    std::vector<Instruction> batch{{.code = OpCode::load},
                                   {.code = OpCode::send, .index = host_cell, .payload = Payload::labels},
                                   make_forward(layers),
                                   {.code = OpCode::send, .index = host_cell, .payload = Payload::activations}};
    if (overlap > 0) {
        batch.push_back(make_stash(overlap));
    }
    batch.push_back({.code = OpCode::receive, .index = host_cell, .payload = Payload::gradients});
    batch.push_back(make_backward(layers));
    batch.push_back(make_step(layers));
    return batch;
}

Result<Program> compile_split(const FlowInput& input) {
    TRY(check_two_stages("split", input));
    TRY_ASSIGN(const LayerInterval layers, stage_of(input.chain, input.cuts, input.cell.stage));
    const bool at_client = input.cell.stage == client_cell;
    auto batch = at_client ? split_client_batch(layers, input.overlap) : host_batch(layers, client_cell);
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, std::move(batch))})}};
}

}  // namespace

const Flow split_flow{"split", "clients run the layers before the cut, a host those after it", compile_split};

}  // namespace causeway
