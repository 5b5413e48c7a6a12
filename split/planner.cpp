// One profile and one set of costs per cut, one grouping per count; the formulas are the cost model's.
#include "split/planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "split/grouping.h"
#include "split/round_walk.h"

namespace causeway {
namespace {

// The coordinator adds replicas at about 1 GB/s and commits a model at 0.5 GB/s and 1.5 ms (docs/simulation.md).
constexpr double bytes_added_a_second = 1e9;
constexpr double bytes_committed_a_second = 0.5e9;
constexpr double commit_seconds = 0.0015;
constexpr double record_seconds = 0.001;  // a transaction

// What is said about a model is a message of the link.
constexpr ExchangeCosts exchange{.message_bytes = 300};

// Steps times groups of a row that is walked, which takes some 10 ns for each: a second for a whole plan at the most.
constexpr std::uint64_t most_walked = 1'000'000;

constexpr std::uint64_t value_bytes = 4;  // f32
constexpr std::uint64_t label_bytes = 8;  // i64, as they travel

tl::unexpected<Error> bad_plan(std::string message) {
    return fail(ErrorKind::invalid, "bad_plan", std::move(message));
}

double sum_of_times(const std::vector<double>& values, std::size_t begin, std::size_t end) {
    return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(begin),
                           values.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
}

std::uint64_t segment_bytes(const Chain& chain, std::size_t begin, std::size_t end) {
    std::uint64_t elements = 0;
    for (const auto kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        elements += chain.arena_range(kind, begin, end).size();
    }
    return value_bytes * elements;
}

std::uint64_t boundary_elements(const Chain& chain, std::size_t at) {
    std::uint64_t elements = 0;
    for (const auto& tensor : chain.boundary(at)) {
        elements += static_cast<std::uint64_t>(element_count(tensor.shape));
    }
    return elements;
}

/// Values and gradients of one batch at the boundaries of layers [begin, end).
std::uint64_t activation_bytes(const PlanInput& input, std::size_t begin, std::size_t end) {
    std::uint64_t elements = 0;
    for (std::size_t at = begin; at <= end; ++at) {
        elements += boundary_elements(input.chain, at);
    }
    return 2 * value_bytes * elements * input.batch;
}

/// Weights, gradients and optimizer state, and what one batch leaves behind; of each batch that waits for its gradient
/// the values and the parameters that it went forward with.
std::uint64_t training_memory(const PlanInput& input, std::size_t begin, std::size_t end, std::uint32_t waiting = 0) {
    const auto one = activation_bytes(input, begin, end);
    return segment_bytes(input.chain, begin, end) * (2 + input.optimizer_moments) + one +
           waiting * (one / 2 + value_bytes * input.chain.arena_range(ArenaKind::trainable, begin, end).size());
}

std::uint64_t batches_of_client(const PlanInput& input, const PlanClient& client) {
    return (client.examples + input.batch - 1) / input.batch;
}

double whole_seconds(const PlanInput& input) {
    const auto layers = input.chain.layer_count();
    return sum_of_times(input.times.forward, 0, layers) + sum_of_times(input.times.backward, 0, layers) +
           sum_of_times(input.times.step, 0, layers) + input.times.loss;
}

double aggregation_seconds(const PlanInput& input, std::size_t replicas) {
    const auto bytes = static_cast<double>(segment_bytes(input.chain, 0, input.chain.layer_count()));
    return bytes * static_cast<double>(replicas) / bytes_added_a_second + bytes / bytes_committed_a_second +
           commit_seconds;
}

Status check(const PlanInput& input) {
    const auto layers = input.chain.layer_count();
    if (input.clients.empty() || input.batch == 0) {
        return bad_plan(fmt::format("{} clients with batches of {}: there is at least one of each",
                                    input.clients.size(), input.batch));
    }
    for (const auto& client : input.clients) {
        if (!(client.uplink > 0) || !(client.downlink > 0) || !(client.slowness > 0) || !(client.delay >= 0)) {
            return bad_plan(client.name + ": rates and the speed are above 0, the delay is not below it");
        }
    }
    const auto& times = input.times;
    const bool complete =
        times.forward.size() == layers && times.backward.size() == layers && times.step.size() == layers;
    return complete && input.host.slowness > 0 ? Status() : bad_plan("a time for each layer and a host are needed");
}

PlanRow federated_row(const PlanInput& input) {
    std::vector<ClientProfile> profiles;
    std::vector<double> whole;
    for (const auto& client : input.clients) {
        profiles.push_back(profile_of(input, client, 0));
        // A short last batch takes its share of a full one's time, but for the step.
        const auto batches = static_cast<double>(std::max<std::uint64_t>(profiles.back().batches, 1));
        const auto full = static_cast<double>(client.examples) / input.batch;
        const double steps = sum_of_times(input.times.step, 0, input.chain.layer_count());
        whole.push_back(client.slowness * (steps + (whole_seconds(input) - steps) * full / batches));
    }
    PlanRow row{.regime = "federated"};
    row.cost = federated_round(profiles, whole, segment_bytes(input.chain, 0, input.chain.layer_count()),
                               input.local_epochs, aggregation_seconds(input, input.clients.size()), exchange);
    row.client_memory = training_memory(input, 0, input.chain.layer_count());
    return row;
}

/// Batches of a round at a host.
std::uint64_t steps_of(const PlanInput& input) {
    std::uint64_t steps = 0;
    for (const auto& client : input.clients) {
        steps += batches_of_client(input, client) * input.local_epochs;
    }
    return steps;
}

std::string_view regime_of(std::uint32_t groups, std::size_t clients) {
    return groups == 1 ? "split" : groups == clients ? "splitfed-v1" : "gsfl";
}

Result<PlanRow> split_row(const PlanInput& input, std::uint32_t cut, std::uint32_t groups) {
    auto costs = costs_of(input, cut);
    costs.aggregation_seconds = aggregation_seconds(input, groups);
    TRY_ASSIGN(const auto members, planned_groups(input, cut, groups));
    PlanRow row{.regime = std::string(regime_of(groups, input.clients.size())), .cut = cut, .groups = groups};
    row.cost = gsfl_round(members, costs);
    if (steps_of(input) * groups <= most_walked) {
        row.cost.seconds = walk_round(members, costs);
    }
    row.client_memory = training_memory(input, 0, cut, input.overlap);
    row.smashed_bytes = costs.smashed_bytes;
    row.aggregation_seconds = costs.aggregation_seconds;
    return row;
}

/// The host takes the clients by their names.
PlanRow together_row(const PlanInput& input, std::uint32_t cut) {
    auto costs = costs_of(input, cut);
    costs.aggregation_seconds = aggregation_seconds(input, input.clients.size());
    PlanRow row{.regime = "splitfed-v2", .cut = cut, .groups = static_cast<std::uint32_t>(input.clients.size())};
    row.cost = together_round(profiles_by_name(input, cut), costs);
    row.client_memory = training_memory(input, 0, cut, input.overlap);
    row.smashed_bytes = costs.smashed_bytes;
    row.aggregation_seconds = costs.aggregation_seconds;
    return row;
}

void judge(const PlanInput& input, PlanRow& row) {
    row.fits = (input.host.memory == 0 || row.cost.host_memory <= input.host.memory) &&
               (input.client_memory == 0 || row.client_memory <= input.client_memory);
}

}  // namespace

ClientProfile profile_of(const PlanInput& input, const PlanClient& client, std::uint32_t cut) {
    const auto& times = input.times;
    return {.name = client.name,
            .uplink = client.uplink,
            .downlink = client.downlink,
            .delay = client.delay,
            .forward_seconds = client.slowness * sum_of_times(times.forward, 0, cut),
            .backward_seconds = client.slowness * sum_of_times(times.backward, 0, cut),
            .update_seconds = client.slowness * sum_of_times(times.step, 0, cut),
            .batches = batches_of_client(input, client),
            .examples = client.examples};
}

std::vector<ClientProfile> profiles_by_name(const PlanInput& input, std::uint32_t cut) {
    std::vector<ClientProfile> profiles;
    for (const auto& client : input.clients) {
        profiles.push_back(profile_of(input, client, cut));
    }
    std::ranges::sort(profiles, {}, &ClientProfile::name);
    return profiles;
}

SplitCosts costs_of(const PlanInput& input, std::uint32_t cut) {
    const auto& times = input.times;
    const auto layers = input.chain.layer_count();
    const std::uint64_t moments = input.optimizer_moments;
    SplitCosts costs;
    costs.client_start_bytes = segment_bytes(input.chain, 0, cut);
    costs.client_segment_bytes = costs.client_start_bytes * (1 + moments);
    costs.server_segment_bytes = segment_bytes(input.chain, cut, layers);
    costs.gradient_bytes = value_bytes * boundary_elements(input.chain, cut) * input.batch;
    costs.smashed_bytes = costs.gradient_bytes + label_bytes * input.batch;
    costs.host_batch_seconds = input.host.slowness * (sum_of_times(times.forward, cut, layers) +
                                                      sum_of_times(times.backward, cut, layers) + times.loss);
    costs.host_update_seconds = input.host.slowness * sum_of_times(times.step, cut, layers);
    costs.host_activation_bytes = activation_bytes(input, cut, layers);
    costs.optimizer_moments = moments;
    costs.local_epochs = input.local_epochs;
    costs.overlap = input.overlap;
    costs.batch = input.batch;
    costs.host_delay = input.host.delay;
    costs.host_uplink = input.host.uplink;
    costs.host_downlink = input.host.downlink;
    costs.copies = input.handover_copies ? Copies::every_turn : Copies::last_turn;
    costs.handover_bytes = costs.server_segment_bytes * (1 + moments);
    costs.handover_seconds =
        input.host.uplink > 0 ? static_cast<double>(costs.handover_bytes) / input.host.uplink : 0.0;
    costs.record_seconds = record_seconds;
    costs.exchange = exchange;
    return costs;
}

Result<std::vector<std::vector<ClientProfile>>> planned_groups(const PlanInput& input, std::uint32_t cut,
                                                               std::uint32_t groups) {
    const auto costs = costs_of(input, cut);
    GroupingInput grouping{.clients = {}, .groups = groups, .seed = input.seed, .round = 1, .fixed = {}};
    std::map<std::string, ClientProfile> profiles;
    for (const auto& client : input.clients) {
        const auto profile = profile_of(input, client, cut);
        grouping.clients.push_back(
            {.name = client.name, .turn_seconds = turn_seconds(profile, costs, 1), .labels = {}, .link = {}});
        profiles.emplace(client.name, profile);
    }
    std::ranges::sort(grouping.clients, {}, &GroupingClient::name);
    TRY_ASSIGN(const auto names, make_groups(input.grouping, grouping));
    std::vector<std::vector<ClientProfile>> made;
    for (const auto& group : names) {
        auto& members = made.emplace_back();
        for (const auto& name : group) {
            members.push_back(profiles.at(name));
        }
    }
    return made;
}

std::vector<std::uint32_t> group_counts(std::size_t clients) {
    constexpr std::uint32_t each = 16;
    std::vector<std::uint32_t> counts;
    for (std::uint32_t groups = 1; groups < clients; groups += groups < each ? 1 : groups) {
        counts.push_back(groups);
    }
    counts.push_back(static_cast<std::uint32_t>(clients));
    return counts;
}

Result<std::vector<PlanRow>> predict_rounds(const PlanInput& input) {
    TRY(check(input));
    std::vector<PlanRow> rows{federated_row(input)};
    for (std::uint32_t cut = 1; cut < input.chain.layer_count(); ++cut) {
        const auto after = input.chain.arena_range(ArenaKind::trainable, cut, input.chain.layer_count());
        if (!input.chain.gradient_needed(cut) || after.size() == 0) {
            continue;  // raw inputs would travel, or the host would learn nothing
        }
        for (const auto groups : group_counts(input.clients.size())) {
            TRY_ASSIGN(auto row, split_row(input, cut, groups));
            rows.push_back(std::move(row));
        }
        rows.push_back(together_row(input, cut));
    }
    for (auto& row : rows) {
        judge(input, row);
    }
    return rows;
}

const PlanRow* best_row(const std::vector<PlanRow>& rows, const std::string& regime) {
    const PlanRow* best = nullptr;
    for (const auto& row : rows) {
        const bool wanted = row.fits && (regime.empty() || row.regime == regime);
        if (wanted && (best == nullptr || row.cost.seconds < best->cost.seconds)) {
            best = &row;
        }
    }
    return best;
}

}  // namespace causeway
