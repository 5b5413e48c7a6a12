// Dense products by oneDNN's matmul primitive, one per (op, shape); operands row-major, packed weights as it likes.
//
// Packing costs about what it saves in one product, and weights change at every step of training: so plain [out, in]
// weights are the rule, and packed ones are for whoever uses a version again. Layouts are never decided by a timing: a
// timing would change bits between runs. dnnl_sgemm is not used: its bits depend on the number of threads. AVX-512:
// rows do not depend on the batch, nor bits on the threads, the caches or on packing; AVX2 and AMX: they can
// (docs/performance.md), so there nothing is packed. Thread: the trainer's; it enters OpenMP with exactly the device's
// thread count.
#include "kernels/cpu/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/caches.h"
#include "kernels/cpu/product.h"
#include "kernels/kinds.h"

namespace causeway::cpu {
namespace {

using MatmulType = dnnl::memory::data_type;

dnnl::memory::desc row_major(std::int64_t rows, std::int64_t columns, MatmulType type = MatmulType::f32) {
    return {{rows, columns}, type, dnnl::memory::dims{columns, 1}};
}
/// The transpose of a row-major [columns, rows].
dnnl::memory::desc transposed(std::int64_t rows, std::int64_t columns, MatmulType type = MatmulType::f32) {
    return {{rows, columns}, type, dnnl::memory::dims{1, rows}};
}

bool matmul_accumulates(const cw_op& op) {
    return op.kind == CW_MATMUL_BACKWARD_WEIGHTS && op.integers[0] == CW_ACCUMULATE;
}
bool has_bias(const cw_op& op) { return op.operand_count == 4; }

/// destination[rows, columns] = source[rows, depth] * weights[depth, columns] (+ bias[1, columns]), in oneDNN's words.
/// `wanted` and `plain` differ in the type of the factors.
Product sides_of(const cw_op& op) {
    const auto* first = op.operands[0].dims;
    const auto* second = op.operands[1].dims;
    const MatmulType type = factor_type(op);
    Product product;
    const auto set = [&](auto source, std::int64_t rows, std::int64_t depth, auto weights, std::int64_t columns) {
        const int out = op.kind == CW_MATMUL && has_bias(op) ? 3 : 2;
        product.first = {DNNL_ARG_SRC, 0, source(rows, depth, MatmulType::f32), source(rows, depth, type)};
        product.second = {DNNL_ARG_WEIGHTS, 1, weights(depth, columns, MatmulType::f32), weights(depth, columns, type)};
        product.result = {DNNL_ARG_DST, out, row_major(rows, columns), row_major(rows, columns)};
    };
    switch (op.kind) {
        case CW_MATMUL:
            set(row_major, first[0], first[1], transposed, second[0]);
            if (has_bias(op)) {
                product.bias = {DNNL_ARG_BIAS, 2, row_major(1, second[0]), row_major(1, second[0])};
            }
            break;
        case CW_MATMUL_BACKWARD_DATA: set(row_major, first[0], first[1], row_major, second[1]); break;
        default:  // backward weights: dy^T [O, B] times x [B, I]
            set(transposed, first[1], first[0], row_major, second[1]);
            product.sums_bias = has_bias(op);
            break;
    }
    return product;
}

enum class Weights { plain, packed };

Product describe(const OnednnEngine& engine, const cw_op& op, Weights weights) {
    Product product = sides_of(op);
    auto attributes = user_scratchpad();
    if (matmul_accumulates(op)) {
        dnnl::post_ops adding;
        adding.append_sum();
        attributes.set_post_ops(adding);
    }
    auto& second = product.second;
    if (weights == Weights::packed) {
        second.wanted = {second.wanted.dims(), second.wanted.data_type(), dnnl::memory::format_tag::any};
    }
    const auto matmul =
        product.bias.wanted.is_zero()
            ? dnnl::matmul::desc(product.first.wanted, second.wanted, product.result.wanted)
            : dnnl::matmul::desc(product.first.wanted, second.wanted, product.bias.wanted, product.result.wanted);
    const dnnl::matmul::primitive_desc description(matmul, attributes, engine.engine);
    second.wanted = description.weights_desc();
    product.packs = weights == Weights::packed;
    product.set(description, dnnl::matmul(description));
    return product;
}

/// A product with an empty dimension, which oneDNN need not see: zeros or the bias, or nothing when it accumulates.
void run_empty_matmul(const cw_op& op, const cw_run& run) {
    const auto product = sides_of(op);
    const int destination = product.result.view;
    auto* out = operand<float>(run, destination);
    const auto columns = run.views[destination].dims[1];
    const auto count = element_count(run.views[destination]);
    for (std::int64_t i = 0; i < count && !matmul_accumulates(op); ++i) {
        out[i] = op.kind == CW_MATMUL && has_bias(op) ? operand<const float>(run, 2)[i % columns] : 0.0f;
    }
    if (product.sums_bias) {
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

bool has_avx512() {
    const auto isa = dnnl::get_effective_cpu_isa();
    return (static_cast<unsigned>(isa) & static_cast<unsigned>(dnnl::cpu_isa::avx512_core)) ==
           static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
}

std::string onednn_signature() {
    const auto* version = dnnl::version();
    return fmt::format("onednn-{}.{}.{} {} caches={}", version->major, version->minor, version->patch,
                       instruction_set(), caches_as_onednn_sees_them());
}

bool computes_in_amx(const cw_op& op) {
    return in_bf16(op) && dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
}

std::shared_ptr<OnednnEngine> make_onednn_engine(int threads) {
    auto engine = std::make_shared<OnednnEngine>();
    engine->threads = threads;
    return engine;
}

cw_status check_compute(const cw_op& op, cw_error* error) {
    const auto set = instruction_set();
    if (!in_bf16(op) || set == "avx512_bf16" || set == "avx512_amx") {
        return CW_OK;
    }
    return fail_with(error, CW_UNSUPPORTED,
                     fmt::format("bf16 compute needs a processor with avx512_bf16 or amx_bf16, this one has {}; set "
                                 "train.compute = \"f32\"",
                                 set));
}

cw_status prepare_matmul(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op, std::unique_ptr<cw_plan>* plan,
                         cw_error* error) {
    if (const auto status = check_compute(op, error); status != CW_OK) {
        return status;
    }
    if (has_empty_operand(op)) {
        return prepare_kernel(op, run_empty_matmul, plan, error);
    }
    const ThreadCount scope(engine->threads);
    std::unique_ptr<Product> for_packed;
    // AMX's sums are cut where the second cache ends, and for packed weights elsewhere than for plain ones.
    if (op.kind != CW_MATMUL_BACKWARD_WEIGHTS && has_avx512() && !computes_in_amx(op)) {
        auto packed = describe(*engine, op, Weights::packed);
        if (packed.second.wanted != packed.second.plain) {
            for_packed = std::make_unique<Product>(std::move(packed));
        }
    }
    *plan = make_product_plan(engine, op, describe(*engine, op, Weights::plain), std::move(for_packed));
    return CW_OK;
}

}  // namespace causeway::cpu
