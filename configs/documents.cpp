// Generated documents. Rows keep the order of the field table, so a key stands in the same place everywhere.
// Nothing here knows a key by name but the two whose default follows another value, and those that `init` fills in.
#include "configs/documents.h"

#include <fmt/format.h>

#include "common/text.h"
#include "configs/fields.h"
#include "configs/presets.h"
#include "configs/values.h"

namespace causeway {

namespace {

constexpr auto introduction = R"(# The experiment file

Made by `causeway experiment fields > docs/configuration.md` from the table in configs/fields.cpp; a test compares them.

An experiment is one TOML file. `causeway experiment validate FILE` reports all mistakes at once, each with
`file:line:column`; `causeway experiment show FILE` prints every value with the place it came from;
`--set table.key=value` overrides one value, checked like the file. Durations carry a unit (`ms s m h d`), shares a
percent sign. Unknown keys are errors.

)";

constexpr std::size_t most_columns = 100;

/// Words as comment lines that fit a terminal.
std::string comment_lines(std::string_view words) {
    std::string text;
    std::string line = "#";
    for (const auto& word : split_text(words, ' ')) {
        if (line.size() + 1 + word.size() > most_columns) {
            text += line + "\n";
            line = "#";
        }
        line += " " + word;
    }
    return text + line + "\n";
}

std::string table_of(const Field& field) {
    return field.path.substr(0, field.path.find('.'));
}
std::string key_of(const Field& field) {
    return field.path.substr(field.path.find('.') + 1);
}

/// A bar would end the cell of a Markdown table.
std::string cell(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    }
    return escaped;
}

std::string default_text(const Field& field) {
    if (field.presence == Presence::required) {
        return field.only_with.empty() ? "required" : "required with it";
    }
    if (field.path == "evaluation.dataset") {
        return "that of [data]";
    }
    if (field.path == "train.optimizer.learning_rate") {
        return "by kind";
    }
    return "`" + print_value(field, Experiment{}) + "`";
}

std::string markdown_row(const Field& field) {
    auto values = describe_values(field);
    if (!field.unit.empty()) {
        values += " (" + field.unit + ")";
    }
    auto doc = field.doc;
    if (!field.only_with.empty()) {
        doc += " Only with `" + field.only_with + "`.";
    }
    return fmt::format("| `{}` | {} | {} | {} | `{}` |\n", key_of(field), cell(default_text(field)), cell(values),
                       cell(doc), cell(field.example));
}

/// Presets of later versions are listed too, so that a reader of the design finds the word and its state.
std::string preset_section() {
    std::string text =
        "## Presets\n\n`[regime] preset` is a name for the four tables [mesh] [flow] [sync] [codec].\n\n"
        "| preset | what it is | in this version |\n|---|---|---|\n";
    for (const auto& preset : all_presets()) {
        text += fmt::format("| `{}` | {} | {} |\n", preset.name, preset.doc, preset.toml.empty() ? "no" : "yes");
    }
    for (const auto& preset : all_presets()) {
        if (!preset.toml.empty()) {
            text += fmt::format("\n`{}` stands for\n```toml{}```\n", preset.name, preset.toml);
        }
    }
    return text;
}

}  // namespace

std::string configuration_markdown() {
    std::string text = introduction;
    for (const auto& table : all_tables()) {
        text += fmt::format("## [{}]\n\n{}\n\n| key | default | values | meaning | example |\n|---|---|---|---|---|\n",
                            table.name, table.doc);
        for (const auto& field : all_fields()) {
            if (table_of(field) == table.name) {
                text += markdown_row(field);
            }
        }
        text += "\n";
    }
    return text + preset_section();
}

namespace {

/// A key's value in the file of `experiment init`, and whether it is one that counts or only shows the default.
struct Written {
    std::string value;
    bool counts = false;
};

Written written(const Field& field, const InitOptions& options, const Experiment* chosen) {
    const auto place =
        chosen == nullptr ? std::map<std::string, Place>::const_iterator{} : chosen->places.find(field.path);
    if (chosen != nullptr && place != chosen->places.end() && place->second.origin == Place::Origin::command_line) {
        return {print_value(field, *chosen), true};
    }
    if (field.path == "experiment.name") {
        return {toml_quoted(options.name), true};
    }
    if (field.path == "data.dataset" || field.path == "evaluation.dataset") {
        return {toml_quoted(options.dataset), field.presence == Presence::required};
    }
    const bool required = field.presence == Presence::required && field.only_with.empty();
    return {field.presence == Presence::required ? field.example : print_value(field, Experiment{}), required};
}

std::string init_text(const InitOptions& options, const Experiment* chosen) {
    std::string text =
        "# An experiment for Causeway. Lines that begin with \"# key =\" show the default.\n"
        "# Every field: causeway experiment fields. Check it: causeway experiment validate FILE\n";
    for (const auto& table : all_tables()) {
        text += fmt::format("\n# {}\n[{}]\n", table.doc, table.name);
        for (const auto& field : all_fields()) {
            if (table_of(field) != table.name) {
                continue;
            }
            const auto [value, counts] = written(field, options, chosen);
            const auto only = field.only_with.empty() ? std::string() : " Only with " + field.only_with + ".";
            text += comment_lines(fmt::format("{}{}", field.doc, only));
            text +=
                fmt::format("#   {}\n{}{} = {}\n", describe_values(field), counts ? "" : "# ", key_of(field), value);
        }
    }
    return text;
}

}  // namespace

std::string init_template(const InitOptions& options) {
    return init_text(options, nullptr);
}

std::string init_template(const Experiment& chosen) {
    return init_text({chosen.experiment.name, chosen.data.dataset}, &chosen);
}

}  // namespace causeway
