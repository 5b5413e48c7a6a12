// A file that arrives in parts, `<digest>.part` beside its destination, and the reading of blobs.
//
// threads  one owner at a time (the transfer thread)
#pragma once

#include <filesystem>
#include <functional>

#include "common/bytes.h"
#include "common/digest.h"
#include "common/result.h"

namespace causeway {

/// An open descriptor that closes itself.
class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept;
    ~File();
    [[nodiscard]] int descriptor() const { return descriptor_; }

    /// errors  not_found, io
    static Result<File> open_to_read(const std::filesystem::path& path);
    [[nodiscard]] Result<std::uint64_t> size() const;
    /// Exactly `size` bytes from `offset`. errors: io, also when the file is shorter
    [[nodiscard]] Result<Bytes> read(std::uint64_t offset, std::size_t size) const;

private:
    int descriptor_ = -1;
};

/// Whether a file must survive a power cut once it is there. `unflushed` is for what can be fetched again and is
/// verified when it is read: a flush costs 1 to 10 ms on a real disk.
enum class Durability { flushed, unflushed };

class PartFile {
public:
    /// Opens or makes the part of a destination. What it holds beyond `total` is cut away.
    ///
    /// errors  io
    static Result<PartFile> open(const std::filesystem::path& destination, const Digest& digest, std::uint64_t total);
    static std::filesystem::path path_of(const std::filesystem::path& destination, const Digest& digest);

    [[nodiscard]] std::uint64_t held() const { return held_; }
    /// Hands over what is held, a piece at a time. errors: io. cost: one read of the file
    Status read_held(const std::function<void(ByteView)>& take) const;
    /// errors  io (`disk_full`)
    Status append(ByteView bytes);
    /// Takes the destination's name. cost: 2 flushes, or none
    Status finish(Durability durability);
    /// Begin anew: what came was not the blob.
    void discard();

private:
    PartFile(File file, std::filesystem::path path, std::filesystem::path destination, std::uint64_t held)
        : file_(std::move(file)), path_(std::move(path)), destination_(std::move(destination)), held_(held) {}

    File file_;
    std::filesystem::path path_;
    std::filesystem::path destination_;
    std::uint64_t held_ = 0;
};

}  // namespace causeway
