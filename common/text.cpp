// Edit distance for "did you mean", sizes for people, and quoting for printed commands.
#include "common/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace causeway {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours ("bacth"), the slip that fingers make most.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);  // rows i - 2, i - 1 and i of the usual table
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(above);
        above.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
    }
    return row[b.size()];
}

struct SizeUnit {
    std::string_view name;
    double bytes;
};
constexpr SizeUnit size_units[] = {{"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                                   {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};

}  // namespace

std::optional<std::string> nearest_name(std::string_view wrong, std::span<const std::string> valid) {
    constexpr std::size_t longest = 100;  // the distance costs length squared, and the name may be anybody's
    if (wrong.size() > longest) {
        return std::nullopt;
    }
    std::optional<std::string> best;
    std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
    for (const auto& name : valid) {
        const auto distance = edit_distance(wrong, name);
        if (distance < best_distance) {
            best_distance = distance;
            best = name;
        }
    }
    return best;
}

std::string name_hint(std::string_view wrong, std::span<const std::string> valid) {
    const auto nearest = nearest_name(wrong, valid);
    return nearest ? "did you mean \"" + *nearest + "\"?" : "there are " + join(valid, ", ");
}

std::string format_bytes(std::uint64_t bytes) {
    constexpr const char* names[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < std::size(names)) {
        value /= 1000;
        ++unit;
    }
    if (unit == 0 || value >= 99.95) {
        return fmt::format("{:.0f} {}", value, names[unit]);
    }
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : 1, names[unit]);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || !(value >= 0) || value > 1e15) {
        return std::nullopt;
    }
    const auto unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    for (const auto& candidate : size_units) {
        if (candidate.name == unit && value * candidate.bytes < 0x1p62) {
            return static_cast<std::uint64_t>(std::llround(value * candidate.bytes));
        }
    }
    return std::nullopt;
}

std::vector<std::string> split_text(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const auto at = text.find(separator);
        parts.emplace_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

std::string_view trim(std::string_view text) {
    const auto blank = std::string_view(" \t\r\n");
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        text += i == 0 ? std::string_view{} : separator;
        text += parts[i];
    }
    return text;
}

std::string shell_quoted(std::string_view text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) {
        return std::string(text);
    }
    std::string quoted = "'";
    for (const char c : text) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

}  // namespace causeway
