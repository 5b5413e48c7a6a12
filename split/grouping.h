// Who trains in which group, and in which order: the tours of a round's client cells.
//
// A grouping is a pure function of what was measured and of the seed, so a decision log that holds its input holds it
// whole. Every client is in exactly one group; groups are never empty while there are clients enough; within a group
// the order is the one that the tour takes.
//
// To add one: one entry in grouping.cpp. Sources: longest processing time first (Graham 1969), label mixing as in the
// clustering of split federated learning for non-IID data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace causeway {

/// What is known of a client when groups are made.
struct GroupingClient {
    std::string name;
    double turn_seconds = 0;            // measured, or predicted before the first round
    std::vector<std::uint64_t> labels;  // histogram, only where its policy shares it
    std::string link;                   // clients behind the same uplink name the same one; empty: its own
    bool operator==(const GroupingClient&) const = default;
};

struct GroupingInput {
    std::vector<GroupingClient> clients;  // sorted by name
    std::uint32_t groups = 1;
    std::uint64_t seed = 0;
    std::uint32_t round = 0;
    std::vector<std::vector<std::string>> fixed;  // of the experiment file, for `fixed`
};

using Groups = std::vector<std::vector<std::string>>;  // names in the tour's order

struct Grouping {
    std::string_view name;
    std::string_view doc;
    Result<Groups> (*make)(const GroupingInput& input);
};

std::span<const Grouping> groupings();

/// errors   not_found `unknown_grouping`, with the nearest name
Result<const Grouping*> find_grouping(std::string_view name);

/// errors   invalid `bad_groups`: no clients, no groups, more groups than clients, or a fixed list that names a client
///          twice, one that is not there, or leaves one out; as find_grouping
Result<Groups> make_groups(std::string_view name, const GroupingInput& input);

}  // namespace causeway
