// The case table and the inputs of a case.
//
// How far a backend may be from the reference is in allowances.cpp.
#include "tests/kernels/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/assert.h"
#include "common/random.h"
#include "kernels/kinds.h"
#include "kernels/window.h"

namespace causeway::checker {
namespace {

using Shapes = std::vector<ops::MatmulShape>;
// Empty in each dimension, single, odd, prime, powers of two and beside them, one of many rows, one above the blocks.
const Shapes matmul_shapes = {{0, 3, 2},    {3, 0, 2},     {2, 3, 0},      {1, 1, 1},       {1, 7, 3},     {2, 5, 5},
                              {3, 17, 13},  {7, 64, 10},   {32, 64, 32},   {63, 127, 10},   {64, 129, 67}, {128, 64, 1},
                              {1, 512, 97}, {5, 1031, 3},  {33, 257, 259}, {257, 31, 17}};
const std::vector<std::int64_t> lengths = {0,  1,  2,   3,   7,   8,    9,    15,   16,   17,  31,
                                           32, 33, 127, 257, 511, 1009, 4095, 4096, 4097, 9973};
const std::vector<std::pair<std::int64_t, std::int64_t>> softmax_shapes = {
    {0, 10}, {1, 1}, {1, 2}, {2, 3}, {7, 7}, {32, 8}, {31, 9}, {32, 10}, {5, 127}, {3, 1031}, {64, 10}};

std::vector<cw_op> matmul_ops(const ops::MatmulShape& shape) {
    return {ops::matmul(shape),
            ops::matmul(shape, ops::Bias::absent),
            ops::matmul_backward_data(shape),
            ops::matmul_backward_weights(shape),
            ops::matmul_backward_weights(shape, ops::Write::accumulate),
            ops::matmul_backward_weights(shape, ops::Write::overwrite, ops::Bias::absent)};
}

/// Each product also in these ways.
std::vector<cw_op> and_in(std::initializer_list<Compute> ways, std::vector<cw_op> ops) {
    const auto plain = ops;
    for (const Compute way : ways) {
        for (const auto& op : plain) {
            ops.push_back(op);
            ops.back().integers[CW_COMPUTE] = static_cast<std::int64_t>(way);
        }
    }
    return ops;
}

std::vector<cw_op> element_wise_ops(std::int64_t n) {
    return {ops::relu(n),
            ops::relu_backward(n),
            ops::gelu(n),
            ops::gelu_backward(n),
            ops::silu(n),
            ops::silu_backward(n),
            ops::dropout(n),
            ops::sgd(ops::Momentum::absent, n),
            ops::sgd(ops::Momentum::plain, n),
            ops::sgd(ops::Momentum::nesterov, n),
            ops::adamw(n),
            ops::adam(n),
            ops::axpy(n),
            ops::scale(n),
            ops::sum_of_squares(n),
            ops::fill(n),
            ops::copy(n),
            ops::exact_add(1, n),
            ops::exact_add(3, n),
            ops::exact_add(8, n),
            ops::exact_carry(n),
            ops::exact_mean(n)};
}

/// A square window over a square image; out sizes follow.
Window window_of(std::int64_t batch, std::int64_t size, std::int64_t channels, std::int64_t outputs,
                 std::int64_t window, std::int64_t stride, std::int64_t pad, std::int64_t groups) {
    Window w{.batch = batch, .height = size, .width = size + 1, .channels = channels, .outputs = outputs,
             .window_height = window, .window_width = window, .stride = stride, .above = pad, .below = pad,
             .left = pad, .right = pad, .groups = groups};
    w.out_height = (w.height + 2 * pad - window) / stride + 1;
    w.out_width = (w.width + 2 * pad - window) / stride + 1;
    return w;
}

// No image, one pixel, odd and prime channels, channels in whole blocks and beside them, strides, groups, depthwise.
const std::vector<Window> convolutions = {
    window_of(0, 4, 3, 2, 3, 1, 1, 1), window_of(1, 1, 1, 1, 1, 1, 0, 1),   window_of(2, 5, 1, 7, 3, 1, 1, 1),
    window_of(3, 6, 3, 16, 3, 1, 1, 1), window_of(2, 8, 16, 32, 3, 1, 1, 1), window_of(2, 7, 13, 11, 3, 2, 1, 1),
    window_of(2, 9, 32, 16, 5, 1, 2, 1), window_of(5, 6, 64, 64, 1, 1, 0, 1), window_of(2, 8, 32, 64, 1, 2, 0, 1),
    window_of(2, 6, 6, 4, 3, 1, 1, 2),  window_of(2, 6, 32, 32, 3, 1, 1, 32), window_of(2, 8, 17, 33, 2, 2, 0, 1),
    // Winograd's: one tile, tiles that end beyond the image, many channels.
    window_of(1, 4, 32, 32, 3, 1, 1, 1), window_of(3, 7, 48, 64, 3, 1, 1, 1), window_of(5, 13, 32, 48, 3, 1, 1, 1),
    window_of(7, 5, 272, 32, 3, 1, 1, 1)};
/// Windows that cover each place of the image exactly once.
Window tiled(std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t channels, std::int64_t window) {
    return {.batch = batch, .height = rows * window, .width = columns * window, .channels = channels,
            .out_height = rows, .out_width = columns, .outputs = channels, .window_height = window,
            .window_width = window, .stride = window};
}
const std::vector<Window> pools = {
    tiled(3, 3, 2, 19, 2),             tiled(2, 2, 3, 64, 3),
    window_of(0, 4, 3, 3, 2, 2, 0, 1), window_of(1, 1, 1, 1, 1, 1, 0, 1), window_of(3, 6, 5, 5, 2, 2, 0, 1),
    window_of(2, 7, 16, 16, 3, 2, 1, 1), window_of(4, 8, 33, 33, 2, 2, 0, 1), window_of(2, 4, 67, 67, 4, 1, 0, 1)};
const std::vector<ops::NormShape> norms = {{0, 3, 4, 2, 1e-5},  {1, 1, 1, 1, 1e-5},   {5, 1, 7, 1, 1e-5},
                                           {3, 4, 6, 3, 1e-3},  {2, 16, 32, 8, 1e-5}, {33, 9, 19, 1, 1e-5},
                                           {64, 1, 129, 1, 1e-5}, {17, 25, 16, 16, 1e-5}};

std::vector<cw_op> convolution_ops(const Window& w) {
    return {ops::convolution(w),
            ops::convolution(w, ops::Bias::absent),
            ops::convolution_backward_data(w),
            ops::convolution_backward_weights(w),
            ops::convolution_backward_weights(w, ops::Write::accumulate),
            ops::convolution_backward_weights(w, ops::Write::overwrite, ops::Bias::absent)};
}

std::vector<cw_op> pool_ops(const Window& w) {
    std::vector<cw_op> ops = {ops::maxpool(w), ops::maxpool_backward(w), ops::avgpool(w), ops::avgpool_backward(w)};
    if (tiles(w)) {
        ops.push_back(ops::relu_maxpool(w));
        ops.push_back(ops::relu_maxpool_backward(w));
    }
    return ops;
}

std::vector<cw_op> norm_ops(const ops::NormShape& shape) {
    return {ops::group_norm(shape),
            ops::group_norm_backward(shape),
            ops::group_norm_backward(shape, ops::Write::accumulate),
            ops::batch_norm(shape),
            ops::batch_norm_inference(shape),
            ops::batch_norm_backward(shape),
            ops::batch_norm_backward(shape, ops::Write::accumulate)};
}

std::vector<cw_op> softmax_ops(std::int64_t batch, std::int64_t classes) {
    return {ops::softmax_cross_entropy(batch, classes),
            ops::softmax_cross_entropy(batch, classes, ops::Gradient::absent),
            ops::softmax_cross_entropy(batch, classes, ops::Gradient::present, ops::Labels::u32),
            ops::weighted_cross_entropy(batch, classes),
            ops::weighted_cross_entropy(batch, classes, ops::Gradient::absent, ops::Labels::u32),
            ops::mean_squared_error(batch, classes),
            ops::mean_squared_error(batch, classes, ops::Gradient::absent),
            ops::binary_cross_entropy(batch, classes),
            ops::binary_cross_entropy(batch, classes, ops::Gradient::absent)};
}

/// The scalars of a run, plain and awkward ones; an exact sum's weights reach the limit.
std::vector<std::vector<double>> scalars_of(const cw_op& op) {
    switch (op.kind) {
        case CW_SOFTMAX_CROSS_ENTROPY: return {{double(std::max<std::int64_t>(op.operands[0].dims[0], 1))}};
        case CW_MEAN_SQUARED_ERROR:
        case CW_BINARY_CROSS_ENTROPY: return {{double(std::max<std::int64_t>(op.operands[0].dims[0], 1))}};
        case CW_WEIGHTED_CROSS_ENTROPY: return {{3, 0}, {32, 0.1}};
        case CW_SGD: return {{0.05, 0.9, 0, 0, 1}, {0.1, 0.9, 0, 0, 2}, {0.01, 0.8, 0.25, 1e-3, 7}};
        case CW_ADAMW: return {{1e-3, 0.9, 0.999, 1e-8, 0.01, 1}, {3e-4, 0.8, 0.95, 1e-6, 0, 1000}};
        case CW_DROPOUT: return {{0.5, 17, 4'000'000'000.0, 0}, {0.1, 3, 5, 1'000'003}};
        case CW_BATCH_NORM: return {{0.1}, {1}};
        case CW_ADAM:
            return {{1, 0.01, 0.9, 0.999, 0, 1e-3, 31.6, 1e-8}, {0.99999, 0, 0.8, 0.95, 1e-4, 9e-4, 1.02, 1e-6}};
        case CW_AXPY: return {{-0.3}};
        case CW_SCALE: return {{1.7}};
        case CW_FILL: return {{-0.1}};
        case CW_EXACT_MEAN: return {{3}, {536'870'911}};
        default: break;
    }
    std::vector<double> weights;
    for (std::int32_t k = 0; k < scalar_count(op); ++k) {
        weights.push_back(std::array{1.0, 0.0, 536'870'911.0, 3.0, 1'000'003.0, 7.0, 11.0, 97.0}[k]);
    }
    return {weights};
}

std::string name_of(const cw_op& op, Values values) {
    std::string name(find_kind(op.kind)->name);
    const auto compute = static_cast<Compute>(op.integers[CW_COMPUTE]);
    name += compute == Compute::f32 ? "" : fmt::format(" {}", to_string(compute));
    const auto& first = op.operands[0];
    name += op.integers[0] != 0 ? fmt::format(" [{}]", op.integers[0]) : "";
    name += fmt::format(" {} operands", op.operand_count);
    for (std::int32_t i = 0; i < first.rank; ++i) {
        name += fmt::format("{}{}", i == 0 ? " " : "x", first.dims[i]);
    }
    if (find_kind(op.kind)->extra == Extra::window) {
        const auto& second = op.operands[1];
        name += fmt::format(" and {}x{}x{}x{} stride {} pad {} groups {}", second.dims[0], second.dims[1],
                            second.dims[2], second.dims[3], op.integers[1], op.integers[2], op.integers[6]);
    }
    if (op.kind <= CW_MATMUL_BACKWARD_WEIGHTS) {
        name += fmt::format(" and {}x{}", op.operands[1].dims[0], op.operands[1].dims[1]);
    }
    return name + (values == Values::special ? " special" : "");
}

void add_cases(std::vector<Case>& cases, const std::vector<cw_op>& ops) {
    for (const auto& op : ops) {
        for (const auto& scalars : scalars_of(op)) {
            for (const auto values : {Values::ordinary, Values::special}) {
                cases.push_back({name_of(op, values), op, scalars, values});
            }
        }
    }
}

float special_value(RandomStream& random) {
    constexpr float choices[] = {std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 0.0f,
                                 -0.0f,
                                 1e-40f,
                                 -1e-44f,
                                 87.0f,
                                 -104.0f,
                                 1e4f};
    return choices[random.below(std::size(choices))];
}

bool is_exact(const cw_op& op) {
    return op.kind == CW_EXACT_ADD || op.kind == CW_EXACT_CARRY || op.kind == CW_EXACT_MEAN;
}

/// Finite floats over 80 binades, as an exact sum is promised: |weight * value| * additions < 2^52.
float exact_value(RandomStream& random) {
    const auto exponent = static_cast<int>(random.below(80)) - 60;
    return static_cast<float>(std::ldexp(random.normal() / 8, exponent));
}

/// Variances and inverse roots of them.
bool is_spread(const cw_op& op, int operand) {
    switch (op.kind) {
        case CW_BATCH_NORM:
        case CW_BATCH_NORM_INFERENCE: return operand == 4;
        case CW_GROUP_NORM_BACKWARD:
        case CW_BATCH_NORM_BACKWARD: return operand == 3;
        default: return false;
    }
}

void fill_floats(Buffer& buffer, const Case& tested, int operand, RandomStream& random) {
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        float value = static_cast<float>(random.normal());
        if (is_exact(tested.op)) {
            value = tested.values == Values::special ? exact_value(random) : value;
        } else if (tested.values == Values::special && random.below(8) == 0) {
            value = special_value(random);
            // backend.h promises no more than something not finite where a norm's slopes meet infinities.
            const bool norm = tested.op.kind == CW_GROUP_NORM_BACKWARD || tested.op.kind == CW_BATCH_NORM_BACKWARD;
            value = norm && std::isinf(value) ? 1e4f : value;
        }
        // AdamW's second moment is a mean of squares, and class weights, variances and their inverse roots are not
        // negative.
        const bool positive = ((tested.op.kind == CW_ADAMW || tested.op.kind == CW_ADAM) && operand == 3) ||
                              (tested.op.kind == CW_WEIGHTED_CROSS_ENTROPY && operand == 2) ||
                              is_spread(tested.op, operand);
        buffer.as<float>()[i] = positive ? std::abs(value) : value;
    }
}

void fill_integers(Buffer& buffer, const Case& tested, int operand, RandomStream& random) {
    const auto classes = static_cast<std::uint64_t>(tested.op.operands[0].dims[1]);
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        if (tested.op.kind == CW_SOFTMAX_CROSS_ENTROPY || tested.op.kind == CW_WEIGHTED_CROSS_ENTROPY) {
            auto label = static_cast<std::int64_t>(random.below(classes));
            label = tested.values == Values::special && random.below(8) == 0 ? -1 : label;  // as u32: far too large
            if (buffer.dtype() == CW_I64) {
                buffer.as<std::int64_t>()[i] = label;
            } else {
                buffer.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(label);
            }
            continue;
        }
        // Limbs: high below 2^61 (special) or 2^40, low anything below 2^62, as before a carry.
        const int bits = operand == 1 ? 62 : tested.values == Values::special ? 61 : 40;
        buffer.as<std::int64_t>()[i] = static_cast<std::int64_t>(random.next_u64()) >> (63 - bits);
    }
}

}  // namespace

std::vector<Case> correctness_cases() {
    std::vector<Case> cases;
    for (const auto& shape : matmul_shapes) {
        add_cases(cases, and_in({Compute::bf16}, matmul_ops(shape)));
    }
    for (const auto n : lengths) {
        add_cases(cases, element_wise_ops(n));
    }
    for (const auto& window : convolutions) {
        add_cases(cases, and_in({Compute::bf16, Compute::winograd}, convolution_ops(window)));
    }
    for (const auto& window : pools) {
        add_cases(cases, pool_ops(window));
    }
    for (const auto& shape : norms) {
        add_cases(cases, norm_ops(shape));
    }
    for (const auto& [batch, classes] : softmax_shapes) {
        add_cases(cases, softmax_ops(batch, classes));
    }
    return cases;
}

std::vector<Case> speed_cases() {
    constexpr std::int64_t n = 1 << 22;  // 16 MiB an operand: memory, not cache
    std::vector<Case> cases;
    for (const auto& shape : {ops::MatmulShape{32, 64, 64}, ops::MatmulShape{32, 256, 256},
                              ops::MatmulShape{128, 784, 512}, ops::MatmulShape{64, 1024, 1024}}) {
        for (const auto& op : and_in({Compute::bf16}, {ops::matmul(shape), ops::matmul_backward_data(shape),
                                                       ops::matmul_backward_weights(shape)})) {
            cases.push_back({name_of(op, Values::ordinary), op, {}});
        }
    }
    for (const auto& window : {window_of(64, 27, 1, 32, 3, 1, 1, 1), window_of(64, 13, 32, 64, 3, 1, 1, 1),
                               window_of(64, 31, 64, 64, 3, 1, 1, 1)}) {
        for (const auto& op : and_in({Compute::bf16, Compute::winograd},
                                     {ops::convolution(window), ops::convolution_backward_data(window),
                                      ops::convolution_backward_weights(window)})) {
            cases.push_back({name_of(op, Values::ordinary), op, {}});
        }
    }
    for (const auto& op : pool_ops(tiled(64, 14, 14, 32, 2))) {
        cases.push_back({name_of(op, Values::ordinary), op, {}});
    }
    for (const auto& op : norm_ops({64, 1024, 64, 8, 1e-5})) {
        cases.push_back({name_of(op, Values::ordinary), op, scalars_of(op).front()});
    }
    auto streaming = element_wise_ops(n);
    streaming.push_back(ops::softmax_cross_entropy(4096, 10));
    streaming.push_back(ops::softmax_cross_entropy(64, 32768));
    for (const auto& op : streaming) {
        cases.push_back({name_of(op, Values::ordinary), op, scalars_of(op).back()});
    }
    return cases;
}

namespace {

/// The backward pass of a pool is given what the forward pass made of its input.
void fill_pooled(const Case& tested, Buffers& operands) {
    const auto device = Device::open("reference");
    ASSERT(device.has_value());
    const auto w = causeway::window_of(tested.op);
    auto plan = device->prepare(tested.op.kind == CW_MAXPOOL_BACKWARD ? ops::maxpool(w) : ops::relu_maxpool(w));
    ASSERT(plan.has_value() && plan->run({operands[0].operand(), operands[1].operand()}).has_value());
}

}  // namespace

Buffers make_operands(const Case& tested, std::uint64_t seed) {
    Buffers operands;
    for (std::int32_t k = 0; k < tested.op.operand_count; ++k) {
        const auto& shape = tested.op.operands[k];
        operands.emplace_back(static_cast<cw_dtype>(shape.dtype), static_cast<std::size_t>(element_count(shape)));
        RandomStream random({.seed = seed, .purpose = "checker", .layer = static_cast<std::uint64_t>(k)});
        if (shape.dtype == CW_F32) {
            fill_floats(operands.back(), tested, k, random);
        } else if (shape.dtype != CW_F64) {
            fill_integers(operands.back(), tested, k, random);
        }
    }
    if (tested.op.kind == CW_MAXPOOL_BACKWARD || tested.op.kind == CW_RELU_MAXPOOL_BACKWARD) {
        fill_pooled(tested, operands);
    }
    return operands;
}

Role role_of(const cw_op& op, int operand) {
    const bool last = operand == op.operand_count - 1;
    switch (op.kind) {
        case CW_MATMUL_BACKWARD_WEIGHTS:
        case CW_CONVOLUTION_BACKWARD_WEIGHTS:
            return operand < 2 ? Role::in : op.integers[0] == CW_ACCUMULATE ? Role::both : Role::out;
        case CW_GROUP_NORM: return operand < 3 ? Role::in : Role::out;
        case CW_BATCH_NORM: return operand < 3 ? Role::in : operand < 5 ? Role::both : Role::out;
        case CW_GROUP_NORM_BACKWARD:
        case CW_BATCH_NORM_BACKWARD:
            return operand < 5 ? Role::in : operand > 5 && op.integers[0] == CW_ACCUMULATE ? Role::both : Role::out;
        case CW_SOFTMAX_CROSS_ENTROPY:
        case CW_MEAN_SQUARED_ERROR:
        case CW_BINARY_CROSS_ENTROPY: return operand < 2 ? Role::in : Role::out;
        case CW_WEIGHTED_CROSS_ENTROPY: return operand < 3 ? Role::in : Role::out;
        case CW_SGD:
        case CW_ADAM:
        case CW_ADAMW: return operand == 1 ? Role::in : Role::both;
        case CW_RELU_MAXPOOL: return last ? Role::out : Role::both;
        case CW_AXPY: return last ? Role::both : Role::in;
        case CW_SCALE:
        case CW_EXACT_CARRY: return Role::both;
        case CW_EXACT_ADD: return operand < 2 ? Role::both : Role::in;
        default: return last ? Role::out : Role::in;
    }
}

bool splits(const cw_op& op, int operand) {
    switch (op.kind) {
        case CW_MATMUL: return operand == 0 || operand == op.operand_count - 1;
        case CW_MATMUL_BACKWARD_DATA: return operand != 1;
        case CW_CONVOLUTION: return operand == 0 || operand == op.operand_count - 1;
        case CW_CONVOLUTION_BACKWARD_DATA: return operand != 1;
        case CW_GROUP_NORM: return operand != 1 && operand != 2;
        case CW_BATCH_NORM_INFERENCE: return operand == 0 || operand == 5;
        case CW_GROUP_NORM_BACKWARD: return operand != 1 && operand < 6;
        case CW_DROPOUT:  // the second part would need another first element
        case CW_BATCH_NORM:
        case CW_BATCH_NORM_BACKWARD:
        case CW_CONVOLUTION_BACKWARD_WEIGHTS:
        case CW_MATMUL_BACKWARD_WEIGHTS: return false;
        case CW_SOFTMAX_CROSS_ENTROPY:
        case CW_BINARY_CROSS_ENTROPY: return operand != 2 && operand != 3;
        case CW_WEIGHTED_CROSS_ENTROPY: return operand < 2 || operand == 5;
        case CW_MEAN_SQUARED_ERROR: return operand != 2;
        case CW_SUM_OF_SQUARES: return false;
        default: return true;
    }
}

std::uint64_t bytes_moved(const cw_op& op) {
    std::uint64_t bytes = 0;
    for (std::int32_t k = 0; k < op.operand_count; ++k) {
        const auto size = static_cast<std::uint64_t>(element_count(op.operands[k])) *
                          size_of(static_cast<cw_dtype>(op.operands[k].dtype));
        bytes += role_of(op, k) == Role::both ? 2 * size : size;
    }
    return bytes;
}

double flops(const cw_op& op) {
    if (op.kind >= CW_CONVOLUTION && op.kind <= CW_CONVOLUTION_BACKWARD_WEIGHTS) {
        const auto w = causeway::window_of(op);
        return 2.0 * static_cast<double>(w.batch * w.out_size()) *
               static_cast<double>(w.window_height * w.window_width * w.channels / w.groups);
    }
    if (op.kind > CW_MATMUL_BACKWARD_WEIGHTS) {
        return 0;
    }
    const auto* first = op.operands[0].dims;
    const auto* second = op.operands[1].dims;
    const auto other = op.kind == CW_MATMUL ? second[0] : second[1];
    return 2.0 * static_cast<double>(first[0]) * static_cast<double>(first[1]) * static_cast<double>(other);
}

}  // namespace causeway::checker
