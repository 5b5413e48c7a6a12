// The firewall: each reason to refuse, with the tensor and the index it names, in every place it can occur.
#include "aggregation/firewall.h"

#include <limits>

#include <catch2/catch.hpp>

namespace causeway {
namespace {

TensorTable table() {
    TensorTable table;
    table.tensors = {{"dense1.weight", DType::f32, {3, 4}, 0, ArenaKind::trainable, 0},
                     {"dense1.bias", DType::f32, {4}, 0, ArenaKind::trainable, 12},
                     {"norm.mean", DType::f32, {3}, 1, ArenaKind::buffers, 0}};
    return table;
}

const std::vector<float> trainable(16, 0.5f);
const std::vector<float> buffers(3, 0.25f);
const ArenaValues start{trainable, buffers, {}};

FirewallRules rules() {
    return {{RangeSet::all(16), RangeSet::all(3), {}}, 3, std::nullopt, Fidelity::lossless};
}

Update good_update() {
    return make_update(table(), rules().expected, start);
}

Refusal refused(const Update& update, const FirewallRules& rules, std::int64_t weight = 10) {
    const auto refusal = check_update(table(), rules, start, update, weight);
    return refusal.value_or(Refusal{"accepted", "", "", 0});
}

}  // namespace

TEST_CASE("what was asked for is let in, with weight 0 too", "[unit][firewall]") {
    CHECK_FALSE(check_update(table(), rules(), start, good_update(), 10));
    CHECK_FALSE(check_update(table(), rules(), start, good_update(), 0));
}

TEST_CASE("another shape is refused by name and never broadcast", "[unit][firewall][case3]") {
    auto update = good_update();
    update.parts[1].shape = {1};
    update.parts[1].ranges = *RangeSet::make({{12, 13}}, 16);
    update.parts[1].values = {1.0f};
    const auto refusal = refused(update, rules());
    CHECK(refusal.code == "shape");
    CHECK(refusal.tensor == "dense1.bias");
    CHECK(refusal.message.find("shape [1] != [4]") != std::string::npos);
    for (const Shape& wrong : {Shape{4, 3}, Shape{12}, Shape{}, Shape{3, 4, 1}, Shape{-3, -4}}) {
        auto transposed = good_update();
        transposed.parts[0].shape = wrong;
        CHECK(refused(transposed, rules()).code == "shape");
    }
}

TEST_CASE("a value that is not finite is refused with its tensor and index, wherever it stands", "[unit][firewall]") {
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
        auto update = good_update();
        for (auto& part : update.parts) {
            for (std::size_t i = 0; i < part.values.size(); ++i) {
                const float before = std::exchange(part.values.own()[i], wrong);
                const auto refusal = refused(update, rules());
                CHECK(refusal.code == "non_finite");
                CHECK(refusal.tensor == table().at(part.arena, part.ranges.ranges()[0].begin)->name);
                CHECK(refusal.index == i);
                CHECK(refused(update, rules(), 0).code == "non_finite");  // also when it would add nothing
                part.values.own()[i] = before;
            }
        }
    }
}

TEST_CASE("the index of a slice's value is counted inside its tensor", "[unit][firewall]") {
    auto wanted = rules();
    wanted.expected = {*RangeSet::make({{2, 4}, {9, 11}}, 16), {}, {}};
    auto update = make_update(table(), wanted.expected, start);
    CHECK(refused(update, wanted).code == "accepted");
    update.parts[0].values.own()[3] = std::numeric_limits<float>::infinity();
    CHECK(refused(update, wanted).index == 10);
}

TEST_CASE("weight times value times cohort stays below 2^52", "[unit][firewall]") {
    auto update = good_update();
    update.parts[1].values.own()[2] = 0x1p22f;
    auto wide = rules();
    wide.cohort = 2;
    CHECK(refused(update, wide, (1 << 29) - 1).code == "accepted");
    update.parts[1].values.own()[2] = -0x1.000002p22f;  // the next float: 2^52 is passed
    const auto refusal = refused(update, wide, (1 << 29) - 1);
    CHECK(refusal.code == "out_of_range");
    CHECK_THAT(refusal.message, Catch::Contains("lower train.optimizer.learning_rate"));
    CHECK(refusal.tensor == "dense1.bias");
    CHECK(refusal.index == 2);
    wide.cohort = 1;
    CHECK(refused(update, wide, (1 << 29) - 1).code == "accepted");
}

TEST_CASE("a weight that is no integer in [0, 2^29) is refused", "[unit][firewall][case5]") {
    for (const std::int64_t wrong :
         {std::int64_t{-1}, std::int64_t{1} << 29, std::numeric_limits<std::int64_t>::min()}) {
        CHECK(refused(good_update(), rules(), wrong).code == "bad_weight");
    }
}

TEST_CASE("missing, repeated and unexpected parts and wrong dtypes are refused", "[unit][firewall]") {
    auto missing = good_update();
    missing.parts.erase(missing.parts.begin() + 1);
    CHECK(refused(missing, rules()).code == "missing_range");
    CHECK(refused(missing, rules()).tensor == "dense1.bias");
    CHECK(refused(Update{}, rules()).code == "missing_range");

    auto twice = good_update();
    twice.parts.push_back(twice.parts[0]);
    CHECK(refused(twice, rules()).code == "duplicate_range");

    auto wrong_dtype = good_update();
    wrong_dtype.parts[2].dtype = DType::i64;
    CHECK(refused(wrong_dtype, rules()).code == "dtype");

    auto trainable_only = rules();
    trainable_only.expected[1] = {};
    CHECK(refused(good_update(), trainable_only).code == "unexpected_range");

    auto outside = good_update();
    outside.parts[2].ranges = *RangeSet::make({{100, 103}}, 1000);
    CHECK(refused(outside, rules()).code == "unexpected_range");
    auto empty = good_update();
    empty.parts.push_back({});
    CHECK(refused(empty, rules()).code == "unexpected_range");
}

TEST_CASE("a part that covers other elements than asked names the first one", "[unit][firewall]") {
    auto wanted = rules();
    wanted.expected = {*RangeSet::make({{2, 6}}, 16), {}, {}};
    auto update = make_update(table(), wanted.expected, start);
    update.parts[0].ranges = *RangeSet::make({{2, 5}, {7, 8}}, 16);
    CHECK(refused(update, wanted).code == "unexpected_range");
    CHECK(refused(update, wanted).index == 7);
    auto holes = good_update();
    holes.parts[0].ranges = *RangeSet::make({{0, 3}, {4, 12}}, 16);
    CHECK(refused(holes, rules()).code == "missing_range");
    CHECK(refused(holes, rules()).index == 3);
    auto beyond = good_update();  // reaches into the next tensor
    beyond.parts[0].ranges = RangeSet::all(13);
    CHECK(refused(beyond, rules()).code == "unexpected_range");
    CHECK(refused(beyond, rules()).index == 12);
}

TEST_CASE("a norm bound is on the model delta", "[unit][firewall]") {
    auto bounded = rules();
    bounded.norm_bound = 5.0;
    auto update = good_update();
    update.parts[0].values.own()[0] += 3.0f;
    update.parts[1].values.own()[0] -= 4.0f;
    CHECK(refused(update, bounded).code == "accepted");
    bounded.norm_bound = 4.99;
    CHECK(refused(update, bounded).code == "norm");
    bounded.norm_bound = 5.0;
    bounded.fidelity = Fidelity::lossy;  // now the values are the delta, and 19 starts add to it
    update.parts[0].values.own()[1] = 3.0f;
    CHECK(refused(update, bounded).code == "norm");
}

}  // namespace causeway
