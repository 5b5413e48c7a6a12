// How the cpu backend finds the kernel of a kind.
//
// threads  reentrant, all of them
#pragma once

#include "kernels/host.h"

namespace causeway::cpu {

/// nullptr when the file has no kernel of that kind.
HostKernel loss_kernel(std::int32_t kind);
HostKernel streaming_kernel(std::int32_t kind);
/// A plan of a streaming kind. On a device with several threads element-wise kinds are shared between them; such a
/// device's plans then belong to the trainer thread.
cw_status prepare_streaming(const cw_op& op, int threads, std::unique_ptr<cw_plan>* plan, cw_error* error);

/// A kernel of the trainer thread that may use several threads, and its scratch memory.
struct ThreadedKernel {
    void (*run)(const cw_op& op, const cw_run& run, int threads) = nullptr;
    std::uint64_t (*workspace_bytes)(const cw_op& op) = nullptr;  // null: none
};
ThreadedKernel pooling_kernel(std::int32_t kind);
ThreadedKernel norm_kernel(std::int32_t kind);
/// The plan of such a kernel; null kernel: CW_UNSUPPORTED.
cw_status prepare_threaded(const cw_op& op, ThreadedKernel kernel, int threads, std::unique_ptr<cw_plan>* plan,
                           cw_error* error);

}  // namespace causeway::cpu
