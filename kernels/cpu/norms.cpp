// Group and batch norm: rows are worked on in a fixed number of chunks, whose sums are added in order.
//
// So the bits do not depend on the number of threads, which only share the chunks out. Scratch memory: per chunk a few
// numbers per channel. kernels/reference/norms.cpp has the formulas. Thread: the trainer's.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/cpu/parallel.h"

namespace causeway::cpu {
namespace {

constexpr std::int64_t chunk_count = 16;  // more threads than that gain nothing on a norm
constexpr std::int64_t least_normed_elements = 8192;

/// Where a chunk begins.
std::int64_t edge(std::int64_t count, std::int64_t chunk) { return count * chunk / chunk_count; }

/// body(chunk) on all chunks, shared between threads when there is enough to do.
template <class Body>
void each_chunk(std::int64_t elements, int threads, Body body) {
    const auto worth = std::clamp<std::int64_t>(elements / least_normed_elements, 1, chunk_count);
    parallel(threads, chunk_count, (chunk_count + worth - 1) / worth, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            body(chunk);
        }
    });
}

/// The scratch of one chunk, and of all together: numbers per channel, two sums in double and four in float.
struct Scratch {
    double *a, *b;
    float *mean, *rstd, *sums, *products;

    static std::uint64_t bytes_per_slot(std::int64_t channels) {
        return static_cast<std::uint64_t>(channels) * (2 * sizeof(double) + 4 * sizeof(float));
    }
    Scratch(void* workspace, std::int64_t slot, std::int64_t channels) {
        auto* begin = static_cast<std::byte*>(workspace) + static_cast<std::uint64_t>(slot) * bytes_per_slot(channels);
        a = reinterpret_cast<double*>(begin);
        b = a + channels;
        mean = reinterpret_cast<float*>(b + channels);
        rstd = mean + channels;
        sums = rstd + channels;
        products = sums + channels;
    }
};

std::int64_t channels_of(const cw_op& op) { return op.operands[0].dims[op.operands[0].rank - 1]; }
/// One slot a chunk, and one for what belongs to all.
std::uint64_t workspace_bytes(const cw_op& op) {
    return (chunk_count + 1) * Scratch::bytes_per_slot(channels_of(op));
}
Rows rows_of(std::int64_t count, std::int64_t channels) {
    return {static_cast<std::size_t>(count), static_cast<std::size_t>(channels)};
}

/// Adds the chunks' numbers in order: `pick` names the array.
void combine(void* workspace, std::int64_t channels, double* Scratch::* pick, double* into) {
    std::fill_n(into, channels, 0.0);
    for (std::int64_t chunk = 0; chunk < chunk_count; ++chunk) {
        const auto* part = Scratch(workspace, chunk, channels).*pick;
        for (std::int64_t c = 0; c < channels; ++c) {
            into[c] += part[c];
        }
    }
}

/// float = double sums (+ what was there).
void write_gradient(const double* sums, std::int64_t channels, bool adds, float* into) {
    for (std::int64_t c = 0; c < channels; ++c) {
        into[c] = static_cast<float>(adds ? double{into[c]} + sums[c] : sums[c]);
    }
}

// ---- batch norm: x[N, C]

void batch_norm(const cw_op& op, const cw_run& run, int threads) {
    const auto n = run.views[0].dims[0];
    const auto channels = channels_of(op);
    const auto* x = operand<const float>(run, 0);
    const Scratch all(run.workspace, chunk_count, channels);
    if (n == 0) {
        return;
    }
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const Scratch own(run.workspace, k, channels);
        std::fill_n(own.a, channels, 0.0);
        add_columns(x + edge(n, k) * channels, rows_of(edge(n, k + 1) - edge(n, k), channels), own.a);
    });
    combine(run.workspace, channels, &Scratch::a, all.a);
    std::for_each_n(all.a, channels, [&](double& mean) { mean /= static_cast<double>(n); });
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const Scratch own(run.workspace, k, channels);
        std::fill_n(own.b, channels, 0.0);
        add_squares(x + edge(n, k) * channels, rows_of(edge(n, k + 1) - edge(n, k), channels), all.a, own.b);
    });
    combine(run.workspace, channels, &Scratch::b, all.b);
    const double momentum = run.scalars[0];
    for (std::int64_t c = 0; c < channels; ++c) {
        const double unbiased = all.b[c] / static_cast<double>(n > 1 ? n - 1 : 1);
        float& mean = operand<float>(run, 3)[c];
        float& variance = operand<float>(run, 4)[c];
        mean = static_cast<float>(mean * (1 - momentum) + all.a[c] * momentum);
        variance = static_cast<float>(variance * (1 - momentum) + unbiased * momentum);
        operand<float>(run, 6)[c] = static_cast<float>(all.a[c]);
        operand<float>(run, 7)[c] =
            static_cast<float>(1 / std::sqrt(all.b[c] / static_cast<double>(n) + op.reals[0]));
    }
    const NormChannels numbers{operand<float>(run, 6), operand<float>(run, 7), operand<const float>(run, 1),
                               operand<const float>(run, 2)};
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const auto begin = edge(n, k) * channels;
        normalise_rows(x + begin, rows_of(edge(n, k + 1) - edge(n, k), channels), numbers,
                       operand<float>(run, 5) + begin);
    });
}

