// toml++ to our tree. The one file that includes toml++, and the one place where its exceptions are caught.
//
// Recovery: toml++ stops at its first error. That line is then blanked and the text parsed again, so that several
// mistakes show in one run. A broken line that spoils the next one as well (an array that never ends) would make
// an error of each line that follows; so recovery ends when two errors stand on neighbouring lines.
#include "configs/toml_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "common/text.h"

namespace causeway {

namespace {

constexpr int max_recoveries = 20;  // each parses at most max_experiment_bytes again
constexpr std::size_t max_path_depth = 8;

using TextKind = TomlNode::Kind;

/// Where places of one tree come from: a file's positions, or one fixed place (a preset, a --set).
struct PlaceMaker {
    Place fixed;

    [[nodiscard]] Place at(const toml::source_region& region) const {
        Place place = fixed;
        if (place.origin == Place::Origin::file) {
            place.line = std::max<std::uint32_t>(region.begin.line, 1);
            place.column = std::max<std::uint32_t>(region.begin.column, 1);
        }
        return place;
    }
};

TomlNode convert(const toml::node& node, const PlaceMaker& places);

void convert_table(const toml::table& table, const PlaceMaker& places, TomlNode& result) {
    result.kind = TextKind::table;
    for (const auto& [key, value] : table) {
        result.members.push_back({std::string(key.str()), places.at(key.source()), convert(value, places)});
    }
    // toml++ sorts by key; errors and messages follow the file.
    std::stable_sort(result.members.begin(), result.members.end(), [](const TomlMember& a, const TomlMember& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
}

/// Dates keep their kind only: no field takes them, and messages name what was found.
void convert_scalar(const toml::node& node, TomlNode& result) {
    if (const auto* text = node.as_string()) {
        result.kind = TextKind::text;
        result.text = text->get();
    } else if (const auto* integer = node.as_integer()) {
        result.kind = TextKind::integer;
        result.integer = integer->get();
        result.number = static_cast<double>(integer->get());
    } else if (const auto* number = node.as_floating_point()) {
        result.kind = TextKind::number;
        result.number = number->get();
    } else if (const auto* boolean = node.as_boolean()) {
        result.kind = TextKind::boolean;
        result.boolean = boolean->get();
    } else {
        result.kind = TextKind::time;
    }
}

/// Depth is bounded by toml++ (256 nested values).
TomlNode convert(const toml::node& node, const PlaceMaker& places) {
    TomlNode result;
    result.place = places.at(node.source());
    if (const auto* table = node.as_table()) {
        convert_table(*table, places, result);
    } else if (const auto* array = node.as_array()) {
        result.kind = TextKind::array;
        for (const auto& item : *array) {
            result.items.push_back(convert(item, places));
        }
    } else {
        convert_scalar(node, result);
    }
    return result;
}

struct Syntax {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
    std::string message;
};

/// Positions are taken from the exception; 0 (an empty file) becomes 1.
tl::expected<TomlNode, Syntax> parse_once(std::string_view text, const PlaceMaker& places) {
    try {
        return convert(toml::parse(text), places);
    } catch (const toml::parse_error& error) {
        const auto at = error.source().begin;
        return tl::unexpected(Syntax{std::max<std::uint32_t>(at.line, 1), std::max<std::uint32_t>(at.column, 1),
                                     std::string(error.description())});
    } catch (const std::exception& error) {
        return tl::unexpected(Syntax{1, 1, error.what()});
    }
}

/// Replaces the characters of a line by spaces, so that positions elsewhere stay. False when nothing was there.
bool blank_line(std::string& text, std::uint32_t line) {
    std::size_t begin = 0;
    for (std::uint32_t i = 1; i < line; ++i) {
        const auto end = text.find('\n', begin);
        if (end == std::string::npos) {
            return false;
        }
        begin = end + 1;
    }
    const auto end = std::min(text.find('\n', begin), text.size());
    const bool had_text = !trim(std::string_view(text).substr(begin, end - begin)).empty();
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    return had_text;
}

/// The value under `name`, made when it is missing. Stays valid until the table grows.
TomlNode* descend(TomlNode& table, const std::string& name, const Place& place) {
    for (auto& member : table.members) {
        if (member.name == name) {
            return &member.value;
        }
    }
    table.members.push_back({name, place, {}});
    table.members.back().value.place = place;
    return &table.members.back().value;
}

/// The value of --set: TOML when it is, else the characters as a text ("70%", "fedavg", "full").
TomlNode override_value(std::string_view value, const Place& place) {
    const auto parsed = parse_once("value = " + std::string(value), PlaceMaker{place});
    if (parsed && parsed->members.size() == 1 && parsed->members[0].name == "value") {
        return parsed->members[0].value;
    }
    TomlNode node;
    node.kind = TextKind::text;
    node.text = std::string(value);
    node.place = place;
    return node;
}

}  // namespace

const TomlNode* TomlNode::find(std::string_view name) const {
    const auto found = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.name == name; });
    return found == members.end() ? nullptr : &found->value;
}

std::string_view describe(TomlNode::Kind kind) {
    switch (kind) {
        case TextKind::text:
            return "a text";
        case TextKind::integer:
            return "a whole number";
        case TextKind::number:
            return "a number";
        case TextKind::boolean:
            return "true or false";
        case TextKind::time:
            return "a date or time";
        case TextKind::array:
            return "a list";
        case TextKind::table:
            break;
    }
    return "a table";
}

TomlText parse_toml(std::string_view text, std::string_view file_name) {
    const PlaceMaker places{{Place::Origin::file, std::string(file_name), 1, 1}};
    std::string rest(text);
    TomlText result;
    std::uint32_t last_line = 0;
    for (int attempt = 0; attempt <= max_recoveries; ++attempt) {
        auto parsed = parse_once(rest, places);
        if (parsed) {
            result.root = std::move(*parsed);
            return result;
        }
        const auto& wrong = parsed.error();
        // On the line just handled or beside it: most likely the same mistake again.
        const bool echo = attempt > 0 && wrong.line <= last_line + 1 && wrong.line + 1 >= last_line;
        if (!echo) {
            Place place = places.fixed;
            place.line = wrong.line;
            place.column = wrong.column;
            result.errors.push_back({place, "TOML syntax: " + wrong.message});
        }
        if (echo || !blank_line(rest, wrong.line)) {
            break;
        }
        last_line = wrong.line;
    }
    result.root.place = places.fixed;
    return result;
}

TomlNode parse_preset_toml(std::string_view text, std::string_view preset_name) {
    auto parsed = parse_once(text, PlaceMaker{{Place::Origin::preset, std::string(preset_name), 0, 0}});
    ASSERT(parsed.has_value());
    return std::move(*parsed);
}

std::optional<ConfigError> apply_override(TomlNode& root, std::string_view argument) {
    const auto equals = argument.find('=');
    const auto path = std::string(trim(argument.substr(0, equals)));
    const Place place{Place::Origin::command_line, path.substr(0, 80), 0, 0};
    const auto names = split_text(path, '.');
    const bool named = names.size() >= 2 && names.size() <= max_path_depth &&
                       std::none_of(names.begin(), names.end(), [](const auto& name) { return name.empty(); });
    if (equals == std::string_view::npos || !named) {
        return ConfigError{place, "write table.key=value, for example --set train.batch=64"};
    }
    TomlNode* node = &root;
    for (const auto& name : names) {
        if (node->kind != TextKind::table) {  // `partition = 3` in the file, partition.kind on the command line
            *node = TomlNode{.place = place};
        }
        node = descend(*node, name, place);
    }
    *node = override_value(trim(argument.substr(equals + 1)), place);
    return std::nullopt;
}

}  // namespace causeway
