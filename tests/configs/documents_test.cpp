// Generated texts: the documentation in the repository is the one that the table gives; templates and examples are
// valid.
#include "configs/documents.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "common/file.h"
#include "common/text.h"
#include "configs/examples.h"
#include "configs/fields.h"
#include "configs/presets.h"
#include "configs/workload.h"
#include "model/optimizer.h"
#include "tests/configs/texts.h"

namespace causeway {

TEST_CASE("docs/configuration.md is what the field table gives", "[configs][golden]") {
    const auto file = read_file(std::string(CAUSEWAY_SOURCE_ROOT) + "/docs/configuration.md", 1 << 20);
    REQUIRE(file.has_value());
    INFO("renew it: causeway experiment fields > docs/configuration.md");
    CHECK(std::string(as_text(*file)) == configuration_markdown());
}

TEST_CASE("the documentation names every key, table and preset", "[configs][unit]") {
    const auto text = configuration_markdown();
    for (const auto& field : all_fields()) {
        CHECK_THAT(text, Catch::Contains("| `" + field.path.substr(field.path.find('.') + 1) + "` |"));
    }
    for (const auto& preset : all_presets()) {
        CHECK_THAT(text, Catch::Contains("| `" + preset.name + "` |"));
    }
}

TEST_CASE("the template of init is valid, and stays so when any one default is uncommented", "[configs][unit]") {
    const auto text = init_template({.name = "mine", .dataset = "digits"});
    const auto read = read_experiment(text, "mine.toml");
    CAPTURE(all_errors(text));
    REQUIRE(read.has_value());
    for (const auto& line : split_text(text, '\n')) {
        CHECK(line.size() <= 100);  // read at a terminal
    }
    CHECK(read->experiment.name == "mine");
    for (const auto& field : all_fields()) {
        const auto line = "\n# " + field.path.substr(field.path.find('.') + 1) + " = ";
        const auto at = text.find(line);
        if (field.presence == Presence::required) {
            continue;
        }
        CAPTURE(field.path);
        REQUIRE(at != std::string::npos);
        auto uncommented = text;
        uncommented.erase(at + 1, 2);
        CAPTURE(all_errors(uncommented));
        CHECK((read_experiment(uncommented, "mine.toml").has_value() || !applies(field, *read)));
    }
}

TEST_CASE("every example is valid and carried in the binary as it stands in the repository", "[configs][unit]") {
    REQUIRE_FALSE(all_examples().empty());
    for (const auto& example : all_examples()) {
        CAPTURE(example.name, all_errors(example.text));
        CHECK(read_experiment(example.text, "example.toml").has_value());
        const auto path =
            std::string(CAUSEWAY_SOURCE_ROOT) + "/configs/examples/" + std::string(example.name) + ".toml";
        CHECK(as_text(*read_file(path, 1 << 20)) == example.text);
    }
    CHECK(find_example("digits-fedavg").has_value());
    const auto missing = find_example("digits-fedag");
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().kind == ErrorKind::not_found);
    CHECK_THAT(missing.error().message, Catch::Contains("did you mean \"digits-fedavg\"?"));
}

TEST_CASE("the texts sent with an assignment are read back by the parsers of their owners", "[configs][unit]") {
    const auto experiment = read_experiment(right_text, "e.toml");
    REQUIRE(experiment.has_value());
    const auto texts = work_texts(*experiment);
    REQUIRE(texts.has_value());
    CHECK(*parse_data_options(texts->data_options) == data_options_of(*experiment));
    const auto chain = Chain::from_architecture(texts->architecture);
    REQUIRE(chain.has_value());
    CHECK(*chain == *chain_of(*experiment));
    const auto program = parse_program(texts->program);
    REQUIRE(program.has_value());
    CHECK(check_program(*program, *chain).has_value());
    const auto optimizer = parse_optimizer(texts->optimizer);
    REQUIRE(optimizer.has_value());
    CHECK((*optimizer)["learning_rate"] == 0.05);
    CHECK((*optimizer)["momentum"] == 0.9);
    CHECK(texts->batch == 16);
    CHECK(texts->uplink == "dense");
}

}  // namespace causeway
