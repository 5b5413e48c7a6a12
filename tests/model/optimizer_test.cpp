// Optimizer texts: every number comes back bit for bit, every mistake is named.
#include <cmath>
#include <limits>

#include "tests/model/fixtures.h"

namespace causeway {

TEST_CASE("an optimizer's text gives the optimizer back", "[unit][optimizer]") {
    for (const char* text : {"sgd learning_rate=0.05 momentum=0.9", "sgd", "adamw",
                             "adamw learning_rate=0.001 beta1=0.9 beta2=0.999 epsilon=1e-8 weight_decay=0.01"}) {
        const auto spec = must(parse_optimizer(text));
        REQUIRE(must(parse_optimizer(to_text(spec))) == spec);
        REQUIRE(to_text(must(parse_optimizer(to_text(spec)))) == to_text(spec));
    }
    const auto spec = must(parse_optimizer("sgd learning_rate=0.05 momentum=0.9"));
    REQUIRE(to_text(spec) == "sgd learning_rate=0.05 momentum=0.9 weight_decay=0 nesterov=0");
    REQUIRE(spec["learning_rate"] == 0.05);
    REQUIRE(must(parse_optimizer("sgd momentum=-0")) == must(parse_optimizer("sgd")));
}

TEST_CASE("random numbers survive the text bit for bit", "[property][optimizer]") {
    const std::uint64_t seed = 3;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "test-numbers"});
    for (int i = 0; i < 1000; ++i) {
        const double rate = std::exp(20.0 * random.uniform() - 15.0);
        const std::vector<std::pair<std::string, double>> values = {{"learning_rate", rate},
                                                                    {"momentum", random.uniform()}};
        const auto spec = must(make_optimizer("sgd", values));
        REQUIRE(must(parse_optimizer(to_text(spec)))["learning_rate"] == rate);
        REQUIRE(must(parse_optimizer(to_text(spec))) == spec);
    }
}

TEST_CASE("all that is wrong with an optimizer is said at once", "[unit][optimizer]") {
    const auto wrong = parse_optimizer("sgd learning_rat=0.1 momentum=1.5 decay nesterov=0 nesterov=1");
    REQUIRE_FALSE(wrong);
    const Error& error = wrong.error();
    REQUIRE(error.code == "bad_optimizer");
    REQUIRE_THAT(error.message, Catch::Contains("learning_rate") && Catch::Contains("momentum") &&
                                    Catch::Contains("decay") && Catch::Contains("twice"));
    for (const char* text :
         {"", "sdg", "sgd learning_rate=nan", "sgd learning_rate=-1", "sgd learning_rate=inf", "adamw epsilon=0",
          "adamw beta1=1", "sgd =1", "sgd learning_rate=", "sgd learning_rate=1x"}) {
        CAPTURE(text);
        REQUIRE_FALSE(parse_optimizer(text));
    }
    REQUIRE_THAT(parse_optimizer("sgdm").error().message, Catch::Contains("\"sgd\""));
    REQUIRE_FALSE(parse_optimizer(std::string(5000, 'a')));
    const std::vector<std::pair<std::string, double>> nan = {{"momentum", std::numeric_limits<double>::quiet_NaN()}};
    REQUIRE_FALSE(make_optimizer("sgd", nan));
}

}  // namespace causeway
