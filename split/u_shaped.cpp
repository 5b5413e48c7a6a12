// u-shaped: the client keeps both ends of the chain, inputs and labels; a host runs the middle.
//
// Stages 0 and 2 are one node's, so one program works on both; compiling stage 2 gives the program of stage 0. The host
// never sees a label, and computes no loss. An overlap (split.cpp) makes the first segment's weights stale, never
// the last one's.
//
// Source: Vepakomma et al. 2018, the configuration without label sharing.
#include <fmt/format.h>

#include "split/flow.h"

namespace causeway {
extern const Flow u_shaped_flow;
namespace {

Instruction to(std::uint32_t cell, Payload payload) {
    return {.code = OpCode::send, .index = cell, .payload = payload};
}

Instruction from(std::uint32_t cell, Payload payload) {
    return {.code = OpCode::receive, .index = cell, .payload = payload};
}

std::vector<Instruction> u_shaped_client_batch(LayerInterval first, LayerInterval last, std::uint32_t overlap) {
    std::vector<Instruction> batch{{.code = OpCode::load},
                                   make_forward(first),
                                   to(host_cell, Payload::activations),
                                   from(host_cell, Payload::activations),
                                   make_forward(last),
                                   {.code = OpCode::loss},
                                   make_backward(last),
                                   to(host_cell, Payload::gradients),
                                   make_step(last),
                                   from(host_cell, Payload::gradients),
                                   make_backward(first),
                                   make_step(first)};
    if (overlap > 0) {
        batch.insert(batch.begin() + 3, make_stash(overlap));  // behind what goes to the host first
    }
    return batch;
}

std::vector<Instruction> host_batch(LayerInterval middle) {
    return {from(client_cell, Payload::activations),
            make_forward(middle),
            to(client_cell, Payload::activations),
            from(client_cell, Payload::gradients),
            make_backward(middle),
            to(client_cell, Payload::gradients),
            make_step(middle)};
}

Result<Program> compile_u_shaped(const FlowInput& input) {
    if (input.stages != 3 || input.cuts.size() != 2) {
        return fail(ErrorKind::invalid, "bad_flow",
                    fmt::format("u-shaped needs three stages and the two cuts between them, not {} stages and {} cuts",
                                input.stages, input.cuts.size()));
    }
    TRY_ASSIGN(const LayerInterval first, stage_of(input.chain, input.cuts, 0));
    TRY_ASSIGN(const LayerInterval middle, stage_of(input.chain, input.cuts, 1));
    TRY_ASSIGN(const LayerInterval last, stage_of(input.chain, input.cuts, 2));
    auto batch = input.cell.stage == host_cell ? host_batch(middle) : u_shaped_client_batch(first, last, input.overlap);
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, std::move(batch))})}};
}

}  // namespace

const Flow u_shaped_flow{"u-shaped", "clients keep both ends of the chain and the labels, a host runs the middle",
                         compile_u_shaped};

}  // namespace causeway
