// See traffic_shares.h.
#include "coordinator/traffic_shares.h"

#include <algorithm>
#include <vector>

namespace causeway {

std::uint64_t bytes_at_socket(std::uint64_t chunk_bytes) {
    constexpr std::uint64_t record = 16 * 1024;
    constexpr std::uint64_t of_record = 22;
    return chunk_bytes + (chunk_bytes + record - 1) / record * of_record;
}

void TrafficShares::begin(ExperimentId experiment, const SocketTotals& now) {
    if (running_.contains(experiment)) {
        return;
    }
    settle(now);
    running_.try_emplace(experiment);
}

void TrafficShares::end(ExperimentId experiment, const SocketTotals& now) {
    settle(now);
    running_.erase(experiment);
}

void TrafficShares::open_round(ExperimentId experiment, const Digest& model) {
    if (const auto found = running_.find(experiment); found != running_.end()) {
        auto& share = found->second;
        share.served_before = std::exchange(share.served, {model});
    }
}

void TrafficShares::serves(ExperimentId experiment, const Digest& blob) {
    if (const auto found = running_.find(experiment); found != running_.end()) {
        found->second.served.insert(blob);
    }
}

void TrafficShares::chunk_came(ExperimentId experiment, std::uint64_t bytes) {
    if (const auto found = running_.find(experiment); found != running_.end() && several()) {
        found->second.bytes[0] += bytes;
    }
}

void TrafficShares::chunk_went(const Digest& blob, std::uint64_t bytes) {
    std::vector<Share*> whose;
    for (auto& [experiment, share] : running_) {
        if (several() && (share.served.contains(blob) || share.served_before.contains(blob))) {
            whose.push_back(&share);
        }
    }
    for (auto* share : whose) {
        share->bytes[1] += bytes / whose.size();
    }
}

Traffic TrafficShares::of(ExperimentId experiment, const SocketTotals& now) {
    settle(now);
    const auto found = running_.find(experiment);
    return found == running_.end() ? Traffic{} : Traffic{found->second.bytes[0], found->second.bytes[1]};
}

/// The two totals are not of one instant: what is less than it was is divided when it is more.
void TrafficShares::settle(const SocketTotals& now) {
    if (running_.empty()) {
        return;
    }
    const Both all{now.all.received, now.all.sent};
    const Both bulk{now.bulk.received, now.bulk.sent};
    for (std::size_t way = 0; way < all.size(); ++way) {
        const auto rest = std::max(all[way] - std::min(bulk[way], all[way]), rest_[way]);
        const auto moved = several() ? rest - rest_[way] : all[way] - seen_[way];
        for (auto& [experiment, share] : running_) {
            share.bytes[way] += moved / running_.size();
        }
        seen_[way] = all[way];
        rest_[way] = rest;
    }
}

}  // namespace causeway
