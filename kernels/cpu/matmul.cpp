// Dense products by oneDNN's matmul primitive, one per (op, shape), with plain row-major operands.
//
// Weights change at every step of training, so packing them anew costs 5 to 10 % and plain [out, in] strides won. The
// layouts are therefore constants here, and never a timing: a timing would change bits between runs. dnnl_sgemm is not
// used: its bits depend on the number of threads. AVX-512: rows do not depend on the batch, nor bits on the threads;
// AVX2: both can (docs/performance.md). Thread: the trainer's; it enters OpenMP with exactly the device's thread count.
#include "kernels/cpu/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/streaming.h"
#include "kernels/kinds.h"

namespace causeway::cpu {
namespace {

dnnl::memory::desc f32(std::int64_t rows, std::int64_t columns, dnnl::memory::dims strides) {
    return {{rows, columns}, dnnl::memory::data_type::f32, std::move(strides)};
}
dnnl::memory::desc row_major(std::int64_t rows, std::int64_t columns) { return f32(rows, columns, {columns, 1}); }
/// The transpose of a row-major [columns, rows].
dnnl::memory::desc transposed(std::int64_t rows, std::int64_t columns) { return f32(rows, columns, {1, rows}); }

/// destination[rows, columns] = source[rows, depth] * weights[depth, columns] (+ bias[1, columns]).
struct Product {
    dnnl::memory::desc source;
    dnnl::memory::desc weights;
    dnnl::memory::desc destination;
    dnnl::memory::desc bias;  // zero: none
};

Product product_of(const cw_op& op) {
    const auto* first = op.operands[0].dims;
    const auto* second = op.operands[1].dims;
    switch (op.kind) {
        case CW_MATMUL:
            return {row_major(first[0], first[1]), transposed(second[1], second[0]), row_major(first[0], second[0]),
                    op.operand_count == 4 ? row_major(1, second[0]) : dnnl::memory::desc{}};
        case CW_MATMUL_BACKWARD_DATA:
            return {row_major(first[0], first[1]), row_major(second[0], second[1]), row_major(first[0], second[1]), {}};
        default:  // backward weights: dy^T [O, B] times x [B, I]
            return {
                transposed(first[1], first[0]), row_major(second[0], second[1]), row_major(first[1], second[1]), {}};
    }
}

/// Where each operand of the op goes: source, weights, bias (-1: none), destination.
struct Places {
    int source = 0;
    int weights = 1;
    int bias = -1;
    int destination = 2;
};

Places places_of(const cw_op& op) {
    const bool forward_with_bias = op.kind == CW_MATMUL && op.operand_count == 4;
    return forward_with_bias ? Places{.bias = 2, .destination = 3} : Places{};
}

bool accumulates(const cw_op& op) { return op.kind == CW_MATMUL_BACKWARD_WEIGHTS && op.integers[0] == CW_ACCUMULATE; }

dnnl::matmul::primitive_desc describe(const OnednnEngine& engine, const cw_op& op) {
    const auto product = product_of(op);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // so that running never allocates
    if (accumulates(op)) {
        dnnl::post_ops adding;
        adding.append_sum();
        attributes.set_post_ops(adding);
    }
    const auto matmul = product.bias.is_zero()
        ? dnnl::matmul::desc(product.source, product.weights, product.destination)
        : dnnl::matmul::desc(product.source, product.weights, product.bias, product.destination);
    return {matmul, attributes, engine.engine};
}

/// db = column sums of dy; threads share the columns.
void bias_gradient(const cw_op& op, const cw_run& run, int threads) {
    const auto* dy = run.views[0].dims;
    constexpr std::int64_t least_columns = 128;  // four cache lines of a row, a few microseconds
    parallel(threads, dy[1], least_columns, [&](std::int64_t begin, std::int64_t end) {
        const Columns columns{static_cast<std::size_t>(dy[0]), static_cast<std::size_t>(dy[1]),
                              static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
        column_sums(operand<const float>(run, 0), columns, static_cast<cw_write>(op.integers[0]),
                    operand<float>(run, 3));
    });
}

struct MatmulPlan final : cw_plan {
    std::shared_ptr<OnednnEngine> engine;
    cw_op op;
    Places places;
    std::string implementation;
    std::uint64_t scratchpad_bytes = 0;
    dnnl::matmul primitive;
    // Memory objects are wrappers of a pointer, made once: run only exchanges the pointer.
    dnnl::memory source, weights, bias, destination, scratchpad;
    std::array<dnnl_exec_arg_t, 5> arguments{};
    int argument_count = 0;

    MatmulPlan(std::shared_ptr<OnednnEngine> shared, const cw_op& wanted)
        : engine(std::move(shared)), op(wanted), places(places_of(wanted)) {
        const ThreadCount scope(engine->threads);
        const auto description = describe(*engine, op);
        implementation = description.impl_info_str();
        scratchpad_bytes = description.scratchpad_desc().get_size();
        primitive = dnnl::matmul(description);
        add(source, DNNL_ARG_SRC, description.src_desc());
        add(weights, DNNL_ARG_WEIGHTS, description.weights_desc());
        add(destination, DNNL_ARG_DST, description.dst_desc());
        add(scratchpad, DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
        if (places.bias >= 0) {
            add(bias, DNNL_ARG_BIAS, row_major(1, op.operands[places.bias].dims[0]));
        }
    }
    void add(dnnl::memory& memory, int argument, const dnnl::memory::desc& description) {
        memory = dnnl::memory(description, engine->engine, nullptr);
        arguments[argument_count++] = {argument, memory.get()};
    }

    cw_plan_size size() const override { return {scratchpad_bytes, 0}; }
    cw_status run(const cw_run& run, cw_error* error) override;
};

cw_status MatmulPlan::run(const cw_run& run, cw_error* error) {
    const ThreadCount scope(engine->threads);
    const auto point = [&](const dnnl::memory& memory, void* data) { dnnl_memory_set_data_handle(memory.get(), data); };
    point(source, run.views[places.source].data);
    point(weights, run.views[places.weights].data);
    point(destination, run.views[places.destination].data);
    point(scratchpad, run.workspace);
    if (places.bias >= 0) {
        point(bias, run.views[places.bias].data);
    }
    const auto status =
        dnnl_primitive_execute(primitive.get(), engine->stream.get(), argument_count, arguments.data());
    if (status != dnnl_success) {
        return fail_with(error, CW_FAILED, fmt::format("oneDNN matmul failed: status {}", static_cast<int>(status)));
    }
    if (op.kind == CW_MATMUL_BACKWARD_WEIGHTS && op.operand_count == 4) {
        bias_gradient(op, run, engine->threads);
    }
    return CW_OK;
}

/// A product with an empty dimension, which oneDNN need not see: zeros or the bias, or nothing when it accumulates.
void run_empty(const cw_op& op, const cw_run& run) {
    const auto places = places_of(op);
    auto* out = operand<float>(run, places.destination);
    const auto columns = run.views[places.destination].dims[1];
    const auto count = element_count(run.views[places.destination]);
    for (std::int64_t i = 0; i < count && !accumulates(op); ++i) {
        out[i] = places.bias >= 0 ? operand<const float>(run, places.bias)[i % columns] : 0.0f;
    }
    if (op.kind == CW_MATMUL_BACKWARD_WEIGHTS && op.operand_count == 4) {
        bias_gradient(op, run, 1);
    }
}

bool has_empty_operand(const cw_op& op) {
    return std::any_of(op.operands, op.operands + op.operand_count,
                       [](const cw_view& view) { return element_count(view) == 0; });
}

std::string_view instruction_set() {
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::sse41: return "sse41";
        case dnnl::cpu_isa::avx: return "avx";
        case dnnl::cpu_isa::avx2: return "avx2";
        case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
        case dnnl::cpu_isa::avx512_core: return "avx512";
        case dnnl::cpu_isa::avx512_core_vnni: return "avx512_vnni";
        case dnnl::cpu_isa::avx512_core_bf16: return "avx512_bf16";
        case dnnl::cpu_isa::avx512_core_amx: return "avx512_amx";
        default: return "other";
    }
}

}  // namespace

std::string onednn_signature() {
    const auto* version = dnnl::version();
    return fmt::format("onednn-{}.{}.{} {}", version->major, version->minor, version->patch, instruction_set());
}

std::shared_ptr<OnednnEngine> make_onednn_engine(int threads) {
    auto engine = std::make_shared<OnednnEngine>();
    engine->threads = threads;
    return engine;
}

cw_status prepare_matmul(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op, std::unique_ptr<cw_plan>* plan,
                         cw_error* error) {
    if (has_empty_operand(op)) {
        return prepare_kernel(op, run_empty, plan, error);
    }
    *plan = std::make_unique<MatmulPlan>(engine, op);
    return CW_OK;
}

std::string matmul_implementation(const cw_plan& plan) {
    const auto* matmul = dynamic_cast<const MatmulPlan*>(&plan);
    return matmul == nullptr ? std::string{} : matmul->implementation;
}

}  // namespace causeway::cpu
