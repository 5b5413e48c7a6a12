// An open round of relays on a bench: nodes speak by hand, what comes out is looked at. For tests of RelayRound.
//
// Training is a hash of where a turn started and who made it, so that equal histories have equal ends.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bench.h"
#include "coordinator/relay_round.h"

namespace causeway {

inline RelayRoundPlan relay_plan(Groups groups, std::vector<std::string> hosts = {}) {
    RelayRoundPlan plan;
    plan.round.epoch = 4;
    plan.round.assignment.lease = {0, 9, 3, 0};
    plan.round.quorum = {CountOrShare::Kind::count, 1, 0};
    plan.round.rejoin = std::chrono::seconds(60);
    plan.round.first_wait = std::chrono::seconds(60);
    plan.host_wait = std::chrono::seconds(100);
    plan.client = {0, "[0, 2)", "client program"};
    plan.host = {1, "[2, 4)", "host program"};
    plan.relay.lost_client = RelayPlan::LostClient::wait;
    for (const auto& group : groups) {
        for (const auto& name : group) {
            plan.round.cohort.push_back(name);
            plan.examples[name] = 5;
        }
    }
    std::ranges::sort(plan.round.cohort);
    plan.relay.hosts = hosts.empty() ? std::vector<std::string>(groups.size(), "h1") : std::move(hosts);
    plan.relay.groups = std::move(groups);
    return plan;
}

struct RelayBench {
    explicit RelayBench(RelayRoundPlan plan, Instant at = {}) : now(at), round(std::move(plan), at) {}

    enum class Side { client, host };
    struct Told {
        std::string node;
        Assign assign;
    };
    Instant now;
    RelayRound round;
    CoordinatorEffects last;        // of the last call
    std::vector<SaveDecision> log;  // of all, like the next two
    std::vector<AbsorbUpdate> jobs;
    std::map<std::string, std::vector<Dropped>> dropped;
    std::map<std::string, SessionId> sessions;           // 0: none
    std::map<std::pair<std::string, Side>, Told> turns;  // what each side was told last of a client's turn

    inline static const Digest client_start = sha256(std::string_view("client start"));
    inline static const Digest host_start = sha256(std::string_view("host start"));

    /// Calls the machine and sorts what it asks for.
    template <class Call>
    void step(Call call) {
        last = {};
        call();
        for (const auto& persist : last.persist) {
            log.push_back(std::get<SaveDecision>(persist));
        }
        for (const auto& send : last.send) {
            for (const auto& [name, session] : sessions) {
                if (session == send.session) {
                    sort(name, send.message);
                }
            }
        }
        for (const auto& job : last.jobs) {
            jobs.push_back(std::get<AbsorbUpdate>(job));
        }
    }
    /// All that was ever handed over is here, but for what is said to be lost.
    void opened(const std::set<Digest>& lost = {}) {
        RoundOpened answer{9, 3, {{client_start, 10}, {host_start, 20}}};
        for (const auto& decision : log) {
            for (const auto* side : {"client_segment", "server_segment"}) {
                const auto segment = digest_from_hex(decision.detail[side].text());
                if (segment && !lost.contains(*segment)) {
                    answer.segments.emplace_back(*segment, 10);
                }
            }
        }
        step([&] { round.opened(now, answer, last); });
    }
    void come(const std::string& node) {
        const auto session = sessions[node] = next_session++;
        if (round.has_member(node)) {
            step([&] { round.ready(now, node, session, {}, last); });
        } else {
            step([&] { round.host_ready(now, node, session, last); });
        }
    }
    void go(const std::string& node) {
        sessions[node] = 0;
        step([&] { round.lost(now, node, true, last); });
    }
    void tick(Instant at) {
        now = at;
        step([&] { round.tick(now, last); });
    }
    void all_come(const std::vector<std::string>& hosts = {"h1"}) {
        for (const auto& host : hosts) {
            come(host);
        }
        for (const auto& client : std::vector<std::string>(round.plan().cohort)) {
            come(client);
        }
    }
    [[nodiscard]] const Assign& turn(const std::string& client, Side side = Side::client) const {
        return turns.at({client, side}).assign;
    }
    /// 0: it was told of none.
    [[nodiscard]] std::uint32_t attempt(const std::string& client) const {
        const auto found = turns.find({client, Side::client});
        return found == turns.end() ? 0 : found->second.assign.lease.attempt;
    }
    [[nodiscard]] HeldUpdate made(const std::string& client, Side side) const {
        const auto& assign = turn(client, side);
        const auto digest = sha256(client + assign.segment + assign.model.hex());
        HeldUpdate update{9, 3, digest, 10, 5, {}, assign.model};
        update.metrics.loss = 1.0 + static_cast<double>(digest.hex()[0] % 7);
        return update;
    }
    void offer(const std::string& client, Side side) { offer(client, side, made(client, side)); }
    void offer(const std::string& client, Side side, const HeldUpdate& update) {
        const auto told = turns.at({client, side});
        step([&] { round.tick(now, last); });  // as the experiment does
        step([&] { round.on_offer(told.node, sessions[told.node], Offer{told.assign.lease, update}, last); });
    }
    void absorbed(const std::string& client, Side side, std::optional<Error> error = {},
                  std::optional<Refused> refusal = {}) {
        const auto told = turns.at({client, side});
        const UpdateAbsorbed answer{9,
                                    3,
                                    told.assign.lease.attempt,
                                    told.node,
                                    made(client, side).digest,
                                    std::move(refusal),
                                    std::move(error)};
        step([&] { round.on_absorbed(now, answer, last); });
    }
    void decline(const std::string& client, Side side, const std::string& code, const std::string& peer = "") {
        const auto told = turns.at({client, side});
        step([&] { round.on_decline(told.node, Decline{told.assign.lease, code, "why", peer}, last); });
    }
    void progress(const std::string& client, std::uint32_t at) {
        round.on_progress(now, client, Progress{turn(client).lease, at, 100, 0});
    }
    /// The client whose turn it is hands over.
    void hand_over(const std::string& client) {
        for (const auto side : {Side::client, Side::host}) {
            offer(client, side);
        }
        absorbed(client, Side::client);
        absorbed(client, Side::host);
    }
    [[nodiscard]] std::size_t count(const std::string& kind) const {
        return static_cast<std::size_t>(std::ranges::count(log, kind, &SaveDecision::kind));
    }
    [[nodiscard]] std::string drop_code(const std::string& node) const {
        const auto found = dropped.find(node);
        return found == dropped.end() ? "" : found->second.back().code;
    }
    [[nodiscard]] std::vector<GroupResult> results() const { return round.finish().groups; }

private:
    void sort(const std::string& name, const Message& message) {
        if (const auto* assign = std::get_if<Assign>(&message)) {
            turns[{assign->data_node, assign->cell != 1 ? Side::client : Side::host}] = {name, *assign};
        } else if (const auto* out = std::get_if<Dropped>(&message)) {
            dropped[name].push_back(*out);
        }
    }

    SessionId next_session = 1;
};

}  // namespace causeway
