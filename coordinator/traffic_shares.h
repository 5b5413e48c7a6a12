// Whose bytes they are, where several experiments run at one time: what has moved at the sockets, divided.
//
// One that runs alone has all that moves. Of several each has the chunks of its own models and updates; a model that
// two start from is theirs in equal parts. What moves on other connections (heartbeats, hellos, assignments, offers,
// relayed frames) belongs to none of them more than to another: they have it in equal parts. Nothing is counted twice;
// what is left out are the credits and headers of several's transfers, less than 1 %.
// Pure; thread: the job runner's sums thread.
#pragma once

#include <array>
#include <map>
#include <set>

#include "common/digest.h"
#include "coordinator/effects.h"
#include "wire/link.h"

namespace causeway {

/// What a chunk takes at the socket: 22 bytes for each TLS record of 16 KiB beside it.
std::uint64_t bytes_at_socket(std::uint64_t chunk_bytes);

/// Since the start, at the sockets: over all connections, and of it over bulk connections.
struct SocketTotals {
    Traffic all;
    Traffic bulk;
};

class TrafficShares {
public:
    /// It runs from here on; nothing when it does already. What moved while none ran is the first one's.
    void begin(ExperimentId experiment, const SocketTotals& now);
    void end(ExperimentId experiment, const SocketTotals& now);
    /// A new round, whose members pull that model; what was served in the round before last is nobody's from here on.
    void open_round(ExperimentId experiment, const Digest& model);
    /// Beside its model: a segment, or what the round has made.
    void serves(ExperimentId experiment, const Digest& blob);

    void chunk_came(ExperimentId experiment, std::uint64_t bytes);
    void chunk_went(const Digest& blob, std::uint64_t bytes);

    /// What has been its, since it began here. It never falls.
    Traffic of(ExperimentId experiment, const SocketTotals& now);
    [[nodiscard]] bool several() const { return running_.size() > 1; }

private:
    using Both = std::array<std::uint64_t, 2>;  // received, sent
    struct Share {
        Both bytes{};
        std::set<Digest> served;
        std::set<Digest> served_before;
    };
    void settle(const SocketTotals& now);

    std::map<ExperimentId, Share> running_;
    Both seen_{};  // of the total over all connections, when it was last divided
    Both rest_{};  // and over all but bulk connections
};

}  // namespace causeway
