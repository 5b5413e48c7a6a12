// Files: whole reads with a limit, writes that are durable or did not happen, and the lock of a state folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/bytes.h"

namespace causeway {

/// The whole file. errors: not_found, io, overloaded: larger than `limit` bytes.
Result<Bytes> read_file(const std::filesystem::path& path, std::uint64_t limit);

enum class FileMode { shared, secret };  // 0644, or 0600 for keys

/// Writes to `path.tmp`, fsyncs, renames, fsyncs the folder: after it returns the file survives a power cut.
///
/// errors   io (code `disk_full` when there is no room); nothing is left under `path` then
/// cost     2 flushes
Status write_file_durably(const std::filesystem::path& path, ByteView bytes, FileMode mode = FileMode::shared);
/// Renames and flushes the folder. cost: 1 flush
Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
/// Creates a folder with mode 0700 (and its parents). errors: io; refused when it exists with a wider mode.
Status make_private_folder(const std::filesystem::path& path);
/// errors  refused: others than the owner may read it (`chmod 600 FILE` is the remedy); not_found
Status require_secret_mode(const std::filesystem::path& path);

/// An exclusive advisory lock held for life. errors: refused `state_in_use`: another live process holds it.
class FolderLock {
public:
    static Result<FolderLock> acquire(const std::filesystem::path& folder);
    FolderLock(FolderLock&& other) noexcept;
    FolderLock& operator=(FolderLock&& other) noexcept;
    ~FolderLock();

private:
    explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
    int descriptor_ = -1;
};

}  // namespace causeway
