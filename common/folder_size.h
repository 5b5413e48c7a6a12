// How much a folder holds: what quotas are compared with. The files' lengths, not their blocks; what vanishes while it
// is looked at counts as gone. Never on a loop's thread: a folder may have thousands of files.
//
// threads  reentrant
#pragma once

#include <cstdint>
#include <filesystem>

namespace causeway {

/// Of the files in it and in the folders below. cost: one look at each
[[nodiscard]] inline std::uint64_t folder_bytes(const std::filesystem::path& folder) {
    std::uint64_t sum = 0;
    std::error_code error;
    for (auto entry = std::filesystem::recursive_directory_iterator(folder, error);
         !error && entry != std::filesystem::end(entry); entry.increment(error)) {
        std::error_code gone;
        if (entry->is_regular_file(gone) && !entry->is_symlink(gone)) {
            const auto size = entry->file_size(gone);
            sum += gone ? 0 : size;
        }
    }
    return sum;
}

}  // namespace causeway
