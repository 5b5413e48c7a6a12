// Plain descriptors: offsets are ours, and an error is told by errno.
#include "wire/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/crash_point.h"
#include "common/file.h"

namespace causeway {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;

tl::unexpected<Error> io_error(const std::string& what) {
    const int reason = errno;
    const bool full = reason == ENOSPC || reason == EDQUOT;
    return fail(ErrorKind::io, full ? "disk_full" : "io", what + ": " + std::strerror(reason));
}

}  // namespace

File& File::operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}
File::~File() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

Result<File> File::open_to_read(const std::filesystem::path& path) {
    File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.descriptor() < 0) {
        return errno == ENOENT ? fail(ErrorKind::not_found, "not_found", path.string() + " does not exist")
                               : io_error("cannot open " + path.string());
    }
    return file;
}

Result<std::uint64_t> File::size() const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) {
        return io_error("cannot tell a file's size");
    }
    return static_cast<std::uint64_t>(status.st_size);
}

// pread, so that several transfers can share a cursor-free descriptor and a short read is told from an end.
Result<Bytes> File::read(std::uint64_t offset, std::size_t size) const {
    Bytes bytes(size);
    std::size_t done = 0;
    while (done < size) {
        const auto count = pread(descriptor_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return io_error("cannot read");
        }
        if (count == 0) {
            return fail(ErrorKind::io, "io", "a file is shorter than it was");
        }
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

std::filesystem::path PartFile::path_of(const std::filesystem::path& destination, const Digest& digest) {
    return destination.parent_path() / (digest.hex() + ".part");
}

// 0600: a part of a model is as private as the model.
Result<PartFile> PartFile::open(const std::filesystem::path& destination, const Digest& digest, std::uint64_t total) {
    auto path = path_of(destination, digest);
    File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (file.descriptor() < 0) {
        return io_error("cannot open " + path.string());
    }
    TRY_ASSIGN(auto held, file.size());
    if (held > total) {
        held = 0;  // not a part of this blob
        if (ftruncate(file.descriptor(), 0) != 0) {
            return io_error("cannot cut " + path.string());
        }
    }
    return PartFile(std::move(file), std::move(path), destination, held);
}

Status PartFile::read_held(const std::function<void(ByteView)>& take) const {
    for (std::uint64_t at = 0; at < held_; at += piece_bytes) {
        TRY_ASSIGN(const auto piece,
                   file_.read(at, static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, held_ - at))));
        take(piece);
    }
    return {};
}

// What is written counts even when the rest fails (a full disk): the next attempt starts there.
Status PartFile::append(ByteView bytes) {
    while (!bytes.empty()) {
        const auto count = pwrite(file_.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(held_));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return io_error("cannot write " + path_.string());
        }
        held_ += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    crash_point("part.unflushed", path_);
    return {};
}

Status PartFile::finish(Durability durability) {
    if (durability == Durability::unflushed) {
        if (std::rename(path_.c_str(), destination_.c_str()) != 0) {
            return io_error("cannot rename " + path_.string());
        }
        crash_point("part.renamed_unflushed", destination_);
        return {};
    }
    if (fsync(file_.descriptor()) != 0) {
        return io_error("cannot flush " + path_.string());
    }
    return rename_durably(path_, destination_);
}

void PartFile::discard() {
    held_ = 0;
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

}  // namespace causeway
