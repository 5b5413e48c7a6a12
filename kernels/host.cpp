// The table functions of backends in host memory. Foreign exceptions (bad_alloc) end here.
//
// threads  alloc, free and copy: any
#include "kernels/host.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "kernels/kinds.h"

namespace causeway {
namespace {

constexpr std::uint64_t alignment = 64;  // a cache line, and the widest vector

struct KernelPlan final : cw_plan {
    cw_op op;
    HostKernel kernel;
    KernelPlan(const cw_op& prepared, HostKernel body) : op(prepared), kernel(body) {}
    cw_status run(const cw_run& run, cw_error*) override {
        kernel(op, run);
        return CW_OK;
    }
};

void close_device(cw_device* device) { std::unique_ptr<cw_device>{device}.reset(); }
const char* signature(const cw_device* device) { return device->signature.c_str(); }

cw_status allocate(cw_device*, std::uint64_t bytes, void** memory, cw_error* error) {
    const auto whole = (bytes / alignment + 1) * alignment;  // aligned_alloc wants a multiple, and never 0
    *memory = bytes < whole ? std::aligned_alloc(alignment, whole) : nullptr;
    return *memory != nullptr ? CW_OK : fail_with(error, CW_OUT_OF_MEMORY, "out of memory: use a smaller batch");
}
void release(cw_device*, void* memory) { std::free(memory); }

cw_status copy(cw_device*, cw_stream*, void* to, const void* from, std::uint64_t bytes, cw_direction, cw_error*) {
    if (bytes > 0) {  // null pointers are allowed then
        std::memmove(to, from, bytes);
    }
    return CW_OK;
}

// All work is done when a call returns, so there is nothing to wait for; null stands for every stream and event.
cw_status stream(cw_device*, cw_stream_action, cw_stream** stream, cw_error*) {
    *stream = nullptr;
    return CW_OK;
}
cw_status event(cw_device*, cw_event_action, cw_stream*, cw_event** event, cw_error*) {
    *event = nullptr;
    return CW_OK;
}

cw_status prepare(cw_device* device, const cw_op* op, cw_plan** plan, cw_error* error) {
    *plan = nullptr;
    if (const auto status = check_op(*op, error); status != CW_OK) {
        return status;
    }
    try {
        std::unique_ptr<cw_plan> made;
        const auto status = device->prepare(*op, &made, error);
        *plan = made.release();
        return status;
    } catch (const std::bad_alloc&) {
        return fail_with(error, CW_OUT_OF_MEMORY, "out of memory while an operation was prepared");
    } catch (const std::exception& exception) {
        return fail_with(error, CW_FAILED, exception.what());
    }
}

cw_plan_size plan_size(const cw_plan* plan) { return plan->size(); }
cw_status pack(cw_plan* plan, cw_stream*, const cw_view* weights, void* packed, cw_error* error) {
    return plan->pack(*weights, packed, error);
}
cw_status run(cw_plan* plan, cw_stream*, const cw_run* run, cw_error* error) { return plan->run(*run, error); }
void drop(cw_plan* plan) { std::unique_ptr<cw_plan>{plan}.reset(); }

}  // namespace

cw_status prepare_kernel(const cw_op& op, HostKernel kernel, std::unique_ptr<cw_plan>* plan, cw_error* error) {
    if (kernel == nullptr) {
        return fail_with(error, CW_UNSUPPORTED, "this backend has no kernel of that kind");
    }
    *plan = std::make_unique<KernelPlan>(op, kernel);
    return CW_OK;
}

cw_backend host_backend(const char* name, decltype(cw_backend::open) open) {
    return {CW_ABI, name,  open,    close_device, signature, allocate, release, copy,
            stream, event, prepare, plan_size,    pack,      run,      drop};
}

}  // namespace causeway
