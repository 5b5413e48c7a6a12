// The folder's own list is the truth: nothing is remembered but what waits for its commit. Foreign files in the
// folder are left alone.
#include "coordinator/snapshots.h"

#include <optional>
#include <system_error>

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".safetensors";

/// The digest that a file's name says; nothing for other files.
std::optional<Digest> digest_of(const fs::path& path) {
    if (path.extension() != suffix) {
        return std::nullopt;
    }
    const auto digest = digest_from_hex(path.stem().string());
    return digest ? std::optional(*digest) : std::nullopt;
}

// write_file_durably writes here first; a kill leaves it.
bool is_leftover(const fs::path& path) {
    return path.extension() == ".tmp";
}

}  // namespace

Result<Snapshots> Snapshots::open(const fs::path& state) {
    const auto folder = state / "snapshots";
    TRY(make_private_folder(folder));
    return Snapshots(folder);
}

Result<Digest> Snapshots::write(ByteView file) {
    return write(file, sha256(file));
}

Result<Digest> Snapshots::write(ByteView file, const Digest& digest) {
    // A file under its digest was renamed when complete; only its length could tell of a disk that lost data.
    std::error_code error;
    if (fs::file_size(path(digest), error) != file.size() || error) {
        TRY(write_file_durably(path(digest), file));
        flushes_ += 2;
    }
    awaiting_.insert(digest);
    return digest;
}

Result<Bytes> Snapshots::read(const Digest& digest, std::uint64_t limit) const {
    TRY_ASSIGN(auto bytes, read_file(path(digest), limit));
    if (sha256(bytes) != digest) {
        return fail(ErrorKind::corrupt, "digest_mismatch",
                    path(digest).string() + ": the contents are not what the name says; restore it from a backup");
    }
    return bytes;
}

fs::path Snapshots::path(const Digest& digest) const {
    return folder_ / (digest.hex() + std::string(suffix));
}

void Snapshots::set_aside(const Digest& digest) const {
    std::error_code ignored;
    fs::rename(path(digest), folder_ / (digest.hex() + ".damaged"), ignored);
}

bool Snapshots::has(const Digest& digest) const {
    std::error_code error;
    return fs::is_regular_file(path(digest), error);
}

Status Snapshots::remove_unnamed(const std::set<Digest>& named) {
    std::error_code error;
    std::vector<fs::path> doomed;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
        const auto digest = digest_of(entry.path());
        if (is_leftover(entry.path()) || (digest && !named.contains(*digest) && !awaiting_.contains(*digest))) {
            doomed.push_back(entry.path());
        }
    }
    // Named now: from here on the store decides about it.
    for (const auto& digest : named) {
        awaiting_.erase(digest);
    }
    for (const auto& path : doomed) {
        if (!error) {
            fs::remove(path, error);
        }
    }
    return error ? fail(ErrorKind::io, "io", folder_.string() + ": cannot remove old snapshots: " + error.message())
                 : Status{};
}

}  // namespace causeway
