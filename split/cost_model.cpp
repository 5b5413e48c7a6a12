// The sums behind the cost model. Each formula stands in the words of its name in cost_model.h.
#include "split/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "split/round_walk.h"
#include "split/segment_memory.h"

namespace causeway {
namespace {

/// Batches of a round, and how many full ones they come to: bytes and computing follow the examples, delays the
/// batches.
struct Batches {
    double count = 0;
    double full = 0;
};

Batches batches_of_turn(const ClientProfile& client, const SplitCosts& costs) {
    const auto epochs = static_cast<double>(costs.local_epochs);
    const double count = static_cast<double>(client.batches) * epochs;
    return {count, costs.batch == 0 ? count : epochs * static_cast<double>(client.examples) / costs.batch};
}

std::uint64_t bytes_of(const Batches& batches, std::uint64_t one) {
    return static_cast<std::uint64_t>(batches.full * static_cast<double>(one) + 0.5);
}

/// One way round, but for delays and the client's step.
double batch_seconds(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    return client.forward_seconds + static_cast<double>(costs.smashed_bytes) / line_up(client, costs) + host_seconds +
           static_cast<double>(costs.gradient_bytes) / line_down(client, costs) + client.backward_seconds;
}

/// One after another; with an overlap of N in bursts of N + 1, each as long as its way round or as the slowest part is
/// busy with it. Delays and steps are those of a batch, however short.
double batches_seconds(const ClientProfile& client, const SplitCosts& costs, const Batches& batches,
                       double host_seconds) {
    const double way = batch_seconds(client, costs, host_seconds);
    const double each = 2 * (client.delay + costs.host_delay) + client.update_seconds;
    if (costs.overlap == 0 || batches.count <= 1) {
        return batches.full * way + batches.count * each;
    }
    const double share = batches.full / batches.count;
    const double round_trip = way + each / share;
    const double busy = std::max({client.forward_seconds + client.backward_seconds + client.update_seconds / share,
                                  static_cast<double>(costs.smashed_bytes) / line_up(client, costs),
                                  static_cast<double>(costs.gradient_bytes) / line_down(client, costs),
                                  host_seconds + costs.host_update_seconds / share});
    const double at_once = costs.overlap + 1.0;
    const double bursts = std::floor((batches.count - 1) / at_once);
    return share * (round_trip + bursts * std::max(round_trip, at_once * busy) +
                    (batches.count - 1 - bursts * at_once) * busy);
}

/// Segment to the client, batches, segment back, and the copy of the host's segment beside it: the host begins when the
/// first batch has come at the latest, and ends when the last gradient is on its way.
double turn_with(const ClientProfile& client, const SplitCosts& costs, double host_seconds, TurnPlace place) {
    const auto batches = batches_of_turn(client, costs);
    const double delay = client.delay + costs.host_delay;
    const double there =
        client.forward_seconds + static_cast<double>(costs.smashed_bytes) / line_up(client, costs) + delay;
    const auto gradient = static_cast<double>(costs.gradient_bytes);
    const double behind = costs.host_uplink > 0 ? gradient / costs.host_uplink : 0.0;  // the copy is, on that line
    const double back = gradient / line_down(client, costs) - behind + delay + client.backward_seconds +
                        client.update_seconds - costs.host_update_seconds;
    const double opening = std::max(client_opening(client, costs, place), host_opening(costs, place) - there);
    const double closing = std::max(client_closing(client, costs), host_closing(costs, place) - back);
    return opening + batches_seconds(client, costs, batches, host_seconds) + closing + costs.record_seconds;
}

/// One group on the host: what it would take alone, and what waiting for the others makes of it.
struct RoundLoad {
    double seconds = 0;      // of its tour, alone
    double full = 0;         // full batches
    double thinking = 0;     // between two of its steps at the host, per full batch
    double at_host = 0;      // waiting for its step and in it, per full batch
    double updating = 0;     // its steps there, for which it does not wait, per full batch
    double waiting_for = 0;  // what a step of another group waits for this one while both are there
};

RoundLoad alone(std::span<const ClientProfile> group, const SplitCosts& costs) {
    RoundLoad load;
    double batches = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
        const TurnPlace place{.first = i == 0, .last = i + 1 == group.size()};
        load.seconds += turn_with(group[i], costs, costs.host_batch_seconds, place);
        load.full += batches_of_turn(group[i], costs).full;
        batches += batches_of_turn(group[i], costs).count;
    }
    load.at_host = costs.host_batch_seconds;
    load.updating = load.full > 0 ? costs.host_update_seconds * batches / load.full : 0.0;
    load.thinking = load.full > 0 ? load.seconds / load.full - load.at_host : 0.0;
    return load;
}

/// Of all groups: a step finds those of others before it as often as they are at the host, and one that is being served
/// half done. A group that ends earlier is in the way only as long as it lasts. Groups are sorted by their seconds.
void wait_for_each_other(std::vector<RoundLoad>& loads, const SplitCosts& costs) {
    for (RoundLoad& load : loads) {
        const double service = costs.host_batch_seconds + load.updating;
        const double rate = load.full > 0 ? 1.0 / (load.thinking + load.at_host) : 0.0;
        const double served = std::min(rate * service, 1.0);
        const double there = rate * (load.at_host + load.updating);
        load.waiting_for = service * (std::max(there - served, 0.0) + 0.5 * served);
    }
    double longer = 0;  // of groups that are there as long as this one, itself among them
    for (const RoundLoad& load : loads) {
        longer += load.waiting_for;
    }
    double shorter = 0;  // of those before it, times how long they are there
    for (RoundLoad& load : loads) {
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
    std::vector<RoundLoad> unsorted;
    for (const auto& group : groups) {
        unsorted.push_back(alone(group, costs));
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return unsorted[i].seconds; });
    std::vector<RoundLoad> loads;
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

double line_up(const ClientProfile& client, const SplitCosts& costs) {
    return costs.host_downlink > 0 ? std::min(client.uplink, costs.host_downlink) : client.uplink;
}

double line_down(const ClientProfile& client, const SplitCosts& costs) {
    return costs.host_uplink > 0 ? std::min(client.downlink, costs.host_uplink) : client.downlink;
}

double client_opening(const ClientProfile& client, const SplitCosts& costs, TurnPlace place) {
    const bool plain = place.first && costs.client_start_bytes > 0;
    const auto bytes = plain ? costs.client_start_bytes : costs.client_segment_bytes;
    return static_cast<double>(bytes + costs.exchange.message_bytes) / client.downlink +
           costs.exchange.trips * client.delay;
}

/// It fetches a tour's first segment, and has the others.
double host_opening(const SplitCosts& costs, TurnPlace place) {
    if (!place.first || costs.host_downlink == 0) {
        return (place.first ? costs.exchange.trips : 1) * costs.host_delay;
    }
    return static_cast<double>(costs.server_segment_bytes) / costs.host_downlink +
           costs.exchange.trips * costs.host_delay;
}

double client_closing(const ClientProfile& client, const SplitCosts& costs) {
    return static_cast<double>(costs.client_segment_bytes + costs.exchange.message_bytes) / client.uplink +
           costs.exchange.trips * client.delay;
}

double host_closing(const SplitCosts& costs, TurnPlace place) {
    return costs.copies == Copies::every_turn || place.last
               ? costs.handover_seconds + costs.exchange.trips * costs.host_delay
               : costs.host_delay;
}

double turn_seconds(const ClientProfile& client, const SplitCosts& costs, std::size_t sharing) {
    const std::vector<std::vector<ClientProfile>> groups(std::max<std::size_t>(sharing, 1), {client});
    return shared_seconds(groups, costs).front();
}

std::uint64_t host_memory(std::size_t groups, const SplitCosts& costs) {
    const std::uint64_t segment = costs.server_segment_bytes * (1 + costs.optimizer_moments);
    const std::uint64_t of_group = 2 * segment + costs.server_segment_bytes + costs.host_activation_bytes;
    return groups * of_group + copies_of_a_turn * segment;
}

RoundCost gsfl_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    RoundCost round;
    round.group_seconds = shared_seconds(groups, costs);
    double host_seconds = 0;
    std::uint64_t up = 0, down = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        for (const ClientProfile& client : groups[i]) {
            const auto batches = batches_of_turn(client, costs);
            host_seconds += batches.full * costs.host_batch_seconds + batches.count * costs.host_update_seconds;
            round.bytes_up += bytes_of(batches, costs.smashed_bytes) + costs.client_segment_bytes;
            round.bytes_down += bytes_of(batches, costs.gradient_bytes) + costs.client_segment_bytes;
            const bool copied = costs.copies == Copies::every_turn || &client == &groups[i].back();
            round.handover_bytes += copied ? costs.handover_bytes : 0;
            up += bytes_of(batches, costs.smashed_bytes);
            down += bytes_of(batches, costs.gradient_bytes);
        }
    }
    // A host that never rests is the limit, however many groups there are, and so is its line.
    const double line_in = costs.host_downlink > 0 ? static_cast<double>(up) / costs.host_downlink : 0;
    const double line_out =
        costs.host_uplink > 0 ? static_cast<double>(down + round.handover_bytes) / costs.host_uplink : 0;
    close_round(round, std::max({host_seconds, line_in, line_out}), costs.aggregation_seconds);
    round.host_memory = host_memory(groups.size(), costs);
    return round;
}

RoundCost together_round(std::span<const ClientProfile> clients, const SplitCosts& costs) {
    RoundCost round;
    for (const ClientProfile& client : clients) {
        const auto batches = batches_of_turn(client, costs);
        round.group_seconds.push_back(turn_with(client, costs, costs.host_batch_seconds, {true, true}));
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
                          std::uint64_t model_bytes, std::uint32_t local_epochs, double aggregation_seconds,
                          const ExchangeCosts& exchange) {
    RoundCost round;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const ClientProfile& client = clients[i];
        const auto bytes = static_cast<double>(model_bytes + exchange.message_bytes);
        round.group_seconds.push_back(bytes / client.downlink + bytes / client.uplink +
                                      2 * exchange.trips * client.delay +
                                      static_cast<double>(client.batches) * local_epochs * whole_seconds[i]);
        round.bytes_up += model_bytes;
        round.bytes_down += model_bytes;
    }
    close_round(round, 0, aggregation_seconds);
    return round;
}

}  // namespace causeway
