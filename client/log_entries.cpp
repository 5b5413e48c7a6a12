// See log_entries.h.
#include "client/log_entries.h"

#include "common/overloaded.h"

namespace causeway::node {
namespace {

using Maybe = std::optional<LogEntry>;

Json about_assignment(const Lease& lease) {
    return Json::object().set("experiment", lease.experiment).set("round", lease.round);
}

LogEntry assigned(const Assign& m) {
    return {"assigned", about_assignment(m.lease)
                            .set("name", m.experiment_name)
                            .set("rounds", m.rounds)
                            .set("attempt", m.lease.attempt)
                            .set("dataset", m.dataset)
                            .set("regime", m.regime)
                            .set("cohort", m.cohort)
                            .set("submitted_by", m.submitted_by)};
}

}  // namespace

Maybe entry_of_heard(const Message& message) {
    return std::visit(
        Overloaded{
            [](const Assign& m) -> Maybe { return assigned(m); },
            [](const Welcome& m) -> Maybe {
                return LogEntry{"joined", Json::object().set("federation", m.federation)};
            },
            [](const Committed& m) -> Maybe {
                return LogEntry{
                    "committed",
                    Json::object().set("experiment", m.experiment).set("round", m.round).set("counted", m.counted)};
            },
            [](const Refused& m) -> Maybe {
                return LogEntry{"refused", about_assignment(m.lease).set("code", m.code)};
            },
            [](const Dropped& m) -> Maybe {
                return LogEntry{"dropped", about_assignment(m.lease).set("code", m.code)};
            },
            [](const Ended& m) -> Maybe {
                return LogEntry{"ended", Json::object().set("experiment", m.experiment).set("state", m.state)};
            },
            [](const ErrorNotice& m) -> Maybe {
                return LogEntry{"notice", Json::object().set("code", m.code)};
            },
            [](const auto&) -> Maybe { return std::nullopt; }},
        message);
}

Maybe entry_of_said(const Message& message) {
    return std::visit(Overloaded{[](const Decline& m) -> Maybe {
                                     if (m.code == "dropped") {
                                         return std::nullopt;  // only echoes the coordinator's own word
                                     }
                                     auto detail = about_assignment(m.lease).set("code", m.code);
                                     if (m.code.starts_with("policy_")) {
                                         detail.set("why", m.message);
                                     }
                                     return LogEntry{"declined", std::move(detail)};
                                 },
                                 [](const Offer& m) -> Maybe {
                                     return LogEntry{"offered", about_assignment(m.lease)
                                                                    .set("bytes", m.update.bytes)
                                                                    .set("weight", m.update.weight)
                                                                    .set("update_sha256", m.update.digest.hex())};
                                 },
                                 [](const auto&) -> Maybe { return std::nullopt; }},
                      message);
}

Maybe entry_of_event(const Event& event) {
    return std::visit(
        Overloaded{
            [](const Trained& e) -> Maybe {
                if (e.error) {
                    return LogEntry{"not_trained", about_assignment(e.lease).set("code", e.error->code)};
                }
                return LogEntry{"trained", about_assignment(e.lease)
                                               .set("loss", e.update.metrics.loss)
                                               .set("seconds", e.update.metrics.train_seconds)};
            },
            [](const ModelFetched& e) -> Maybe {
                return e.error ? Maybe(LogEntry{"not_fetched", Json::object().set("code", e.error->code)})
                               : std::nullopt;
            },
            [](const Disconnected& e) -> Maybe {
                return LogEntry{"disconnected", Json::object().set("code", e.why.code)};
            },
            [](const auto&) -> Maybe { return std::nullopt; }},
        event);
}

}  // namespace causeway::node
