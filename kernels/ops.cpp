// The builders: each lists its operands in the order that kernels/backend.h gives for the kind.
#include "kernels/ops.h"

#include <algorithm>
#include <initializer_list>

#include "common/assert.h"

namespace causeway::ops {
namespace {

cw_view shape_of(cw_dtype dtype, std::initializer_list<std::int64_t> dims) {
    cw_view view{};
    view.dtype = dtype;
    view.rank = static_cast<std::int32_t>(dims.size());
    std::int32_t i = 0;
    for (const auto dim : dims) {
        view.dims[i++] = dim;
    }
    std::int64_t stride = 1;
    for (i = view.rank - 1; i >= 0; --i) {
        view.strides[i] = stride;
        stride *= view.dims[i];
    }
    return view;
}

cw_op make(cw_kind kind, std::initializer_list<cw_view> operands, std::int64_t attribute = 0) {
    cw_op op{};
    op.kind = kind;
    op.integers[0] = attribute;
    for (const auto& operand : operands) {
        op.operands[op.operand_count++] = operand;
    }
    return op;
}

cw_view f32(std::initializer_list<std::int64_t> dims) { return shape_of(CW_F32, dims); }

}  // namespace

cw_op matmul(const MatmulShape& s, Bias bias) {
    const auto x = f32({s.batch, s.inputs});
    const auto w = f32({s.outputs, s.inputs});
    const auto y = f32({s.batch, s.outputs});
    return bias == Bias::present ? make(CW_MATMUL, {x, w, f32({s.outputs}), y}) : make(CW_MATMUL, {x, w, y});
}

cw_op matmul_backward_data(const MatmulShape& s) {
    return make(CW_MATMUL_BACKWARD_DATA,
                {f32({s.batch, s.outputs}), f32({s.outputs, s.inputs}), f32({s.batch, s.inputs})});
}

cw_op matmul_backward_weights(const MatmulShape& s, Write write, Bias bias) {
    const auto dy = f32({s.batch, s.outputs});
    const auto x = f32({s.batch, s.inputs});
    const auto dw = f32({s.outputs, s.inputs});
    const auto mode = static_cast<std::int64_t>(write);
    return bias == Bias::present ? make(CW_MATMUL_BACKWARD_WEIGHTS, {dy, x, dw, f32({s.outputs})}, mode)
                                 : make(CW_MATMUL_BACKWARD_WEIGHTS, {dy, x, dw}, mode);
}

cw_op relu(std::int64_t count) { return make(CW_RELU, {f32({count}), f32({count})}); }
cw_op relu_backward(std::int64_t count) {
    return make(CW_RELU_BACKWARD, {f32({count}), f32({count}), f32({count})});
}
cw_op gelu(std::int64_t count) { return make(CW_GELU, {f32({count}), f32({count})}); }
cw_op gelu_backward(std::int64_t count) {
    return make(CW_GELU_BACKWARD, {f32({count}), f32({count}), f32({count})});
}

namespace {

/// A loss with its gradient, which is the last operand and of the shape of the first.
cw_op with_gradient(cw_op op, Gradient gradient) {
    if (gradient == Gradient::present) {
        op.operands[op.operand_count++] = op.operands[0];
    }
    return op;
}

}  // namespace

cw_op weighted_cross_entropy(std::int64_t batch, std::int64_t classes, Gradient gradient, Labels labels) {
    return with_gradient(
        make(CW_WEIGHTED_CROSS_ENTROPY, {f32({batch, classes}), shape_of(static_cast<cw_dtype>(labels), {batch}),
                                         f32({classes}), shape_of(CW_F64, {1}), shape_of(CW_I64, {1})}),
        gradient);
}
cw_op mean_squared_error(std::int64_t batch, std::int64_t outputs, Gradient gradient) {
    const auto x = f32({batch, outputs});
    return with_gradient(make(CW_MEAN_SQUARED_ERROR, {x, x, shape_of(CW_F64, {1})}), gradient);
}
cw_op binary_cross_entropy(std::int64_t batch, std::int64_t outputs, Gradient gradient) {
    const auto x = f32({batch, outputs});
    return with_gradient(make(CW_BINARY_CROSS_ENTROPY, {x, x, shape_of(CW_F64, {1}), shape_of(CW_I64, {1})}), gradient);
}
cw_op silu(std::int64_t count) { return make(CW_SILU, {f32({count}), f32({count})}); }
cw_op silu_backward(std::int64_t count) {
    return make(CW_SILU_BACKWARD, {f32({count}), f32({count}), f32({count})});
}
cw_op dropout(std::int64_t count) { return make(CW_DROPOUT, {f32({count}), f32({count})}); }
cw_op softmax_cross_entropy(std::int64_t batch, std::int64_t classes, Gradient gradient, Labels labels) {
    return with_gradient(
        make(CW_SOFTMAX_CROSS_ENTROPY, {f32({batch, classes}), shape_of(static_cast<cw_dtype>(labels), {batch}),
                                        shape_of(CW_F64, {1}), shape_of(CW_I64, {1})}),
        gradient);
}

cw_op sgd(Momentum momentum, std::int64_t count) {
    const auto n = f32({count});
    return momentum == Momentum::absent ? make(CW_SGD, {n, n})
                                        : make(CW_SGD, {n, n, n}, momentum == Momentum::nesterov ? 1 : 0);
}
cw_op adamw(std::int64_t count) {
    const auto n = f32({count});
    return make(CW_ADAMW, {n, n, n, n});
}

cw_op adam(std::int64_t count) {
    const auto n = f32({count});
    return make(CW_ADAM, {n, n, n, n});
}
cw_op axpy(std::int64_t count) { return make(CW_AXPY, {f32({count}), f32({count})}); }
cw_op scale(std::int64_t count) { return make(CW_SCALE, {f32({count})}); }
cw_op sum_of_squares(std::int64_t count) {
    return make(CW_SUM_OF_SQUARES, {f32({count}), shape_of(CW_F64, {1})});
}
cw_op fill(std::int64_t count) { return make(CW_FILL, {f32({count})}); }
cw_op copy(std::int64_t count) { return make(CW_COPY, {f32({count}), f32({count})}); }

namespace {

cw_op with_window(cw_op op, const Window& w, bool pool) {
    const std::int64_t integers[] = {w.stride, w.above, w.below, w.left, w.right, w.groups, pool ? w.window_height : 0,
                                     pool ? w.window_width : 0};
    std::copy(std::begin(integers), std::end(integers), op.integers + 1);
    return op;
}
cw_view image_in(const Window& w) { return f32({w.batch, w.height, w.width, w.channels}); }
cw_view image_out(const Window& w) { return f32({w.batch, w.out_height, w.out_width, w.outputs}); }
cw_view weights_of(const Window& w) {
    return f32({w.outputs, w.window_height, w.window_width, w.channels / w.groups});
}

cw_op with_epsilon(cw_op op, double epsilon) {
    op.reals[0] = epsilon;
    return op;
}

}  // namespace

cw_op convolution(const Window& w, Bias bias) {
    return with_window(bias == Bias::present
                           ? make(CW_CONVOLUTION, {image_in(w), weights_of(w), f32({w.outputs}), image_out(w)})
                           : make(CW_CONVOLUTION, {image_in(w), weights_of(w), image_out(w)}),
                       w, false);
}
cw_op convolution_backward_data(const Window& w) {
    return with_window(make(CW_CONVOLUTION_BACKWARD_DATA, {image_out(w), weights_of(w), image_in(w)}), w, false);
}
cw_op convolution_backward_weights(const Window& w, Write write, Bias bias) {
    const auto mode = static_cast<std::int64_t>(write);
    const auto kind = CW_CONVOLUTION_BACKWARD_WEIGHTS;
    return with_window(bias == Bias::present
                           ? make(kind, {image_out(w), image_in(w), weights_of(w), f32({w.outputs})}, mode)
                           : make(kind, {image_out(w), image_in(w), weights_of(w)}, mode),
                       w, false);
}
cw_op maxpool(const Window& w) { return with_window(make(CW_MAXPOOL, {image_in(w), image_out(w)}), w, true); }
cw_op maxpool_backward(const Window& w) {
    return with_window(make(CW_MAXPOOL_BACKWARD, {image_in(w), image_out(w), image_out(w), image_in(w)}), w, true);
}
cw_op relu_maxpool(const Window& w) { return with_window(make(CW_RELU_MAXPOOL, {image_in(w), image_out(w)}), w, true); }
cw_op relu_maxpool_backward(const Window& w) {
    return with_window(make(CW_RELU_MAXPOOL_BACKWARD, {image_in(w), image_out(w), image_out(w), image_in(w)}), w, true);
}
cw_op avgpool(const Window& w) { return with_window(make(CW_AVGPOOL, {image_in(w), image_out(w)}), w, true); }
cw_op avgpool_backward(const Window& w) {
    return with_window(make(CW_AVGPOOL_BACKWARD, {image_out(w), image_in(w)}), w, true);
}

cw_op group_norm(const NormShape& s) {
    const auto x = f32({s.batch, s.places, s.channels});
    const auto c = f32({s.channels});
    const auto stats = f32({s.batch, s.groups});
    return with_epsilon(make(CW_GROUP_NORM, {x, c, c, x, stats, stats}), s.epsilon);
}
cw_op group_norm_backward(const NormShape& s, Write write) {
    const auto x = f32({s.batch, s.places, s.channels});
    const auto c = f32({s.channels});
    const auto stats = f32({s.batch, s.groups});
    return with_epsilon(
        make(CW_GROUP_NORM_BACKWARD, {x, c, stats, stats, x, x, c, c}, static_cast<std::int64_t>(write)), s.epsilon);
}
cw_op batch_norm(const NormShape& s) {
    const auto x = f32({s.batch * s.places, s.channels});
    const auto c = f32({s.channels});
    return with_epsilon(make(CW_BATCH_NORM, {x, c, c, c, c, x, c, c}), s.epsilon);
}
cw_op batch_norm_inference(const NormShape& s) {
    const auto x = f32({s.batch * s.places, s.channels});
    const auto c = f32({s.channels});
    return with_epsilon(make(CW_BATCH_NORM_INFERENCE, {x, c, c, c, c, x}), s.epsilon);
}
cw_op batch_norm_backward(const NormShape& s, Write write) {
    const auto x = f32({s.batch * s.places, s.channels});
    const auto c = f32({s.channels});
    return with_epsilon(make(CW_BATCH_NORM_BACKWARD, {x, c, c, c, x, x, c, c}, static_cast<std::int64_t>(write)),
                        s.epsilon);
}

cw_op exact_add(int terms, std::int64_t count) {
    ASSERT(terms >= 1 && terms <= CW_MAX_EXACT_TERMS);
    auto op = make(CW_EXACT_ADD, {shape_of(CW_I64, {count}), shape_of(CW_I64, {count})});
    for (int k = 0; k < terms; ++k) {
        op.operands[op.operand_count++] = f32({count});
    }
    return op;
}
cw_op exact_carry(std::int64_t count) {
    return make(CW_EXACT_CARRY, {shape_of(CW_I64, {count}), shape_of(CW_I64, {count})});
}
cw_op exact_mean(std::int64_t count) {
    return make(CW_EXACT_MEAN, {shape_of(CW_I64, {count}), shape_of(CW_I64, {count}), f32({count})});
}

}  // namespace causeway::ops
