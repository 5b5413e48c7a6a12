// The reference backend: every kind, one thread, no state.
#include "kernels/kinds.h"
#include "kernels/reference/kernels.h"
#include "kernels/registry.h"

namespace causeway {
namespace {

using namespace reference;

struct ReferenceDevice final : cw_device {
    cw_status prepare(const cw_op& op, std::unique_ptr<cw_plan>* plan, cw_error* error) override {
        HostKernel kernel = nullptr;
        for (const auto find : {matmul_kernel, activation_kernel, loss_kernel, optimizer_kernel, vector_kernel,
                                exact_kernel, convolution_kernel, pooling_kernel, norm_kernel}) {
            kernel = kernel == nullptr ? find(op.kind) : kernel;
        }
        const bool in_bf16 = is_product(op.kind) && op.integers[CW_COMPUTE] == CW_COMPUTE_BF16;
        return prepare_kernel(op, in_bf16 ? bf16_product : kernel, plan, error);
    }
};

cw_status open_reference(const cw_options*, cw_device** device, cw_error*) {
    auto made = std::make_unique<ReferenceDevice>();
    made->signature = "reference 1 double threads=1";
    *device = made.release();
    return CW_OK;
}

}  // namespace

const cw_backend* reference_backend() {
    static const cw_backend table = host_backend("reference", open_reference);
    return &table;
}

}  // namespace causeway
