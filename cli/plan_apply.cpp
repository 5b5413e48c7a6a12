// Writing a plan's choice into an experiment file: lines of [regime] are changed, everything else stays as it is.
//
// A file is lines to people, so it is edited as lines; the result is read back, and what does not come out as meant
// (a table written in braces, keys with dots) is refused instead of guessed. Pure.
#include <algorithm>

#include <fmt/format.h>

#include "cli/plan_profile.h"
#include "common/text.h"
#include "configs/reader.h"
#include "configs/values.h"

namespace causeway::cli {
namespace {

using PlanLines = std::vector<std::string>;

/// "regime" of "[regime]  # words"; empty: no header of a table.
std::string table_of(std::string_view line) {
    line = trim(line);
    const auto end = line.find(']');
    if (!line.starts_with('[') || line.starts_with("[[") || end == std::string_view::npos) {
        return "";
    }
    return std::string(trim(line.substr(1, end - 1)));
}

/// "cut" of "cut  = 3"; empty: a comment or no assignment.
std::string key_of(std::string_view line) {
    const auto equals = line.find('=');
    return equals == std::string_view::npos ? "" : std::string(trim(line.substr(0, equals)));
}

/// Where the value of a line ends and a comment begins: a # outside of a text.
std::size_t comment_at(std::string_view line) {
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (quote == 0 && line[i] == '#') {
            return i;
        }
        if (line[i] == '"' || line[i] == '\'') {
            quote = quote == 0 ? line[i] : quote == line[i] ? '\0' : quote;
        }
    }
    return line.size();
}

struct Section {
    std::size_t begin = 0;  // its first line after the header
    std::size_t end = 0;    // one past its last
};

Section section_of(PlanLines& lines, const std::string& table) {
    const auto header = std::ranges::find_if(lines, [&](const auto& line) { return table_of(line) == table; });
    if (header == lines.end()) {
        while (!lines.empty() && trim(lines.back()).empty()) {
            lines.pop_back();
        }
        lines.insert(lines.end(), {"", "[" + table + "]", ""});
        return {lines.size() - 1, lines.size() - 1};
    }
    const auto next =
        std::find_if(header + 1, lines.end(), [](const auto& line) { return trim(line).starts_with('['); });
    return {static_cast<std::size_t>(header - lines.begin()) + 1, static_cast<std::size_t>(next - lines.begin())};
}

/// Changes, adds or (value empty) removes a key; a comment beside the value stays.
void set_key(PlanLines& lines, const std::string& table, const std::string& key, const std::string& value) {
    auto section = section_of(lines, table);
    for (auto at = section.begin; at < section.end; ++at) {
        if (key_of(lines[at]) != key) {
            continue;
        }
        if (value.empty()) {
            lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
            return;
        }
        const auto equals = lines[at].find('=');
        const auto comment = comment_at(lines[at]);
        auto line = lines[at].substr(0, equals) + "= " + value;
        if (comment < lines[at].size()) {
            line.resize(std::max(line.size() + 1, comment), ' ');  // where it stood, if there is room
            line += lines[at].substr(comment);
        }
        lines[at] = line;
        return;
    }
    if (!value.empty()) {
        auto at = section.end;  // after its last line that says something
        while (at > section.begin && trim(lines[at - 1]).empty()) {
            --at;
        }
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), key + " = " + value);
    }
}

}  // namespace

Result<std::string> with_regime(const std::string& text, const std::string& file_name, const std::string& preset,
                                const std::string& cut, std::uint32_t groups) {
    auto lines = split_text(text, '\n');
    set_key(lines, "regime", "preset", toml_quoted(preset));
    set_key(lines, "regime", "cut", cut.empty() ? "" : toml_quoted(cut));
    set_key(lines, "regime", "groups", groups == 0 ? "" : std::to_string(groups));
    if (preset == "fedavg" || preset.starts_with("splitfed")) {
        set_key(lines, "regime", "grouping", "");
        set_key(lines, "regime", "regroup", "");
    }
    if (preset == "fedavg") {
        set_key(lines, "sync", "lost_client", "");
        set_key(lines, "sync", "handover_copy", "");
        set_key(lines, "regime", "overlap", "");
    }
    auto written = join(lines, "\n");
    const auto read = read_experiment(written, file_name);
    if (!read) {
        return fail(ErrorKind::invalid, "cannot_apply",
                    fmt::format("with preset = \"{}\" the file is not valid; nothing was written:\n{}", preset,
                                to_text(read.error())));
    }
    const auto& regime = read->regime;
    const bool as_meant = regime.preset == preset && regime.cut == (cut.empty() ? PlanLines{} : PlanLines{cut}) &&
                          (groups == 0 || regime.groups == groups);
    if (!as_meant) {
        return fail(ErrorKind::invalid, "cannot_apply",
                    file_name + ": [regime] is written in a form that is not edited; set preset, cut and groups there");
    }
    return written;
}

}  // namespace causeway::cli
