// Mistakes and where they are reported; presets and --set over a file.
#include "configs/reader.h"

#include <catch2/catch.hpp>

#include "tests/configs/texts.h"

namespace causeway {

using Catch::Contains;

TEST_CASE("a file that is right gives its values, the preset's and the defaults", "[configs][unit]") {
    const auto read = read_experiment(right_text, "e.toml");
    REQUIRE(read.has_value());
    CHECK(read->experiment.name == "test");
    CHECK(read->experiment.seed == 1);
    CHECK(read->data.shape == Shape{8, 8, 1});
    CHECK(read->data.partition.alpha == 0.5);
    CHECK(read->model.layers.size() == 4);
    CHECK(read->train.optimizer.momentum == 0.9);
    CHECK(read->mesh.replicas == "cohort");
    CHECK(read->flow.kind == "local-epochs");
    CHECK(read->sync.quorum.of(10) == 7);
    CHECK(read->evaluation.dataset == "digits");
    CHECK(read->places.at("train.batch").text() == "e.toml:16:9");
    CHECK(read->places.at("flow.kind").text() == "preset fedavg");
    CHECK(read->places.at("experiment.seed").text() == "default");
}

TEST_CASE("five different mistakes give five messages with their places in one run", "[configs][unit]") {
    const auto lines = errors_of(R"([experiment]
name = "test"
rounds = "many"

[data]
datset = "digits"
dataset = "digits"
shape = [8, 8, 1]
holdout = "95%"

[model]
layers = ["flatten", "dense 16", "rellu", "dense 10"]

[train]
batch = 0
)");
    CAPTURE(lines);
    REQUIRE(lines.size() == 5);
    CHECK_THAT(lines[0], Contains("e.toml:3:10: error: ") && Contains("experiment.rounds must be a whole number"));
    CHECK_THAT(lines[1], Contains("e.toml:6:1: error: ") && Contains("did you mean \"dataset\"?"));
    CHECK_THAT(lines[2], Contains("e.toml:9:11: error: ") && Contains("95%"));
    CHECK_THAT(lines[3], Contains("e.toml:12:34: error: ") && Contains("relu"));
    CHECK_THAT(lines[4], Contains("e.toml:15:9: error: ") && Contains("\"full\""));
}

TEST_CASE("a line of broken TOML does not hide the other mistakes", "[configs][unit]") {
    const auto lines = errors_of(with("rounds = 3", "rounds = = 3") + "epochs = 2\n[sync]\nquorum = \"120%\"\n");
    CAPTURE(lines);
    REQUIRE(lines.size() == 3);
    CHECK_THAT(lines[0], Contains("e.toml:3:") && Contains("TOML syntax"));
    CHECK_THAT(lines[1], Contains("e.toml:17:1") && Contains("epochs"));
    CHECK_THAT(lines[2], Contains("e.toml:19:10") && Contains("120%"));
}

TEST_CASE("a list that never ends is one mistake, not one per line after it", "[configs][unit]") {
    const auto lines = errors_of(with(R"("dense 10"])", R"("dense 10")"));
    CAPTURE(lines);
    CHECK(lines.size() == 1);
}

TEST_CASE("a misspelt name gets the nearest valid one, a misplaced one its table", "[configs][unit]") {
    CHECK_THAT(all_errors(with("[train]", "[trian]")), Contains("did you mean \"train\"?"));
    CHECK_THAT(all_errors(with("batch =", "bacth =")), Contains("did you mean \"batch\"?"));
    CHECK_THAT(all_errors(with("alpha", "alhpa")), Contains("did you mean \"alpha\"?"));
    CHECK_THAT(all_errors(with("dirichlet", "dirichlt")), Contains("did you mean \"dirichlet\"?"));
    CHECK_THAT(all_errors(with("\"sgd\"", "\"sdg\"")), Contains("did you mean \"sgd\"?"));
    CHECK_THAT(all_errors(with("batch = 16", "rounds = 16")), Contains("it belongs in [experiment]"));
    CHECK_THAT(all_errors(with("batch = 16", "zzzzzz = 16")), Contains("known here: optimizer, batch, local_epochs"));
    CHECK(errors_of(with("dirichlet", "dirichlt")).size() == 1);  // alpha is not blamed for it
}

TEST_CASE("what is missing is said with an example", "[configs][unit]") {
    const auto lines = errors_of("[data]\ndataset = \"digits\"\nshape = [64]\n");
    CAPTURE(lines);
    REQUIRE(lines.size() == 2);
    CHECK_THAT(lines[0], Contains("e.toml:1:1") && Contains("[experiment] lacks name; for example name ="));
    CHECK_THAT(lines[1], Contains("[model] lacks layers"));
    CHECK(errors_of("").size() == 4);
}

TEST_CASE("values that do not go together are refused where they stand", "[configs][unit]") {
    const auto sync = [](const char* lines) { return std::string(right_text) + "[sync]\n" + lines; };
    CHECK_THAT(all_errors(sync("cohort = 3\nmin_clients = 4\n")), Contains("e.toml:19:15") && Contains("cohort of 3"));
    CHECK_THAT(all_errors(sync("cohort = 3\nquorum = 4\n")), Contains("e.toml:19:10") && Contains("never"));
    CHECK_THAT(all_errors(sync("min_clients = 2\nquorum = 4\n")),
               Contains("e.toml:19:10") && Contains("round of 2") && Contains("min_clients = 2") && Contains("raise"));
    CHECK_THAT(all_errors(sync("cohort = \"50%\"\nmin_clients = 4\nquorum = 3\n")), Contains("round of 2"));
    CHECK(read_experiment(sync("quorum = 4\n"), "e.toml")->sync.min_clients == 4);
    CHECK_THAT(all_errors(std::string(right_text) + "[evaluation]\nwhere = \"coordinator\"\npatience = 4\n"),
               Contains("e.toml:19:12") && Contains("never ends a run of 3"));
    CHECK_THAT(all_errors(sync("cohort = 0\n")), Contains("e.toml:18:10") && Contains("sync.cohort is 0"));
    CHECK_THAT(all_errors(sync("min_clients = 0\n")), Contains("sync.min_clients is 0"));
    CHECK_THAT(all_errors(sync("quorum = \"0%\"\n")), Contains("sync.quorum is 0%"));
    CHECK_THAT(all_errors(sync("rejoin = 60\n")), Contains("a time with a unit"));
    CHECK_THAT(all_errors(with("batch = 16", "batch = 16\nmicrobatch = 17")),
               Contains("microbatch of 17 is more than the batch of 16"));
    CHECK_THAT(all_errors(with("batch = 16", "batch = 16\nsnapshot_every = \"seldom\"")), Contains("\"100 batches\""));
    CHECK_THAT(all_errors(with("momentum = 0.9", "nesterov = 1")), Contains("e.toml:15:62") && Contains("momentum"));
    CHECK_THAT(all_errors(with("kind = \"dirichlet\", ", "")), Contains("applies only with data.partition.kind"));
    CHECK_THAT(all_errors(with("\"sgd\"", "\"adamw\"")), Contains("train.optimizer.momentum applies only with"));
    CHECK_THAT(all_errors(with("partition = { kind = \"dirichlet\", alpha = 0.5 }", "partition = \"iid\"")),
               Contains("data.partition must be a table with the keys kind, alpha"));
}

TEST_CASE("batch norms that stay at the clients need clients that evaluate and a model that is not cut",
          "[configs][unit]") {
    const auto norms = with("\"relu\"", "\"batchnorm\", \"relu\"");
    const std::vector<std::string> local{"model.batch_norm=\"local\""};
    CHECK(all_errors(norms).empty());
    CHECK_THAT(all_errors(norms, {"model.batch_norm=\"global\""}), Contains("average") && Contains("group"));
    CHECK_THAT(all_errors(norms, local), Contains("choose evaluation.where = \"clients\" (it is \"coordinator\")"));
    CHECK(all_errors(with("\"relu\"", "\"relu\""), local).empty());  // without norms there is nothing to keep
    const std::vector<std::string> at_clients{local[0], "evaluation.where=\"clients\""};
    CHECK(all_errors(norms, at_clients).empty());
    auto split = at_clients;
    split.insert(split.end(), {"regime.preset=\"split\"", "regime.cut=\"relu\""});
    CHECK_THAT(all_errors(norms, split), Contains("do not go with split"));
    split[0] = "model.batch_norm=\"group\"";
    CHECK_THAT(all_errors(norms, split), !Contains("norm"));
    // Said by the layer itself it is the same, and is reported there.
    CHECK_THAT(all_errors(with("\"relu\"", "\"batchnorm local\", \"relu\"")),
               Contains("e.toml:12:10") && Contains("\"clients\""));
}

TEST_CASE("an unknown aggregator or codec is refused with the list of known ones", "[configs][unit]") {
    for (const auto* rule : {"trimmed-mean 0.2", "krum 1", "median", "mena"}) {
        CAPTURE(rule);
        const auto text = std::string(right_text) + "[sync]\naggregator = \"" + rule + "\"\n";
        CHECK_THAT(all_errors(text), Contains("e.toml:18:14") && Contains("mean"));
    }
    CHECK_THAT(all_errors(std::string(right_text) + "[codec]\nuplink = \"topk 1% + int8\"\n"),
               Contains("e.toml:18:10") && Contains("dense"));
}

TEST_CASE("a wrong layer is reported at its element, also when the shape is wrong", "[configs][unit]") {
    const auto wrong = with("\"dense 16\", \"relu\"", "\"dense\", \"rellu\"");
    CHECK_THAT(all_errors(wrong), Contains("e.toml:12:22: error: ") && Contains("e.toml:12:31: error: "));
    auto both = wrong;
    both.replace(both.find("[8, 8, 1]"), 9, "[8, 8, 0]");
    CHECK_THAT(all_errors(both), Contains("e.toml:7:16") && Contains("e.toml:12:22") && Contains("e.toml:12:31"));
}

TEST_CASE("AUC is refused for a model of ten classes, and taken for two", "[configs][unit]") {
    const std::string metric = "[evaluation]\nmetric = \"auc\"\n";
    const auto lines = errors_of(std::string(right_text) + metric);
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::StartsWith("e.toml:18:10") && Catch::Contains("this model has 10"));
    CHECK(errors_of(with("\"dense 10\"]", "\"dense 2\"]") + metric).empty());
}

