// One value of an experiment file: from its TOML node into its member, and from the member back to TOML.
//
// Which spelling a value has follows from the member's type: a count or its word ("full"), a number, a share ("20%"),
// a duration ("30s"), a count or share of members, a text, a list of texts, a shape. Both directions stand side by side
// here, because `print_value` must give what `read_value` takes. Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "configs/fields.h"
#include "configs/toml_text.h"

namespace causeway {

/// Sets the member. Adds what is wrong to `errors`, at the node (or at the element of a list) and leaves the member.
void read_value(const Field& field, const TomlNode& node, Experiment& experiment, std::vector<ConfigError>& errors);

/// The member as TOML, in its canonical spelling.
[[nodiscard]] std::string print_value(const Field& field, const Experiment& experiment);

/// What may stand here: "a whole number from 1 to 256, or \"full\"".
[[nodiscard]] std::string describe_values(const Field& field);

/// "20%" -> 0.2. nullopt: not a number with a percent sign.
[[nodiscard]] std::optional<double> parse_share(std::string_view text);

/// The text as a TOML basic string, quotes included.
[[nodiscard]] std::string toml_quoted(std::string_view text);

}  // namespace causeway
