// The canonical text re-reads to the same experiment, for every experiment; and no text whatever breaks the reader.
#include "configs/canonical.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/random.h"
#include "configs/examples.h"
#include "configs/fields.h"
#include "model/loss.h"
#include "tests/configs/texts.h"

namespace causeway {

namespace {

/// Values within a field's bounds, by type; those that need a meaning (layers, names) keep what the text has.
struct RandomValues {
    const Field& field;
    RandomStream& random;

    void set(std::string& value) const {
        if (field.path == "data.label") {  // a column may be called anything
            value = "x";
            for (auto left = random.below(12); left > 0; --left) {
                value += static_cast<char>(' ' + random.below(95));
            }
        }
        if (field.path == "train.snapshot_every") {
            value = std::array<std::string, 4>{"off", "auto", "90s", "7 batches"}[random.below(4)];
        }
        if (!field.choices.empty()) {
            value = field.choices[random.below(field.choices.size())];
            if (field.path == "flow.kind" || field.path == "mesh.replicas") {
                value = field.path == "flow.kind" ? "local-epochs" : "cohort";  // others: split_plan_test
            }
            if (field.path == "regime.preset") {
                value = "fedavg";
            }
        }
    }
    void set(bool& value) const { value = random.below(2) == 1; }
    void set(std::uint32_t& value) const { value = count<std::uint32_t>(); }
    void set(std::uint64_t& value) const { value = count<std::uint64_t>(); }
    void set(double& value) const {
        value = field.least + (field.most - field.least) * std::pow(random.uniform(), 4);
        if (field.style == NumberStyle::share) {
            value = std::round(value * 1e8) / 1e8;
        }
    }
    void set(Duration& value) const {
        const auto unit = std::array<std::int64_t, 4>{1, 1000, 60'000, 3'600'000}[random.below(4)];
        const auto least = static_cast<std::int64_t>(field.least * 1000);
        value = std::chrono::milliseconds(
            std::max<std::int64_t>(least, unit * static_cast<std::int64_t>(random.below(700))));
    }
    void set(CountOrShare& value) const {
        value = {CountOrShare::Kind::share, 0, std::round((1 - random.uniform()) * 1e8 + 1) / 1e8};
        value.share = std::min(value.share, 1.0);
        if (random.below(2) == 0 && field.path == "sync.cohort") {
            value = {CountOrShare::Kind::count, 1'000'000, 0};
        }
    }
    void set(std::vector<std::string>&) const {}
    void set(std::vector<std::vector<std::string>>&) const {}
    void set(Shape&) const {}

private:
    template <class Count>
    [[nodiscard]] Count count() const {
        const auto range = static_cast<std::uint64_t>(field.most - field.least) + 1;
        const auto value = static_cast<std::uint64_t>(field.least) + random.below(range);
        return static_cast<Count>(!field.word.empty() && random.below(3) == 0 ? 0 : value);
    }
};

Experiment random_experiment(RandomStream& random) {
    auto experiment = *read_experiment(right_text, "e.toml");
    for (const auto& field : all_fields()) {
        std::visit([&](auto access) { RandomValues{field, random}.set(access(experiment)); }, field.access);
    }
    const Experiment initial;
    for (const auto& field : all_fields()) {
        if (!applies(field, experiment)) {
            std::visit([&](auto access) { access(experiment) = access(const_cast<Experiment&>(initial)); },
                       field.access);
        }
    }
    experiment.mesh = {};
    if (experiment.train.optimizer.momentum == 0) {
        experiment.train.optimizer.nesterov = false;
    }
    if (const auto loss = parse_loss(experiment.model.loss); loss) {  // only what the loss gives can be measured
        experiment.evaluation.metric = loss->kind == LossKind::mean_squared_error ? "rmse" : "macro_f1";
    }
    auto& evaluation = experiment.evaluation;  // patience counts evaluations: there must be some, and often enough
    evaluation.patience = std::min(evaluation.patience, experiment.experiment.rounds);
    evaluation.where = evaluation.patience > 0 ? "coordinator" : evaluation.where;
    evaluation.every = evaluation.patience > 0 ? std::min(evaluation.every, evaluation.patience) : evaluation.every;
    auto& train = experiment.train;
    train.microbatch = train.batch > 0 ? std::min(train.batch, train.microbatch) : train.microbatch;
    return experiment;
}

std::string mutated(std::string text, RandomStream& random) {
    static const std::vector<std::string> pieces = {"\"",
                                                    "'",
                                                    "\"\"\"",
                                                    "[",
                                                    "]",
                                                    "[[",
                                                    "{",
                                                    "}",
                                                    "=",
                                                    ".",
                                                    ",",
                                                    "\n",
                                                    "#",
                                                    "0x",
                                                    "1e999",
                                                    "nan",
                                                    "-inf",
                                                    "true",
                                                    "1979-05-27T07:32:00Z",
                                                    "\\u0000",
                                                    "\xff",
                                                    "\xc3",
                                                    std::string(1, '\0'),
                                                    "%",
                                                    "[data]",
                                                    "9223372036854775807",
                                                    "\"dense 999999999\"",
                                                    "a.b.c = 1",
                                                    "\r",
                                                    "partition = 1\n",
                                                    "\"\"",
                                                    "[[[[[[[[[[[[[[["};
    const auto edits = 1 + random.below(6);
    for (std::uint64_t i = 0; i < edits && !text.empty(); ++i) {
        const auto at = random.below(text.size());
        const auto length = std::min<std::size_t>(random.below(12), text.size() - at);
        switch (random.below(4)) {
            case 0:
                text[at] = static_cast<char>(random.below(256));
                break;
            case 1:
                text.erase(at, length);
                break;
            case 2:
                text.insert(random.below(text.size()), text.substr(at, length * 4));
                break;
            default:
                text.insert(at, pieces[random.below(pieces.size())]);
        }
    }
    return text;
}

/// A reading is an experiment whose canonical text re-reads to it, or a list of errors with places.
void check_reading(const ExperimentResult& read) {
    if (read) {
        const auto again = read_experiment(canonical_toml(*read), "canonical.toml");
        REQUIRE(again.has_value());
        REQUIRE(*again == *read);
        return;
    }
    REQUIRE_FALSE(read.error().empty());
    REQUIRE(read.error().size() <= max_config_errors);
    for (const auto& error : read.error()) {
        const bool placed =
            error.place.origin != Place::Origin::file || (error.place.line > 0 && error.place.column > 0);
        REQUIRE(placed);
        REQUIRE_FALSE(error.message.empty());
    }
}

}  // namespace

TEST_CASE("the canonical text re-reads to an equal experiment", "[configs][property]") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        RandomStream random({.seed = seed, .purpose = "test-canonical"});
        const auto experiment = random_experiment(random);
        const auto text = canonical_toml(experiment);
        CAPTURE(seed, text, all_errors(text));
        const auto again = read_experiment(text, "canonical.toml");
        REQUIRE(again.has_value());
        REQUIRE(*again == experiment);
        REQUIRE(canonical_toml(*again) == text);
    }
}

