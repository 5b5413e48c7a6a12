// The file of labels that belongs to a file of features, found by name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace causeway {

/// The first of these names that exists beside `path`, as it is, with ".gz" added or with ".gz" taken off.
[[nodiscard]] std::optional<std::filesystem::path> find_partner(const std::filesystem::path& path,
                                                                const std::vector<std::string>& names);

/// `text` with the last `from` replaced; nullopt when there is none.
[[nodiscard]] std::optional<std::string> replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace causeway
