// See segments.h. The table of paths is replaced as a whole, so that readers on other threads need no lock.
#include "coordinator/segments.h"

#include <algorithm>

#include <fmt/format.h>

namespace causeway {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::unique_ptr<Segments>> Segments::open(const fs::path& state) {
    TRY(make_private_folder(state / "segments"));
    auto segments = std::make_unique<Segments>(state / "segments");
    segments->look();
    return segments;
}

/// What is there is what counts: after removals and at the start.
void Segments::look() {
    auto paths = std::make_shared<Paths>();
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(folder_, ignored)) {
        if (const auto digest = digest_from_hex(entry.path().filename().string()); digest && entry.is_regular_file()) {
            paths->emplace(*digest, entry.path());
        }
    }
    paths_.store(std::move(paths));
}

Status Segments::open_round(ExperimentId experiment, std::uint32_t round) {
    const auto rounds = folder_ / std::to_string(experiment);
    const auto own = std::to_string(round);
    TRY(make_private_folder(rounds));
    TRY(make_private_folder(rounds / own));
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(rounds, ignored)) {
        if (entry.path().filename() != own) {
            fs::remove_all(entry.path(), ignored);
        }
    }
    look();
    return {};
}

Status Segments::write(ExperimentId experiment, std::uint32_t round, const Digest& digest, ByteView file) {
    const auto path = folder_ / std::to_string(experiment) / std::to_string(round) / digest.hex();
    const auto there = read_file(path, file.size());
    if (!there || !std::ranges::equal(*there, file)) {  // a damaged one is written again
        TRY(write_file_durably(path, file));
    }
    auto paths = std::make_shared<Paths>(*paths_.load());
    paths->insert_or_assign(digest, path);  // another round's equal one goes with that round
    paths_.store(std::move(paths));
    return {};
}

Result<Bytes> Segments::read(const Digest& digest, std::uint64_t limit) const {
    const auto path = find(digest);
    if (path.empty()) {
        return fail(ErrorKind::not_found, "not_found", "no segment " + digest.short_hex() + " is kept here");
    }
    TRY_ASSIGN(auto bytes, read_file(path, limit));
    if (sha256(bytes) != digest) {
        return fail(ErrorKind::corrupt, "digest_mismatch",
                    fmt::format("{} is damaged: its bytes do not have the digest that it is named by", path.string()));
    }
    return bytes;
}

void Segments::forget(ExperimentId experiment) {
    std::error_code ignored;
    fs::remove_all(folder_ / std::to_string(experiment), ignored);
    look();
}

fs::path Segments::find(const Digest& digest) const {
    const auto paths = paths_.load();
    const auto found = paths->find(digest);
    return found == paths->end() ? fs::path() : found->second;
}

}  // namespace causeway