void batch_norm_inference(const cw_op& op, const cw_run& run, int threads) {
    const auto n = run.views[0].dims[0];
    const auto channels = channels_of(op);
    const Scratch all(run.workspace, chunk_count, channels);
    for (std::int64_t c = 0; c < channels; ++c) {
        all.rstd[c] = static_cast<float>(1 / std::sqrt(operand<const float>(run, 4)[c] + op.reals[0]));
    }
    const NormChannels numbers{operand<const float>(run, 3), all.rstd, operand<const float>(run, 1),
                               operand<const float>(run, 2)};
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const auto begin = edge(n, k) * channels;
        normalise_rows(operand<const float>(run, 0) + begin, rows_of(edge(n, k + 1) - edge(n, k), channels), numbers,
                       operand<float>(run, 5) + begin);
    });
}

void batch_norm_backward(const cw_op& op, const cw_run& run, int threads) {
    const auto n = run.views[0].dims[0];
    const auto channels = channels_of(op);
    const auto* x = operand<const float>(run, 0);
    const auto* dy = operand<const float>(run, 4);
    const Scratch all(run.workspace, chunk_count, channels);
    const NormChannels numbers{operand<const float>(run, 2), operand<const float>(run, 3),
                               operand<const float>(run, 1), nullptr};
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const Scratch own(run.workspace, k, channels);
        std::fill_n(own.a, 2 * channels, 0.0);
        const auto begin = edge(n, k) * channels;
        add_products(x + begin, dy + begin, rows_of(edge(n, k + 1) - edge(n, k), channels), numbers, own.a, own.b);
    });
    combine(run.workspace, channels, &Scratch::a, all.a);
    combine(run.workspace, channels, &Scratch::b, all.b);
    for (std::int64_t c = 0; n > 0 && c < channels; ++c) {
        const double share = numbers.gamma[c] / static_cast<double>(n);
        all.sums[c] = static_cast<float>(all.a[c] * share);
        all.products[c] = static_cast<float>(all.b[c] * share);
    }
    each_chunk(n * channels, threads, [&](std::int64_t k) {
        const auto begin = edge(n, k) * channels;
        norm_slopes(x + begin, dy + begin, rows_of(edge(n, k + 1) - edge(n, k), channels), numbers, all.sums,
                    all.products, operand<float>(run, 5) + begin);
    });
    write_gradient(all.b, channels, op.integers[0] == CW_ACCUMULATE, operand<float>(run, 6));
    write_gradient(all.a, channels, op.integers[0] == CW_ACCUMULATE, operand<float>(run, 7));
}

// ---- group norm: x[B, S, C]

struct GroupShape {
    std::int64_t batch, places, channels, groups;
    GroupShape(const cw_op& op, int stats)
        : batch(op.operands[0].dims[0]),
          places(op.operands[0].dims[1]),
          channels(op.operands[0].dims[2]),
          groups(op.operands[stats].dims[1]) {}
    std::int64_t width() const { return channels / groups; }
    std::int64_t size() const { return places * channels; }  // of one example
    double members() const { return static_cast<double>(places * width()); }
};

/// Replaces each channel's number by the sum over its group.
void sum_groups(const GroupShape& s, double* numbers) {
    for (std::int64_t g = 0; g < s.groups; ++g) {
        double sum = 0;
        std::for_each_n(numbers + g * s.width(), s.width(), [&](double number) { sum += number; });
        std::fill_n(numbers + g * s.width(), s.width(), sum);
    }
}

/// One number per group becomes one per channel.
void spread(const GroupShape& s, const float* per_group, float* per_channel) {
    for (std::int64_t c = 0; c < s.channels; ++c) {
        per_channel[c] = per_group[c / s.width()];
    }
}

