// Segments of open rounds on the coordinator's disk: what relays start from, and what their turns have handed over.
//
//   STATE/segments/<experiment>/<round>/<digest>     durable before a hand-over names it
//
// A round's segments stay until the next round of their experiment opens: until then a restart goes on from them. They
// are served like models, by digest. threads  written by one worker; find() is thread-safe
#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "common/digest.h"
#include "common/file.h"
#include "common/published.h"
#include "coordinator/effects.h"

namespace causeway {

class Segments {
public:
    /// Makes the folder if need be and finds what an earlier process left. errors: io; refused: others can read it
    static Result<std::unique_ptr<Segments>> open(const std::filesystem::path& state);
    explicit Segments(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// A round opens: segments of the experiment's other rounds go. errors: io
    Status open_round(ExperimentId experiment, std::uint32_t round);
    /// Durable when it returns; one that is here is not written again. errors: io (`disk_full`)
    ///
    /// cost   2 flushes, or none
    Status write(ExperimentId experiment, std::uint32_t round, const Digest& digest, ByteView file);
    /// The bytes, verified. errors: not_found; corrupt `digest_mismatch`; overloaded
    [[nodiscard]] Result<Bytes> read(const Digest& digest, std::uint64_t limit) const;
    void forget(ExperimentId experiment);

    /// Where it lies; empty: it is not here.
    [[nodiscard]] std::filesystem::path find(const Digest& digest) const;

private:
    using Paths = std::map<Digest, std::filesystem::path>;

    void look();

    std::filesystem::path folder_;
    Published<Paths> paths_{std::make_shared<const Paths>()};
};

}  // namespace causeway
