// Pools by their definition: each window of each channel, place by place.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/kernels.h"
#include "kernels/window.h"

namespace causeway::reference {
namespace {

/// One window of one channel of one image, as offsets into the image.
struct Places {
    std::vector<std::int64_t> offsets;
    std::int64_t output = 0;
};

/// Calls visit(places) for each output; the first offset is the first place, row by row.
template <class Visit>
void each_window(const Window& w, Visit visit) {
    Places places;
    for (std::int64_t i = 0; i < w.batch * w.out_size(); ++i) {
        const auto c = i % w.channels;
        const auto s = i / w.channels % w.out_width;
        const auto r = i / w.channels / w.out_width % w.out_height;
        const auto image = i / w.out_size() * w.in_size();
        const auto rows = reach_of(r, w.stride, w.above, w.window_height, w.height);
        const auto columns = reach_of(s, w.stride, w.left, w.window_width, w.width);
        places.offsets.clear();
        for (auto row = rows.begin; row < rows.end; ++row) {
            for (auto column = columns.begin; column < columns.end; ++column) {
                places.offsets.push_back(image + (row * w.width + column) * w.channels + c);
            }
        }
        places.output = i;
        visit(places);
    }
}

/// The place of the largest value, the first of equal ones; the first NaN beats all.
std::int64_t largest_place(const float* x, const Places& places) {
    auto best = places.offsets.front();
    for (const auto place : places.offsets) {
        const bool better = x[place] > x[best] || (std::isnan(x[place]) && !std::isnan(x[best]));
        best = better ? place : best;
    }
    return best;
}

void maxpool(const cw_op& op, const cw_run& run) {
    const auto* x = operand<const float>(run, 0);
    each_window(window_of(op), [&](const Places& places) {
        operand<float>(run, 1)[places.output] = x[largest_place(x, places)];
    });
}

void maxpool_backward(const cw_op& op, const cw_run& run) {
    const auto w = window_of(op);
    const auto* x = operand<const float>(run, 0);
    std::vector<double> sums(static_cast<std::size_t>(w.batch * w.in_size()));
    each_window(w, [&](const Places& places) {
        sums[static_cast<std::size_t>(largest_place(x, places))] += operand<const float>(run, 2)[places.output];
    });
    std::ranges::transform(sums, operand<float>(run, 3), [](double sum) { return static_cast<float>(sum); });
}

void relu_maxpool(const cw_op& op, const cw_run& run) {
    const auto w = window_of(op);
    auto* x = operand<float>(run, 0);
    std::for_each(x, x + w.batch * w.in_size(), [](float& v) { v = v > 0 || std::isnan(v) ? v : 0; });
    maxpool(op, run);
}

void relu_maxpool_backward(const cw_op& op, const cw_run& run) {
    const auto w = window_of(op);
    maxpool_backward(op, run);
    for (std::int64_t i = 0; i < w.batch * w.in_size(); ++i) {
        float& slope = operand<float>(run, 3)[i];
        slope = operand<const float>(run, 0)[i] > 0 ? slope : 0;
    }
}

void avgpool(const cw_op& op, const cw_run& run) {
    const auto w = window_of(op);
    each_window(w, [&](const Places& places) {
        double sum = 0;
        for (const auto place : places.offsets) {
            sum += operand<const float>(run, 0)[place];
        }
        operand<float>(run, 1)[places.output] =
            static_cast<float>(sum / static_cast<double>(w.window_height * w.window_width));
    });
}

void avgpool_backward(const cw_op& op, const cw_run& run) {
    const auto w = window_of(op);
    std::vector<double> sums(static_cast<std::size_t>(w.batch * w.in_size()));
    each_window(w, [&](const Places& places) {
        for (const auto place : places.offsets) {
            sums[static_cast<std::size_t>(place)] += operand<const float>(run, 0)[places.output];
        }
    });
    const auto count = static_cast<double>(w.window_height * w.window_width);
    std::ranges::transform(sums, operand<float>(run, 1), [=](double sum) { return static_cast<float>(sum / count); });
}

}  // namespace

HostKernel pooling_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_MAXPOOL: return maxpool;
        case CW_MAXPOOL_BACKWARD: return maxpool_backward;
        case CW_RELU_MAXPOOL: return relu_maxpool;
        case CW_RELU_MAXPOOL_BACKWARD: return relu_maxpool_backward;
        case CW_AVGPOOL: return avgpool;
        case CW_AVGPOOL_BACKWARD: return avgpool_backward;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
