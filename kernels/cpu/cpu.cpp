// The cpu backend: oneDNN for products and convolutions, Highway for the rest.
//
// Plans of the streaming kinds are one thread's loop over memory; the others use the device's threads.
#include <fmt/format.h>

#include "kernels/cpu/convolution.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/matmul.h"
#include "kernels/kinds.h"
#include "kernels/registry.h"

namespace causeway {
namespace {

struct CpuDevice final : cw_device {
    std::shared_ptr<cpu::OnednnEngine> engine;
    int threads = 1;

    cw_status prepare(const cw_op& op, std::unique_ptr<cw_plan>* plan, cw_error* error) override {
        switch (op.kind) {
            case CW_MATMUL:
            case CW_MATMUL_BACKWARD_DATA:
            case CW_MATMUL_BACKWARD_WEIGHTS: return cpu::prepare_matmul(engine, op, plan, error);
            case CW_CONVOLUTION:
            case CW_CONVOLUTION_BACKWARD_DATA:
            case CW_CONVOLUTION_BACKWARD_WEIGHTS: return cpu::prepare_convolution(engine, op, plan, error);
            case CW_MAXPOOL:
            case CW_MAXPOOL_BACKWARD:
            case CW_RELU_MAXPOOL:
            case CW_RELU_MAXPOOL_BACKWARD:
            case CW_AVGPOOL:
            case CW_AVGPOOL_BACKWARD:
                return cpu::prepare_threaded(op, cpu::pooling_kernel(op.kind), threads, plan, error);
            case CW_GROUP_NORM:
            case CW_GROUP_NORM_BACKWARD:
            case CW_BATCH_NORM:
            case CW_BATCH_NORM_INFERENCE:
            case CW_BATCH_NORM_BACKWARD:
                return cpu::prepare_threaded(op, cpu::norm_kernel(op.kind), threads, plan, error);
            case CW_SOFTMAX_CROSS_ENTROPY:
            case CW_WEIGHTED_CROSS_ENTROPY:
            case CW_MEAN_SQUARED_ERROR:
            case CW_BINARY_CROSS_ENTROPY: return prepare_kernel(op, cpu::loss_kernel(op.kind), plan, error);
            default: return cpu::prepare_streaming(op, threads, plan, error);
        }
    }
};

cw_status open_cpu(const cw_options* options, cw_device** device, cw_error* error) {
    try {
        auto made = std::make_unique<CpuDevice>();
        made->engine = cpu::make_onednn_engine(options->threads);
        made->threads = options->threads;
        made->signature = fmt::format("cpu {} threads={}", cpu::onednn_signature(), options->threads);
        *device = made.release();
        return CW_OK;
    } catch (const std::exception& exception) {
        return fail_with(error, CW_FAILED, exception.what());
    }
}

}  // namespace

const cw_backend* cpu_backend() {
    static const cw_backend table = host_backend("cpu", open_cpu);
    return &table;
}

}  // namespace causeway
