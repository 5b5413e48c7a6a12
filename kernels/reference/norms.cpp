// Group and batch norm, and their derivatives, as one computation over "members": the elements that share a mean.
//
// Group norm: the places and channels of one group of one example; batch norm: one channel of all rows.
// source: Ioffe and Szegedy 2015; Wu and He 2018. With n members, h = (x - mean) * rstd and g = dy * gamma:
//   dx = rstd * (g - mean(g) - h * mean(g * h)).
#include <cmath>
#include <vector>

#include "kernels/reference/kernels.h"

namespace causeway::reference {
namespace {

/// Which elements share their statistics: member k of set j is element `at(j, k)`, of channel `channel(j, k)`.
struct Sets {
    std::int64_t batch, places, channels, groups;  // groups: 0 for batch norm

    std::int64_t count() const { return groups == 0 ? channels : batch * groups; }
    std::int64_t members() const { return groups == 0 ? batch * places : places * (channels / groups); }
    std::int64_t channel(std::int64_t j, std::int64_t k) const {
        return groups == 0 ? j : j % groups * (channels / groups) + k % (channels / groups);
    }
    std::int64_t at(std::int64_t j, std::int64_t k) const {
        const auto place = groups == 0 ? k : j / groups * places + k / (channels / groups);
        return place * channels + channel(j, k);
    }
};

Sets group_sets(const cw_op& op, int stats) {
    const auto* dims = op.operands[0].dims;
    return {dims[0], dims[1], dims[2], op.operands[stats].dims[1]};
}
Sets batch_sets(const cw_op& op) { return {op.operands[0].dims[0], 1, op.operands[0].dims[1], 0}; }

struct Moments {
    double mean = 0;
    double squares = 0;  // sum of squares about the mean
};

Moments moments_of(const float* x, const Sets& sets, std::int64_t j) {
    const auto n = static_cast<double>(sets.members());
    Moments found;
    for (std::int64_t k = 0; k < sets.members(); ++k) {
        found.mean += x[sets.at(j, k)] / n;
    }
    for (std::int64_t k = 0; k < sets.members(); ++k) {
        const double difference = x[sets.at(j, k)] - found.mean;
        found.squares += difference * difference;
    }
    return found;
}

void normalise(const cw_run& run, const Sets& sets, std::int64_t j, double mean, double rstd, float* y) {
    for (std::int64_t k = 0; k < sets.members(); ++k) {
        const auto c = sets.channel(j, k);
        const double h = (operand<const float>(run, 0)[sets.at(j, k)] - mean) * rstd;
        y[sets.at(j, k)] =
            static_cast<float>(h * double{operand<const float>(run, 1)[c]} + double{operand<const float>(run, 2)[c]});
    }
}

void group_norm(const cw_op& op, const cw_run& run) {
    const auto sets = group_sets(op, 4);
    for (std::int64_t j = 0; j < sets.count(); ++j) {
        const auto found = moments_of(operand<const float>(run, 0), sets, j);
        const double variance = found.squares / static_cast<double>(sets.members());
        operand<float>(run, 4)[j] = static_cast<float>(found.mean);
        operand<float>(run, 5)[j] = static_cast<float>(1 / std::sqrt(variance + op.reals[0]));
        normalise(run, sets, j, operand<float>(run, 4)[j], operand<float>(run, 5)[j], operand<float>(run, 3));
    }
}

void batch_norm(const cw_op& op, const cw_run& run) {
    const auto sets = batch_sets(op);
    const auto n = sets.members();
    const double momentum = run.scalars[0];
    for (std::int64_t j = 0; n > 0 && j < sets.count(); ++j) {
        const auto found = moments_of(operand<const float>(run, 0), sets, j);
        const double unbiased = found.squares / static_cast<double>(n > 1 ? n - 1 : 1);
        float& mean = operand<float>(run, 3)[j];
        float& variance = operand<float>(run, 4)[j];
        mean = static_cast<float>(mean * (1 - momentum) + found.mean * momentum);
        variance = static_cast<float>(variance * (1 - momentum) + unbiased * momentum);
        operand<float>(run, 6)[j] = static_cast<float>(found.mean);
        operand<float>(run, 7)[j] =
            static_cast<float>(1 / std::sqrt(found.squares / static_cast<double>(n) + op.reals[0]));
        normalise(run, sets, j, operand<float>(run, 6)[j], operand<float>(run, 7)[j], operand<float>(run, 5));
    }
}

void batch_norm_inference(const cw_op& op, const cw_run& run) {
    const auto sets = batch_sets(op);
    for (std::int64_t j = 0; j < sets.count(); ++j) {
        const double rstd = 1 / std::sqrt(operand<const float>(run, 4)[j] + op.reals[0]);
        normalise(run, sets, j, operand<const float>(run, 3)[j], rstd, operand<float>(run, 5));
    }
}

/// Operands: 0 x, 1 gamma, 2 mean, 3 rstd, 4 dy, 5 dx, 6 dgamma, 7 dbeta.
void backward(const cw_op& op, const cw_run& run, const Sets& sets) {
    const auto n = static_cast<double>(sets.members());
    std::vector<double> dgamma(static_cast<std::size_t>(sets.channels)), dbeta(dgamma.size());
    for (std::size_t c = 0; op.integers[0] == CW_ACCUMULATE && c < dgamma.size(); ++c) {
        dgamma[c] = operand<float>(run, 6)[c];
        dbeta[c] = operand<float>(run, 7)[c];
    }
    for (std::int64_t j = 0; j < sets.count(); ++j) {
        const double mean = operand<const float>(run, 2)[j];
        const double rstd = operand<const float>(run, 3)[j];
        const auto h = [&](std::int64_t k) { return (operand<const float>(run, 0)[sets.at(j, k)] - mean) * rstd; };
        const auto dy = [&](std::int64_t k) { return double{operand<const float>(run, 4)[sets.at(j, k)]}; };
        const auto gamma = [&](std::int64_t k) { return double{operand<const float>(run, 1)[sets.channel(j, k)]}; };
        double sum = 0, product = 0;  // of g, and of g * h
        for (std::int64_t k = 0; k < sets.members(); ++k) {
            dgamma[static_cast<std::size_t>(sets.channel(j, k))] += dy(k) * h(k);
            dbeta[static_cast<std::size_t>(sets.channel(j, k))] += dy(k);
            sum += dy(k) * gamma(k);
            product += dy(k) * gamma(k) * h(k);
        }
        for (std::int64_t k = 0; k < sets.members(); ++k) {
            operand<float>(run, 5)[sets.at(j, k)] =
                static_cast<float>(rstd * (dy(k) * gamma(k) - sum / n - h(k) * product / n));
        }
    }
    for (std::size_t c = 0; c < dgamma.size(); ++c) {
        operand<float>(run, 6)[c] = static_cast<float>(dgamma[c]);
        operand<float>(run, 7)[c] = static_cast<float>(dbeta[c]);
    }
}

void group_norm_backward(const cw_op& op, const cw_run& run) { backward(op, run, group_sets(op, 2)); }
void batch_norm_backward(const cw_op& op, const cw_run& run) { backward(op, run, batch_sets(op)); }

}  // namespace

HostKernel norm_kernel(std::int32_t kind) {
    switch (kind) {
        case CW_GROUP_NORM: return group_norm;
        case CW_GROUP_NORM_BACKWARD: return group_norm_backward;
        case CW_BATCH_NORM: return batch_norm;
        case CW_BATCH_NORM_INFERENCE: return batch_norm_inference;
        case CW_BATCH_NORM_BACKWARD: return batch_norm_backward;
        default: return nullptr;
    }
}

}  // namespace causeway::reference
