// What the backends that compute in host memory share: allocation, copies, and streams that are always done.
//
// reference/ and cpu/ only say how an op becomes a plan. This also defines the two opaque structs of backend.h for
// them; a plugin is a library of its own and defines them anew.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

struct cw_plan {
    virtual ~cw_plan() = default;
    virtual cw_plan_size size() const { return {0, 0}; }
    virtual cw_status pack(const cw_view&, void*, cw_error*) { return CW_OK; }  // of plans without packed bytes
    virtual cw_status run(const cw_run& run, cw_error* error) = 0;
};

struct cw_device {
    virtual ~cw_device() = default;
    /// The op has been checked by check_op.
    virtual cw_status prepare(const cw_op& op, std::unique_ptr<cw_plan>* plan, cw_error* error) = 0;
    std::string signature;
};

namespace causeway {

/// A kernel that needs nothing but its operands: most of them.
using HostKernel = void (*)(const cw_op& op, const cw_run& run);

/// A plan that calls such a kernel; null kernel: CW_UNSUPPORTED.
cw_status prepare_kernel(const cw_op& op, HostKernel kernel, std::unique_ptr<cw_plan>* plan, cw_error* error);

/// A table whose functions all are ready but for open.
cw_backend host_backend(const char* name, decltype(cw_backend::open) open);

template <class T>
T* operand(const cw_run& run, int index) {
    return static_cast<T*>(run.views[index].data);
}
/// Elements of a rank-1 operand.
inline std::int64_t length(const cw_run& run, int index) { return run.views[index].dims[0]; }

}  // namespace causeway
