// Files are written under `.causeway-XXXXXXXXXXXXXXXX.part` beside their place: opened with O_EXCL, so never a file
// that somebody else made, and in the same folder, so that taking the place is one rename. Where nothing may be
// replaced the kernel sees to it (RENAME_NOREPLACE): a file that came meanwhile stays.
#include "common/output_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/digest.h"
#include "common/scratch.h"
#include "common/system_error.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the kernel's
constexpr std::size_t copy_block = 1 << 20;
constexpr std::size_t most_files_looked_at = 100'000;  // of a folder of inputs

mode_t current_umask() {
    const mode_t mask = ::umask(077);
    ::umask(mask);
    return mask;
}

/// Who besides its owner may read this, as far as its own mode says, in the bits of an output, whose group is ours.
mode_t readers(const struct stat& info) {
    const mode_t execute = S_ISDIR(info.st_mode) ? 0111 : 0;
    const auto may = [&](mode_t read, mode_t enter) { return (info.st_mode & (read | (enter & execute))) ==
                                                             (read | (enter & execute)); };
    const bool others = may(S_IROTH, S_IXOTH);
    const bool group = info.st_gid == ::getegid() ? may(S_IRGRP, S_IXGRP) : others;
    return static_cast<mode_t>((group ? 0040 : 0) | (others ? 0004 : 0));
}

/// Who may pass through the folders above it.
mode_t passers(const fs::path& path) {
    mode_t mode = 0044;
    for (auto folder = path.parent_path(); !folder.empty(); folder = folder.parent_path()) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0) {
            return 0;
        }
        const bool others = (info.st_mode & S_IXOTH) != 0;
        const bool group = info.st_gid == ::getegid() ? (info.st_mode & S_IXGRP) != 0 : others;
        mode &= static_cast<mode_t>((group ? 0040 : 0) | (others ? 0004 : 0));
        if (folder == folder.root_path()) {
            break;
        }
    }
    return mode;
}

mode_t readers_of(const fs::path& input) {
    std::error_code failed;
    const auto real = fs::canonical(input, failed);
    struct stat info {};
    if (failed || ::stat(real.c_str(), &info) != 0) {
        return 0;
    }
    mode_t mode = readers(info) & passers(real);
    if (!S_ISDIR(info.st_mode)) {
        return mode;
    }
    std::size_t seen = 0;
    for (auto entry = fs::recursive_directory_iterator(real, failed);
         !failed && mode != 0 && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
        if (::stat(entry->path().c_str(), &info) != 0 || ++seen > most_files_looked_at) {
            return 0;
        }
        mode &= readers(info);
    }
    return failed ? 0 : mode;
}

/// Where links lead to in the end, be it there or not.
Result<fs::path> followed(const fs::path& path) {
    auto target = path;
    std::error_code ignored;
    for (int i = 0; i < most_links; ++i) {
        if (!fs::is_symlink(fs::symlink_status(target, ignored))) {
            return target;
        }
        const auto next = fs::read_symlink(target, ignored);
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    return fail(system_error(path, "follow the link", ELOOP));
}

fs::path folder_above(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

tl::unexpected<Error> exists_already(const fs::path& path) {
    return fail(ErrorKind::invalid, "file_exists",
                path.string() + ": already exists and is kept; add --force to overwrite it, or name another file");
}

/// The descriptor that is this very file, so that `--out /dev/stdout > file` goes on where the shell began.
int standard_descriptor(const struct stat& info) {
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat own {};
        if (::fstat(descriptor, &own) == 0 && own.st_dev == info.st_dev && own.st_ino == info.st_ino) {
            return descriptor;
        }
    }
    return -1;
}

/// errors  invalid `not_a_file`; not_found: no folder to make it in; refused: or none that may be written to
Status check_folder(const fs::path& shown, const fs::path& target) {
    const auto folder = folder_above(target);
    std::error_code failed;
    const auto status = fs::status(folder, failed);
    if (status.type() == fs::file_type::not_found) {
        return fail(ErrorKind::not_found, "no_such_file",
                    fmt::format("{}: there is no folder {}; make it first", shown.string(), folder.string()));
    }
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        return fail(access_error(folder, "write to the folder", errno));
    }
    return {};
}

