// The sums behind the cost model. Each formula stands in the words of its name in cost_model.h.
#include "split/cost_model.h"

#include <algorithm>

namespace causeway {
namespace {

double transfer(std::uint64_t bytes, double rate, double delay) {
    return static_cast<double>(bytes) / rate + delay;
}

double batch_seconds(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    return client.forward_seconds + transfer(costs.smashed_bytes, client.uplink, client.delay) + host_seconds +
           transfer(costs.gradient_bytes, client.downlink, client.delay) + client.backward_seconds;
}

/// Segment to the client, batches, segment back.
double turn_with(const ClientProfile& client, const SplitCosts& costs, double host_seconds) {
    const double batches = static_cast<double>(client.batches) * costs.local_epochs;
    return transfer(costs.client_segment_bytes, client.downlink, client.delay) +
           batches * batch_seconds(client, costs, host_seconds) +
           transfer(costs.client_segment_bytes, client.uplink, client.delay);
}

/// The host serves one step at a time. It slows the groups down only as far as they keep it busy: with a share of busy
/// time per group u, a step finds the others' steps before it with the sum of their u.
double host_step(const SplitCosts& costs, double others_busy) {
    return costs.host_batch_seconds * (1.0 + std::min(others_busy, 1.0) * 0.5);
}

struct GroupSum {
    double seconds = 0;
    double busy = 0;  // of the host
};

GroupSum sum_group(const std::vector<ClientProfile>& group, const SplitCosts& costs, double others_busy) {
    GroupSum sum;
    for (const ClientProfile& client : group) {
        sum.seconds += turn_with(client, costs, host_step(costs, others_busy));
        sum.busy += static_cast<double>(client.batches) * costs.local_epochs * costs.host_batch_seconds;
    }
    return sum;
}

std::uint64_t batches_of(const ClientProfile& client, const SplitCosts& costs) {
    return client.batches * costs.local_epochs;
}

}  // namespace

double turn_seconds(const ClientProfile& client, const SplitCosts& costs, std::size_t sharing) {
    const double alone = turn_with(client, costs, costs.host_batch_seconds);
    const double busy =
        alone > 0 ? static_cast<double>(batches_of(client, costs)) * costs.host_batch_seconds / alone : 0.0;
    const double others = sharing > 1 ? busy * static_cast<double>(sharing - 1) : 0.0;
    return turn_with(client, costs, host_step(costs, others));
}

std::uint64_t host_memory(std::size_t groups, const SplitCosts& costs) {
    const std::uint64_t segment = costs.server_segment_bytes * (1 + costs.optimizer_moments);
    return groups * (2 * segment + costs.server_segment_bytes + costs.host_activation_bytes);
}

RoundCost gsfl_round(std::span<const std::vector<ClientProfile>> groups, const SplitCosts& costs) {
    RoundCost round;
    double busy = 0;
    for (const auto& group : groups) {
        const GroupSum alone = sum_group(group, costs, 0);
        busy += alone.seconds > 0 ? alone.busy / alone.seconds : 0;
    }
    for (const auto& group : groups) {
        const GroupSum alone = sum_group(group, costs, 0);
        const double own = alone.seconds > 0 ? alone.busy / alone.seconds : 0;
        round.group_seconds.push_back(sum_group(group, costs, busy - own).seconds);
        for (const ClientProfile& client : group) {
            round.bytes_up += batches_of(client, costs) * costs.smashed_bytes + costs.client_segment_bytes;
            round.bytes_down += batches_of(client, costs) * costs.gradient_bytes + costs.client_segment_bytes;
        }
    }
    const auto slowest = std::ranges::max_element(round.group_seconds);
    if (slowest != round.group_seconds.end()) {
        round.critical_group = static_cast<std::size_t>(slowest - round.group_seconds.begin());
        // A host that never rests is the limit, however many groups there are.
        double host_total = 0;
        for (const auto& group : groups) {
            host_total += sum_group(group, costs, 0).busy;
        }
        round.seconds = std::max(*slowest, host_total) + costs.aggregation_seconds;
    }
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
    const auto slowest = std::ranges::max_element(round.group_seconds);
    if (slowest != round.group_seconds.end()) {
        round.critical_group = static_cast<std::size_t>(slowest - round.group_seconds.begin());
        round.seconds = *slowest + aggregation_seconds;
    }
    return round;
}

}  // namespace causeway
