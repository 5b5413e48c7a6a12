// What a restart finds of a round's segments: those that are whole.
//
// A group whose last hand-over is not among them begins its round anew, so a damaged disk or a copy of a state folder,
// which has no segments, costs turns and nothing else.
// Thread: the one that writes them.
#pragma once

#include <utility>
#include <vector>

#include "coordinator/segments.h"

namespace causeway {

using SizedSegments = std::vector<std::pair<Digest, std::uint64_t>>;

/// Of this round, each with its size, in the order of digests; those that are known are not looked at again. A damaged
/// one is named in the log and left out.
///
/// errors   of this machine, not of a segment: io, overloaded
/// cost     reads all of it; a round that has just begun has nothing
Result<SizedSegments> kept_segments(const Segments& segments, const std::filesystem::path& state,
                                    ExperimentId experiment, std::uint32_t round, std::uint64_t limit,
                                    const SizedSegments& known = {});

}  // namespace causeway