TEST_CASE("the label's column may be a number without quotes", "[configs][unit]") {
    const auto read = read_experiment(std::string(right_text), "e.toml", std::vector<std::string>{"data.label=4"});
    REQUIRE(read);
    CHECK(read->data.label == "4");
    CHECK(errors_of(with("shape =", "label = 4\nshape =")).empty());
    CHECK(errors_of(with("name = \"test\"", "name = 4")).size() == 1);  // any other text stays a text
}

TEST_CASE("a value of a later version is told from one that does not exist", "[configs][unit]") {
    CHECK_THAT(all_errors(right_text, {"train.optimizer_state=average"}), Contains("not available in this version"));
    CHECK_THAT(all_errors(right_text, {"train.optimizer_state=rest"}), Contains("did you mean \"reset\"?"));
}

TEST_CASE("a preset of a later version is told from one that does not exist", "[configs][unit]") {
    const auto regime = [](const char* lines) { return std::string(right_text) + "[regime]\n" + lines; };
    CHECK_THAT(all_errors(regime("preset = \"local-sgd\"\ncut = \"relu\"\n")),
               Contains("preset \"local-sgd\" is not available in this version; available: fedavg"));
    CHECK(errors_of(regime("preset = \"local-sgd\"\ncut = \"relu\"\n")).size() == 1);
    CHECK_THAT(all_errors(regime("preset = \"fedavgg\"\n")), Contains("did you mean \"fedavg\"?"));
}

