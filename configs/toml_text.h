// TOML text as a plain tree in which every key and value knows its place. toml++ is compiled in toml_text.cpp only.
//
// The tree exists because toml++ costs seconds to compile wherever it is included, and because --set values and values
// of presets must look the same as those of a file. Syntax errors are collected: a broken line is set aside and the
// rest parsed again, a bounded number of times. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/reader.h"

namespace causeway {

struct TomlMember;

struct TomlNode {
    enum class Kind { text, integer, number, boolean, time, array, table };
    Kind kind = Kind::table;
    std::string text;
    std::int64_t integer = 0;
    double number = 0;
    bool boolean = false;
    std::vector<TomlNode> items;      // array
    std::vector<TomlMember> members;  // table, in the order of the file
    Place place;

    /// The value under `name`, or nullptr.
    [[nodiscard]] const TomlNode* find(std::string_view name) const;
};

struct TomlMember {
    std::string name;
    Place place;  // of the key
    TomlNode value;
};

/// "a text", "a whole number", ...: for messages.
[[nodiscard]] std::string_view describe(TomlNode::Kind kind);

struct TomlText {
    TomlNode root;
    std::vector<ConfigError> errors;  // syntax; when there are any, `root` may lack keys
};

[[nodiscard]] TomlText parse_toml(std::string_view text, std::string_view file_name);
/// The tree of a preset's constant text; every place says `preset NAME`.
[[nodiscard]] TomlNode parse_preset_toml(std::string_view text, std::string_view preset_name);

/// Puts "table.key=value" into the tree, over what is there. The value is TOML, else a bare word taken as a text.
[[nodiscard]] std::optional<ConfigError> apply_override(TomlNode& root, std::string_view argument);

}  // namespace causeway
