// A committed round as the machines remember it: what decisions and events need, with the figures of each client.
//
// The whole summary, with where the time went per client, is in the store; `experiment.log` reads it from there. Of the
// last round it also stays here, for `experiment status`. Thread: loop. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "coordinator/effects.h"

namespace causeway {

struct RoundRecord {
    std::uint32_t round = 0;
    std::uint32_t clients = 0;
    std::uint32_t cohort = 0;
    Digest model;
    std::uint64_t model_bytes = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
    double seconds = 0;
    std::uint64_t bytes_up = 0;
    std::uint64_t bytes_down = 0;
    std::uint64_t stream_bytes_up = 0;  // of a round of relays: smashed data and labels,
    std::uint64_t stream_bytes_down = 0;  // and cut gradients, between clients and hosts
    std::uint32_t critical_group = 0;     // whose tour ended last, from 1; 0: no groups
    std::string critical_client{};        // whose segment came last, where all clients train together
    std::optional<ModelEvaluated> evaluation{};
    Json without{};  // [{node, why, seconds}] of members that did not count, the slowest `most_without`
    std::string evaluation_note{};  // why there is none, or who is not in it
};

/// From what the store keeps of the round: the fields that a commit's summary has (experiment_rounds.cpp).
[[nodiscard]] RoundRecord record_of(const StoredRound& stored);

}  // namespace causeway