TEST_CASE("--set overrides the file and is reported like it", "[configs][unit]") {
    const std::vector<std::string> values = {"train.batch=full", "sync.quorum=50%", "data.partition.alpha = 2",
                                             "model.layers=[\"flatten\", \"dense 10\"]", "experiment.name=other"};
    const auto read = read_experiment(right_text, "e.toml", values);
    REQUIRE(read.has_value());
    CHECK(read->train.batch == 0);
    CHECK(read->sync.quorum.of(4) == 2);
    CHECK(read->data.partition.alpha == 2);
    CHECK(read->model.layers.size() == 2);
    CHECK(read->experiment.name == "other");
    CHECK(read->places.at("train.batch").text() == "--set train.batch");

    CHECK_THAT(all_errors(right_text, {"train.batch=0"}), Contains("--set train.batch: error: train.batch is 0"));
    CHECK_THAT(all_errors(right_text, {"train.bacth=1"}), Contains("--set train.bacth: error: unknown key"));
    CHECK_THAT(all_errors(right_text, {"model.layers=[\"flaten\"]"}), Contains("--set model.layers: error: "));
    for (const auto* wrong :
         {"", "=", "batch=1", "train.batch", "train..batch=1", ".=1", "train.=1", "a.b.c.d.e.f.g.h.i=1"}) {
        CAPTURE(wrong);
        CHECK_THAT(all_errors(right_text, {wrong}), Contains("write table.key=value"));
    }
    CHECK_THAT(all_errors(right_text, {"train.batch=1\n[sync]"}), Contains("--set train.batch: error: "));
}

