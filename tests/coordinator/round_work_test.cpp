// A round's arithmetic: one result for all orders and numbers of workers; refusals leave no trace; failures no model.
#include "coordinator/round_work.h"

#include <algorithm>
#include <limits>
#include <random>
#include <thread>

#include <catch2/catch.hpp>

#include "model/checkpoint.h"

namespace causeway {
namespace {

constexpr std::uint32_t round_number = 5;

Chain small_chain() {
    auto chain = Chain::parse({"flatten", "dense 9", "relu", "dense 3"}, {4, 4, 1}, "cross-entropy");
    REQUIRE(chain);
    return *std::move(chain);
}

ModelState random_model(const Chain& chain, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value(0.0f, 0.3f);
    auto state = ModelState::zeros(chain.table());
    std::ranges::generate(state.trainable.values, [&] { return value(random); });
    return state;
}

RoundRules rules() {
    return {*parse_codec("dense"), *parse_aggregator("mean", {10, 1}), 10, std::nullopt};
}

std::shared_ptr<const RoundInput> make_input() {
    const auto chain = small_chain();
    return std::make_shared<RoundInput>(chain, rules(), round_number, random_model(chain, 1), Digest{});
}

/// What one client offers, as it would travel.
struct Offered {
    std::string node;
    HeldUpdate held;
    Bytes bytes;
};

Offered work_offer(const std::string& node, const ModelState& model, std::int64_t weight) {
    const auto chain = small_chain();
    const auto& table = chain.table();
    const auto update = make_update(table, {RangeSet::all(table.arena_size(ArenaKind::trainable)), {}, {}},
                                    {model.trainable.values, {}, {}});
    Offered offered{node, {}, encode_update(*parse_codec("dense"), update)};
    offered.held.round = round_number;
    offered.held.digest = sha256(offered.bytes);
    offered.held.bytes = offered.bytes.size();
    offered.held.weight = weight;
    offered.held.start_model = model_digest(chain, random_model(chain, 1));
    return offered;
}

std::vector<Offered> ten_offers() {
    std::vector<Offered> all;
    for (unsigned k = 0; k < 10; ++k) {
        all.push_back(work_offer("client-" + std::to_string(k), random_model(small_chain(), 100 + k), 10 + 7 * k));
    }
    return all;
}

RoundWork open_work() {
    RoundWork work;
    REQUIRE(work.open_round(make_input()));
    return work;
}

std::optional<Refusal> absorb(RoundWork& work, const Offered& offered) {
    return work.absorb(offered.node, offered.held, offered.bytes);
}

std::string refusal_code(const Offered& offered) {
    auto work = open_work();
    return absorb(work, offered).value_or(Refusal{"accepted", "", "", 0}).code;
}

}  // namespace

TEST_CASE("the model after a round is the same for 100 orders of arrival", "[property][round_work][case4]") {
    auto all = ten_offers();
    const unsigned seed = 3;
    CAPTURE(seed);
    std::mt19937 random(seed);
    Digest first;
    for (int order = 0; order < 100; ++order) {
        auto work = open_work();
        for (const auto& one : all) {
            REQUIRE_FALSE(absorb(work, one));
        }
        const auto finished = work.finish();
        REQUIRE(finished);
        first = first.empty() ? (*finished)->digest : first;
        REQUIRE((*finished)->digest == first);
        std::ranges::shuffle(all, random);
    }
}

TEST_CASE("any number of workers may check while one adds: the same digest", "[property][round_work][case4]") {
    const auto all = ten_offers();
    auto alone = open_work();
    for (const auto& one : all) {
        REQUIRE_FALSE(absorb(alone, one));
    }
    for (std::size_t workers = 1; workers <= 16; workers *= 2) {
        auto work = open_work();
        std::vector<std::optional<CheckedUpdate>> checked(all.size());
        std::vector<std::thread> threads;
        for (std::size_t w = 0; w < workers; ++w) {
            threads.emplace_back([&, w, input = work.input()] {
                for (std::size_t k = w; k < all.size(); k += workers) {
                    checked[k] = *input->check(all[k].node, all[k].held, all[k].bytes);
                }
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        for (auto& one : checked) {
            REQUIRE_FALSE(work.add(*std::move(one)));
        }
        CHECK((*work.finish())->digest == (*alone.finish())->digest);
    }
}

TEST_CASE("the finished round is a canonical checkpoint of the mean, and says who is in it", "[unit][round_work]") {
    auto work = open_work();
    const auto chain = small_chain();
    auto ones = ModelState::zeros(chain.table());
    auto threes = ones;
    std::ranges::fill(ones.trainable.values, 1.0f);
    std::ranges::fill(threes.trainable.values, 3.0f);
    REQUIRE_FALSE(absorb(work, work_offer("bob", threes, 5)));
    REQUIRE_FALSE(absorb(work, work_offer("ann", ones, 5)));
    const auto& finished = **work.finish();
    CHECK(finished.round == round_number);
    CHECK(std::ranges::all_of(finished.model.trainable.values, [](float v) { return v == 2.0f; }));
    CHECK(finished.file == to_safetensors(chain, finished.model));
    CHECK(finished.digest == sha256(finished.file));
    CHECK(from_safetensors(chain, finished.file)->trainable.values == finished.model.trainable.values);
    REQUIRE(finished.counted.size() == 2);
    CHECK(finished.counted[0] == std::pair(std::string("ann"), work_offer("ann", ones, 5).held.digest));
    double squares = 0;
    for (const float v : random_model(chain, 1).trainable.values) {
        squares += (2.0 - v) * (2.0 - v);
    }
    CHECK(finished.update_norm == Approx(std::sqrt(squares)));
}

TEST_CASE("the mean of one contributor is that contributor's model", "[unit][round_work]") {
    auto work = open_work();
    const auto model = random_model(small_chain(), 77);
    REQUIRE_FALSE(absorb(work, work_offer("ann", model, 3)));
    REQUIRE_FALSE(absorb(work, work_offer("bob", random_model(small_chain(), 78), 0)));  // 0 examples: adds nothing
    const auto& finished = **work.finish();
    CHECK(finished.digest == model_digest(small_chain(), model));
    CHECK(finished.counted.size() == 2);
}

TEST_CASE("zero total weight fails the round and makes no model", "[unit][round_work][case1]") {
    auto work = open_work();
    REQUIRE_FALSE(absorb(work, work_offer("ann", random_model(small_chain(), 2), 0)));
    REQUIRE_FALSE(absorb(work, work_offer("bob", random_model(small_chain(), 3), 0)));
    CHECK(work.finish().error().code == "zero_total_weight");
    CHECK(work.finish().error().code == "zero_total_weight");
}

TEST_CASE("a refused update leaves no trace, wherever it comes in the order", "[unit][round_work][case2]") {
    const auto good = ten_offers();
    auto undisturbed = open_work();
    for (const auto& one : good) {
        REQUIRE_FALSE(absorb(undisturbed, one));
    }
    auto poisoned = random_model(small_chain(), 9);
    poisoned.trainable.values[150] = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t at = 0; at <= good.size(); ++at) {
        auto work = open_work();
        for (std::size_t k = 0; k <= good.size(); ++k) {
            if (k == at) {
                const auto refusal = absorb(work, work_offer("mallory", poisoned, 100));
                REQUIRE(refusal);
                CHECK(refusal->code == "non_finite");
                CHECK(refusal->tensor == "dense1.bias");  // after 16 x 9 weights
                CHECK(refusal->index == 6);
            }
            if (k < good.size()) {
                REQUIRE_FALSE(absorb(work, good[k]));
            }
        }
        REQUIRE((*work.finish())->digest == (*undisturbed.finish())->digest);
    }
}

TEST_CASE("garbage is refused with what was expected, and ten thousand mutations do no harm",
          "[fuzz][round_work][case7]") {
    const auto good = work_offer("ann", random_model(small_chain(), 2), 5);
    auto work = open_work();
    auto garbage = good;
    garbage.bytes = to_bytes("garbage");
    const auto refusal = absorb(work, garbage);
    REQUIRE(refusal);
    CHECK(refusal->message.find("expected an update of round 5, codec dense") != std::string::npos);
    const auto input = work.input();
    const unsigned seed = 12;
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 10'000; ++i) {
        auto bytes = good.bytes;
        for (auto n = 1 + random() % 3; n > 0; --n) {
            bytes[random() % (random() % 4 == 0 ? bytes.size() : 200)] = static_cast<std::byte>(random());
        }
        const auto checked = input->check("ann", good.held, bytes);
        REQUIRE((checked || !checked.error().code.empty()));
        if (checked) {
            auto fresh = open_work();
            REQUIRE_FALSE(fresh.add(*checked));
        }
    }
}

TEST_CASE("updates of another round, another start, a bad weight or a second one of a node are refused",
          "[unit][round_work]") {
    const auto good = work_offer("ann", random_model(small_chain(), 2), 5);
    auto other = good;
    other.held.round = round_number - 1;
    CHECK(refusal_code(other) == "wrong_round");
    other = good;
    other.held.start_model = sha256("another");
    CHECK(refusal_code(other) == "wrong_model");
    other = good;
    other.held.weight = -1;
    CHECK(refusal_code(other) == "bad_weight");

    auto work = open_work();
    REQUIRE_FALSE(absorb(work, good));
    CHECK_FALSE(absorb(work, good));  // the very same: it is in the sum already
    CHECK(absorb(work, work_offer("ann", random_model(small_chain(), 3), 5))->code == "duplicate");
    CHECK(work.counted() == 1);
    CHECK((*work.finish())->digest == model_digest(small_chain(), random_model(small_chain(), 2)));
}

TEST_CASE("finishing again gives the same bytes, and after it nothing can be added", "[unit][round_work]") {
    auto work = open_work();
    REQUIRE_FALSE(absorb(work, work_offer("ann", random_model(small_chain(), 2), 5)));
    const auto first = (*work.finish())->digest;
    CHECK((*work.finish())->digest == first);
    CHECK(absorb(work, work_offer("bob", random_model(small_chain(), 3), 5))->code == "wrong_round");
    REQUIRE(work.open_round(make_input()));  // afresh: nothing of before is left
    CHECK(work.counted() == 0);
    CHECK(work.finish().error().code == "zero_total_weight");
    CHECK(RoundWork().finish().error().code == "no_round");
    CHECK_FALSE(RoundWork().input());
}

TEST_CASE("a round of statistics adds sums of columns in any order, and ends with numbers and the first model",
          "[round_work][statistics]") {
    const StatisticsRules statistics{.columns = 2, .values = 3, .members = 3};
    const std::vector<float> all{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
    const auto offered = [&](const std::string& node, std::size_t first, std::size_t count) {
        ColumnSums sums(2, 3);
        REQUIRE(sums.add(std::span(all).subspan(first, count)));
        Offered one{node, {}, sums.partial()};
        one.held = {.digest = sha256(one.bytes), .bytes = one.bytes.size(), .weight = 1};
        return one;
    };
    const auto first_model = [] { return Result<Bytes>(Bytes(5)); };
    const auto a = offered("a", 0, 6);
    const auto b = offered("b", 6, 6);
    const std::vector<Offered> orders[] = {{a, b}, {b, a}};
    for (const auto& order : orders) {
        RoundWork work;
        REQUIRE(work.open_round(std::make_shared<RoundInput>(small_chain(), rules(), statistics)));
        for (const auto& one : order) {
            REQUIRE_FALSE(absorb(work, one));
            CHECK_FALSE(absorb(work, one));  // again: nothing is added
        }
        CHECK(work.finish([] { return Result<Bytes>(fail(ErrorKind::io, "model_unavailable", "")); }).error().code ==
              "model_unavailable");
        const auto finished = work.finish(first_model);
        REQUIRE(finished);
        CHECK((*finished)->normalise == "3.5,35 1.7078252,17.07825");
        CHECK((*finished)->examples == 2);
        CHECK((*finished)->digest == sha256(Bytes(5)));
        CHECK((*finished)->counted.size() == 2);
        CHECK(*work.finish(first_model) == *finished);
    }
    RoundWork work;
    REQUIRE(work.open_round(std::make_shared<RoundInput>(small_chain(), rules(), statistics)));
    const auto code = [&](Offered one, const std::function<void(Offered&)>& change) {
        change(one);
        return absorb(work, one).value_or(Refusal{"accepted", "", "", 0}).code;
    };
    const auto good = offered("a", 0, 6);
    CHECK(code(good, [](Offered& one) { one.held.weight = 2; }) == "bad_weight");
    CHECK(code(good, [](Offered& one) { one.held.weight = -1; }) == "bad_weight");
    CHECK(code(good, [](Offered& one) { one.held.round = 1; }) == "wrong_round");
    CHECK(code(good, [](Offered& one) { one.held.start_model = sha256("m"); }) == "wrong_model");
    CHECK(code(good, [](Offered& one) { one.bytes.pop_back(); }) == "truncated");
    CHECK(code(good, [](Offered& one) { one.bytes = {}; }) == "truncated");
    CHECK(work.finish(first_model).error().code == "zero_total_weight");
    CHECK(code(good, [](Offered&) {}) == "accepted");
}

}  // namespace causeway
