// See replay_relays.h. Attempts, hosts and times are not repeated: bits do not depend on them.
#include "simulation/replay_relays.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/reader.h"
#include "coordinator/decisions.h"
#include "coordinator/relay_texts.h"
#include "simulation/turn_exchange.h"

namespace causeway::simulation {
namespace {

/// A group so far: its last segments, and the examples behind them.
struct Group {
    std::array<Digest, 2> segments;
    std::uint64_t examples = 0;
    bool any = false;
};

/// A client's hand-over as the log has it.
struct Recorded {
    std::string client;
    std::uint32_t group = 0;
    std::uint64_t examples = 0;
    std::array<std::string, 2> segments;
};

/// What all turns of a round have in common.
struct ReplayedRelayRound {
    CoordinatorWork& work;
    const FindClient& find;
    const RelayTexts& texts;
    const Assign& base;
};

Assign side_of(const ReplayedRelayRound& round, const CellTexts& own, const Digest& segment, std::uint32_t group) {
    auto assign = round.base;
    assign.segment = own.segment;
    assign.program = own.program;
    assign.cell = own.cell;
    assign.group = group;
    assign.model = segment;
    return assign;
}

/// The host's side first, then the clients' in the order in which it takes their batches. One node's work is the host:
/// what it has prepared does not matter to the bits.
Result<std::vector<TurnSide>> sides_of(const ReplayedRelayRound& round, const std::vector<Recorded>& clients,
                                       const std::array<Digest, 2>& start) {
    const auto& texts = round.texts;
    const bool together = texts.turns == RelayPlan::Turns::together;
    std::vector<TurnSide> sides{{.assign = side_of(round, texts.host, start[1], clients.front().group)}};
    sides.front().assign.data_node = together ? "" : clients.front().client;
    for (const auto& client : clients) {
        TRY_ASSIGN(auto* node, round.find(client.client));
        for (const auto& segment : start) {
            TRY_ASSIGN(const auto file, round.work.read_model(segment));
            node->keep_model(segment, file);
        }
        auto own = side_of(round, texts.client, start[0], client.group);
        own.cell += static_cast<std::uint32_t>(sides.size() - 1);
        own.peers = {{texts.host.cell, client.client}};
        own.data_node = client.client;
        own.examples = client.examples;
        auto& host = sides.front();
        host.work = host.work == nullptr ? node : host.work;
        host.assign.peers.push_back({own.cell, client.client, together ? client.examples : 0});
        host.assign.examples += client.examples;
        sides.push_back({node, std::move(own)});
    }
    return sides;
}

/// One turn, of one client or of all that are together; all files are kept by the work when they are through its
/// firewall. The clients' segments, then the host's.
Result<std::vector<Digest>> turn_again(const ReplayedRelayRound& round, const std::vector<Recorded>& clients,
                                       const std::array<Digest, 2>& start) {
    TRY_ASSIGN(const auto sides, sides_of(round, clients, start));
    const auto run = run_turn(sides);
    if (!run) {
        return fail(run.error().error);
    }
    const auto& ends = run->ends;
    std::vector<Digest> segments;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const AbsorbUpdate job{.experiment = round.base.lease.experiment,
                               .round = round.base.lease.round,
                               .attempt = 1,
                               .node = clients[i == 0 ? 0 : i - 1].client,
                               .session = 0,
                               .update = ends[i].held,
                               .segment = sides[i].assign.segment};
        const auto absorbed = round.work.absorb(job, ends[i].file);
        if (absorbed.refusal) {
            return fail(ErrorKind::refused, absorbed.refusal->code, absorbed.refusal->message);
        }
        segments.push_back(ends[i].held.digest);
    }
    std::ranges::rotate(segments, segments.begin() + 1);
    return segments;
}

/// Runs a turn and puts its ends into the groups.
Status hand_over_again(const ReplayedRelayRound& round, const std::vector<Recorded>& clients,
                       std::map<std::uint32_t, Group>& groups, ReplayedRelays& result) {
    auto segments = turn_again(round, clients, groups.at(clients.front().group).segments);
    if (!segments) {
        const auto who = clients.size() == 1 ? clients.front().client : std::string("all clients");
        return fail(with_context(segments.error(), fmt::format("round {}, {}", round.base.lease.round, who)));
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const std::array<Digest, 2> made{(*segments)[i], segments->back()};
        if (made[0].hex() != clients[i].segments[0] || made[1].hex() != clients[i].segments[1]) {
            result.differs.push_back(clients[i].client);
        }
        auto& group = groups.at(clients[i].group);
        group = {made, group.examples + clients[i].examples, true};
    }
    return {};
}

}  // namespace

Result<ReplayedRelays> replay_relays(const RunLog& log, CoordinatorWork& work, const FindClient& client,
                                     const Assign& assign, const RoundOpened& opened) {
    TRY_ASSIGN(const auto config, read_experiment_or_fail(log.saved.file, log.saved.name));
    TRY_ASSIGN(const auto texts, relay_texts_of(config));
    ASSERT(texts.has_value() && opened.segments.size() >= 2);
    const ReplayedRelayRound round{work, client, *texts, assign};
    const Group fresh{.segments = {opened.segments[0].first, opened.segments[1].first}};
    const bool together = texts->turns == RelayPlan::Turns::together;
    std::map<std::uint32_t, Group> groups;
    std::map<std::string, Recorded> at_once;  // by name: of turns that are together
    ReplayedRelays result;
    for (const auto& decision : log.decisions) {
        if (decision.round != assign.lease.round) {
            continue;
        }
        const auto number = static_cast<std::uint32_t>(decision.detail["group"].integer());
        if (decision.kind == decisions::groups) {
            for (std::size_t i = 0; i < decision.detail["groups"].items().size(); ++i) {
                groups[static_cast<std::uint32_t>(i)] = fresh;
            }
        } else if (decision.kind == "restarted" && groups.contains(number)) {
            groups[number] = fresh;
            std::erase_if(at_once, [&](const auto& entry) { return entry.second.group == number; });
        } else if (decision.kind == "handover") {
            const auto node = decision.detail["node"].text();
            if (!groups.contains(number)) {
                return fail(ErrorKind::invalid, "bad_log",
                            fmt::format("the decision log is inconsistent in round {}: a hand-over in group {}, which "
                                        "it has not",
                                        decision.round, number));
            }
            Recorded recorded{node,
                              number,
                              static_cast<std::uint64_t>(decision.detail["examples"].integer()),
                              {decision.detail["client_segment"].text(), decision.detail["server_segment"].text()}};
            if (together) {
                at_once[node] = std::move(recorded);
            } else {
                TRY(hand_over_again(round, {std::move(recorded)}, groups, result));
            }
        }
    }
    if (!at_once.empty()) {
        std::vector<Recorded> all;
        for (auto& [node, recorded] : at_once) {
            all.push_back(std::move(recorded));
        }
        TRY(hand_over_again(round, all, groups, result));
    }
    for (const auto& [number, group] : groups) {
        if (group.any) {
            result.groups.push_back({{group.segments[0], group.segments[1]}, group.examples});
        }
    }
    return result;
}

}  // namespace causeway::simulation
