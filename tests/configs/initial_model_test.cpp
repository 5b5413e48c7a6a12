// Starting from a file: names, pins, and every mismatch at once.
#include "configs/initial_model.h"

#include <catch2/catch.hpp>

#include "configs/canonical.h"
#include "configs/workload.h"
#include "model/initialise.h"
#include "tests/configs/texts.h"

namespace causeway {
namespace {

Experiment experiment_from(const std::string& init_from) {
    auto read = read_experiment(right_text, "e.toml", std::vector<std::string>{"model.init_from=" + init_from});
    REQUIRE(read);
    return *read;
}

Chain chain_with(const std::vector<std::string>& layers) {
    return *Chain::parse(layers, {8, 8, 1}, "cross-entropy");
}

Bytes file_of(const Chain& chain) {
    return to_safetensors(chain, initial_model(chain, 99));
}

NamedModels known(const Bytes& file) {
    return {{"old", *describe_named_model(file)}};
}

TEST_CASE("an accepted experiment says which file it starts from, and its text reads back so", "[unit]") {
    auto experiment = experiment_from("old");
    const auto file = file_of(*chain_of(experiment));
    REQUIRE(pin_initial_model(experiment, known(file)));
    CHECK(experiment.model.init_from == "old@" + sha256(file).hex());
    auto again = read_experiment(canonical_toml(experiment), "stored.toml", {});
    REQUIRE(again);
    CHECK(*again == experiment);
    CHECK(init_from_of(*again)->digest == sha256(file));
    REQUIRE(pin_initial_model(*again, known(file)));  // the same file once more
    CHECK(*again == experiment);
}

TEST_CASE("without init_from nothing is pinned, whatever models there are", "[unit]") {
    auto experiment = experiment_from("none");
    CHECK_FALSE(init_from_of(experiment));
    CHECK(pin_initial_model(experiment, {}));
    CHECK(experiment.model.init_from == "none");
}

TEST_CASE("an unknown name is refused with the known ones and with what to do", "[unit]") {
    auto experiment = experiment_from("odl");
    const auto refused = pin_initial_model(experiment, known(file_of(*chain_of(experiment))));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "unknown_model");
    for (const auto* word : {"--set model.init_from", "odl", "known: old", "--model odl=FILE.safetensors"}) {
        CHECK_THAT(refused.error().message, Catch::Contains(word));
    }
}

TEST_CASE("a pin of another file is refused with both digests", "[unit]") {
    auto experiment = experiment_from("old@" + sha256(as_bytes("another")).hex());
    const auto file = file_of(*chain_of(experiment));
    const auto refused = pin_initial_model(experiment, known(file));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "digest_mismatch");
    CHECK_THAT(refused.error().message, Catch::Contains(sha256(file).hex()));
}

TEST_CASE("every tensor that is missing, unknown or of another shape has its own line", "[unit]") {
    auto experiment = experiment_from("old");
    const auto file = file_of(chain_with({"flatten", "dense 20", "relu", "dense 10", "relu", "dense 3"}));
    const auto refused = pin_initial_model(experiment, known(file));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "model_mismatch");
    const auto& text = refused.error().message;
    CHECK(std::count(text.begin(), text.end(), '\n') + 1 == 5);
    for (const auto* word : {"dense1.weight has shape", "dense1.bias has shape", "dense2.weight has shape",
                             "dense3.weight is not part", "dense3.bias is not part"}) {
        CHECK_THAT(text, Catch::Contains(word));
    }
}

TEST_CASE("the start is the file's tensors in canonical form, whoever wrote them", "[unit]") {
    const auto chain = chain_with({"flatten", "dense 16", "relu", "dense 10"});
    const auto canonical = file_of(chain);
    // Another writer: no metadata, and blanks after the header.
    const auto length = *ByteReader(canonical).get<std::uint64_t>();
    auto header = std::string(as_text(ByteView(canonical).subspan(8, length)));
    const auto metadata_end = header.find("},") + 2;
    header = "{" + header.substr(metadata_end) + "   ";
    ByteWriter foreign;
    foreign.put(std::uint64_t{header.size()});
    foreign.put_bytes(as_bytes(header));
    foreign.put_bytes(ByteView(canonical).subspan(8 + length));
    const auto file = foreign.take();
    REQUIRE(file != canonical);
    const auto made = canonical_initial_model(chain, {"old", sha256(file)}, file);
    REQUIRE(made);
    CHECK(*made == canonical);
    const auto changed = canonical_initial_model(chain, {"old", sha256(file)}, canonical);
    REQUIRE_FALSE(changed);
    CHECK(changed.error().code == "model_changed");
    CHECK(changed.error().kind == ErrorKind::io);  // the experiment waits for the right file
}

TEST_CASE("what follows the @ must be a digest, and the name a name", "[unit]") {
    for (const auto* text : {"old@", "old@12", "@", "a/b", "../model"}) {
        INFO(text);
        CHECK_FALSE(parse_init_from(text));
        CHECK_FALSE(
            read_experiment(right_text, "e.toml", std::vector<std::string>{std::string("model.init_from=") + text}));
    }
}

}  // namespace
}  // namespace causeway
