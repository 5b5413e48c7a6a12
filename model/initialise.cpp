// Filling arenas by their rules. Only + * and one sqrt of doubles are used: every machine rounds them alike.
#include "model/initialise.h"

#include <algorithm>

#include "common/random.h"

namespace causeway {
namespace {

void fill(std::span<float> values, const InitRule& rule, RandomStream& random) {
    switch (rule.kind) {
        case InitRule::Kind::zeros:
            std::ranges::fill(values, 0.0f);
            break;
        case InitRule::Kind::ones:
            std::ranges::fill(values, 1.0f);
            break;
        case InitRule::Kind::uniform:
            // Products and sums of doubles round alike everywhere (-ffp-contract=off), then once to float.
            std::ranges::generate(values,
                                  [&] { return static_cast<float>((2.0 * random.uniform() - 1.0) * rule.bound); });
            break;
    }
}

}  // namespace

ModelState initial_model(const Chain& chain, std::uint64_t seed) {
    ModelState state = ModelState::zeros(chain.table());
    for (std::size_t layer = 0; layer < chain.layer_count(); ++layer) {
        RandomStream random({.seed = seed, .purpose = "initialise", .layer = layer});
        const auto [first, end] = chain.tensors_of(layer);
        for (std::size_t i = first; i < end; ++i) {
            const TensorInfo& tensor = chain.table().tensors[i];
            fill(state.arena(tensor.arena).view(tensor), chain.init_rule(i), random);
        }
    }
    return state;
}

}  // namespace causeway
