// Plans of kernels that share their work between threads. Thread: the trainer's.
#include <array>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/kinds.h"

namespace causeway::cpu {
namespace {

struct ThreadedPlan final : cw_plan {
    cw_op op;
    ThreadedKernel kernel;
    int threads;
    ThreadedPlan(const cw_op& prepared, ThreadedKernel body, int count) : op(prepared), kernel(body), threads(count) {}
    cw_plan_size size() const override {
        return {kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(op), 0};
    }
    cw_status run(const cw_run& run, cw_error*) override {
        kernel.run(op, run, threads);
        return CW_OK;
    }
};

constexpr std::int64_t least_elements = 16384;  // of a thread's part: several times the cost of a wake-up

/// An element-wise kernel in as many parts as there are threads. Each element is a function of the others' at its place
/// alone, so the parts do not show in the bits.
struct SlicedPlan final : cw_plan {
    cw_op op;
    HostKernel kernel;
    int threads;
    SlicedPlan(const cw_op& prepared, HostKernel body, int count) : op(prepared), kernel(body), threads(count) {}
    cw_status run(const cw_run& run, cw_error*) override {
        parallel(threads, length(run, 0), least_elements, [&](std::int64_t begin, std::int64_t end) {
            std::array<cw_view, 4> views;
            for (std::int32_t k = 0; k < run.view_count; ++k) {
                views[k] = run.views[k];
                views[k].data = static_cast<float*>(views[k].data) + begin;
                views[k].dims[0] = end - begin;
            }
            cw_run part = run;
            part.views = views.data();
            kernel(op, part);
        });
        return CW_OK;
    }
};

/// Kinds of f32[N] operands alone, one result per place.
bool is_element_wise(std::int32_t kind) {
    switch (kind) {
        case CW_RELU:
        case CW_RELU_BACKWARD:
        case CW_GELU:
        case CW_GELU_BACKWARD:
        case CW_SILU:
        case CW_SILU_BACKWARD:
        case CW_SGD:
        case CW_ADAMW:
        case CW_ADAM:
        case CW_AXPY:
        case CW_SCALE:
        case CW_FILL:
        case CW_COPY: return true;
        default: return false;
    }
}

}  // namespace

cw_status prepare_streaming(const cw_op& op, int threads, std::unique_ptr<cw_plan>* plan, cw_error* error) {
    const auto kernel = streaming_kernel(op.kind);
    if (kernel == nullptr || threads == 1 || !is_element_wise(op.kind)) {
        return prepare_kernel(op, kernel, plan, error);
    }
    *plan = std::make_unique<SlicedPlan>(op, kernel, threads);
    return CW_OK;
}

cw_status prepare_threaded(const cw_op& op, ThreadedKernel kernel, int threads, std::unique_ptr<cw_plan>* plan,
                           cw_error* error) {
    if (kernel.run == nullptr) {
        return fail_with(error, CW_UNSUPPORTED, "this backend has no kernel of that kind");
    }
    *plan = std::make_unique<ThreadedPlan>(op, kernel, threads);
    return CW_OK;
}

}  // namespace causeway::cpu
