// See describe.h. Digests by their first eight digits; leases as experiment/round#attempt@epoch.
#include "simulation/describe.h"

#include <fmt/format.h>

#include "common/overloaded.h"
#include "common/text.h"

namespace causeway::simulation {
namespace {

std::string text(const Lease& lease) {
    return fmt::format("{}/{}#{}@{}", lease.experiment, lease.round, lease.attempt, lease.epoch);
}
std::string text(const Digest& digest) {
    return digest.empty() ? "-" : digest.short_hex();
}
std::string names(const std::vector<std::string>& list) {
    return list.empty() ? "-" : join(list, ",");
}

std::string held_text(const std::vector<HeldUpdate>& held) {
    std::vector<std::string> parts;
    for (const auto& update : held) {
        parts.push_back(fmt::format("{}/{}:{}", update.experiment, update.round, text(update.digest)));
    }
    return names(parts);
}

}  // namespace

std::string describe(const Message& message) {
    return std::visit(
        Overloaded{
            [](const Hello& m) { return "hello held " + held_text(m.held); },
            [](const Welcome& m) { return fmt::format("welcome session {} epoch {}", m.session, m.epoch); },
            [](const Assign& m) {
                return fmt::format("assign {} model {} cohort {} deadline {} ms", text(m.lease), text(m.model),
                                   m.cohort, m.deadline_ms);
            },
            [](const Progress& m) { return fmt::format("progress {} {}/{}", text(m.lease), m.step, m.steps); },
            [](const Offer& m) {
                return fmt::format("offer {} update {} weight {}", text(m.lease), text(m.update.digest),
                                   m.update.weight);
            },
            [](const Decline& m) { return fmt::format("decline {} {}", text(m.lease), m.code); },
            [](const Counted& m) { return fmt::format("counted {} update {}", text(m.lease), text(m.update)); },
            [](const Refused& m) {
                return fmt::format("refused {} update {} {}", text(m.lease), text(m.update), m.code);
            },
            [](const Committed& m) {
                return fmt::format("committed {}/{} model {} {} update {}", m.experiment, m.round, text(m.model),
                                   m.counted ? "counted" : "not counted", text(m.update));
            },
            [](const Dropped& m) { return fmt::format("dropped {} {}", text(m.lease), m.code); },
            [](const Ended& m) { return fmt::format("ended {} {} {}", m.experiment, m.state, m.reason); },
            [](const Request& m) { return fmt::format("request {} {}", m.id, m.verb); },
            [](const Reply& m) {
                return fmt::format("reply {}{} {}", m.id, m.last ? " last" : "", m.error ? m.error->code : m.body);
            },
            [](const auto& m) { return std::string(message_name(m)); },
        },
        message);
}

std::string describe(const Persist& persist) {
    return std::visit(
        Overloaded{
            [](const SaveExperiment& p) { return fmt::format("experiment {} {} {}", p.experiment, p.state, p.reason); },
            [](const SaveDecision& p) {
                return fmt::format("decision {}/{} {} {}", p.experiment, p.round, p.kind, p.detail.dump());
            },
            [](const SaveCommit& p) {
                std::vector<std::string> who;
                for (const auto& [node, update] : p.participants) {
                    who.push_back(node + ":" + text(update));
                }
                return fmt::format("commit {}/{} model {} of {} next {}", p.experiment, p.round, text(p.model),
                                   names(who), names(p.next_cohort));
            },
            [](const SaveEvaluation& p) {
                return fmt::format("evaluation {}/{} accuracy {}", p.experiment, p.round, p.accuracy);
            },
            [](const SaveDeclaration& p) { return fmt::format("declaration {} ({})", p.node, p.datasets.size()); },
        },
        persist);
}

std::string describe(const Job& job) {
    return std::visit(
        Overloaded{
            [](const MakeModel& j) { return fmt::format("make model {}", j.experiment); },
            [](const OpenRound& j) {
                return fmt::format("open round {}/{} from {}", j.experiment, j.round, text(j.start_model));
            },
            [](const AbsorbUpdate& j) {
                return fmt::format("absorb {}/{}#{} {} {}", j.experiment, j.round, j.attempt, j.node,
                                   text(j.update.digest));
            },
            [](const CancelAbsorb& j) { return fmt::format("cancel absorb {}/{} {}", j.experiment, j.round, j.node); },
            [](const FinishRound& j) { return fmt::format("finish round {}/{}", j.experiment, j.round); },
            [](const EvaluateModel& j) { return fmt::format("evaluate {}/{}", j.experiment, j.round); },
            [](const ReleaseExperiment& j) { return fmt::format("release {}", j.experiment); },
            [](const ReadRounds& j) { return fmt::format("read {} rounds from {}/{}", j.count, j.experiment, j.from); },
        },
        job);
}

std::string describe(const node::Persist& persist) {
    return std::visit(Overloaded{
                          [](const node::ResolvePending& p) {
                              return fmt::format("resolve {}/{} update {} {}", p.update.experiment, p.update.round,
                                                 text(p.update.digest), p.counted ? "counted" : "not counted");
                          },
                          [](const node::ForgetExperiment& p) { return fmt::format("forget {}", p.experiment); },
                      },
                      persist);
}

std::string describe(const node::Job& job) {
    return std::visit(Overloaded{
                          [](const node::Connect&) { return std::string("connect"); },
                          [](const node::Disconnect& j) { return "disconnect: " + j.reason; },
                          [](const node::FetchModel& j) { return "fetch " + text(j.model); },
                          [](const node::Train& j) { return "train " + text(j.assign.lease); },
                          [](const node::StopTraining&) { return std::string("stop training"); },
                          [](const node::Evaluate& j) { return "evaluate " + text(j.assign.model); },
                          [](const node::RunTurn& j) { return "turn of layers " + j.assign.segment; },
                          [](const node::StopTurn&) { return std::string("stop the turn"); },
                          [](const node::LetGo& j) { return "let go of " + text(j.segment); },
                      },
                      job);
}

}  // namespace causeway::simulation
