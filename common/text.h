// Small text helpers that every message to a person uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace causeway {

/// The valid name closest to a misspelt one (edit distance at most a third of its length, at least 1), if any.
std::optional<std::string> nearest_name(std::string_view wrong, std::span<const std::string> valid);
/// `did you mean "x"?`, or `there are x, y, z` when nothing is near.
std::string name_hint(std::string_view wrong, std::span<const std::string> valid);
/// "512 B", "1.4 MB": powers of 1000, for people.
std::string format_bytes(std::uint64_t bytes);
/// 64 KiB, 1.5 MB, 200 -> bytes; nullopt when it is not a size.
std::optional<std::uint64_t> parse_size(std::string_view text);
std::vector<std::string> split_text(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);
/// The text as a shell word: quoted where it must be.
std::string shell_quoted(std::string_view text);

}  // namespace causeway
