// The order of use lives in the files' names, so a restart knows it without a clock, an index or a flush: using a
// model renames it. Errors of clean-up are ignored on purpose: a file that stays is met again, and only costs room.
#include "client/cache.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/crash_point.h"
#include "common/file.h"
#include "common/text.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t use_digits = 16;
constexpr std::uint64_t largest_model = std::uint64_t{64} << 30;  // a sanity bound: 16 G parameters

std::optional<std::uint64_t> use_from(std::string_view digits) {
    std::uint64_t use = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), use, 16);
    return error == std::errc{} && end == digits.data() + digits.size() ? std::optional(use) : std::nullopt;
}

std::string use_text(std::uint64_t use) {
    char digits[use_digits];
    const auto end = std::to_chars(digits, digits + use_digits, use, 16).ptr;
    const std::string text(digits, end);
    return std::string(use_digits - text.size(), '0') + text;
}

tl::unexpected<Error> write_failure(const fs::path& path) {
    const int reason = errno;
    return fail(ErrorKind::io, reason == ENOSPC || reason == EDQUOT ? "disk_full" : "io",
                path.string() + ": cannot write: " + std::strerror(reason));
}

}  // namespace

Result<ModelCache> ModelCache::open(const fs::path& state, CacheLimits limits) {
    TRY(make_private_folder(state));
    TRY(make_private_folder(state / "cache"));
    ModelCache cache(state / "cache", limits);
    cache.find_models();
    return cache;
}

void ModelCache::find_models() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
        const auto name = entry.path().filename().string();
        if (name.size() != use_digits + 1 + 2 * sizeof(Digest) || name[use_digits] != '-') {
            continue;
        }
        const auto use = use_from(std::string_view(name).substr(0, use_digits));
        const auto digest = digest_from_hex(std::string_view(name).substr(use_digits + 1));
        if (use && digest && *use >= models_[*digest].use) {
            models_[*digest] = {*use, entry.file_size(ignored)};
            last_use_ = std::max(last_use_, *use);
        }
    }
}

Result<Bytes> ModelCache::read(const Digest& digest) {
    const auto found = models_.find(digest);
    if (found == models_.end()) {
        return fail(ErrorKind::not_found, "not_cached", "model " + digest.short_hex() + " is not in the cache");
    }
    const auto path = path_of(digest, found->second.use);
    auto bytes = read_file(path, largest_model);
    if (!bytes || sha256(*bytes) != digest) {
        std::error_code ignored;
        fs::remove(path, ignored);
        models_.erase(found);
        TRY(bytes);
        return fail(ErrorKind::corrupt, "digest_mismatch", path.string() + ": damaged; it is fetched again");
    }
    note_use(digest, found->second);
    return bytes;
}

// The same path as a download of one chunk: one way into the cache that verifies.
Status ModelCache::put(const Digest& digest, ByteView bytes) {
    if (sha256(bytes) != digest) {
        return fail(ErrorKind::corrupt, "digest_mismatch", "these bytes are not model " + digest.short_hex());
    }
    const auto beside = folder_ / (digest.hex() + ".new");
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    return file ? adopt(digest, beside) : write_failure(beside);
}

Status ModelCache::adopt(const Digest& digest, const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (error) {
        return fail(ErrorKind::not_found, "no_such_file", file.string() + ": " + error.message());
    }
    if (const auto old = models_.find(digest); old != models_.end()) {
        fs::remove(path_of(digest, old->second.use), error);
    }
    fs::rename(file, path_of(digest, ++last_use_), error);
    if (error) {
        return fail(ErrorKind::io, "io", file.string() + ": cannot rename: " + error.message());
    }
    crash_point("cache.adopted_unflushed", path_of(digest, last_use_));
    models_[digest] = {last_use_, size};
    evict(limits_, 1);
    return {};
}

std::uint64_t ModelCache::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [digest, model] : models_) {
        sum += model.bytes;
    }
    return sum;
}

// A use that cannot be noted costs at most an early eviction.
void ModelCache::note_use(const Digest& digest, Model& model) {
    std::error_code error;
    fs::rename(path_of(digest, model.use), path_of(digest, last_use_ + 1), error);
    if (!error) {
        crash_point("cache.used", path_of(digest, last_use_ + 1));
        model.use = ++last_use_;
    }
}

Status ModelCache::expect(std::uint64_t bytes, std::uint64_t quota) {
    limits_.bytes = quota != 0 ? quota : CacheLimits{}.bytes;
    if (quota == 0) {
        return {};
    }
    if (bytes > quota) {
        return fail(
            ErrorKind::io, "cache_full",
            fmt::format("the model takes {}, more than cache_quota = {}: raise it in STATE/node.toml and reload the "
                        "node (SIGHUP)",
                        format_bytes(bytes), format_bytes(quota)));
    }
    evict({.bytes = quota - bytes, .models = limits_.models}, 0);
    return {};
}

bool ModelCache::make_room() {
    const bool any = models_.size() > 1;
    if (any) {
        evict({.models = 1}, 1);
    }
    return any;
}

/// Oldest use first, until the limits hold or only `least` are left.
void ModelCache::evict(const CacheLimits& limits, std::size_t least) {
    while ((bytes() > limits.bytes || models_.size() > limits.models) && models_.size() > least) {
        const auto oldest = std::ranges::min_element(models_, {}, [](const auto& entry) { return entry.second.use; });
        std::error_code ignored;
        fs::remove(path_of(oldest->first, oldest->second.use), ignored);
        models_.erase(oldest);
    }
}

fs::path ModelCache::path_of(const Digest& digest, std::uint64_t use) const {
    return folder_ / (use_text(use) + "-" + digest.hex());
}

}  // namespace causeway::node
