// See part_note.h.
#include "data/part_note.h"

#include <charconv>

#include <fmt/format.h>

#include "common/text.h"
#include "data/data_options.h"
#include "data/dataset.h"

namespace causeway {
namespace {

constexpr std::string_view note_prefix = "# causeway";

Result<std::uint32_t> parse_count(std::string_view text, std::uint32_t least, std::uint32_t most) {
    std::uint32_t count = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (code != std::errc() || end != text.data() + text.size() || count < least || count > most) {
        return fail(ErrorKind::corrupt, "bad_note", fmt::format("expected a whole number from {} to {}", least, most));
    }
    return count;
}

}  // namespace

bool is_part_note(std::string_view line) {
    return line.starts_with(note_prefix);
}

Result<PartNote> parse_part_note(std::string_view line) {
    PartNote note;
    for (const auto& word : split_text(line.substr(note_prefix.size()), ' ')) {
        const std::string_view view(word);
        if (view.starts_with("label=")) {
            TRY_ASSIGN(note.label, parse_count(view.substr(6), 0, max_classes));
        } else if (view.starts_with("classes=")) {
            TRY_ASSIGN(note.classes, parse_count(view.substr(8), 1, max_classes));
        } else if (view.starts_with("shape=")) {
            TRY_ASSIGN(note.shape, parse_shape(view.substr(6)));
        } else if (view == "header=yes" || view == "header=no") {
            note.header = view == "header=yes";
        } else if (view == "expanded") {
            note.expanded = true;
        }
    }
    return note;
}

std::string to_text(const PartNote& note) {
    if (note == PartNote{}) {
        return {};
    }
    std::string text(note_prefix);
    text += note.header ? (*note.header ? " header=yes" : " header=no") : "";
    text += note.label ? fmt::format(" label={}", *note.label) : "";
    text += note.classes == 0 ? "" : fmt::format(" classes={}", note.classes);
    text += note.shape.empty() ? "" : " shape=" + shape_text(note.shape);
    text += note.expanded ? " expanded" : "";
    return text;
}

}  // namespace causeway
