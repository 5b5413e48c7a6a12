// Flows: how batches move along the stages of a mesh, compiled per cell and round to a program.
//
// To add a flow: one file that defines `const Flow NAME_flow`, one line in flow.cpp.
#pragma once

#include <span>
#include <string_view>

#include "model/chain.h"
#include "model/program.h"

namespace causeway {

/// One (stage, replica) of the mesh, and the layers that its stage holds.
struct Cell {
    std::uint32_t stage = 0;
    std::uint32_t replica = 0;
    LayerInterval segment;
};

/// How programs of two stages number their cells. A host that works for several clients at once knows them by numbers
/// that count up.
constexpr std::uint32_t client_cell = 0, host_cell = 1, first_client_cell = 2;

/// Whether a sync rule acts on gradients before each step (FedProx, SCAFFOLD): the program then says where.
enum class GradientRule { absent, present };

/// How a batch's work is ordered inside a cell.
struct BatchRule {
    enum class Parts { batch, microbatches };
    enum class Snapshots { absent, present };
    Parts parts = Parts::batch;
    std::uint32_t recompute = 0;         // layers of a block whose activations are computed again; 0: all are kept
    std::uint32_t step_deadline_ms = 0;  // 0: none
    Snapshots snapshots = Snapshots::absent;
};

struct FlowInput {
    const Chain& chain;
    Cell cell;
    std::uint32_t stages = 1;
    std::vector<std::uint32_t> cuts{};  // ascending; stage s is [cuts[s - 1], cuts[s]): stages - 1 of them
    GradientRule gradient_rule = GradientRule::absent;
    BatchRule batch{};
    std::uint32_t overlap = 0;  // batches that a client sends before it has the gradient of an earlier one
};

/// A registry entry.
struct Flow {
    std::string_view name;
    std::string_view doc;
    /// errors   invalid `bad_flow`: the mesh has stages that the flow cannot serve
    Result<Program> (*compile)(const FlowInput& input);
};

std::span<const Flow* const> flows();

/// errors   not_found `unknown_flow`, with the nearest name
Result<const Flow*> find_flow(std::string_view name);

/// Compiles and checks: what comes out passes check_program.
///
/// errors   as find_flow and Flow::compile
Result<Program> compile_flow(std::string_view name, const FlowInput& input);

/// Stage `stage` of a chain that is cut at `cuts`.
///
/// errors   invalid `bad_cut`: cuts that do not ascend inside the chain, a stage without a layer, or nothing to learn
///          before the first cut: what would cross it is the raw input
Result<LayerInterval> stage_of(const Chain& chain, const std::vector<std::uint32_t>& cuts, std::uint32_t stage);

/// For flows between a client and a host with one cut.
///
/// errors   invalid `bad_flow`, with the flow's name
Status check_two_stages(std::string_view flow, const FlowInput& input);

/// A host's work on one batch of the client in that cell. The gradient goes out before the host's own step, so that the
/// client does not wait for it.
std::vector<Instruction> host_batch(LayerInterval layers, std::uint32_t client);

/// The layers that a program works on: what a node must hold to run it.
std::vector<LayerInterval> layers_of(const Program& program);

/// The cell of a mesh without cuts: the whole chain.
inline Cell whole_chain(const Chain& chain) {
    return {.segment = {0, static_cast<std::uint32_t>(chain.layer_count())}};
}

}  // namespace causeway
