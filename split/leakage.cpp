// Two matrices of distances, centred in place; sums in double, in the order of the examples.
#include "split/leakage.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/random.h"
#include "common/result.h"

namespace causeway {
namespace {

/// f64[n, n], symmetric.
using Matrix = std::vector<double>;

double distance(const float* a, const float* b, std::size_t width) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) {
        const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
        sum += difference * difference;
    }
    return std::sqrt(sum);
}

/// Distances of all pairs, `order[j]` in place of j.
Matrix distances(const Sample& sample, const std::vector<std::uint32_t>& order) {
    const std::size_t n = order.size();
    Matrix matrix(n * n);
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = j + 1; k < n; ++k) {
            const double d = distance(sample.values.data() + order[j] * sample.width,
                                      sample.values.data() + order[k] * sample.width, sample.width);
            matrix[j * n + k] = matrix[k * n + j] = d;
        }
    }
    return matrix;
}

void centre(Matrix& matrix, std::size_t n) {
    const auto count = static_cast<double>(n);
    std::vector<double> means(n);  // of rows, which are those of columns
    double all = 0;
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
            means[j] += matrix[j * n + k] / count;
        }
        all += means[j] / count;
    }
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
            matrix[j * n + k] += all - means[j] - means[k];
        }
    }
}

double mean_product(const Matrix& a, const Matrix& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum / static_cast<double>(a.size());
}

double correlation_of(const Sample& x, const Sample& y, const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> as_they_are(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        as_they_are[i] = static_cast<std::uint32_t>(i);
    }
    auto a = distances(x, as_they_are);
    auto b = distances(y, order);
    centre(a, order.size());
    centre(b, order.size());
    const double variances = mean_product(a, a) * mean_product(b, b);
    if (!(variances > 0)) {
        return 0;
    }
    return std::sqrt(std::clamp(mean_product(a, b) / std::sqrt(variances), 0.0, 1.0));
}

}  // namespace

double distance_correlation(const Sample& x, const Sample& y) {
    ASSERT(x.size() == y.size());
    std::vector<std::uint32_t> order(x.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = static_cast<std::uint32_t>(i);
    }
    return order.size() < 2 ? 0.0 : correlation_of(x, y, order);
}

double shuffled_correlation(const Sample& x, const Sample& y, std::uint64_t seed) {
    ASSERT(x.size() == y.size());
    const auto order = RandomStream({.seed = seed, .purpose = "leakage-shuffle"}).permutation(x.size());
    return order.size() < 2 ? 0.0 : correlation_of(x, y, order);
}

}  // namespace causeway