TEST_CASE("show prints the canonical values with the place each came from", "[configs][unit]") {
    const auto read = read_experiment(right_text, "e.toml", std::vector<std::string>{"train.batch=8"});
    REQUIRE(read.has_value());
    const auto shown = show_toml(*read);
    CHECK_THAT(shown, Catch::Contains("rounds = 3") && Catch::Contains("# e.toml:3:10"));
    CHECK_THAT(shown, Catch::Contains("# --set train.batch") && Catch::Contains("# preset fedavg"));
    CHECK_THAT(shown, Catch::Contains("[mesh]\nstages = 1"));
    CHECK_THAT(shown, !Catch::Contains("partition.labels"));
    const auto again = read_experiment(shown, "shown.toml");
    REQUIRE(again.has_value());
    CHECK(*again == *read);
}

TEST_CASE("one experiment spelt in two ways has one canonical text", "[configs][unit]") {
    const auto other = with("scale = \"0..16 -> 0..1\"", "scale = \"0..16->0..1\"\nholdout = \"0.0 %\"") +
                       "[codec]\nuplink = \"none\"\n[sync]\nrejoin = \"1m\"\ncohort = \"100%\"\n";
    CAPTURE(all_errors(other));
    CHECK(canonical_toml(*read_experiment(other, "o.toml")) == canonical_toml(*read_experiment(right_text, "e.toml")));
}

TEST_CASE("10,000 mutated files and overrides give an experiment or placed errors", "[configs][fuzz]") {
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        CAPTURE(seed);
        RandomStream random({.seed = seed, .purpose = "test-mutations"});
        const auto text = mutated(seed % 2 == 0 ? std::string(right_text) : *find_example("digits-fedavg"), random);
        std::vector<std::string> overrides;
        if (seed % 4 == 0) {
            overrides.push_back(mutated("data.partition = { kind = \"shards\", labels = 2 }", random));
        }
        check_reading(read_experiment(text, "mutated.toml", overrides));
    }
}

}  // namespace causeway