void group_norm_example(const cw_op& op, const cw_run& run, const GroupShape& s, std::int64_t b, const Scratch& own) {
    const auto* x = operand<const float>(run, 0) + b * s.size();
    const auto rows = rows_of(s.places, s.channels);
    auto* mean = operand<float>(run, 4) + b * s.groups;
    auto* rstd = operand<float>(run, 5) + b * s.groups;
    std::fill_n(own.a, 2 * s.channels, 0.0);
    add_columns(x, rows, own.a);
    sum_groups(s, own.a);
    std::for_each_n(own.a, s.channels, [&](double& sum) { sum /= s.members(); });
    add_squares(x, rows, own.a, own.b);
    sum_groups(s, own.b);
    for (std::int64_t g = 0; g < s.groups; ++g) {
        mean[g] = static_cast<float>(own.a[g * s.width()]);
        rstd[g] = static_cast<float>(1 / std::sqrt(own.b[g * s.width()] / s.members() + op.reals[0]));
    }
    spread(s, mean, own.mean);
    spread(s, rstd, own.rstd);
    normalise_rows(x, rows, {own.mean, own.rstd, operand<const float>(run, 1), operand<const float>(run, 2)},
                   operand<float>(run, 3) + b * s.size());
}

void group_norm(const cw_op& op, const cw_run& run, int threads) {
    const GroupShape s(op, 4);
    each_chunk(s.batch * s.size(), threads, [&](std::int64_t k) {
        const Scratch own(run.workspace, k, s.channels);
        for (std::int64_t b = edge(s.batch, k); b < edge(s.batch, k + 1); ++b) {
            group_norm_example(op, run, s, b, own);
        }
    });
}

/// own.a and own.b are this example's sums; the chunk's own go on in `dbeta` and `dgamma`.
void group_slopes_example(const cw_run& run, const GroupShape& s, std::int64_t b, const Scratch& own, double* dbeta,
                          double* dgamma) {
    const auto* x = operand<const float>(run, 0) + b * s.size();
    const auto* dy = operand<const float>(run, 4) + b * s.size();
    const auto* gamma = operand<const float>(run, 1);
    const auto rows = rows_of(s.places, s.channels);
    spread(s, operand<const float>(run, 2) + b * s.groups, own.mean);
    spread(s, operand<const float>(run, 3) + b * s.groups, own.rstd);
    const NormChannels numbers{own.mean, own.rstd, gamma, nullptr};
    std::fill_n(own.a, 2 * s.channels, 0.0);
    add_products(x, dy, rows, numbers, own.a, own.b);
    for (std::int64_t c = 0; c < s.channels; ++c) {
        dbeta[c] += own.a[c];
        dgamma[c] += own.b[c];
        own.a[c] *= gamma[c];
        own.b[c] *= gamma[c];
    }
    sum_groups(s, own.a);
    sum_groups(s, own.b);
    for (std::int64_t c = 0; c < s.channels; ++c) {
        own.sums[c] = static_cast<float>(own.a[c] / s.members());
        own.products[c] = static_cast<float>(own.b[c] / s.members());
    }
    norm_slopes(x, dy, rows, numbers, own.sums, own.products, operand<float>(run, 5) + b * s.size());
}

/// Two slots a chunk: one for its examples, one for its part of the parameters' gradients.
std::uint64_t backward_workspace_bytes(const cw_op& op) {
    return (2 * chunk_count + 1) * Scratch::bytes_per_slot(channels_of(op));
}

void group_norm_backward(const cw_op& op, const cw_run& run, int threads) {
    const GroupShape s(op, 2);
    each_chunk(s.batch * s.size(), threads, [&](std::int64_t k) {
        const Scratch part(run.workspace, k, s.channels);
        const Scratch own(run.workspace, chunk_count + 1 + k, s.channels);
        std::fill_n(part.a, 2 * s.channels, 0.0);
        for (std::int64_t b = edge(s.batch, k); b < edge(s.batch, k + 1); ++b) {
            group_slopes_example(run, s, b, own, part.a, part.b);
        }
    });
    const Scratch all(run.workspace, chunk_count, s.channels);
    combine(run.workspace, s.channels, &Scratch::a, all.a);
    combine(run.workspace, s.channels, &Scratch::b, all.b);
    write_gradient(all.b, s.channels, op.integers[0] == CW_ACCUMULATE, operand<float>(run, 6));
    write_gradient(all.a, s.channels, op.integers[0] == CW_ACCUMULATE, operand<float>(run, 7));
}

}  // namespace

ThreadedKernel norm_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_GROUP_NORM: return {group_norm, workspace_bytes};
        case CW_GROUP_NORM_BACKWARD: return {group_norm_backward, backward_workspace_bytes};
        case CW_BATCH_NORM: return {batch_norm, workspace_bytes};
        case CW_BATCH_NORM_INFERENCE: return {batch_norm_inference, workspace_bytes};
        case CW_BATCH_NORM_BACKWARD: return {batch_norm_backward, workspace_bytes};
        default: return {};
    }
}

}  // namespace causeway::cpu
