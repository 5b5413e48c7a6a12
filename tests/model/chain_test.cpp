// The chain: what its texts mean, and that everything wrong is reported at its place.
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

std::vector<LayerError> errors_of(const std::vector<std::string>& layers, const Shape& input = {8, 8, 1},
                                  std::string_view loss = "cross-entropy") {
    auto chain = Chain::parse(layers, input, loss);
    REQUIRE_FALSE(chain);
    return chain.error();
}

}  // namespace

TEST_CASE("a chain infers shapes and lays its tensors out in chain order", "[unit][chain]") {
    const Chain chain = make_chain({"flatten", "dense 64", "relu", "dense 10"}, {8, 8, 1});
    REQUIRE(chain.layer_count() == 4);
    REQUIRE(chain.boundary(1) == Boundary{{DType::f32, {64}}});
    REQUIRE(chain.classes() == 10);
    REQUIRE(chain.parameter_count() == 64 * 64 + 64 + 10 * 64 + 10);
    const auto& tensors = chain.table().tensors;
    REQUIRE(tensors.size() == 4);
    REQUIRE(tensors[0].name == "dense1.weight");
    REQUIRE(tensors[0].shape == Shape{64, 64});
    REQUIRE(tensors[2].name == "dense2.weight");
    REQUIRE(tensors[2].layer == 3);
    REQUIRE(tensors[2].offset == 64 * 64 + 64);
    REQUIRE(chain.arena_range(ArenaKind::trainable, 2, 4) == Range{64 * 64 + 64, chain.parameter_count()});
    REQUIRE(chain.arena_range(ArenaKind::trainable, 2, 3).size() == 0);
    REQUIRE_FALSE(chain.gradient_needed(1));
    REQUIRE(chain.gradient_needed(2));
}

TEST_CASE("every wrong layer is reported at once, at its index", "[unit][chain]") {
    const auto errors = errors_of({"flaten", "dense", "relu 3", "dense 0", "dense 64"});
    REQUIRE(errors.size() == 4);
    for (std::size_t i = 0; i < errors.size(); ++i) {
        REQUIRE(errors[i].layer == i);
        REQUIRE(errors[i].place == LayerError::Place::layer);
    }
    REQUIRE_THAT(errors[0].message, Catch::Contains("did you mean \"flatten\"?"));
    REQUIRE_THAT(errors[1].message, Catch::Contains("dense UNITS"));
    REQUIRE_THAT(errors[2].message, Catch::Contains("no arguments"));
    REQUIRE_THAT(errors[3].message, Catch::Contains("from 1"));
}

TEST_CASE("a dense layer on an image says that flatten is missing", "[unit][chain]") {
    const auto errors = errors_of({"dense 64", "relu", "dense 10"});
    REQUIRE(errors.size() == 1);
    REQUIRE(errors[0].layer == 0);
    REQUIRE_THAT(errors[0].message, Catch::Contains("flatten"));
}

TEST_CASE("input, loss and last layer are checked in their own places", "[unit][chain]") {
    REQUIRE(errors_of({"flatten", "dense 10"}, {8, 0}).at(0).place == LayerError::Place::input);
    REQUIRE(errors_of({"flatten", "dense 10"}, {}).at(0).place == LayerError::Place::input);
    REQUIRE(errors_of({"flatten", "dense 10"}, {INT64_MAX, INT64_MAX}).at(0).place == LayerError::Place::input);
    REQUIRE(errors_of({"flatten", "dense 10"}, {-3}).at(0).place == LayerError::Place::input);
    REQUIRE(errors_of({"flatten", "dense 10"}, {8}, "hinge").at(0).place == LayerError::Place::loss);
    REQUIRE(errors_of({"relu"}).at(0).place == LayerError::Place::loss);
    REQUIRE(errors_of({"flatten", "dense 1"}).at(0).place == LayerError::Place::loss);
    REQUIRE(errors_of({}).size() == 1);
    REQUIRE(errors_of(std::vector<std::string>(max_layers + 1, "relu")).size() == 1);
}

TEST_CASE("a model too large to count is refused, not overflowed", "[unit][chain]") {
    const auto errors = errors_of({"flatten", "dense 16777216", "dense 16777216", "dense 10"}, {8});
    REQUIRE_THAT(errors.at(0).message, Catch::Contains("parameters"));
    REQUIRE(errors.at(0).layer == 2);
}

TEST_CASE("the architecture text gives the same chain back", "[unit][chain]") {
    const Chain chain = make_chain({"flatten", "dense 64", "  gelu ", "dense   10"}, {8, 8, 1});
    REQUIRE(chain.architecture() == "input 8 8 1; flatten; dense 64; gelu; dense 10; loss cross-entropy");
    REQUIRE(must(Chain::from_architecture(chain.architecture())) == chain);
    REQUIRE(must(Chain::from_architecture(chain.architecture())).table() == chain.table());
}

TEST_CASE("any text is a chain or an error", "[unit][chain][fuzz]") {
    const std::string good = "input 8 8 1; flatten; dense 64; relu; dense 10; loss cross-entropy";
    for (const char* text :
         {"", ";", ";;;", "input ; ; loss ", "input 99999999999999999999; relu; loss x",
          "input 8; dense -5; loss cross-entropy", "input 8 8 8 8 8; flatten; dense 2; loss cross-entropy"}) {
        const auto chain = Chain::from_architecture(text);
        REQUIRE_FALSE(chain);
        REQUIRE(chain.error().code == "bad_architecture");
    }
    REQUIRE_FALSE(Chain::from_architecture(std::string(max_architecture_text + 1, ';')));
    const std::uint64_t seed = 11;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "test-mutate"});
    for (int i = 0; i < 5000; ++i) {
        std::string text = good;
        for (std::uint64_t changes = random.below(4) + 1; changes > 0; --changes) {
            text[random.below(text.size())] = static_cast<char>(random.below(256));
        }
        const auto chain = Chain::from_architecture(text);
        if (chain) {
            REQUIRE(must(Chain::from_architecture(chain->architecture())) == *chain);
        }
    }
}

TEST_CASE("a cut is a layer's name, its occurrence, or an index", "[unit][chain]") {
    const Chain chain = make_chain({"flatten", "dense 32", "relu", "dense 16", "relu", "dense 10"}, {8, 8, 1});
    REQUIRE(must(chain.cut_index("relu")) == 3);
    REQUIRE(must(chain.cut_index("relu:1")) == 3);
    REQUIRE(must(chain.cut_index("relu:2")) == 5);
    REQUIRE(must(chain.cut_index("4")) == 4);
    for (const char* wrong : {"", "0", "6", "7", "relu:3", "relu:0", "relu:", "relu:x", "dense:3", "relux", "-1", ":",
                              "99999999999999999999999"}) {
        CAPTURE(wrong);
        const auto cut = chain.cut_index(wrong);
        REQUIRE_FALSE(cut);
        REQUIRE(cut.error().code == "bad_cut");
    }
    REQUIRE_THAT(chain.cut_index("relux").error().message, Catch::Contains("\"relu\""));
}

}  // namespace causeway
