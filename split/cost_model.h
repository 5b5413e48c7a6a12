// What a round costs in time, bytes and host memory, by formula: for the planner, the simulator's claims and groupings.
//
// A relay's client pays, per turn, for its segment down and up again and, per batch, for forward, smashed data up, the
// host's step, the cut gradient down, backward and its own step. Groups run side by side: the slowest one is the round.
// Times are seconds, rates bytes a second, sizes bytes. Without an overlap nothing of one client's happens at the same
// time; with one of N the limit is its slowest part, or the way round of N + 1 batches at once, whichever is more.
//
// Source: the GSFL cost model (Zhang et al. 2023, arXiv 2305.18889), extended by hand-overs, latency and host sharing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace causeway {

/// A segment, model or update on its way crosses the line three times: the assignment or offer that tells of it, the
/// pull that asks for it, and its bytes.
constexpr double transfer_ways = 3;

/// One client as measured: its link to the host, and how long its segment takes it.
struct ClientProfile {
    std::string name;
    double uplink = 0;  // bytes a second, above 0
    double downlink = 0;
    double delay = 0;            // one way, seconds
    double forward_seconds = 0;  // of its segment, one batch
    double backward_seconds = 0;
    double update_seconds = 0;  // its step, of a short batch too
    std::uint64_t batches = 0;  // of one local epoch
    std::uint64_t examples = 0;
};

/// What a model's way to a node or back costs beside its bytes.
struct ExchangeCosts {
    double trips = transfer_ways;     // one-way delays
    std::uint64_t message_bytes = 0;  // of the messages about it
};

/// When the host's segment goes to the coordinator.
enum class Copies : std::uint8_t { every_turn, last_turn };

/// What crosses the cut, and what the host does.
struct SplitCosts {
    std::uint64_t client_segment_bytes = 0;  // parameters (and optimizer state, where it travels)
    std::uint64_t client_start_bytes = 0;    // at a tour's start, without optimizer state; 0: as later
    std::uint64_t server_segment_bytes = 0;
    std::uint64_t smashed_bytes = 0;          // one batch, labels counted
    std::uint64_t gradient_bytes = 0;         // one batch
    double host_batch_seconds = 0;            // forward, loss and backward of one batch, alone on the host
    double host_update_seconds = 0;           // its step, for which no client waits
    double host_delay = 0;                    // one way, of the host's own line
    double host_uplink = 0;                   // bytes a second, 0: no limit
    double host_downlink = 0;
    double handover_seconds = 0;              // over the host's line, until somebody else holds its segment
    std::uint64_t handover_bytes = 0;         // of that copy
    Copies copies = Copies::every_turn;
    double record_seconds = 0;                // until a hand-over is durable
    ExchangeCosts exchange;
    std::uint64_t host_activation_bytes = 0;  // one batch
    std::uint64_t optimizer_moments = 0;      // arrays of the size of the segment
    double aggregation_seconds = 0;
    std::uint32_t local_epochs = 1;
    std::uint32_t overlap = 0;  // batches that a client sends before it has the gradient of an earlier one
    std::uint32_t batch = 0;    // examples: a client's last batch may be short; 0: every batch is full
};

/// Seconds of one turn of a client, with `sharing` groups on the same host.
double turn_seconds(const ClientProfile& client, const SplitCosts& costs, std::size_t sharing);

/// What a round comes to; the slowest group is the critical one.
struct RoundCost {
    double seconds = 0;
    std::vector<double> group_seconds;  // of a federated round: each client's
    std::size_t critical_group = 0;
    std::uint64_t bytes_up = 0;  // of all clients
    std::uint64_t bytes_down = 0;
    std::uint64_t handover_bytes = 0;  // from the host to the coordinator
    std::uint64_t host_memory = 0;
};

/// A round of relays side by side: GSFL; one group is split learning, groups of one SplitFed.
///
/// cost  O(clients)
RoundCost gsfl_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs);

/// All clients at once with one server segment, which takes their batches in turn: SplitFed v2. The walk of
/// round_walk.h itself, for nothing is known in advance of who waits for whom.
///
/// cost  O(batches of all clients)
RoundCost together_round(std::span<const ClientProfile> clients, const SplitCosts& costs);

/// A round of plain federated learning with the same clients, for comparison: whole model down and up, all layers at
/// the client. `whole_seconds[i]` is client i's time for one batch of the whole model.
RoundCost federated_round(std::span<const ClientProfile> clients, std::span<const double> whole_seconds,
                          std::uint64_t model_bytes, std::uint32_t local_epochs, double aggregation_seconds,
                          const ExchangeCosts& exchange = {});

// What both the sums and the walk (round_walk.h) are made of.

/// Where in a group's tour a turn is.
struct TurnPlace {
    bool first = false;
    bool last = false;
};
/// From the hand-over before until client and host can begin.
double client_opening(const ClientProfile& client, const SplitCosts& costs, TurnPlace place);
double host_opening(const SplitCosts& costs, TurnPlace place);
/// From the end of a side's work until its segment is at the coordinator.
double client_closing(const ClientProfile& client, const SplitCosts& costs);
double host_closing(const SplitCosts& costs, TurnPlace place);
/// Bytes a second of both lines one behind the other.
double line_up(const ClientProfile& client, const SplitCosts& costs);
double line_down(const ClientProfile& client, const SplitCosts& costs);

/// Server segments of M groups with their optimizer state, twice for rollback, and one batch's activations each; and
/// once what a turn takes that begins or ends (segment_memory.h).
std::uint64_t host_memory(std::size_t groups, const SplitCosts& costs);

}  // namespace causeway
