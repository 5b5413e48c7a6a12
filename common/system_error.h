// What the operating system refused, as an error: what could not be done, with which file, and what to do about it.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/result.h"

namespace causeway {

/// Of an errno. kinds: not_found `no_such_file`; io (`disk_full`, `file_limit`)
[[nodiscard]] Error system_error(const std::filesystem::path& path, std::string_view doing, int reason);
/// The same of what a user asked to read or to begin: what is not allowed is refused `not_permitted`, or `read_only`.
[[nodiscard]] Error access_error(const std::filesystem::path& path, std::string_view doing, int reason);
/// Why a file or folder cannot be found: it is not there, or what leads to it may not be entered.
///
/// errors  not_found `no_such_file`; refused `not_permitted`; io
[[nodiscard]] Status check_there(const std::filesystem::path& path);

/// std::filesystem::absolute, which throws where the working folder is gone. errors: not_found `no_working_folder`
[[nodiscard]] Result<std::filesystem::path> absolute_path(const std::filesystem::path& path);

}  // namespace causeway
