// See system_error.h.
#include "common/system_error.h"

#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace causeway {
namespace {

namespace fs = std::filesystem;

std::string who_may() {
    return fmt::format("ask its owner, run this as another user than uid {}, or name another place", ::geteuid());
}

Error no_working_folder(const fs::path& path, const std::error_code& why) {
    return {ErrorKind::not_found, "no_working_folder",
            fmt::format("{}: the folder in which this command was started is gone or may not be read ({}); change to "
                        "another one, or give whole paths",
                        path.string(), why.message())};
}

}  // namespace

Error system_error(const fs::path& path, std::string_view doing, int reason) {
    switch (reason) {
        case ENOENT:
            if (std::error_code gone; path.is_relative() && ((void)fs::current_path(gone), gone)) {
                return no_working_folder(path, gone);
            }
            return {ErrorKind::not_found, "no_such_file", fmt::format("{}: no such file or folder", path.string())};
        case ENOSPC:
        case EDQUOT:
            return {ErrorKind::io, "disk_full",
                    fmt::format("{}: cannot {}: {}; free some room, the work goes on by itself", path.string(), doing,
                                std::strerror(reason))};
        case EFBIG:
            return {ErrorKind::io, "file_limit",
                    fmt::format("{}: cannot {}: larger than this process may write; raise `ulimit -f`", path.string(),
                                doing)};
        case EMFILE:
        case ENFILE:
            return {ErrorKind::io, "too_few_descriptors",
                    fmt::format("{}: cannot {}: {}; raise `ulimit -n`", path.string(), doing, std::strerror(reason))};
        default:
            return {ErrorKind::io, "io", fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(reason))};
    }
}

Error access_error(const fs::path& path, std::string_view doing, int reason) {
    if (reason == EACCES || reason == EPERM) {
        return {ErrorKind::refused, "not_permitted",
                fmt::format("{}: cannot {}: permission denied; {}", path.string(), doing, who_may())};
    }
    if (reason == EROFS) {
        return {ErrorKind::refused, "read_only",
                fmt::format("{}: cannot {}: its disk is mounted read-only; name another place", path.string(), doing)};
    }
    return system_error(path, doing, reason);
}

Status check_there(const fs::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return fail(access_error(path, "look at it", errno == ENOTDIR ? ENOENT : errno));
    }
    return {};
}

Result<fs::path> absolute_path(const fs::path& path) {
    if (path.is_absolute()) {
        return path;
    }
    std::error_code failed;
    auto absolute = fs::absolute(path, failed);
    if (failed) {
        return fail(no_working_folder(path, failed));
    }
    return absolute;
}

}  // namespace causeway
