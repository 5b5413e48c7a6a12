// The list of all targets, in the order in which they are tried. A new decoder is one entry in its folder's file.
// Thread: one.
#include "tests/fuzz/targets.h"

namespace causeway {

std::vector<const FuzzTarget*> all_targets() {
    std::vector<const FuzzTarget*> all;
    for (const auto targets : {wire_targets(), stream_targets(), data_targets(), text_targets(), model_targets()}) {
        for (const auto& target : targets) {
            all.push_back(&target);
        }
    }
    return all;
}

}  // namespace causeway
