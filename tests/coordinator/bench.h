// A coordinator's machine on a bench: events go in by hand, what comes out is looked at. For tests of the machines.
#pragma once

#include <string>
#include <vector>

#include "coordinator/machine.h"

namespace causeway {

/// An experiment file of two rounds; `sync` lines are put into its [sync] table, `identity` lines into [experiment].
inline std::string bench_experiment(const std::string& sync, const std::string& identity = "rounds = 2",
                                    const std::string& more = "") {
    return "[experiment]\nname = \"test\"\n" + identity +
           "\n[data]\ndataset = \"digits\"\nshape = [8, 8, 1]\n[model]\nlayers = [\"flatten\", \"dense 10\"]\n"
           "[regime]\npreset = \"fedavg\"\n[evaluation]\nwhere = \"none\"\n" +
           more + "\n[sync]\n" + sync + "\n";
}

struct MachineBench {
    explicit MachineBench(CoordinatorOptions options = {}, Recovered recovered = {})
        : machine(std::move(options), std::move(recovered)) {
        last = machine.start(Instant{});
    }
    Coordinator machine;
    CoordinatorEffects last;
    SessionId next = 1;
    std::map<std::string, SessionId> sessions;

    const CoordinatorEffects& step(Instant now, const CoordinatorEvent& event) {
        last = machine.step(now, event);
        return last;
    }
    SessionId join(Instant now, const std::string& node, Hello hello = {}) {
        hello.datasets.push_back({"digits", {}, 100, {8, 8, 1}, 10});
        sessions[node] = next;
        step(now, SessionOpened{next, node, "client", hello});
        return next++;
    }
    /// Answers what the last step reads from the store, which has these rounds.
    bool answer_reads(Instant now, const std::vector<StoredRound>& stored) {
        const auto jobs = last.jobs;
        bool any = false;
        for (const auto& job : jobs) {
            if (const auto* read = std::get_if<ReadRounds>(&job)) {
                RoundsRead page{.experiment = read->experiment, .from = read->from, .rounds = {}, .error = {}};
                for (const auto& round : stored) {
                    if (round.round >= read->from && page.rounds.size() < read->count) {
                        page.rounds.push_back(round);
                    }
                }
                step(now, page);
                any = true;
            }
        }
        return any;
    }
    Reply ask(Instant now, const std::string& verb, const Json& body) {
        const auto session = next++;
        step(now, SessionOpened{session, "admin", "operator", Hello{}});
        step(now, MessageReceived{session, Request{7, verb, body.dump()}});
        for (const auto& send : last.send) {
            if (send.session == session && std::holds_alternative<Reply>(send.message)) {
                return std::get<Reply>(send.message);
            }
        }
        return {};
    }
    Reply submit(Instant now, const std::string& file) {
        return ask(now, "experiment.submit", Json::object().set("file", file));
    }
    [[nodiscard]] const ExperimentMachine& experiment(ExperimentId id) const { return machine.experiments().at(id); }
    [[nodiscard]] std::string state(ExperimentId id) const { return experiment(id).saved().state; }
    [[nodiscard]] std::vector<std::string> cohort(ExperimentId id) const { return experiment(id).members_in_round(); }

    static Digest model(ExperimentId id, std::uint32_t round) {
        return sha256("model " + std::to_string(id) + " " + std::to_string(round));
    }
    void make_model(Instant now, ExperimentId id) { step(now, ModelMade{id, model(id, 0), 10}); }
    /// Every member of the open round offers, is absorbed, and the snapshot is written.
    void finish_round(Instant now, ExperimentId id) {
        const auto round = experiment(id).records().back().round + 1;
        const auto start = experiment(id).records().back().model;
        for (const auto& node : cohort(id)) {
            const auto update = sha256(node + std::to_string(round));
            const HeldUpdate held{id, round, update, 10, 5, {}, start};
            step(now, MessageReceived{sessions.at(node), Offer{{1, id, round, 1}, held}});
            step(now, UpdateAbsorbed{id, round, 1, node, update, {}, {}});
        }
        step(now, SnapshotWritten{id, round, model(id, round), 10, 1.0, 0, 0});
    }
};

/// The first persist of its kind.
template <class Kind>
const Kind* persisted(const CoordinatorEffects& effects) {
    for (const auto& persist : effects.persist) {
        if (const auto* found = std::get_if<Kind>(&persist)) {
            return found;
        }
    }
    return nullptr;
}

/// The first message of its kind to the session.
template <class Kind>
const Kind* sent(const CoordinatorEffects& effects, SessionId session) {
    for (const auto& send : effects.send) {
        if (const auto* found = std::get_if<Kind>(&send.message); found != nullptr && send.session == session) {
            return found;
        }
    }
    return nullptr;
}

}  // namespace causeway
