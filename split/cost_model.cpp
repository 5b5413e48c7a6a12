// The sums behind the cost model. Each formula stands in the words of its name in cost_model.h.
#include "split/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "split/round_walk.h"

namespace causeway {
namespace {

double transfer(std::uint64_t bytes, double rate, double delay) {
    return static_cast<double>(bytes) / rate + transfer_ways * delay;
}

/// Batches of a round, and how many full ones they come to: bytes and computing follow the examples, delays the
/// batches.
struct Batches {
    double count = 0;
    double full = 0;
};

Batches batches_of(const ClientProfile& client, const SplitCosts& costs) {
    const auto epochs = static_cast<double>(costs.local_epochs);
    const double count = static_cast<double>(client.batches) * epochs;
    return {count, costs.batch == 0 ? count : epochs * static_cast<double>(client.examples) / costs.batch};
}

std::uint64_t bytes_of(const Batches& batches, std::uint64_t one) {
    return static_cast<std::uint64_t>(batches.full * static_cast<double>(one) + 0.5);
}

double batch_seconds(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    return client.forward_seconds + static_cast<double>(costs.smashed_bytes) / client.uplink + host_seconds +
           static_cast<double>(costs.gradient_bytes) / client.downlink + client.backward_seconds;
}

/// One after another; with an overlap of N in bursts of N + 1, each as long as its way round or as the slowest part is
/// busy with it.
double batches_seconds(const ClientProfile& client, const SplitCosts& costs, const Batches& batches,
                       double host_seconds) {
    const double way = batch_seconds(client, costs, host_seconds);
    if (costs.overlap == 0 || batches.count <= 1) {
        return batches.full * way + batches.count * 2 * client.delay;
    }
    const double share = batches.full / batches.count;
    const double round_trip = way + 2 * client.delay / share;
    const double busy = std::max({client.forward_seconds + client.backward_seconds,
                                  static_cast<double>(costs.smashed_bytes) / client.uplink,
                                  static_cast<double>(costs.gradient_bytes) / client.downlink,
                                  host_seconds + costs.host_update_seconds});
    const double at_once = costs.overlap + 1.0;
    const double bursts = std::floor((batches.count - 1) / at_once);
    return share * (round_trip + bursts * std::max(round_trip, at_once * busy) +
                    (batches.count - 1 - bursts * at_once) * busy);
}

/// Segment to the client, batches, segment back, and the copy of the host's segment.
double turn_with(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    const auto batches = batches_of(client, costs);
    return transfer(costs.client_segment_bytes, client.downlink, client.delay) +
           batches_seconds(client, costs, batches, host_seconds) +
           transfer(costs.client_segment_bytes, client.uplink, client.delay) + costs.handover_seconds;
}

/// One group on the host: what it would take alone, and what waiting for the others makes of it.
struct Load {
    double seconds = 0;      // of its tour, alone
    double full = 0;         // full batches
    double thinking = 0;     // between two of its steps at the host, per full batch
    double at_host = 0;      // waiting for its step and in it, per full batch
    double waiting_for = 0;  // what a step of another group waits for this one while both are there
};

Load alone(std::span<const ClientProfile> group, const SplitCosts& costs) {
    Load load;
    for (const ClientProfile& client : group) {
        load.seconds += turn_with(client, costs, costs.host_batch_seconds);
        load.full += batches_of(client, costs).full;
    }
    load.at_host = costs.host_batch_seconds;
    load.thinking = load.full > 0 ? load.seconds / load.full - load.at_host : 0.0;
    return load;
}

/// Of all groups: a step finds those of others before it as often as they are at the host, and one that is being served
/// half done. A group that ends earlier is in the way only as long as it lasts. Groups are sorted by their seconds.
void wait_for_each_other(std::vector<Load>& loads, const SplitCosts& costs) {
    const double service = costs.host_batch_seconds + costs.host_update_seconds;
    for (Load& load : loads) {
        const double rate = load.full > 0 ? 1.0 / (load.thinking + load.at_host) : 0.0;
        const double served = std::min(rate * service, 1.0);
        const double there = rate * (load.at_host + costs.host_update_seconds);
        load.waiting_for = service * (std::max(there - served, 0.0) + 0.5 * served);
    }
    double longer = 0;  // of groups that are there as long as this one, itself among them
    for (const Load& load : loads) {
        longer += load.waiting_for;
    }
    double shorter = 0;  // of those before it, times how long they are there
    for (Load& load : loads) {
        const double others = longer - load.waiting_for + (load.seconds > 0 ? shorter / load.seconds : 0.0);
        // Half a step towards it: a host that is nearly full would make whole ones swing.
        load.at_host = 0.5 * (load.at_host + costs.host_batch_seconds + std::max(others, 0.0));
        longer -= load.waiting_for;
        shorter += load.waiting_for * load.seconds;
    }
}

/// Seconds of each group when all share one host: how often groups meet depends on how long they wait, so the two are
/// found in turn (an approximate mean value analysis of a closed network, Schweitzer 1979).
std::vector<double> shared_seconds(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    constexpr int rounds = 30;  // converged to a thousandth long before
    std::vector<std::size_t> order(groups.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<Load> unsorted;
    for (const auto& group : groups) {
        unsorted.push_back(alone(group, costs));
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return unsorted[i].seconds; });
    std::vector<Load> loads;
    for (const std::size_t i : order) {
        loads.push_back(unsorted[i]);
    }
    for (int i = 0; i < rounds; ++i) {
        wait_for_each_other(loads, costs);
    }
    std::vector<double> seconds(groups.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        seconds[order[i]] = loads[i].seconds + loads[i].full * (loads[i].at_host - costs.host_batch_seconds);
    }
    return seconds;
}

/// The round waits for its slowest part.
void close_round(RoundCost& round, double at_least, double aggregation_seconds) {
    const auto slowest = std::ranges::max_element(round.group_seconds);
    if (slowest != round.group_seconds.end()) {
        round.critical_group = static_cast<std::size_t>(slowest - round.group_seconds.begin());
        round.seconds = std::max(*slowest, at_least) + aggregation_seconds;
    }
}

}  // namespace

double turn_seconds(const ClientProfile& client, const SplitCosts& costs, std::size_t sharing) {
    const std::vector<std::vector<ClientProfile>> groups(std::max<std::size_t>(sharing, 1), {client});
    return shared_seconds(groups, costs).front();
}

std::uint64_t host_memory(std::size_t groups, const SplitCosts& costs) {
    const std::uint64_t segment = costs.server_segment_bytes * (1 + costs.optimizer_moments);
    return groups * (2 * segment + costs.server_segment_bytes + costs.host_activation_bytes);
}

RoundCost gsfl_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    RoundCost round;
    round.group_seconds = shared_seconds(groups, costs);
    double host_seconds = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        for (const ClientProfile& client : groups[i]) {
            const auto batches = batches_of(client, costs);
            host_seconds += batches.full * (costs.host_batch_seconds + costs.host_update_seconds);
            round.bytes_up += bytes_of(batches, costs.smashed_bytes) + costs.client_segment_bytes;
            round.bytes_down += bytes_of(batches, costs.gradient_bytes) + costs.client_segment_bytes;
            round.handover_bytes += costs.handover_bytes;
        }
    }
    // A host that never rests is the limit, however many groups there are.
    close_round(round, host_seconds, costs.aggregation_seconds);
    round.host_memory = host_memory(groups.size(), costs);
    return round;
}

