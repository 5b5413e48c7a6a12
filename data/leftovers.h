// Files that systems and programs leave beside data: never examples, never classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace causeway {

/// Whether a file or folder of this name is a leftover: hidden ones (`._x.png` and `.DS_Store` of a Mac, locks of
/// LibreOffice), `__MACOSX`, `Thumbs.db`, `desktop.ini`, `~$x.xlsx` of an open Excel, folders of NAS and disks.
[[nodiscard]] bool is_leftover(std::string_view name);

/// What a folder holds that is no example: counted, and said with the first names.
class SkippedEntries {
public:
    void add(std::string_view name);
    [[nodiscard]] std::uint64_t count() const { return count_; }
    /// "3 entries are no examples and are skipped: a, b, ..." or empty.
    [[nodiscard]] std::string text() const;

private:
    std::uint64_t count_ = 0;
    std::vector<std::string> first_;
};

}  // namespace causeway
