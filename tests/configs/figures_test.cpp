// Figures: what they are of clients together, what a client's word may be, and that slices do not show.
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "configs/evaluate.h"
#include "model/initialise.h"

namespace causeway {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Dataset small_set(std::size_t examples, bool regression) {
    Dataset set{"small", "test", {3}, {}, {}, regression ? 0u : 2u, {}};
    for (std::size_t i = 0; i < examples; ++i) {
        for (int k = 0; k < 3; ++k) {
            set.features.push_back(static_cast<float>(std::sin(static_cast<double>(i * 3) + k)));
        }
        if (regression) {
            set.targets.push_back(set.features.back() * 2 - 1);
        } else {
            set.labels.push_back(set.features.back() > 0 ? 1 : 0);
        }
    }
    return set;
}

Chain chain_of(const std::string& last, const std::string& loss) {
    auto chain = Chain::parse({last}, {3}, loss);
    REQUIRE(chain);
    return *std::move(chain);
}

TEST_CASE("clients count by their examples, and each once in the spread") {
    const std::map<std::string, Figures> by_node = {{"a", {10, {{"loss", 1.0}, {"accuracy", 0.5}, {"rmse", 3.0}}}},
                                                    {"b", {30, {{"loss", 2.0}, {"accuracy", 0.9}, {"rmse", 1.0}}}}};
    const auto all = combine(by_node);
    CHECK(all.together.examples == 40);
    CHECK(all.together.value("accuracy") == Approx(0.8));
    CHECK(all.together.value("loss") == Approx(1.75));
    CHECK(all.together.value("rmse") == Approx(std::sqrt((10 * 9.0 + 30 * 1.0) / 40)));  // as of all examples
    CHECK(std::isnan(all.together.value("auc")));
    CHECK(all.spread.at("accuracy").mean == Approx(0.7));
    CHECK(all.spread.at("accuracy").worst_decile == Approx(0.5));
    CHECK(all.spread.at("loss").worst_decile == Approx(2.0));  // the worst loss is the largest
}

TEST_CASE("the worst decile is the mean over the worst tenth of the clients") {
    std::map<std::string, Figures> by_node;
    for (int i = 0; i < 20; ++i) {
        by_node["n" + std::to_string(i)] = {1, {{"loss", 0.0}, {"accuracy", i / 20.0}}};
    }
    CHECK(combine(by_node).spread.at("accuracy").worst_decile == Approx((0.0 + 0.05) / 2));
}

TEST_CASE("what a client says of itself is taken only where it is possible") {
    const Figures figures{12, {{"loss", 0.25}, {"accuracy", 0.75}, {"auc", 0.5}}};
    CHECK(*parse_figures(to_json(figures)) == figures);
    const auto diverged = parse_figures(*Json::parse(to_json(Figures{3, {{"loss", nan}, {"accuracy", 0}}}).dump()));
    REQUIRE(diverged);
    CHECK(std::isnan(diverged->value("loss")));
    for (const char* text :
         {R"({})", R"([])", R"({"examples":0,"loss":1})", R"({"examples":-4,"loss":1})",
          R"({"examples":1e300,"loss":1})", R"({"examples":3,"loss":-1})", R"({"examples":3,"loss":"x"})",
          R"({"examples":3,"loss":1,"accuracy":1.5})", R"({"examples":3,"loss":1,"auc":null})"}) {
        INFO(text);
        CHECK_FALSE(parse_figures(*Json::parse(text)));
    }
    CHECK(parse_figures(*Json::parse(R"({"examples":3,"loss":1,"later":{}})")));
}

TEST_CASE("each metric has its direction, and no number is the worst") {
    CHECK(worth_of("accuracy", 0.9) > worth_of("accuracy", 0.8));
    CHECK(worth_of("rmse", 0.1) > worth_of("rmse", 0.2));
    CHECK(worth_of("loss", nan) < worth_of("loss", 1e30));
    CHECK(find_metric("nothing") == nullptr);
}

TEST_CASE("slices of a dataset give the figures of the whole") {
    auto device = Device::open("reference");
    REQUIRE(device);
    Trainer trainer(*std::move(device));
    for (const bool regression : {false, true}) {
        const auto set = small_set(50, regression);
        const auto chain =
            regression ? chain_of("dense 1", "mean-squared-error") : chain_of("dense 2", "cross-entropy");
        const auto state = initial_model(chain, 5);
        const auto whole = evaluate_dataset(trainer, chain, state, set);
        REQUIRE(whole);
        FiguresSum sum(chain, set);
        while (!sum.done()) {
            REQUIRE(sum.add_next(trainer, state, 7));
        }
        CHECK(sum.finish() == *whole);
        CHECK(whole->examples == 50);
        if (regression) {
            CHECK(whole->value("rmse") == Approx(std::sqrt(whole->value("loss"))));
            CHECK(whole->value("mae") <= whole->value("rmse"));
            CHECK(std::isnan(whole->value("accuracy")));
        } else {
            CHECK(whole->value("auc") >= 0);
        }
    }
}

TEST_CASE("one yes-or-no output is measured as two classes") {
    auto device = Device::open("reference");
    REQUIRE(device);
    Trainer trainer(*std::move(device));
    const auto set = small_set(40, false);
    const auto chain = chain_of("dense 1", "binary-cross-entropy");
    const auto state = initial_model(chain, 3);
    const auto figures = evaluate_dataset(trainer, chain, state, set);
    REQUIRE(figures);
    EvaluationBatches batches(set);
    const auto own = trainer.evaluate(chain, state, batches);
    REQUIRE(own);
    CHECK(figures->value("loss") == Approx(own->loss));
    CHECK(figures->value("accuracy") == Approx(own->accuracy));
    CHECK(figures->values.contains("auc"));
}

}  // namespace
}  // namespace causeway
