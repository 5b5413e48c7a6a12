// Builders of operations: one function per kind of kernels/backend.h, which says the operand order and the arithmetic.
//
// They exist so that callers cannot transpose a shape; a builder only fills in a cw_op.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/window.h"

namespace causeway::ops {

constexpr std::int64_t any = CW_ANY;

/// w is [outputs, inputs].
struct MatmulShape {
    std::int64_t batch;
    std::int64_t inputs;
    std::int64_t outputs;
};
enum class Bias { absent, present };
enum class Write { overwrite = CW_OVERWRITE, accumulate = CW_ACCUMULATE };
enum class Gradient { absent, present };
enum class Labels { i64 = CW_I64, u32 = CW_U32 };
enum class Momentum { absent, plain, nesterov };

/// run({x, w, b, y}), or ({x, w, y})
cw_op matmul(const MatmulShape& shape, Bias bias = Bias::present);
/// run({dy, w, dx})
cw_op matmul_backward_data(const MatmulShape& shape);
/// run({dy, x, dw, db}), or ({dy, x, dw})
cw_op matmul_backward_weights(const MatmulShape& shape, Write write = Write::overwrite, Bias bias = Bias::present);

/// run({x, y})
cw_op relu(std::int64_t count = any);
/// run({x, dy, dx}); y may be given for x
cw_op relu_backward(std::int64_t count = any);
/// run({x, y}): the exact, erf form
cw_op gelu(std::int64_t count = any);
/// run({x, dy, dx})
cw_op gelu_backward(std::int64_t count = any);

/// run({x, y}): x * sigmoid(x)
cw_op silu(std::int64_t count = any);
/// run({x, dy, dx})
cw_op silu_backward(std::int64_t count = any);
/// run({x, y}, {rate, key's low 32 bits, key's high 32 bits, first element's number})
cw_op dropout(std::int64_t count = any);

/// run({x, labels, loss, correct, dx}, {divisor}), or without dx
cw_op softmax_cross_entropy(std::int64_t batch, std::int64_t classes, Gradient gradient = Gradient::present,
                            Labels labels = Labels::i64);

/// run({x, labels, w, loss, correct, dx}, {divisor, smoothing}), or without dx
cw_op weighted_cross_entropy(std::int64_t batch, std::int64_t classes, Gradient gradient = Gradient::present,
                             Labels labels = Labels::i64);
/// run({x, t, loss, dx}, {divisor}), or without dx
cw_op mean_squared_error(std::int64_t batch, std::int64_t outputs, Gradient gradient = Gradient::present);
/// run({x, t, loss, correct, dx}, {divisor}), or without dx
cw_op binary_cross_entropy(std::int64_t batch, std::int64_t outputs, Gradient gradient = Gradient::present);

/// run({theta, g, m}, {rate, momentum, dampening, decay, step}); with Momentum::absent run({theta, g}, the same five)
cw_op sgd(Momentum momentum, std::int64_t count = any);
/// run({theta, g, m, v}, {rate, beta1, beta2, epsilon, decay, step})
cw_op adamw(std::int64_t count = any);

/// run({theta, g, m, v}, {keep, l2, beta1, beta2, own, moment, correction, epsilon})
cw_op adam(std::int64_t count = any);

/// run({x, y}, {a})
cw_op axpy(std::int64_t count = any);
/// run({x}, {a})
cw_op scale(std::int64_t count = any);
/// run({x, s})
cw_op sum_of_squares(std::int64_t count = any);
/// run({x}, {a})
cw_op fill(std::int64_t count = any);
/// run({x, y})
cw_op copy(std::int64_t count = any);

/// run({x, w, b, y}), or ({x, w, y})
cw_op convolution(const Window& window, Bias bias = Bias::present);
/// run({dy, w, dx})
cw_op convolution_backward_data(const Window& window);
/// run({dy, x, dw, db}), or ({dy, x, dw})
cw_op convolution_backward_weights(const Window& window, Write write = Write::overwrite, Bias bias = Bias::present);
/// run({x, y})
cw_op maxpool(const Window& window);
/// run({x, y, dy, dx})
cw_op maxpool_backward(const Window& window);
/// run({x, y}), run({x, y, dy, dx}): relu in place and maxpool, fused; the windows tile the image
cw_op relu_maxpool(const Window& window);
cw_op relu_maxpool_backward(const Window& window);
/// run({x, y})
cw_op avgpool(const Window& window);
/// run({dy, dx})
cw_op avgpool_backward(const Window& window);

/// Each example: `places` rows of `channels`.
struct NormShape {
    std::int64_t batch;
    std::int64_t places;
    std::int64_t channels;
    std::int64_t groups;
    double epsilon;
};
/// run({x, gamma, beta, y, mean, rstd})
cw_op group_norm(const NormShape& shape);
/// run({x, gamma, mean, rstd, dy, dx, dgamma, dbeta})
cw_op group_norm_backward(const NormShape& shape, Write write = Write::overwrite);
/// run({x, gamma, beta, running mean, running variance, y, mean, rstd}, {momentum}); rows: batch * places
cw_op batch_norm(const NormShape& shape);
/// run({x, gamma, beta, mean, variance, y})
cw_op batch_norm_inference(const NormShape& shape);
/// run({x, gamma, mean, rstd, dy, dx, dgamma, dbeta})
cw_op batch_norm_backward(const NormShape& shape, Write write = Write::overwrite);

/// run({high, low, x_0 .. x_{terms-1}}, {weight_0 ..}); terms in 1..8
cw_op exact_add(int terms, std::int64_t count = any);
/// run({high, low})
cw_op exact_carry(std::int64_t count = any);
/// run({high, low, mean}, {weight})
cw_op exact_mean(std::int64_t count = any);

}  // namespace causeway::ops