Status take_place(const fs::path& from, const fs::path& to, Existing existing) {
    if (existing == Existing::replaced) {
        return ::rename(from.c_str(), to.c_str()) == 0 ? Status() : fail(access_error(to, "write", errno));
    }
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
        return {};
    }
    if (errno == EEXIST) {
        return exists_already(to);
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return fail(access_error(to, "write", errno));
    }
    // A disk that cannot (some of the network): a second name does as well, where there are any.
    if (::link(from.c_str(), to.c_str()) == 0) {
        ::unlink(from.c_str());
        return {};
    }
    struct stat info {};
    if (errno == EEXIST || ::lstat(to.c_str(), &info) == 0) {
        return exists_already(to);
    }
    return ::rename(from.c_str(), to.c_str()) == 0 ? Status() : fail(access_error(to, "write", errno));
}

/// A folder that may be written to but not read cannot be flushed; the file is there all the same.
void flush_folder_of(const fs::path& path) {
    const int folder = ::open(folder_above(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        ::fsync(folder);
        ::close(folder);
    }
}

}  // namespace

mode_t output_mode(const std::vector<fs::path>& inputs) {
    mode_t readable = inputs.empty() ? 0 : 0044;
    for (const auto& input : inputs) {
        readable &= readers_of(input);
    }
    return (0600 | readable) & ~current_umask();
}

mode_t public_mode() {
    return 0666 & ~current_umask();
}

mode_t folder_mode(mode_t files) {
    return 0700 | ((files & 0040) != 0 ? 0050 : 0) | ((files & 0004) != 0 ? 0005 : 0);
}

Result<OutputFile> OutputFile::open_stream(const fs::path& path) {
    const int descriptor = is_standard_output(path) ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                                    : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail(access_error(path, "open it to write", errno));
    }
    return OutputFile(descriptor, is_standard_output(path) ? fs::path("standard output") : path);
}

Result<OutputFile> OutputFile::open(const fs::path& path, mode_t mode, Existing existing) {
    if (is_standard_output(path)) {
        return open_stream(path);
    }
    if (path.empty() || !path.has_filename()) {
        return fail(ErrorKind::invalid, "not_a_file", path.string() + ": name a file to write");
    }
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    if (there && S_ISDIR(info.st_mode)) {
        return fail(ErrorKind::invalid, "not_a_file", path.string() + ": is a folder; name a file in it");
    }
    if (const int own = there ? standard_descriptor(info) : -1; own >= 0) {
        return OutputFile(::fcntl(own, F_DUPFD_CLOEXEC, 3), path);
    }
    const bool stream = there && !S_ISREG(info.st_mode);
    if (there && existing == Existing::kept && (!stream || S_ISBLK(info.st_mode))) {
        return exists_already(path);
    }
    if (stream) {
        return open_stream(path);
    }
    TRY_ASSIGN(const auto target, followed(path));
    TRY(check_folder(path, target));
    OutputFile file(-1, path);
    file.existing_ = existing;
    TRY(file.begin(target, there ? mode & (info.st_mode & 0777) : mode));
    if (there && (info.st_uid != ::geteuid() || info.st_gid != ::getegid()) &&
        ::fchown(file.descriptor_, info.st_uid, info.st_gid) != 0) {
        return file;  // whoever may not give files away owns what it wrote
    }
    return file;
}

Status OutputFile::begin(const fs::path& target, mode_t mode) {
    beside_ = folder_above(target) / (".causeway-" + to_hex(secret_random_bytes(8)) + ".part");
    descriptor_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor_ < 0) {
        const int reason = errno;
        beside_.clear();
        return fail(access_error(shown_, "create the file", reason));
    }
    note_scratch(beside_);
    target_ = target;
    return ::fchmod(descriptor_, mode) == 0 ? Status() : fail(access_error(shown_, "set the file's mode", errno));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      shown_(std::move(other.shown_)),
      target_(std::exchange(other.target_, {})),
      beside_(std::exchange(other.beside_, {})),
      existing_(other.existing_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(shown_, other.shown_);
    std::swap(target_, other.target_);
    std::swap(beside_, other.beside_);
    std::swap(existing_, other.existing_);
    return *this;
}

