// iid: a random permutation of all examples, cut into parts whose sizes differ by at most one.
#include "data/partition_tools.h"

namespace causeway {
namespace {

Result<Parts> split_iid(const PartitionInput& input) {
    auto stream = partition_stream(input.seed, 0);
    const auto order = stream.permutation(input.examples);
    Parts parts(input.parts);
    for (std::size_t i = 0; i < order.size(); ++i) {
        parts[i % input.parts].push_back(order[i]);
    }
    return parts;
}

}  // namespace

extern const Partitioner iid_partitioner;
const Partitioner iid_partitioner{"iid", "every part a random sample of equal size", {}, LabelUse::none, split_iid};

}  // namespace causeway
