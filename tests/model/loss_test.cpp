// Losses: their texts, their values against numbers worked out by hand, and that training makes each of them small.
#include <cmath>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

std::string loss_code_of(std::string_view text) {
    const auto loss = parse_loss(text);
    return loss ? "" : loss.error().code;
}

/// Examples whose targets are two linear functions of the features.
MemoryIo two_lines(std::size_t examples) {
    MemoryIo io = clusters(examples, 3, 2, 5);
    for (std::size_t row = 0; row < examples; ++row) {
        const float* x = io.features.data() + row * 3;
        io.targets.push_back(2 * x[0] - x[1] + 0.5f);
        io.targets.push_back(x[2] - 1);
    }
    return io;
}

/// Every example has any of three labels, each by the sign of one feature.
MemoryIo three_signs(std::size_t examples) {
    MemoryIo io = clusters(examples, 3, 4, 6);
    for (const float x : io.features) {
        io.targets.push_back(x > 0 ? 1.0f : 0.0f);
    }
    return io;
}

Evaluation evaluate_layers(const Chain& chain, const ModelState& state, MemoryIo io) {
    Trainer trainer = open_trainer("cpu");
    return must(trainer.evaluate(chain, state, io, 0));
}

}  // namespace

TEST_CASE("a loss's text gives the loss back, and only what differs from the plain one is said", "[unit][loss]") {
    for (const char* text :
         {"cross-entropy", "cross-entropy smoothing=0.1", "cross-entropy weights=1,0.5,2",
          "cross-entropy smoothing=0.25 weights=1,2", "mean-squared-error", "binary-cross-entropy"}) {
        REQUIRE(to_text(must(parse_loss(text))) == text);
    }
    REQUIRE(to_text(must(parse_loss("cross-entropy  weights=2,1   smoothing=0"))) == "cross-entropy weights=2,1");
    for (const char* text :
         {"", "hinge", "cross-entropy smoothing=1", "cross-entropy smoothing=-0.1", "cross-entropy smoothing=nan",
          "cross-entropy weights=", "cross-entropy weights=1,,2", "cross-entropy weights=-1,2", "cross-entropy sharp",
          "mean-squared-error smoothing=0.1", "cross-entropy weights=1,2 weights=1,2"}) {
        CAPTURE(text);
        REQUIRE(loss_code_of(text) == "bad_loss");
    }
    REQUIRE_THAT(parse_loss("mean-square-error").error().message, Catch::Contains("\"mean-squared-error\""));
    REQUIRE_FALSE(parse_loss(std::string(100'000, 'a')));
}

TEST_CASE("class weights are counted, and each loss says how many scores it needs", "[unit][loss]") {
    const auto wrong = Chain::parse({"dense 3"}, {4}, "cross-entropy weights=1,2");
    REQUIRE_FALSE(wrong);
    REQUIRE(wrong.error().at(0).place == LayerError::Place::loss);
    REQUIRE_THAT(wrong.error().at(0).message, Catch::Contains("2 class weights"));
    REQUIRE(Chain::parse({"dense 1"}, {4}, "mean-squared-error"));
    REQUIRE_FALSE(Chain::parse({"dense 1"}, {4}, "cross-entropy"));
    const Chain chain = make_chain({"dense 3"}, {4}, "cross-entropy smoothing=0.1 weights=1,2,3");
    REQUIRE(must(Chain::from_architecture(chain.architecture())) == chain);
}

TEST_CASE("the losses are those of the formulas", "[unit][loss]") {
    // One example [1, 2] through a layer without weights: its scores are the features.
    MemoryIo io;
    io.width = 2;
    io.features = {1, 2};
    io.labels = {0};
    const ModelState none;
    const auto loss = [&](std::string_view text) {
        return evaluate_layers(make_chain({"gelu", "flatten"}, {2}, text), none, io).loss;
    };
    const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
    const double a = gelu(1), b = gelu(2);
    const double sum = std::log(std::exp(a) + std::exp(b));
    REQUIRE(loss("cross-entropy") == Approx(sum - a).epsilon(1e-6));
    REQUIRE(loss("cross-entropy weights=3,1") == Approx(3 * (sum - a)).epsilon(1e-6));
    REQUIRE(loss("cross-entropy smoothing=0.2") ==
            Approx(0.8 * (sum - a) + 0.1 * ((sum - a) + (sum - b))).epsilon(1e-6));
    io.targets = {0.5f, 1};
    REQUIRE(loss("mean-squared-error") == Approx(((a - 0.5) * (a - 0.5) + (b - 1) * (b - 1)) / 2).epsilon(1e-6));
    const auto binary = [](double x, double t) {
        const double p = 1 / (1 + std::exp(-x));
        return -t * std::log(p) - (1 - t) * std::log(1 - p);
    };
    REQUIRE(loss("binary-cross-entropy") == Approx((binary(a, 0.5) + binary(b, 1)) / 2).epsilon(1e-6));
}

TEST_CASE("a regression finds its line, and counts no answers as right", "[unit][loss]") {
    const Chain chain = make_chain({"dense 2"}, {3}, "mean-squared-error");
    MemoryIo io = two_lines(200);
    TrainJob job = make_job(chain, 3, "sgd learning_rate=0.1 momentum=0.9");
    job.batch = 20;
    job.local_epochs = 30;
    Trainer trainer = open_trainer("cpu");
    const TrainResult result = must(trainer.train(job, io));
    const Evaluation found = must(trainer.evaluate(chain, result.end, io));
    REQUIRE(found.loss < 1e-4);
    REQUIRE(found.accuracy == 0);
    REQUIRE(result.end.trainable.values[0] == Approx(2).margin(0.02));
    REQUIRE(result.end.trainable.values[6] == Approx(0.5).margin(0.02));
}

TEST_CASE("several labels an example are learned, and a row is right when all of them are", "[unit][loss]") {
    const Chain chain = make_chain({"dense 3"}, {3}, "binary-cross-entropy");
    MemoryIo io = three_signs(300);
    TrainJob job = make_job(chain, 3, "sgd learning_rate=1 momentum=0.9");
    job.batch = 30;
    job.local_epochs = 30;
    Trainer trainer = open_trainer("cpu");
    const Evaluation found = must(trainer.evaluate(chain, must(trainer.train(job, io)).end, io));
    REQUIRE(found.accuracy > 0.95);
    REQUIRE(found.loss < 0.1);
}

TEST_CASE("one label an example serves as one number, and not as several", "[unit][loss]") {
    MemoryIo io = clusters(20, 3, 2, 1);
    Trainer trainer = open_trainer("cpu");
    const Chain one = make_chain({"dense 1"}, {3}, "mean-squared-error");
    REQUIRE(trainer.train(make_job(one, 1, "sgd"), io));
    const Chain two = make_chain({"dense 2"}, {3}, "mean-squared-error");
    REQUIRE(trainer.train(make_job(two, 1, "sgd"), io).error().code == "no_targets");
    io.targets.assign(20, 1.0f);
    io.targets[7] = NAN;
    REQUIRE(trainer.train(make_job(one, 1, "sgd"), io).error().code == "label_out_of_range");
}

TEST_CASE("scores of a regression come without labels", "[unit][loss]") {
    MemoryIo io = clusters(5, 3, 2, 1);
    const Chain chain = make_chain({"dense 1"}, {3}, "mean-squared-error");
    Trainer trainer = open_trainer("cpu");
    std::size_t rows = 0;
    must(trainer.predict(chain, initial_model(chain, 1), io,
                         [&](const BatchPlace& place, std::span<const float> scores, auto labels) -> Status {
                             rows += place.rows;
                             REQUIRE(scores.size() == place.rows);
                             REQUIRE(labels.empty());
                             return {};
                         }));
    REQUIRE(rows == 5);
}

}  // namespace causeway
