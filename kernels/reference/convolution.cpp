// Convolutions by their definition: one sum in double per element, over the window's places and the group's channels.
#include <vector>

#include "kernels/kinds.h"
#include "kernels/reference/kernels.h"
#include "kernels/window.h"

namespace causeway::reference {
namespace {

/// Calls visit(row, column, p, q) for each place of the image that the window at (r, s) covers.
template <class Visit>
void each_place(const Window& w, std::int64_t r, std::int64_t s, Visit visit) {
    const auto rows = reach_of(r, w.stride, w.above, w.window_height, w.height);
    const auto columns = reach_of(s, w.stride, w.left, w.window_width, w.width);
    for (auto row = rows.begin; row < rows.end; ++row) {
        for (auto column = columns.begin; column < columns.end; ++column) {
            visit(row, column, rows.offset + row - rows.begin, columns.offset + column - columns.begin);
        }
    }
}

/// Calls visit(b, r, s, o) for each element of the output.
template <class Visit>
void each_output(const Window& w, Visit visit) {
    for (std::int64_t b = 0; b < w.batch; ++b) {
        for (std::int64_t r = 0; r < w.out_height; ++r) {
            for (std::int64_t s = 0; s < w.out_width; ++s) {
                for (std::int64_t o = 0; o < w.outputs; ++o) {
                    visit(b, r, s, o);
                }
            }
        }
    }
}

/// Where elements lie.
struct Index {
    Window w;
    std::int64_t inputs = w.channels / w.groups;
    std::int64_t outputs = w.outputs / w.groups;

    std::int64_t image(std::int64_t b, std::int64_t row, std::int64_t column, std::int64_t o, std::int64_t i) const {
        return ((b * w.height + row) * w.width + column) * w.channels + o / outputs * inputs + i;
    }
    std::int64_t weight(std::int64_t o, std::int64_t p, std::int64_t q, std::int64_t i) const {
        return ((o * w.window_height + p) * w.window_width + q) * inputs + i;
    }
    std::int64_t output(std::int64_t b, std::int64_t r, std::int64_t s, std::int64_t o) const {
        return ((b * w.out_height + r) * w.out_width + s) * w.outputs + o;
    }
};

void convolution_forward(const cw_op& op, const cw_run& run) {
    const Index at{window_of(op)};
    const bool has_bias = op.operand_count == 4;
    const auto* x = operand<const float>(run, 0);
    const auto* weights = operand<const float>(run, 1);
    auto* y = operand<float>(run, has_bias ? 3 : 2);
    each_output(at.w, [&](auto b, auto r, auto s, auto o) {
        double sum = has_bias ? double{operand<const float>(run, 2)[o]} : 0.0;
        each_place(at.w, r, s, [&](auto row, auto column, auto p, auto q) {
            for (std::int64_t i = 0; i < at.inputs; ++i) {
                sum += double{x[at.image(b, row, column, o, i)]} * double{weights[at.weight(o, p, q, i)]};
            }
        });
        y[at.output(b, r, s, o)] = static_cast<float>(sum);
    });
}

void convolution_backward_data(const cw_op& op, const cw_run& run) {
    const Index at{window_of(op)};
    const auto* dy = operand<const float>(run, 0);
    const auto* weights = operand<const float>(run, 1);
    std::vector<double> sums(static_cast<std::size_t>(at.w.batch * at.w.in_size()));
    each_output(at.w, [&](auto b, auto r, auto s, auto o) {
        const double slope = dy[at.output(b, r, s, o)];
        each_place(at.w, r, s, [&](auto row, auto column, auto p, auto q) {
            for (std::int64_t i = 0; i < at.inputs; ++i) {
                sums[static_cast<std::size_t>(at.image(b, row, column, o, i))] +=
                    slope * double{weights[at.weight(o, p, q, i)]};
            }
        });
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
        operand<float>(run, 2)[i] = static_cast<float>(sums[i]);
    }
}

void convolution_backward_weights(const cw_op& op, const cw_run& run) {
    const Index at{window_of(op)};
    const bool adds = op.integers[0] == CW_ACCUMULATE;
    const auto* dy = operand<const float>(run, 0);
    const auto* x = operand<const float>(run, 1);
    auto* dw = operand<float>(run, 2);
    auto* db = op.operand_count == 4 ? operand<float>(run, 3) : nullptr;
    std::vector<double> sums(static_cast<std::size_t>(element_count(op.operands[2])));
    std::vector<double> bias(static_cast<std::size_t>(at.w.outputs));
    for (std::size_t i = 0; adds && i < sums.size(); ++i) {
        sums[i] = dw[i];
    }
    for (std::size_t o = 0; adds && db != nullptr && o < bias.size(); ++o) {
        bias[o] = db[o];
    }
    each_output(at.w, [&](auto b, auto r, auto s, auto o) {
        const double slope = dy[at.output(b, r, s, o)];
        bias[static_cast<std::size_t>(o)] += slope;
        each_place(at.w, r, s, [&](auto row, auto column, auto p, auto q) {
            for (std::int64_t i = 0; i < at.inputs; ++i) {
                sums[static_cast<std::size_t>(at.weight(o, p, q, i))] +=
                    slope * double{x[at.image(b, row, column, o, i)]};
            }
        });
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
        dw[i] = static_cast<float>(sums[i]);
    }
    for (std::size_t o = 0; db != nullptr && o < bias.size(); ++o) {
        db[o] = static_cast<float>(bias[o]);
    }
}

}  // namespace

HostKernel convolution_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_CONVOLUTION:
            return convolution_forward;
        case CW_CONVOLUTION_BACKWARD_DATA:
            return convolution_backward_data;
        case CW_CONVOLUTION_BACKWARD_WEIGHTS:
            return convolution_backward_weights;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
