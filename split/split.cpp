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
#include <fmt/format.h>

#include "split/flow.h"

namespace causeway {
extern const Flow split_flow;
namespace {

constexpr std::uint32_t client = client_cell, host = host_cell;

std::vector<Instruction> client_batch(LayerInterval layers, std::uint32_t overlap) {
    std::vector<Instruction> batch{{.code = OpCode::load},
                                   {.code = OpCode::send, .index = host, .payload = Payload::labels},
                                   make_forward(layers),
                                   {.code = OpCode::send, .index = host, .payload = Payload::activations}};
    if (overlap > 0) {
        batch.push_back(make_stash(overlap));
    }
    batch.push_back({.code = OpCode::receive, .index = host, .payload = Payload::gradients});
    batch.push_back(make_backward(layers));
    batch.push_back(make_step(layers));
    return batch;
}

/// The gradient goes out before the host's own step, so the client does not wait for it.
std::vector<Instruction> host_batch(LayerInterval layers) {
    return {{.code = OpCode::receive, .index = client, .payload = Payload::labels},
            {.code = OpCode::receive, .index = client, .payload = Payload::activations},
            make_forward(layers),
            {.code = OpCode::loss},
            make_backward(layers),
            {.code = OpCode::send, .index = client, .payload = Payload::gradients},
            make_step(layers)};
}

Result<Program> compile(const FlowInput& input) {
    if (input.stages != 2 || input.cuts.size() != 1) {
        return fail(ErrorKind::invalid, "bad_flow",
                    fmt::format("split needs two stages and the cut between them, not {} stages and {} cuts",
                                input.stages, input.cuts.size()));
    }
    TRY_ASSIGN(const LayerInterval layers, stage_of(input.chain, input.cuts, input.cell.stage));
    auto batch = input.cell.stage == client ? client_batch(layers, input.overlap) : host_batch(layers);
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, std::move(batch))})}};
}

}  // namespace

const Flow split_flow{"split", "clients run the layers before the cut, a host those after it", compile};

}  // namespace causeway
