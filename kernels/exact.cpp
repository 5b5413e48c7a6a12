// Exact sums over spans: checks sizes, splits terms into passes, and calls the vectorised kernels.
#include "kernels/exact.h"

#include <algorithm>

#include "common/assert.h"
#include "kernels/cpu/streaming.h"

namespace causeway {

void exact_accumulate(std::span<std::int64_t> high, std::span<std::int64_t> low, std::span<const ExactTerm> terms) {
    ASSERT(high.size() == low.size());
    while (!terms.empty()) {
        const auto head = terms.first(std::min(terms.size(), exact_terms_per_pass));
        terms = terms.subspan(head.size());
        cpu::ExactPass pass{};
        for (const auto& term : head) {
            ASSERT(term.weight >= 0 && term.weight < exact_weight_limit);
            pass.values[pass.count] = term.values;
            pass.weights[pass.count++] = static_cast<double>(term.weight);
        }
        cpu::exact_add(pass, high.data(), low.data(), high.size());
    }
}

void exact_carry(std::span<std::int64_t> high, std::span<std::int64_t> low) {
    ASSERT(high.size() == low.size());
    cpu::exact_carry(high.data(), low.data(), high.size());
}

void exact_merge(std::span<std::int64_t> high, std::span<std::int64_t> low, std::span<const std::int64_t> other_high,
                 std::span<const std::int64_t> other_low) {
    ASSERT(high.size() == low.size() && high.size() == other_high.size() && high.size() == other_low.size());
    for (std::size_t i = 0; i < high.size(); ++i) {  // the compiler vectorises it, and integers have no rounding
        high[i] += other_high[i];
        low[i] += other_low[i];
    }
}

void exact_mean(std::span<const std::int64_t> high, std::span<const std::int64_t> low, std::int64_t weight,
                std::span<float> mean) {
    ASSERT(high.size() == low.size() && high.size() == mean.size());
    cpu::exact_mean(high.data(), low.data(), static_cast<double>(weight), mean.data(), mean.size());
}

}  // namespace causeway
