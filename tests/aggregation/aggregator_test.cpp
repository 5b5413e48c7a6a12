// Aggregation rules through the registry, with the firewall before them as in a round.
#include "aggregation/aggregator.h"

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>

#include "aggregation/firewall.h"

namespace causeway {
namespace {

TensorTable one_tensor(std::int64_t count) {
    TensorTable table;
    table.tensors = {{"w", DType::f32, {count}, 0, ArenaKind::trainable, 0}};
    return table;
}

Update constant(std::int64_t count, float value) {
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    return make_update(one_tensor(count), {RangeSet::all(values.size()), {}, {}}, {values, {}, {}});
}

/// One round over the tensor "w": firewall, then the rule.
class AggregatorRound {
public:
    explicit AggregatorRound(std::int64_t count, Fidelity fidelity = Fidelity::lossless)
        : table_(one_tensor(count)), start_(static_cast<std::size_t>(count), 10.0f) {
        rules_.expected = {RangeSet::all(start_.size()), {}, {}};
        rules_.cohort = 3;
        rules_.fidelity = fidelity;
        rule_ = parse_aggregator("mean", {3, 1})->begin({rules_.expected, {start_, {}, {}}, fidelity, {}});
    }
    std::optional<Refusal> offer(const Update& update, std::int64_t weight) {
        auto refusal = check_update(table_, rules_, {start_, {}, {}}, update, weight);
        if (!refusal) {
            rule_->add(update, static_cast<std::uint32_t>(weight));
        }
        return refusal;
    }
    Result<std::vector<float>> finish() {
        TRY_ASSIGN(auto result, rule_->finish(nullptr));
        return std::move(result.arenas[0]);
    }

private:
    TensorTable table_;
    std::vector<float> start_;
    FirewallRules rules_;
    std::unique_ptr<Aggregation> rule_;
};

}  // namespace

TEST_CASE("a round in which everybody has 0 examples fails with zero_total_weight", "[unit][paper][case1]") {
    AggregatorRound round(4);
    CHECK_FALSE(round.offer(constant(4, 1.0f), 0));
    CHECK_FALSE(round.offer(constant(4, 3.0f), 0));
    CHECK(round.finish().error().code == "zero_total_weight");
    CHECK(AggregatorRound(4).finish().error().code == "zero_total_weight");
}

TEST_CASE("one NaN among a million values: that update is refused, the others' mean is exact", "[unit][paper][case2]") {
    const std::int64_t million = 1'000'000;
    AggregatorRound round(million);
    auto poisoned = constant(million, 2.0f);
    poisoned.parts[0].values.own()[654'321] = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(round.offer(constant(million, 1.0f), 7));
    const auto refusal = round.offer(poisoned, 7);
    REQUIRE(refusal);
    CHECK(refusal->code == "non_finite");
    CHECK(refusal->tensor == "w");
    CHECK(refusal->index == 654'321);
    CHECK_FALSE(round.offer(constant(million, 3.0f), 7));
    CHECK(std::ranges::all_of(*round.finish(), [](float v) { return v == 2.0f; }));
}

TEST_CASE("shape [1] for [4] is refused in both orders, and the result is the other client's", "[unit][paper][case3]") {
    const auto a = constant(4, 1.25f);
    const auto b = constant(1, 100.0f);
    for (const bool b_first : {false, true}) {
        AggregatorRound round(4);
        const auto first = round.offer(b_first ? b : a, 5);
        const auto second = round.offer(b_first ? a : b, 5);
        const auto& refusal = b_first ? first : second;
        REQUIRE(refusal);
        CHECK(refusal->message.find("shape [1] != [4]") != std::string::npos);
        CHECK((b_first ? second : first) == std::nullopt);
        CHECK(*round.finish() == std::vector<float>(4, 1.25f));
    }
}

TEST_CASE("deltas of a lossy codec are added to the start", "[unit][mean]") {
    AggregatorRound round(3, Fidelity::lossy);
    round.offer(constant(3, 1.0f), 1);
    round.offer(constant(3, -2.0f), 2);
    CHECK(*round.finish() == std::vector<float>(3, 9.0f));
}

TEST_CASE("an unknown aggregator or arguments to mean are refused when the experiment is submitted", "[unit][case6]") {
    CHECK(parse_aggregator("mean", {3, 2}).has_value());
    const auto unknown = parse_aggregator("meen", {3, 2});
    CHECK(unknown.error().code == "unknown_aggregator");
    CHECK(unknown.error().message.find("mean") != std::string::npos);
    CHECK(parse_aggregator("mean 3", {3, 2}).error().code == "aggregator_arguments");
    for (const auto& entry : aggregator_entries()) {
        CHECK(parse_aggregator(entry.name, {100, 100})->needs == entry.needs);
    }
}

}  // namespace causeway
