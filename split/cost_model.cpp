// The sums behind the cost model. Each formula stands in the words of its name in cost_model.h.
#include "split/cost_model.h"

#include <algorithm>

namespace causeway {
namespace {

double transfer(std::uint64_t bytes, double rate, double delay) {
    return static_cast<double>(bytes) / rate + delay;
}

std::uint64_t batches_of(const ClientProfile& client, const SplitCosts& costs) {
    return client.batches * costs.local_epochs;
}

double batch_seconds(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    return client.forward_seconds + transfer(costs.smashed_bytes, client.uplink, client.delay) + host_seconds +
           transfer(costs.gradient_bytes, client.downlink, client.delay) + client.backward_seconds;
}

/// Segment to the client, batches, segment back.
double turn_with(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    const auto batches = static_cast<double>(batches_of(client, costs));
    return transfer(costs.client_segment_bytes, client.downlink, client.delay) +
           batches * batch_seconds(client, costs, host_seconds) +
           transfer(costs.client_segment_bytes, client.uplink, client.delay);
}

/// The host serves one step at a time. It slows the groups down only as far as they keep it busy: with a share of busy
/// time per group u, a step finds the others' steps before it with the sum of their u.
double host_step(const SplitCosts& costs, double others_busy) {
    return costs.host_batch_seconds * (1.0 + std::min(others_busy, 1.0) * 0.5);
}

/// Of one group, alone on its host.
struct GroupSum {
    double seconds = 0;
    double host_seconds = 0;

    /// Share of its time that it keeps the host busy.
    [[nodiscard]] double busy() const { return seconds > 0 ? host_seconds / seconds : 0.0; }
};

GroupSum alone(std::span<const ClientProfile> group, const SplitCosts& costs) {
    GroupSum sum;
    for (const ClientProfile& client : group) {
        sum.seconds += turn_with(client, costs, costs.host_batch_seconds);
        sum.host_seconds += static_cast<double>(batches_of(client, costs)) * costs.host_batch_seconds;
    }
    return sum;
}

double beside_others(std::span<const ClientProfile> group, const SplitCosts& costs, double others_busy) {
    double seconds = 0;
    for (const ClientProfile& client : group) {
        seconds += turn_with(client, costs, host_step(costs, others_busy));
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
    const std::span one(&client, 1);
    const double others = sharing > 1 ? alone(one, costs).busy() * static_cast<double>(sharing - 1) : 0.0;
    return beside_others(one, costs, others);
}

std::uint64_t host_memory(std::size_t groups, const SplitCosts& costs) {
    const std::uint64_t segment = costs.server_segment_bytes * (1 + costs.optimizer_moments);
    return groups * (2 * segment + costs.server_segment_bytes + costs.host_activation_bytes);
}

RoundCost gsfl_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    std::vector<GroupSum> sums;
    double host_seconds = 0;
    double busy = 0;
    for (const auto& group : groups) {
        sums.push_back(alone(group, costs));
        busy += sums.back().busy();
        host_seconds += sums.back().host_seconds;
    }
    RoundCost round;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        round.group_seconds.push_back(beside_others(groups[i], costs, busy - sums[i].busy()));
        for (const ClientProfile& client : groups[i]) {
            round.bytes_up += batches_of(client, costs) * costs.smashed_bytes + costs.client_segment_bytes;
            round.bytes_down += batches_of(client, costs) * costs.gradient_bytes + costs.client_segment_bytes;
        }
    }
    // A host that never rests is the limit, however many groups there are.
    close_round(round, host_seconds, costs.aggregation_seconds);
    round.host_memory = host_memory(groups.size(), costs);
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
