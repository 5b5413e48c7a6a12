// One loop on the device's threads: GNU OpenMP's pool, the one that oneDNN uses too, so that never two pools spin.
//
// The parts are contiguous and as equal as can be. Kernels use it only where the bits do not depend on the parts.
// Thread: the trainer's.
#pragma once

#include <cstdint>

namespace causeway::cpu {

/// body(context, begin, end) over parts of [0, count), one per thread; on the calling thread alone when threads is 1.
void parallel_parts(int threads, std::int64_t count, void (*body)(void* context, std::int64_t begin, std::int64_t end),
                    void* context);

/// body(begin, end). `least` is the smallest part that is worth a thread.
template <class Body>
void parallel(int threads, std::int64_t count, std::int64_t least, Body&& body) {
    const auto worth = count / (least > 0 ? least : 1);
    const int used = worth < threads ? static_cast<int>(worth < 1 ? 1 : worth) : threads;
    if (used == 1) {
        body(std::int64_t{0}, count);
        return;
    }
    parallel_parts(
        used, count,
        [](void* context, std::int64_t begin, std::int64_t end) {
            (*static_cast<decltype(&body)>(context))(begin, end);
        },
        &body);
}

}  // namespace causeway::cpu
