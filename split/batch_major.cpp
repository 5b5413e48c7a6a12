// batch-major: all clients at once, one host segment. It works on the first batch of every client, in the order of
// their names, then on every second one; clients that have no more batches in an epoch are passed over.
//
// The host's steps are in one order whatever arrives first, so its segment sees every client's data as one sequence,
// and clients wait for each other's batches only where the host does. A client's program is that of `split`: it does
// not know of the others. SplitFed v2 is this flow with client segments that are averaged.
//
// Source: Thapa et al. 2022, SplitFedV2. (There the clients' order within a round is drawn; by name it needs no draw,
// and no decision.)
#include "split/flow.h"

namespace causeway {
extern const Flow batch_major_flow;
namespace {

Result<Program> compile_batch_major(const FlowInput& input) {
    TRY(check_two_stages("batch-major", input));
    if (input.cell.stage != host_cell) {
        return compile_flow("split", input);
    }
    TRY_ASSIGN(const LayerInterval layers, stage_of(input.chain, input.cuts, input.cell.stage));
    auto each_client = make_repeat(RepeatOver::clients, host_batch(layers, first_client_cell));
    return Program{{make_repeat(RepeatOver::epochs, {make_repeat(RepeatOver::batches, {std::move(each_client)})})}};
}

}  // namespace

const Flow batch_major_flow{"batch-major", "all clients at once, one host segment that takes their batches in turn",
                            compile_batch_major};

}  // namespace causeway
