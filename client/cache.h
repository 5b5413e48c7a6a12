// Models by digest on a client's disk, so that a model it has seen moves no bytes.
//
//   STATE/cache/<use>-<digest>      a model; <use>: 16 hexadecimal digits that rise at each use, so names sort by age
//
// Nothing here is precious: what is lost or damaged is fetched again, so writes are not flushed but every model is
// verified when it is read. Thread: one owner at a time.
#pragma once

#include <filesystem>
#include <map>

#include "common/bytes.h"
#include "common/digest.h"

namespace causeway::node {

struct CacheLimits {
    std::uint64_t bytes = std::uint64_t{4} << 30;  // of complete models; the newest stays even if it alone is larger
    std::size_t models = 16;                       // each round has its own: small ones would become very many files
};

/// errors of all its functions: io (`disk_full`)
class ModelCache {
public:
    static Result<ModelCache> open(const std::filesystem::path& state, CacheLimits limits = {});

    [[nodiscard]] bool has(const Digest& digest) const { return models_.contains(digest); }
    /// The model's bytes, verified; it becomes the last used.
    ///
    /// errors   not_found; corrupt `digest_mismatch`: it was damaged and is gone now, fetch it again
    Result<Bytes> read(const Digest& digest);
    /// errors   corrupt `digest_mismatch`
    Status put(const Digest& digest, ByteView bytes);

    /// Takes a file that was fetched and verified: it is renamed into the cache; older models go to make room.
    ///
    /// errors   not_found: no such file
    Status adopt(const Digest& digest, const std::filesystem::path& file);

    /// A model of so many bytes is about to come: older ones go, so that with it the quota holds. 0: none is set.
    ///
    /// errors   io `cache_full`: it alone is larger
    Status expect(std::uint64_t bytes, std::uint64_t quota);

    /// Lets go of all models but the last used; false when there was nothing to let go of.
    bool make_room();

    /// Bytes of complete models.
    [[nodiscard]] std::uint64_t bytes() const;

private:
    struct Model {
        std::uint64_t use = 0;
        std::uint64_t bytes = 0;
    };
    ModelCache(std::filesystem::path folder, CacheLimits limits) : folder_(std::move(folder)), limits_(limits) {}
    void find_models();
    void note_use(const Digest& digest, Model& model);
    void evict(const CacheLimits& limits, std::size_t least);
    [[nodiscard]] std::filesystem::path path_of(const Digest& digest, std::uint64_t use) const;

    std::filesystem::path folder_;
    CacheLimits limits_;
    std::map<Digest, Model> models_;
    std::uint64_t last_use_ = 0;
};

}  // namespace causeway::node
