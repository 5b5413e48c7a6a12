// Sentences about every row of the field table, not about one key.
#include "configs/fields.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <set>

#include "common/text.h"
#include "configs/values.h"
#include "data/partition.h"
#include "model/optimizer.h"
#include "tests/configs/texts.h"

namespace causeway {

namespace {

/// A TOML table with this key alone, and what read_value says of it.
std::vector<ConfigError> errors_for(const Field& field, const std::string& value) {
    const auto parsed = parse_toml("value = " + value, "e.toml");
    REQUIRE(parsed.errors.empty());
    Experiment experiment;
    std::vector<ConfigError> errors;
    read_value(field, *parsed.root.find("value"), experiment, errors);
    return errors;
}

struct WrongValues {
    const Field& field;

    std::vector<std::string> of(const std::string&) const { return {"\"\"", "\"\\u0007\"", quoted(300)}; }
    std::vector<std::string> of(bool) const { return {"2", "-1", "\"yes\""}; }
    std::vector<std::string> of(std::uint32_t) const { return numbers(); }
    std::vector<std::string> of(std::uint64_t) const { return numbers(); }
    std::vector<std::string> of(double) const {
        if (field.style == NumberStyle::share) {
            return {"\"-1%\"", fmt::format("\"{}%\"", field.most * 100 + 1), "\"nan%\"", "\"1e9%\""};
        }
        return {fmt::format("{}", field.least - 0.5), fmt::format("{:.1f}", field.most * 2 + 1), "nan", "inf", "-inf"};
    }
    std::vector<std::string> of(Duration) const { return {"\"-1s\"", fmt::format("\"{}s\"", field.most + 1)}; }
    std::vector<std::string> of(const CountOrShare&) const {
        return {"0", "-1", fmt::format("{:.0f}", field.most + 1), "\"0%\"", "\"101%\"", "\"-5%\"", "\"some\""};
    }
    std::vector<std::string> of(const std::vector<std::vector<std::string>>&) const {
        return {"[]", "[[]]", "[\"ann\"]", "[[1]]", "[[\"a b\"]]", many("[\"ann\"]"), "\"ann\""};
    }
    std::vector<std::string> of(const std::vector<std::string>&) const {
        return {field.least > 0 ? "[]" : "[1]", many("\"relu\""), "[\"\"]"};
    }
    std::vector<std::string> of(const Shape&) const {
        return {"[]", "[0]", "[-1]", many("1"), "[9223372036854775807, 2]", "[100000, 100000, 100000]"};
    }

private:
    static std::string quoted(std::size_t size) { return "\"" + std::string(size, 'x') + "\""; }
    [[nodiscard]] std::vector<std::string> numbers() const {
        return {fmt::format("{:.0f}", field.least - 1), fmt::format("{:.0f}", field.most + 1), "9223372036854775807"};
    }
    [[nodiscard]] std::string many(const std::string& item) const {
        std::string list = "[";
        for (int i = 0; i <= static_cast<int>(field.most); ++i) {
            list += item + ", ";
        }
        return list + "]";
    }
};

}  // namespace

TEST_CASE("every field refuses values outside its bounds, at their place", "[configs][property]") {
    Experiment experiment;
    for (const auto& field : all_fields()) {
        const WrongValues wrong{field};
        const auto values = std::visit([&](auto access) { return wrong.of(access(experiment)); }, field.access);
        for (const auto& value : values) {
            CAPTURE(field.path, value.substr(0, 60));
            const auto errors = errors_for(field, value);
            REQUIRE_FALSE(errors.empty());
            CHECK(errors[0].place.line == 1);
            CHECK(errors[0].place.column >= 9);
            CHECK(errors[0].message.size() > 20);
        }
    }
}

TEST_CASE("every field refuses values of another type and texts that are no choice", "[configs][property]") {
    for (const auto& field : all_fields()) {
        for (const auto* value : {"true", "1979-05-27", "{ a = 1 }", "[true]", "[[1]]"}) {
            CAPTURE(field.path, value);
            if (describe_values(field) == "true or false" && value == std::string("true")) {
                continue;
            }
            CHECK_FALSE(errors_for(field, value).empty());
        }
        if (!field.choices.empty() || field.check != nullptr) {
            CAPTURE(field.path);
            CHECK_FALSE(errors_for(field, "\"no such thing!\"").empty());
        }
    }
}

TEST_CASE("every field's example and default are valid values of it", "[configs][property]") {
    for (const auto& field : all_fields()) {
        CAPTURE(field.path);
        CHECK(errors_for(field, field.example).empty());
        const bool required = field.presence == Presence::required;
        if (!required && field.path != "evaluation.dataset") {
            CHECK(errors_for(field, print_value(field, Experiment{})).empty());
        }
    }
}

TEST_CASE("the fields of optimizers and partitions are those of their registries, with narrower bounds",
          "[configs][property]") {
    const auto check = [](std::string_view kind, const std::string& path, double least, double most) {
        CAPTURE(path, kind);
        const auto* field = find_field(path);
        REQUIRE(field != nullptr);
        CHECK(field->least >= least);
        CHECK(field->most <= most);
        const auto values = split_text(field->only_with.substr(field->only_with.find('=') + 1), '|');
        const bool matches = field->only_with.empty() || std::ranges::find(values, kind) != values.end();
        CHECK(matches);
    };
    for (const auto* partitioner : partitioners()) {
        for (const auto& parameter : partitioner->parameters) {
            check(partitioner->kind, "data.partition." + std::string(parameter.name), parameter.least, parameter.most);
        }
    }
    for (const auto* optimizer : optimizer_kinds()) {
        for (const auto& parameter : optimizer->fields) {
            check(optimizer->name, "train.optimizer." + std::string(parameter.name), parameter.least, parameter.most);
        }
    }
}

TEST_CASE("every field is documented, unique, and in a known table in the order of the tables", "[configs][property]") {
    std::set<std::string> paths;
    std::size_t table = 0;
    for (const auto& field : all_fields()) {
        CAPTURE(field.path);
        CHECK(paths.insert(field.path).second);
        CHECK(field.doc.size() > 10);
        CHECK(field.doc.back() == '.');
        while (table < all_tables().size() && !field.path.starts_with(all_tables()[table].name + ".")) {
            ++table;
        }
        CHECK(table < all_tables().size());
    }
}

}  // namespace causeway
