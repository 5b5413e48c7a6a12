// See leaves.h.
#include "client/leaves.h"

#include <algorithm>

#include "common/text.h"
#include "configs/presets.h"
#include "configs/statistics.h"
#include "model/chain.h"
#include "split/exchanges.h"

namespace causeway::node {
namespace {

Leaving leaving_of(Payload payload) {
    switch (payload) {
        case Payload::activations:
            return Leaving::activations;
        case Payload::gradients:
            return Leaving::gradients;
        case Payload::labels:
            return Leaving::labels;
        case Payload::parameters:
            return Leaving::parameters;
    }
    return Leaving::parameters;
}

std::string names_to(const std::set<Leaves::Item>& items, Receiver to, std::string_view whom) {
    std::vector<std::string> names;
    for (const auto& item : items) {
        if (item.to == to) {
            names.emplace_back(to_string(item.what));
        }
    }
    return names.empty() ? "" : join(names, " and ") + " to " + std::string(whom);
}

}  // namespace

std::string_view to_string(Leaving what) {
    switch (what) {
        case Leaving::parameters:
            return "parameters";
        case Leaving::activations:
            return "activations";
        case Leaving::gradients:
            return "gradients";
        case Leaving::labels:
            return "labels";
        case Leaving::statistics:
            return "statistics";
        case Leaving::figures:
            return "figures";
    }
    return "parameters";
}

bool Leaves::to_nodes() const {
    return std::ranges::any_of(items, [](const Item& item) { return item.to == Receiver::node; });
}

std::string Leaves::text() const {
    const auto nodes = names_to(items, Receiver::node, "other nodes");
    const auto coordinator = names_to(items, Receiver::coordinator, "the coordinator");
    return nodes + (nodes.empty() || coordinator.empty() ? "" : ", ") + coordinator;
}

Result<Leaves> what_leaves(const Assign& assign, Asked asked) {
    Leaves leaves;
    if (asked == Asked::figures) {
        leaves.items.insert({Leaving::figures, Receiver::coordinator});
        return leaves;
    }
    if (assign.program == statistics_program) {
        leaves.items.insert({Leaving::statistics, Receiver::coordinator});
        return leaves;
    }
    TRY_ASSIGN(const auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(const auto program, parse_program(assign.program));
    TRY(check_program(program, chain));
    leaves.items.insert({Leaving::parameters, Receiver::coordinator});
    for (const Payload payload : exchanges_of(program).sent) {
        leaves.items.insert({leaving_of(payload), Receiver::node});
    }
    const auto values = sent_values_of(program, chain);
    leaves.raw_inputs = values.raw_inputs;
    if (values.bare_scores) {
        leaves.items.insert({Leaving::labels, Receiver::node});
    }
    for (const Flow* flow : flows_with(program, chain)) {
        std::ranges::copy(presets_with_flow(flow->name), std::back_inserter(leaves.regimes));
    }
    return leaves;
}

bool streams_with(Role own, std::string_view other) {
    const auto role = role_from(other);
    return (own == Role::client && role == Role::host) || (own == Role::host && role == Role::client);
}

}  // namespace causeway::node
