// The first line of a written part: what a part alone cannot know of the dataset that it comes from.
//
//   # causeway header=no label=64 classes=10 shape=8x8x1 expanded
//
// Any other comment of a table is skipped, and so are words that a later version adds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

/// What the first line of a written part says; empty or 0 where it says nothing.
struct PartNote {
    std::optional<std::size_t> label;  // column index from 0
    std::uint32_t classes = 0;         // of the whole dataset
    std::vector<std::int64_t> shape;   // of one example
    bool expanded = false;             // columns of words are one column per word already
    std::optional<bool> header;        // whether the next line has names; empty: an older writer's
    bool found = false;                // there is such a line; never written
    bool operator==(const PartNote&) const = default;
};
[[nodiscard]] std::string to_text(const PartNote& note);  // without the newline; "" for an empty note

[[nodiscard]] bool is_part_note(std::string_view line);
/// errors  corrupt `bad_note`; invalid `shape`
[[nodiscard]] Result<PartNote> parse_part_note(std::string_view line);

}  // namespace causeway