RoundCost together_round(std::span<const ClientProfile> clients, const SplitCosts& costs) {
    RoundCost round;
    for (const ClientProfile& client : clients) {
        const auto batches = batches_of(client, costs);
        round.group_seconds.push_back(turn_with(client, costs, costs.host_batch_seconds));
        round.bytes_up += bytes_of(batches, costs.smashed_bytes) + costs.client_segment_bytes;
        round.bytes_down += bytes_of(batches, costs.gradient_bytes) + costs.client_segment_bytes;
    }
    const auto slowest = std::ranges::max_element(round.group_seconds);
    round.critical_group = static_cast<std::size_t>(slowest - round.group_seconds.begin());
    round.seconds = walk_together(clients, costs);
    round.handover_bytes = costs.handover_bytes;
    round.host_memory = host_memory(1, costs);
    return round;
}

RoundCost federated_round(std::span<const ClientProfile> clients, std::span<const double> whole_seconds,
                          std::uint64_t model_bytes, std::uint32_t local_epochs, double aggregation_seconds) {
    RoundCost round;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const ClientProfile& client = clients[i];
        round.group_seconds.push_back(transfer(model_bytes, client.downlink, client.delay) +
                                      static_cast<double>(client.batches) * local_epochs * whole_seconds[i] +
                                      transfer(model_bytes, client.uplink, client.delay));
        round.bytes_up += model_bytes;
        round.bytes_down += model_bytes;
    }
    close_round(round, 0, aggregation_seconds);
    return round;
}

}  // namespace causeway
