// What an experiment shows: the events of a watch (exact field names: docs, --json), lists and status.
#include <cmath>

#include "coordinator/experiment_machine.h"

namespace causeway {
namespace {

// Where an evaluation has not been made there is no number: null.
Json accuracy_of(const RoundRecord& record) {
    return record.evaluation ? Json(record.evaluation->accuracy) : Json();
}

/// Of the figures beside loss and accuracy those that were measured; `evaluated` are all of the clients'.
void add_figures(const RoundRecord& record, Json& line) {
    if (!record.evaluation) {
        return;
    }
    line.set("evaluation_loss", record.evaluation->loss);
    for (const auto& metric : all_metrics()) {
        const std::string name(metric.name);
        if (name != "loss" && name != "accuracy" && record.evaluation->detail.has(name)) {
            line.set(name, record.evaluation->detail[name]);
        }
    }
    if (record.evaluation->detail.has("clients")) {
        line.set("evaluated_by_clients", record.evaluation->detail["clients"]);
    }
}

}  // namespace

/// Appends what can be published: rounds in order, each once its evaluation is in; then the end.
void ExperimentMachine::publish() {
    while (next_event_round_ < records_.size() && (over() || !evaluations_due_.contains(next_event_round_))) {
        events_.push_back(round_event(records_[next_event_round_]));
        ++next_event_round_;
    }
    if (over() && (events_.empty() || events_.back()["event"].text() != "done")) {
        events_.push_back(done_event());
    }
}

Json ExperimentMachine::round_event(const RoundRecord& record) const {
    auto event = Json::object()
        .set("event", "round")
        .set("experiment", id())
        .set("round", record.round)
        .set("rounds", config_.experiment.rounds)
        .set("clients", record.summary["clients"])
        .set("cohort", record.summary["cohort"])
        .set("loss", record.summary["loss"])
        .set("accuracy", accuracy_of(record))
        .set("bytes_up", record.summary["bytes_up"])
        .set("bytes_down", record.summary["bytes_down"])
        .set("seconds", record.summary["seconds"])
        .set("model_sha256", record.model.hex());
    add_figures(record, event);
    return record.evaluation_note.empty() ? event : event.set("accuracy_note", record.evaluation_note);
}

Json ExperimentMachine::done_event() const {
    std::int64_t up = 0;
    std::int64_t down = 0;
    double time = 0;
    for (const auto& record : records_) {
        up += record.summary["bytes_up"].integer();
        down += record.summary["bytes_down"].integer();
        time += record.summary["seconds"].number();
    }
    auto event = Json::object()
                     .set("event", "done")
                     .set("state", saved_.state)
                     .set("reason", saved_.reason)
                     .set("rounds", committed_rounds())
                     .set("loss", records_.empty() ? Json() : records_.back().summary["loss"])
                     .set("accuracy", records_.empty() ? Json() : accuracy_of(records_.back()))
                     .set("bytes_up", up)
                     .set("bytes_down", down)
                     .set("seconds", time);
    if (records_.empty()) {
        return event.set("model", Json()).set("model_sha256", Json());
    }
    const auto& model = records_.back().model;
    add_figures(records_.back(), event);
    if (const auto* found = best()) {
        event.set("best_round", found->round);
    }
    return event.set("model", identity_.model_path ? Json(identity_.model_path(model)) : Json())
        .set("model_sha256", model.hex());
}

Json ExperimentMachine::summary() const {
    auto line = Json::object()
                    .set("id", id())
                    .set("name", saved_.name)
                    .set("state", saved_.state)
                    .set("reason", saved_.reason)
                    .set("round", committed_rounds())
                    .set("rounds", config_.experiment.rounds)
                    .set("submitted_by", saved_.submitted_by);
    if (records_.empty()) {
        return line;
    }
    line.set("loss", records_.back().summary["loss"]).set("accuracy", accuracy_of(records_.back()));
    add_figures(records_.back(), line);
    if (const auto* found = best()) {
        line.set("best_round", found->round);
    }
    return line.set("model_sha256", records_.back().model.hex());
}

Json ExperimentMachine::status() const {
    static constexpr const char* phases[] = {
        "queued", "waiting for clients", "making the initial model", "training", "committing", "evaluating", "over"};
    auto all = summary().set("phase", phases[static_cast<int>(phase_)]);
    all.set("dataset", config_.data.dataset).set("min_clients", config_.sync.min_clients);
    if (round_) {
        all.set("open_round", round_->number()).set("quorum", round_->quorum()).set("members", round_->status());
    }
    return all;
}

}  // namespace causeway
