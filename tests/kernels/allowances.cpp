// How far a backend may be from the reference, kind by kind, with the reasons.
//
// Bounds follow from the number of roundings; each line says which.
#include <algorithm>
#include <cmath>

#include "common/assert.h"
#include "kernels/kinds.h"
#include "kernels/window.h"
#include "tests/kernels/cases.h"

namespace causeway::checker {
namespace {

constexpr double half_ulp = 0x1p-24;  // relative error of one rounding to float
constexpr double smallest_float = 0x1p-149;

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

double finite_largest_of(const Buffer& buffer) {
    double largest = 0;
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        const double size = std::abs(buffer.value(i));
        largest = std::isfinite(size) ? std::max(largest, size) : largest;
    }
    return largest;
}

/// Terms of the sum behind one output element of a product.
double depth(const cw_op& op) {
    const auto& first = op.operands[0];
    if (op.operands[0].rank == 4) {  // images
        const auto w = causeway::window_of(op);
        const auto window = static_cast<double>(w.window_height * w.window_width);
        switch (op.kind) {
            case CW_CONVOLUTION: return window * static_cast<double>(w.channels / w.groups);
            case CW_CONVOLUTION_BACKWARD_DATA: return window * static_cast<double>(w.outputs / w.groups);
            case CW_CONVOLUTION_BACKWARD_WEIGHTS:
                return static_cast<double>(w.batch * w.out_height * w.out_width);
            default: return window;
        }
    }
    return static_cast<double>(op.kind == CW_MATMUL_BACKWARD_WEIGHTS ? first.dims[0] : first.dims[1]);
}

/// Any order of a float sum of n terms errs by at most n roundings of the sum of absolute terms (Higham, Accuracy and
/// Stability of Numerical Algorithms, 3.1); two more for the bias and for adding to old values. With bf16 factors the
/// reference rounds them too, and the product of two of them is exact in f32; but a processor takes factors and sums
/// below 2^-126 as 0: then each term may be off by that much of the other factor.
///
/// Winograd's F(4x4, 3x3) also rounds sums of up to 36 values before and after the products, so the error of one place
/// has to do with the others of its tile: these roundings are held against the largest sum of absolute terms. Row sums
/// of its matrices bound them by some hundred, were all of one sign and full size; 16 are allowed and 7 were seen.
std::vector<double> product_allowance(const Case& tested, const Buffers& operands, int output) {
    const double terms = depth(tested.op) + 2;
    const auto sizes = reference_of(tested, magnitudes(operands, false));
    auto allowed = rounding_errors(sizes[output], terms);
    if (is_product(tested.op.kind) && tested.op.integers[CW_COMPUTE] == CW_COMPUTE_WINOGRAD) {
        const double largest = finite_largest_of(sizes[output]);
        std::ranges::for_each(allowed, [&](double& error) { error += 16 * half_ulp * largest; });
    }
    if (is_product(tested.op.kind) && tested.op.integers[CW_COMPUTE] == CW_COMPUTE_BF16) {
        const double largest = 1 + finite_largest_of(operands[0]) + finite_largest_of(operands[1]);
        std::ranges::for_each(allowed, [&](double& error) { error += terms * 0x1p-126 * largest; });
    }
    return allowed;
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

Buffers slopes_made_positive(const Case& tested, const Buffers& operands) {
    auto changed = operands;
    for (std::size_t i = 0; i < changed[2].count(); ++i) {
        changed[2].as<float>()[i] = std::abs(changed[2].as<float>()[i]);
    }
    return reference_of(tested, changed);
}

/// The largest absolute value, NaN when there is one.
double largest_of(const Buffer& buffer) {
    double largest = 0;
    for (std::size_t i = 0; i < buffer.count(); ++i) {
        const double size = std::abs(buffer.value(i));
        largest = size > largest || std::isnan(size) ? size : largest;
    }
    return largest;
}

/// Statistics are rounded once from sums in double, so they are equal or, at a tie, an ulp apart; each element then
/// takes at most eight roundings of terms no larger than the product of the largest factors. Sums over rows add up as
/// many of them. One bound for a whole operand: coarse, but in no case above 1e-4 of the largest term.
std::vector<double> norm_allowance(const Case& tested, const Buffers& operands, const Buffers& expected, int output) {
    const auto& op = tested.op;
    const bool backward = op.kind == CW_GROUP_NORM_BACKWARD || op.kind == CW_BATCH_NORM_BACKWARD;
    const bool statistics = !backward && expected[output].count() != expected[op.kind == CW_GROUP_NORM ? 3 : 5].count();
    double mean = largest_of(expected[op.kind == CW_GROUP_NORM ? 4 : op.kind == CW_BATCH_NORM ? 6 : backward ? 2 : 3]);
    double rstd = 1 / std::sqrt(op.reals[0]);
    if (op.kind != CW_BATCH_NORM_INFERENCE) {
        rstd = largest_of(expected[op.kind == CW_GROUP_NORM ? 5 : backward ? 3 : 7]);
    }
    const double gamma = largest_of(operands[1]);
    const double h = (largest_of(operands[0]) + mean) * rstd;
    double scale = h * gamma + largest_of(operands[2]);
    if (backward) {
        const double dy = largest_of(operands[4]);
        const auto rows = static_cast<double>(operands[0].count()) / static_cast<double>(operands[1].count());
        const double before = output > 5 ? largest_of(operands[output]) : 0;
        scale = output == 5 ? rstd * gamma * dy * (2 + h * h) : rows * dy * (1 + h) + before;
    } else if (statistics) {
        scale = largest_of(expected[output]) + 2 * largest_of(operands[0]);
    }
    return std::vector<double>(expected[output].count(), 8 * half_ulp * scale + smallest_float);
}

}  // namespace

std::vector<double> allowed_error(const Case& tested, const Buffers& operands, const Buffers& expected, int output) {
    switch (tested.op.kind) {
        case CW_MATMUL:
        case CW_MATMUL_BACKWARD_DATA:
        case CW_MATMUL_BACKWARD_WEIGHTS:
        case CW_CONVOLUTION:
        case CW_CONVOLUTION_BACKWARD_DATA:
        case CW_CONVOLUTION_BACKWARD_WEIGHTS:
        case CW_AVGPOOL:
        case CW_AVGPOOL_BACKWARD:
            return product_allowance(tested, operands, output);
        case CW_ADAM:
            // As below; but decay and gradient enter the moments together, so there no sign is turned.
            return rounding_errors(reference_of(tested, magnitudes(operands, output == 0))[output], 10);
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
        case CW_MAXPOOL_BACKWARD:
        case CW_RELU_MAXPOOL_BACKWARD:
            // A sum of at most one term per window over the place.
            return rounding_errors(slopes_made_positive(tested, operands)[output], depth(tested.op));
        case CW_SILU: {
            // x times the sigmoid, both good to 1e-11. Below x = -87 the sigmoid is denormal, and its error is
            // multiplied by x, down to -104 where all is 0.
            auto allowed = rounding_errors(expected[output], 3);
            std::ranges::for_each(allowed, [](double& error) { error += 128 * smallest_float; });
            return allowed;
        }
        case CW_SILU_BACKWARD: return rounding_errors(operands[1], 4);  // the slope is below 1.1
        case CW_GROUP_NORM:
        case CW_BATCH_NORM:
        case CW_BATCH_NORM_INFERENCE:
        case CW_GROUP_NORM_BACKWARD:
        case CW_BATCH_NORM_BACKWARD: return norm_allowance(tested, operands, expected, output);
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