OutputFile::~OutputFile() {
    drop();
}

void OutputFile::drop() {
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
    if (!beside_.empty()) {
        ::unlink(beside_.c_str());
        forget_scratch(beside_);
        beside_.clear();
    }
}

Status OutputFile::write(ByteView bytes) {
    while (!bytes.empty()) {
        const auto written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0 && errno == EPIPE) {
            return fail(ErrorKind::io, "nobody_reads", shown_.string() + ": whoever read it has closed it");
        }
        if (written < 0) {
            auto error = access_error(shown_, "write", errno);
            if (error.code == "disk_full") {
                error.message = shown_.string() + ": cannot write: no room on its disk; nothing is left of it: free "
                                                  "some room, or name another place";
            }
            return fail(std::move(error));
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
}

Status OutputFile::finish() {
    if (target_.empty()) {
        return ::close(std::exchange(descriptor_, -1)) == 0 ? Status()
                                                            : fail(access_error(shown_, "write", errno));
    }
    if (::fsync(descriptor_) != 0) {
        return fail(access_error(shown_, "flush", errno));
    }
    TRY(take_place(beside_, target_, existing_));
    forget_scratch(std::exchange(beside_, {}));
    drop();
    flush_folder_of(target_);
    return {};
}

Status move_output(const fs::path& from, const fs::path& to, Existing existing) {
    TRY(take_place(from, to, existing));
    flush_folder_of(to);
    return {};
}

Status write_output(const fs::path& path, ByteView bytes, mode_t mode, Existing existing) {
    TRY_ASSIGN(auto file, OutputFile::open(path, mode, existing));
    TRY(file.write(bytes));
    return file.finish();
}

Status copy_to_output(const fs::path& from, const fs::path& path, mode_t mode, Existing existing) {
    TRY_ASSIGN(auto file, OutputFile::open(path, mode, existing));
    const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    if (source < 0) {
        return fail(access_error(from, "open", errno));
    }
    Bytes block(copy_block);
    Status copied;
    while (copied) {
        const auto count = ::read(source, block.data(), block.size());
        if (count < 0 && errno != EINTR) {
            copied = fail(access_error(from, "read", errno));
        }
        if (count == 0) {
            break;
        }
        if (count > 0) {
            copied = file.write(ByteView(block).first(static_cast<std::size_t>(count)));
        }
    }
    ::close(source);
    TRY(copied);
    return file.finish();
}

bool is_stream(const fs::path& path) {
    struct stat info {};
    return is_standard_output(path) || (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
                                        !S_ISDIR(info.st_mode) && !S_ISBLK(info.st_mode));
}

Status place_output(const fs::path& from, const fs::path& path, mode_t mode, Existing existing) {
    struct stat info {};
    const bool there = ::stat(path.c_str(), &info) == 0;
    if (is_stream(path) || (there && (!S_ISREG(info.st_mode) || standard_descriptor(info) >= 0))) {
        return copy_to_output(from, path, mode, existing);
    }
    if (there && existing == Existing::kept) {
        return exists_already(path);
    }
    TRY_ASSIGN(const auto target, followed(path));
    if (::chmod(from.c_str(), there ? mode & (info.st_mode & 0777) : mode) != 0) {
        return fail(access_error(path, "set the file's mode", errno));
    }
    struct stat own {};
    struct stat beside {};
    const bool same = ::stat(from.c_str(), &own) == 0 && ::stat(folder_above(target).c_str(), &beside) == 0 &&
                      own.st_dev == beside.st_dev;
    return same ? move_output(from, target, existing) : copy_to_output(from, path, mode, existing);
}

Status check_output(const fs::path& path, Existing existing) {
    if (is_stream(path)) {
        return {};  // a pipe is opened once, by who writes to it
    }
    return OutputFile::open(path, 0600, existing).map([](const auto&) {});
}

}  // namespace causeway