TEST_CASE("choosing another kind by --set drops the file's keys of the old one", "[configs][unit]") {
    const auto read = read_experiment(
        right_text, "e.toml", std::vector<std::string>{"data.partition.kind=iid", "train.optimizer.kind=adamw"});
    REQUIRE(read.has_value());
    CHECK(read->data.partition == PartitionOptions{});
    CHECK(read->train.optimizer.momentum == 0);
    CHECK_FALSE(errors_of(right_text, {"data.partition.kind=iid", "data.partition.alpha=1"}).empty());
}

TEST_CASE("a learning rate that is left out follows the kind of optimizer", "[configs][unit]") {
    const auto rate = [](const char* optimizer) {
        const auto text = with("{ kind = \"sgd\", learning_rate = 0.05, momentum = 0.9 }", optimizer);
        return read_experiment(text, "e.toml")->train.optimizer.learning_rate;
    };
    CHECK(rate("{ kind = \"sgd\" }") == 0.05);
    CHECK(rate("{ kind = \"adamw\" }") == 0.001);
}

TEST_CASE("a key given twice and a table given twice are mistakes with their places", "[configs][unit]") {
    CHECK_THAT(all_errors(with("batch = 16", "batch = 16\nbatch = 17")), Contains("e.toml:17:") && Contains("batch"));
    CHECK_THAT(all_errors(std::string(right_text) + "[model]\nloss = \"cross-entropy\"\n"),
               Contains("e.toml:17:") && Contains("model"));
}

TEST_CASE("a file or a list of --set beyond its limit is refused at once", "[configs][unit]") {
    CHECK_THAT(all_errors(std::string(max_experiment_bytes + 1, '#')), Contains("at most 65536 bytes"));
    CHECK_THAT(all_errors(right_text, std::vector<std::string>(max_overrides + 1, "train.batch=4")),
               Contains("at most 256"));
    std::string many = "[experiment]\n";
    for (int i = 0; i < 300; ++i) {
        many += "unknown" + std::to_string(i) + " = 1\n";
    }
    CHECK(errors_of(many).size() == max_config_errors);
}

TEST_CASE("the error for callers without a list holds every line", "[configs][unit]") {
    const auto read = read_experiment_or_fail("", "e.toml");
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().kind == ErrorKind::invalid);
    CHECK(read.error().code == "bad_configuration");
    CHECK_THAT(read.error().message, Contains("lacks name") && Contains("lacks layers"));
}

TEST_CASE("a share of members is rounded up and never less than one", "[configs][unit]") {
    const auto share = [](double value) { return CountOrShare{CountOrShare::Kind::share, 0, value}; };
    CHECK(share(0.7).of(10) == 7);
    CHECK(share(0.7).of(5) == 4);
    CHECK(share(0.07).of(100) == 7);
    CHECK(share(0.01).of(5) == 1);
    CHECK(share(1).of(1'000'000) == 1'000'000);
    CHECK(CountOrShare{CountOrShare::Kind::count, 3, 0}.of(2) == 3);
}

}  // namespace causeway
