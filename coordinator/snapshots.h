// The models on the coordinator's disk: STATE/snapshots/<digest>.safetensors, each written once and never changed.
//
// A snapshot is durable before the commit that names it, and goes only after the commit that stops naming it. So a
// crash between the two leaves a file that nobody names: the next start removes it. `sha256sum` of a file is its name.
#pragma once

#include <filesystem>
#include <set>
#include <vector>

#include "common/digest.h"
#include "common/file.h"

namespace causeway {

/// threads  owned by one worker: writes and removals happen in its order. Reading by path is open to all.
class Snapshots {
public:
    /// Makes the folder if need be. errors: io; refused: others can read it
    static Result<Snapshots> open(const std::filesystem::path& state);

    /// Durable when it returns. An equal model that is already here is not written again.
    ///
    /// errors   io (`disk_full`); nothing is left behind
    /// cost     2 flushes, or none
    Result<Digest> write(ByteView file);
    Result<Digest> write(ByteView file, const Digest& digest);  // the digest is known

    /// The bytes, verified. errors: not_found; corrupt `digest_mismatch`; overloaded: above `limit` bytes
    [[nodiscard]] Result<Bytes> read(const Digest& digest, std::uint64_t limit) const;
    /// Out of the way of one that is written anew, as <digest>.damaged: evidence, which its owner may remove.
    void set_aside(const Digest& digest) const;
    [[nodiscard]] std::filesystem::path path(const Digest& digest) const;
    [[nodiscard]] bool has(const Digest& digest) const;

    /// After a commit: removes what the store no longer names (coordinator/store.h, named_models). What was written
    /// since the start and has not been named yet stays: its commit may still come, or be retried.
    ///
    /// cost     lists the folder
    Status remove_unnamed(const std::set<Digest>& named);
    /// The commit that would name it will not come (the round failed): it may go.
    void abandon(const Digest& digest) { awaiting_.erase(digest); }

    /// Flushes so far, for the count per round.
    [[nodiscard]] std::uint64_t flushes() const { return flushes_; }

private:
    explicit Snapshots(std::filesystem::path folder) : folder_(std::move(folder)) {}

    std::filesystem::path folder_;
    std::set<Digest> awaiting_;
    std::uint64_t flushes_ = 0;
};

}  // namespace causeway
