// Durable files on POSIX: write beside, fsync, rename, fsync the folder. Every errno becomes a message with its path.
#include "common/file.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/crash_point.h"
#include "common/spare_file.h"
#include "common/system_error.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

class Descriptor {
public:
    explicit Descriptor(int value) : value_(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (value_ >= 0) {
            ::close(value_);
        }
    }
    [[nodiscard]] int get() const { return value_; }
    [[nodiscard]] bool open() const { return value_ >= 0; }

private:
    int value_;
};

tl::unexpected<Error> system_failure(const fs::path& path, std::string_view doing) {
    return fail(system_error(path, doing, errno));
}

/// Of what is only read, or begun: who may not is told so, and whom to ask.
tl::unexpected<Error> access_failure(const fs::path& path, std::string_view doing) {
    return fail(access_error(path, doing, errno));
}

Status write_all(int descriptor, ByteView bytes, const fs::path& path) {
    while (!bytes.empty()) {
        const auto written = ::write(descriptor, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return system_failure(path, "write");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
}

Status flush_folder(const fs::path& folder) {
    const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!descriptor.open() || ::fsync(descriptor.get()) != 0) {
        return system_failure(folder, "flush the folder");
    }
    return {};
}

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Status write_and_flush(const fs::path& path, ByteView bytes, FileMode mode) {
    const mode_t bits = mode == FileMode::secret ? 0600 : 0644;
    const Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, bits));
    struct stat info {};
    if (!descriptor.open() || ::fstat(descriptor.get(), &info) != 0) {
        return system_failure(path, "create the file");
    }
    TRY(write_all(descriptor.get(), bytes, path));
    const auto size = static_cast<off_t>(bytes.size());
    if (info.st_size > size && ::ftruncate(descriptor.get(), size) != 0) {
        return system_failure(path, "cut the file");
    }
    crash_point("file.unflushed", path);
    if (::fsync(descriptor.get()) != 0) {
        return system_failure(path, "flush");
    }
    return {};
}

}  // namespace

Result<Bytes> read_file(const fs::path& path, std::uint64_t limit) {
    const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!descriptor.open() || ::fstat(descriptor.get(), &info) != 0) {
        return access_failure(path, "open");
    }
    if (!S_ISREG(info.st_mode)) {
        return fail(ErrorKind::invalid, "not_a_file", path.string() + ": not a regular file");
    }
    if (static_cast<std::uint64_t>(info.st_size) > limit) {
        return fail(ErrorKind::overloaded, "file_too_large",
                    fmt::format("{}: {} bytes, over the limit of {}", path.string(), info.st_size, limit));
    }
    Bytes bytes(static_cast<std::size_t>(info.st_size));
    std::size_t filled = 0;
    while (filled < bytes.size()) {
        const auto count = ::read(descriptor.get(), bytes.data() + filled, bytes.size() - filled);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return system_failure(path, "read");
        }
        if (count == 0) {
            return fail(ErrorKind::corrupt, "truncated", path.string() + ": the file became shorter while it was read");
        }
        filled += static_cast<std::size_t>(count);
    }
    return bytes;
}

Status write_file_durably(const fs::path& path, ByteView bytes, FileMode mode) {
    return write_file_durably_over(path.string() + ".tmp", path, bytes, mode);
}

Status write_file_durably_over(const fs::path& spare, const fs::path& path, ByteView bytes, FileMode mode) {
    if (auto written = write_and_flush(spare, bytes, mode); !written) {
        ::unlink(spare.c_str());
        return written;
    }
    return rename_durably(spare, path);
}

Status rename_durably(const fs::path& from, const fs::path& to) {
    crash_point("file.unrenamed", to);
    if (::rename(from.c_str(), to.c_str()) != 0) {
        return system_failure(from, "rename to " + to.string());
    }
    crash_point("file.renamed", to);
    return flush_folder(folder_of(to));
}

Status make_private_folder(const fs::path& path) {
    std::error_code error;
    if (path.has_parent_path()) {
        fs::create_directories(path.parent_path(), error);
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return access_failure(path, "create the folder");
    }
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return access_failure(path, "read the folder's mode");
    }
    if (!S_ISDIR(info.st_mode)) {
        return fail(ErrorKind::invalid, "not_a_folder", path.string() + ": exists and is not a folder");
    }
    if ((info.st_mode & 077) != 0) {
        return fail(ErrorKind::refused, "wide_mode",
                    fmt::format("{}: others can read this folder; run: chmod 700 {}", path.string(), path.string()));
    }
    return {};
}

Status require_secret_mode(const fs::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return access_failure(path, "read the file's mode");
    }
    if ((info.st_mode & 077) != 0) {
        return fail(ErrorKind::refused, "wide_mode",
                    fmt::format("{}: others can read this key; run: chmod 600 {}", path.string(), path.string()));
    }
    return {};
}

Result<FolderLock> FolderLock::acquire(const fs::path& folder) {
    const fs::path path = folder / "lock";
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return access_failure(path, "open");
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        ::close(descriptor);
        return fail(ErrorKind::refused, "state_in_use",
                    fmt::format("{}: another live process uses this state folder; stop it or name another folder",
                                folder.string()));
    }
    return FolderLock(descriptor);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

FolderLock::~FolderLock() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

}  // namespace causeway
