// The verbs of operators: JSON in, JSON out, over the control connection of an operator identity.
//
// docs/protocol.md lists them. What changes an experiment is done by the Coordinator through `OperatorTarget`; here are
// the arguments, their errors and the shape of the replies. Verbs that the daemon answers itself (token.new) never
// come here. Thread: loop. Pure.
//
//   experiment.submit {file, file_name, set: [text], note}  -> {id, name, state}
//   experiment.resume {experiment, rounds, set: [text]}     -> {id, name, state, parent, parent_round}
//   experiment.list   {}                                    -> {experiments: [line]}
//   experiment.status {experiment}                          -> line + {phase, holders, open_round, quorum, members}
//   experiment.watch  {experiment, from}                    -> a reply per round event from that round on, `done` last
//   experiment.wait   {experiment}                          -> the done event
//   experiment.cancel {experiment}                          -> {id, state}
//   model.where       {experiment, round, best: bool}       -> {name, round, model_sha256, bytes}
//   node.list         {}                                    -> {nodes: [...]}
// `experiment` (or `id`) is a number, or a name: the newest of that name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/experiment.h"
#include "configs/initial_model.h"
#include "coordinator/effects.h"
#include "coordinator/experiment_machine.h"
#include "coordinator/membership.h"

namespace causeway {

using Experiments = std::map<ExperimentId, ExperimentMachine>;

/// The experiment that a request names. errors: not_found, with the names there are; invalid: nothing named
Result<ExperimentId> find_experiment(const Experiments& experiments, const Json& body);

/// Reads the file of a submit and checks it against what nodes ever declared.
///
/// What it starts from is pinned (configs/initial_model.h).
///
/// errors  invalid `bad_configuration`: one line per mistake; not_found `unknown_dataset`: with the known names;
///         those of pin_initial_model
Result<Experiment> check_submission(const Json& body, const Membership& members, const NamedModels& models);

/// What a resume asks for: the parent's file with other settings and more rounds.
///
/// errors   refused: it is not over, or nothing is committed; invalid: `bad_configuration`, `cannot_change`,
///          `no_rounds_left`; not_found `unknown_dataset`
Result<Experiment> check_resume(const ExperimentMachine& parent, const Json& body, const Membership& members);

/// Each with its place in the queue, from 1, while it waits there.
Json list_experiments(const Experiments& experiments, const std::vector<ExperimentId>& queue);
/// The last committed model, that of `round`, or with `best` the best by the experiment's metric. nullopt: of a round
/// that is only in the store.
///
/// errors  not_found: no such round is committed, or none is evaluated
Result<std::optional<Json>> describe_model(const ExperimentMachine& experiment, const Json& body);
/// The reply of model.where.
Json describe_record(const ExperimentMachine& experiment, const RoundRecord& record);
Json list_nodes(const Membership& members, const Experiments& experiments);

/// A request that has further replies to come: events, or what only the store knows. Rounds that an experiment no
/// longer has in memory are read from there, a page at a time and one page at once for each.
class Watches {
public:
    enum class Kind { watch, wait, model };  // a model is that of the round `from_round`

    /// errors  overloaded: too many of this session, or of all
    Status add(SessionId session, std::uint64_t request, ExperimentId experiment, Kind kind, std::uint32_t from_round);
    void close(SessionId session);
    /// Sends what has been published since. True when a watcher has more to come at once.
    bool send(const Experiments& experiments, CoordinatorEffects& effects);
    /// A page that was asked for.
    void read(const Experiments& experiments, const RoundsRead& page, CoordinatorEffects& effects);

private:
    struct Watch {
        SessionId session = 0;
        std::uint64_t request = 0;
        ExperimentId experiment = 0;
        Kind kind = Kind::watch;
        std::uint32_t from_round = 0;
        std::size_t next = 0;  // index of the next event to look at
        std::optional<std::uint32_t> reading{};  // from this round on, a page of the store
        std::size_t sent = 0;                    // events in this step
        bool done = false;
    };
    bool send_some(Watch& watch, const ExperimentMachine& experiment, CoordinatorEffects& effects);
    void ask(Watch& watch, std::uint32_t from, std::size_t count, CoordinatorEffects& effects);
    static bool send_page(Watch& watch, const ExperimentMachine& experiment, const RoundsRead& page,
                          CoordinatorEffects& effects);

    std::vector<Watch> watches_;
};

}  // namespace causeway
