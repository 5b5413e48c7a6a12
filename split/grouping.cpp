// The groupings. All of them are greedy, deterministic, and break ties by name.
#include "split/grouping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/random.h"
#include "common/text.h"

namespace causeway {
namespace {

tl::unexpected<Error> bad_groups(std::string message) {
    return fail(ErrorKind::invalid, "bad_groups", std::move(message));
}

/// The longest first, each to the group that has least to do: within 4/3 of the best possible.
std::vector<const GroupingClient*> longest_first(const std::vector<GroupingClient>& clients) {
    std::vector<const GroupingClient*> order;
    for (const GroupingClient& client : clients) {
        order.push_back(&client);
    }
    std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->turn_seconds > b->turn_seconds; });
    return order;
}

/// An empty group counts as less loaded than any other, so that clients that take no time are spread all the same.
struct GroupLoad {
    double seconds = 0;
    std::size_t clients = 0;
    auto operator<=>(const GroupLoad&) const = default;
};

Result<Groups> by_time(const GroupingInput& input) {
    Groups groups(input.groups);
    std::vector<GroupLoad> loads(input.groups);
    for (const GroupingClient* client : longest_first(input.clients)) {
        const auto least = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
        groups[least].push_back(client->name);
        loads[least].seconds += client->turn_seconds;
        ++loads[least].clients;
    }
    return groups;
}

/// L1 distance between a group's label shares and those of all clients, if `more` joined it.
double imbalance(const std::vector<std::uint64_t>& group, const std::vector<std::uint64_t>& more,
                 const std::vector<std::uint64_t>& all) {
    double sum = 0, total = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        sum += static_cast<double>(group[i] + (i < more.size() ? more[i] : 0));
        total += static_cast<double>(all[i]);
    }
    double distance = 0;
    for (std::size_t i = 0; i < all.size() && sum > 0 && total > 0; ++i) {
        const auto mine = static_cast<double>(group[i] + (i < more.size() ? more[i] : 0));
        distance += std::abs(mine / sum - static_cast<double>(all[i]) / total);
    }
    return distance;
}

/// Groups of equal size whose labels are mixed as those of all clients together. Clients that share no histogram count
/// as balanced.
Result<Groups> by_labels(const GroupingInput& input) {
    std::vector<std::uint64_t> all;
    for (const GroupingClient& client : input.clients) {
        all.resize(std::max(all.size(), client.labels.size()));
        for (std::size_t i = 0; i < client.labels.size(); ++i) {
            all[i] += client.labels[i];
        }
    }
    Groups groups(input.groups);
    std::vector<std::vector<std::uint64_t>> labels(input.groups, std::vector<std::uint64_t>(all.size()));
    const std::size_t most = (input.clients.size() + input.groups - 1) / input.groups;
    for (const GroupingClient* client : longest_first(input.clients)) {
        std::size_t best = input.groups;
        std::pair<std::size_t, double> best_key;
        for (std::size_t group = 0; group < input.groups; ++group) {
            const std::pair key{groups[group].size(), imbalance(labels[group], client->labels, all)};
            const bool better = best == input.groups || key < best_key;
            if (groups[group].size() < most && better) {
                best = group;
                best_key = key;
            }
        }
        groups[best].push_back(client->name);
        for (std::size_t i = 0; i < client->labels.size(); ++i) {
            labels[best][i] += client->labels[i];
        }
    }
    return groups;
}

/// A group has one client at a time on the network, so clients behind one uplink are put in one group: they take turns
/// and never share it. Times decide the rest; the most crowded uplinks are placed first.
Result<Groups> by_link(const GroupingInput& input) {
    std::map<std::string, std::size_t> behind;
    for (const GroupingClient& client : input.clients) {
        ++behind[client.link.empty() ? client.name : client.link];
    }
    auto order = longest_first(input.clients);
    const auto crowd = [&](const GroupingClient* client) {
        return behind.at(client->link.empty() ? client->name : client->link);
    };
    std::ranges::stable_sort(order, [&](const auto* a, const auto* b) { return crowd(a) > crowd(b); });
    Groups groups(input.groups);
    std::vector<GroupLoad> loads(input.groups);
    std::map<std::string, std::size_t> home;
    for (const GroupingClient* client : order) {
        auto group = static_cast<std::size_t>(std::ranges::min_element(loads) - loads.begin());
        if (!client->link.empty() && behind.at(client->link) > 1) {
            group = home.try_emplace(client->link, group).first->second;
        }
        groups[group].push_back(client->name);
        loads[group].seconds += client->turn_seconds;
        ++loads[group].clients;
    }
    return groups;
}

Result<Groups> at_random(const GroupingInput& input) {
    const auto order =
        RandomStream({.seed = input.seed, .purpose = "groups", .round = input.round}).permutation(input.clients.size());
    Groups groups(input.groups);
    for (std::size_t i = 0; i < order.size(); ++i) {
        groups[i % input.groups].push_back(input.clients[order[i]].name);
    }
    return groups;
}

/// The file's lists, in its order; a client of it that is not in the round is skipped.
Result<Groups> fixed(const GroupingInput& input) {
    std::set<std::string> present, placed;
    for (const GroupingClient& client : input.clients) {
        present.insert(client.name);
    }
    Groups groups;
    for (const auto& list : input.fixed) {
        auto& group = groups.emplace_back();
        for (const std::string& name : list) {
            if (!placed.insert(name).second) {
                return bad_groups(fmt::format("\"{}\" is in the list of groups twice", name));
            }
            if (present.contains(name)) {
                group.push_back(name);
            }
        }
    }
    for (const std::string& name : present) {
        if (!placed.contains(name)) {
            return bad_groups(fmt::format("\"{}\" is in no group; name it in one of the lists", name));
        }
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    return groups;
}

constexpr std::array table{
    Grouping{"time", "groups that take equally long: longest first, each to the group with least to do", by_time},
    Grouping{"labels", "groups whose labels are mixed as all clients' together, where policies share them", by_labels},
    Grouping{"link", "clients behind one uplink take turns in one group, so that they never share it", by_link},
    Grouping{"random", "shuffled by the seed, groups of equal size", at_random},
    Grouping{"fixed", "the lists of the experiment file", fixed},
};

}  // namespace

std::span<const Grouping> groupings() {
    return table;
}

Result<const Grouping*> find_grouping(std::string_view name) {
    std::vector<std::string> names;
    for (const Grouping& grouping : table) {
        if (grouping.name == name) {
            return &grouping;
        }
        names.emplace_back(grouping.name);
    }
    return fail(ErrorKind::not_found, "unknown_grouping",
                fmt::format("there is no grouping \"{}\"; {}", name.substr(0, 40), name_hint(name, names)));
}

Result<Groups> make_groups(std::string_view name, const GroupingInput& input) {
    TRY_ASSIGN(const Grouping* grouping, find_grouping(name));
    if (input.clients.empty() || input.groups == 0) {
        return bad_groups(
            fmt::format("{} clients in {} groups: there is at least one of each", input.clients.size(), input.groups));
    }
    if (input.groups > input.clients.size() && name != "fixed") {
        return bad_groups(
            fmt::format("{} groups of {} clients: at most one group a client", input.groups, input.clients.size()));
    }
    return grouping->make(input);
}

}  // namespace causeway
