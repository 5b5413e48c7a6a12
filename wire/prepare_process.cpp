// See prepare_process.h.
#include "wire/prepare_process.h"

#include <malloc.h>

#include <fmt/format.h>

#include "common/log.h"

namespace causeway {

Result<Capacity> prepare_process_for_links(const Need& need, const Machine& machine) {
    constexpr std::uint64_t most_descriptors = 32768;  // of the largest coordinator
    // Both together: chunks of 1 MiB stay in the heap (1.5 -> 2.0 GB/s); either alone does not help. Models and updates
    // are mappings of their own and go back whole: in the heap each kind that comes for the first time between two
    // others leaves a hole of its size for good.
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    // Each further arena keeps holes of its own: with 4 clients and a 10 MB model 306 MB after 100 rounds and still
    // growing, with two arenas 242 MB from the tenth round on.
    mallopt(M_ARENA_MAX, 2);
    auto capacity = judge(need, machine);
    TRY(can_start(capacity));
    for (const auto& finding : capacity.findings) {
        if (finding.enough == Enough::little) {
            log_warn("machine", fmt::format("{}; {}: {}", finding.error.message, finding.why, finding.mend));
        }
    }
    raise_descriptors(most_descriptors);
    return capacity;
}

}  // namespace causeway
