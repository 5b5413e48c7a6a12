// See replay_relays.h. Attempts, hosts and times are not repeated: bits do not depend on them.
#include "simulation/replay_relays.h"

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

Assign side_of(const Assign& base, const CellTexts& own, const CellTexts& other, const Digest& segment,
               const std::string& client, std::uint64_t examples, std::uint32_t group) {
    auto assign = base;
    assign.segment = own.segment;
    assign.program = own.program;
    assign.cell = own.cell;
    assign.group = group;
    assign.peers = {{other.cell, client}};
    assign.data_node = client;
    assign.examples = examples;
    assign.model = segment;
    return assign;
}

/// One turn: both files are kept by the work when they are through its firewall.
Result<std::array<Digest, 2>> turn_again(CoordinatorWork& work, const FindClient& find, const RelayTexts& texts,
                                         const Assign& base, const std::string& client, const Group& group,
                                         std::uint32_t number, std::uint64_t examples) {
    TRY_ASSIGN(auto* node, find(client));
    for (const auto& segment : group.segments) {
        TRY_ASSIGN(const auto file, work.read_model(segment));
        node->keep_model(segment, file);
    }
    const auto own = side_of(base, texts.client, texts.host, group.segments[0], client, examples, number);
    const auto hosted = side_of(base, texts.host, texts.client, group.segments[1], client, examples, number);
    TRY_ASSIGN(const auto ends, run_turn(*node, own, *node, hosted));
    std::array<Digest, 2> segments;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const AbsorbUpdate job{.experiment = base.lease.experiment,
                               .round = base.lease.round,
                               .attempt = 1,
                               .node = client,
                               .session = 0,
                               .update = ends[i].held,
                               .segment = i == 0 ? own.segment : hosted.segment};
        const auto absorbed = work.absorb(job, ends[i].file);
        if (absorbed.refusal) {
            return fail(ErrorKind::refused, absorbed.refusal->code, absorbed.refusal->message);
        }
        segments[i] = ends[i].held.digest;
    }
    return segments;
}

}  // namespace

Result<ReplayedRelays> replay_relays(const RunLog& log, CoordinatorWork& work, const FindClient& client,
                                     const Assign& assign, const RoundOpened& opened) {
    TRY_ASSIGN(const auto config, read_experiment_or_fail(log.saved.file, log.saved.name));
    TRY_ASSIGN(const auto texts, relay_texts_of(config));
    ASSERT(texts.has_value() && opened.segments.size() >= 2);
    const Group fresh{.segments = {opened.segments[0].first, opened.segments[1].first}};
    std::map<std::uint32_t, Group> groups;
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
        } else if (decision.kind == "handover") {
            const auto node = decision.detail["node"].text();
            if (!groups.contains(number)) {
                return fail(ErrorKind::invalid, "bad_log",
                            fmt::format("the decision log is inconsistent in round {}: a hand-over in group {}, which "
                                        "it has not",
                                        decision.round, number));
            }
            auto& group = groups[number];
            const auto examples = static_cast<std::uint64_t>(decision.detail["examples"].integer());
            auto segments = turn_again(work, client, *texts, assign, node, group, number, examples);
            if (!segments) {
                return fail(with_context(segments.error(), fmt::format("round {}, {}", decision.round, node)));
            }
            const bool same = (*segments)[0].hex() == decision.detail["client_segment"].text() &&
                              (*segments)[1].hex() == decision.detail["server_segment"].text();
            if (!same) {
                result.differs.push_back(node);
            }
            group = {*segments, group.examples + examples, true};
        }
    }
    for (const auto& [number, group] : groups) {
        if (group.any) {
            result.groups.push_back({{group.segments[0], group.segments[1]}, group.examples});
        }
    }
    return result;
}

}  // namespace causeway::simulation
