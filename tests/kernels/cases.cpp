// The case table, the inputs of a case, and the tolerances with their reasons.
#include "tests/kernels/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/random.h"
#include "kernels/kinds.h"

namespace causeway::checker {
namespace {

constexpr double half_ulp = 0x1p-24;  // relative error of one rounding to float
constexpr double smallest_float = 0x1p-149;

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

std::vector<cw_op> element_wise_ops(std::int64_t n) {
    return {ops::relu(n),
            ops::relu_backward(n),
            ops::gelu(n),
            ops::gelu_backward(n),
            ops::sgd(ops::Momentum::absent, n),
            ops::sgd(ops::Momentum::plain, n),
            ops::sgd(ops::Momentum::nesterov, n),
            ops::adamw(n),
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
    const auto& first = op.operands[0];
    name += op.integers[0] != 0 ? fmt::format(" [{}]", op.integers[0]) : "";
    name += fmt::format(" {} operands", op.operand_count);
    name += first.rank == 2 ? fmt::format(" {}x{}", first.dims[0], first.dims[1]) : fmt::format(" {}", first.dims[0]);
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

void fill_floats(Buffer& buffer, const Case& tested, int operand, RandomStream& random) {
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        float value = static_cast<float>(random.normal());
        if (is_exact(tested.op)) {
            value = tested.values == Values::special ? exact_value(random) : value;
        } else if (tested.values == Values::special && random.below(8) == 0) {
            value = special_value(random);
        }
        // AdamW's second moment is a mean of squares, and class weights are not negative.
        const bool positive = (tested.op.kind == CW_ADAMW && operand == 3) ||
                              (tested.op.kind == CW_WEIGHTED_CROSS_ENTROPY && operand == 2);
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

/// Runs the reference on changed operands: the sum of the absolute terms behind each output.
Buffers reference_of(const Case& tested, const Buffers& operands) {
    auto copies = operands;
    const auto device = Device::open("reference");
    ASSERT(device.has_value());
    auto plan = device->prepare(tested.op);
    ASSERT(plan.has_value());
    std::vector<Operand> list;
    for (const auto& buffer : copies) {
        list.push_back(buffer.operand());
    }
    ASSERT(plan->run(list, tested.scalars).has_value());
    return copies;
}

/// All floats made positive; those but the first then negative where an optimizer subtracts.
Buffers magnitudes(const Buffers& operands, bool opposed) {
    auto changed = operands;
    for (std::size_t k = 0; k < changed.size(); ++k) {
        for (std::size_t i = 0; i < changed[k].count() && changed[k].dtype() == CW_F32; ++i) {
            const float size = std::abs(changed[k].as<float>()[i]);
            changed[k].as<float>()[i] = opposed && k > 0 && k < 3 ? -size : size;
        }
    }
    return changed;
}

/// `roundings` of the magnitude; a rounding to a denormal errs by up to its last place instead.
std::vector<double> rounding_errors(const Buffer& magnitude, double roundings) {
    std::vector<double> allowed(magnitude.count());
    for (std::size_t i = 0; i < allowed.size(); ++i) {
        allowed[i] = roundings * (half_ulp * std::abs(magnitude.value(i)) + smallest_float);
    }
    return allowed;
}

/// Terms of the sum behind one output element of a product.
double depth(const cw_op& op) {
    const auto& first = op.operands[0];
    return static_cast<double>(op.kind == CW_MATMUL_BACKWARD_WEIGHTS ? first.dims[0] : first.dims[1]);
}

std::vector<double> softmax_allowance(const Case& tested, const Buffers& expected, int output) {
    std::vector<double> allowed(expected[output].count(), 0.0);  // `correct` is a count: no error
    for (std::size_t i = 0; i < allowed.size(); ++i) {
        // The loss is summed in double from exponentials good to 1e-11. A gradient element is rounded once, relative
        // to (p - onehot) / d, but for its own 1e-11 / d where p is near 1.
        const double size = std::abs(expected[output].value(i));
        const double of_gradient = 2 * half_ulp * size + 1e-10 / tested.scalars[0];
        allowed[i] = output == 2 ? 1e-10 * (1 + size) : output == 4 ? of_gradient : 0;
    }
    return allowed;
}

/// The other losses: sums of double terms, whose exponentials and logarithms err by an ulp of double or two; a gradient
/// is a difference of terms no larger than the weights and 1, divided by d, rounded once.
std::vector<double> loss_allowance(const Case& tested, const Buffers& operands, const Buffers& expected, int output) {
    const bool is_gradient = tested.op.operands[output].rank == 2;
    const bool is_count = tested.op.operands[output].dtype == CW_I64;
    double largest = 1;
    for (std::size_t i = 0; tested.op.kind == CW_WEIGHTED_CROSS_ENTROPY && i < operands[2].count(); ++i) {
        largest += operands[2].value(i);
    }
    std::vector<double> allowed(expected[output].count(), 0.0);
    for (std::size_t i = 0; i < allowed.size() && !is_count; ++i) {
        const double size = std::abs(expected[output].value(i));
        allowed[i] = is_gradient ? 2 * half_ulp * size + 1e-10 * largest / tested.scalars[0] + smallest_float
                                 : 1e-10 * (1 + size);
    }
    return allowed;
}

}  // namespace

std::vector<Case> correctness_cases() {
    std::vector<Case> cases;
    for (const auto& shape : matmul_shapes) {
        add_cases(cases, matmul_ops(shape));
    }
    for (const auto n : lengths) {
        add_cases(cases, element_wise_ops(n));
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
        for (const auto& op :
             {ops::matmul(shape), ops::matmul_backward_data(shape), ops::matmul_backward_weights(shape)}) {
            cases.push_back({name_of(op, Values::ordinary), op, {}});
        }
    }
    auto streaming = element_wise_ops(n);
    streaming.push_back(ops::softmax_cross_entropy(4096, 10));
    streaming.push_back(ops::softmax_cross_entropy(64, 32768));
    for (const auto& op : streaming) {
        cases.push_back({name_of(op, Values::ordinary), op, scalars_of(op).back()});
    }
    return cases;
}

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
    return operands;
}

Role role_of(const cw_op& op, int operand) {
    const bool last = operand == op.operand_count - 1;
    switch (op.kind) {
        case CW_MATMUL_BACKWARD_WEIGHTS:
            return operand < 2 ? Role::in : op.integers[0] == CW_ACCUMULATE ? Role::both : Role::out;
        case CW_SOFTMAX_CROSS_ENTROPY:
        case CW_MEAN_SQUARED_ERROR:
        case CW_BINARY_CROSS_ENTROPY: return operand < 2 ? Role::in : Role::out;
        case CW_WEIGHTED_CROSS_ENTROPY: return operand < 3 ? Role::in : Role::out;
        case CW_SGD:
        case CW_ADAMW: return operand == 1 ? Role::in : Role::both;
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
    if (op.kind > CW_MATMUL_BACKWARD_WEIGHTS) {
        return 0;
    }
    const auto* first = op.operands[0].dims;
    const auto* second = op.operands[1].dims;
    const auto other = op.kind == CW_MATMUL ? second[0] : second[1];
    return 2.0 * static_cast<double>(first[0]) * static_cast<double>(first[1]) * static_cast<double>(other);
}

std::vector<double> allowed_error(const Case& tested, const Buffers& operands, const Buffers& expected, int output) {
    switch (tested.op.kind) {
        case CW_MATMUL:
        case CW_MATMUL_BACKWARD_DATA:
        case CW_MATMUL_BACKWARD_WEIGHTS:
            // Any order of a float sum of n terms errs by at most n roundings of the sum of absolute terms (Higham,
            // Accuracy and Stability of Numerical Algorithms, 3.1); two more for the bias and for adding to old values.
            return rounding_errors(reference_of(tested, magnitudes(operands, false))[output], depth(tested.op) + 2);
        case CW_SGD:
        case CW_ADAMW:
            // At most eight roundings, each relative to the sum of absolute terms.
            return rounding_errors(reference_of(tested, magnitudes(operands, true))[output], 8);
        case CW_GELU: {
            // erfc's fit errs by 2 half ulps, the share and the product are rounded: 4, and one in reserve. Below
            // x = -13 the share itself is denormal, and its error is multiplied by x, down to where all is 0.
            auto allowed = rounding_errors(expected[output], 5);
            std::ranges::for_each(allowed, [](double& error) { error += 16 * smallest_float; });
            return allowed;
        }
        case CW_GELU_BACKWARD:
            // As gelu, but relative to dy: the slope crosses zero near x = -0.75.
            return rounding_errors(operands[1], 5);
        case CW_SOFTMAX_CROSS_ENTROPY: return softmax_allowance(tested, expected, output);
        case CW_WEIGHTED_CROSS_ENTROPY:
        case CW_MEAN_SQUARED_ERROR:
        case CW_BINARY_CROSS_ENTROPY: return loss_allowance(tested, operands, expected, output);
        default:
            // One rounding per operation in a fixed order, or integers: equal bits.
            return std::vector<double>(expected[output].count(), 0.0);
    }
}

}  // namespace causeway::checker
