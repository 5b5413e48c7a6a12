// What an experiment shows: the events of a watch (exact field names: docs, --json), lists and status.
#include <cmath>
#include <limits>

#include "coordinator/experiment_machine.h"

namespace causeway {
namespace {

// Where an evaluation has not been made there is no number: null.
Json accuracy_of(const RoundRecord& record) {
    return record.evaluation ? Json(record.evaluation->accuracy) : Json();
}

Json number_or_null(double value) {
    return std::isfinite(value) ? Json(value) : Json();
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

/// Why an evaluation gave no value of the metric.
std::string why_absent(const std::string& metric, double loss) {
    if (!std::isfinite(loss)) {
        return "the model has diverged: its loss is not a number; lower train.optimizer.learning_rate, or set "
               "train.clip_norm";
    }
    return metric == "auc" ? "all evaluated examples are of one class, and AUC compares two"
                           : "the evaluation did not measure it";
}

/// The metric by which the experiment judges its models, and what it came to: null where it was not measured.
void add_metric(const std::string& metric, const RoundRecord* record, Json& line) {
    const bool measured = record != nullptr && record->evaluation.has_value();
    const double value = measured ? figure_of(*record->evaluation, metric) : std::numeric_limits<double>::quiet_NaN();
    line.set("metric", metric).set("metric_value", number_or_null(value));
    if (measured && !std::isfinite(value)) {
        line.set("metric_note", why_absent(metric, record->evaluation->loss));
    }
}

}  // namespace

/// What can be published: rounds in order, each once its evaluation is in; then the end.
void ExperimentMachine::publish() {
    while (records_.committed(published_ + 1) && (over() || !evaluations_due_.contains(published_ + 1))) {
        ++published_;
    }
}

std::size_t ExperimentMachine::event_count() const {
    const auto rounds = records_.empty() ? 0 : published_ - records_.front().round;
    return rounds + (summed_columns() ? 1U : 0U) + (over() ? 1U : 0U);
}

/// Round 0 had members of its own: those whose columns were summed.
bool ExperimentMachine::summed_columns() const {
    return !records_.empty() && records_.front().round == 0 && records_.front().cohort > 0;
}

/// Made when somebody asks: what is told of ten thousand rounds is not kept.
std::optional<Json> ExperimentMachine::event(std::size_t index) const {
    if (over() && index + 1 == event_count()) {
        return done_event();
    }
    const auto* record = records_.find(first_event_round() + static_cast<std::uint32_t>(index));
    return record == nullptr ? std::nullopt : std::optional(event_of(*record));
}

Json ExperimentMachine::event_of(const RoundRecord& record) const {
    return record.round == 0 && record.cohort > 0 ? statistics_event(record) : round_event(record);
}

Json ExperimentMachine::statistics_event(const RoundRecord& record) const {
    return Json::object()
        .set("event", "statistics")
        .set("experiment", id())
        .set("round", record.round)
        .set("clients", record.clients)
        .set("cohort", record.cohort)
        .set("columns", config_.data.shape.empty() ? 0U : config_.data.shape.back())
        .set("bytes_up", record.bytes_up)
        .set("bytes_down", record.bytes_down)
        .set("seconds", record.seconds);
}

Json ExperimentMachine::round_event(const RoundRecord& record) const {
    auto event = Json::object()
        .set("event", "round")
        .set("experiment", id())
        .set("round", record.round)
        .set("rounds", config_.experiment.rounds)
        .set("clients", record.clients)
        .set("cohort", record.cohort)
        .set("loss", number_or_null(record.loss))
        .set("accuracy", accuracy_of(record))
        .set("bytes_up", record.bytes_up)
        .set("bytes_down", record.bytes_down)
        .set("seconds", record.seconds)
        .set("model_sha256", record.model.hex());
    if (relays_) {
        event.set("stream_bytes_up", record.stream_bytes_up).set("stream_bytes_down", record.stream_bytes_down);
        if (relays_->turns == RelayPlan::Turns::together) {  // no groups: one client that the others waited for
            event.set("critical_client", record.critical_client);
        } else {
            event.set("critical_group", record.critical_group);
        }
    }
    if (record.without.is_array() && !record.without.items().empty()) {
        event.set("without", record.without);
    }
    add_figures(record, event);
    add_metric(config_.evaluation.metric, &record, event);
    return record.evaluation_note.empty() ? event : event.set("accuracy_note", record.evaluation_note);
}

Json ExperimentMachine::done_event() const {
    const auto& all = records_.totals();
    auto event = Json::object()
                     .set("event", "done")
                     .set("state", saved_.state)
                     .set("reason", saved_.reason)
                     .set("rounds", committed_rounds())
                     .set("loss", records_.empty() ? Json() : number_or_null(records_.back().loss))
                     .set("accuracy", records_.empty() ? Json() : accuracy_of(records_.back()))
                     .set("bytes_up", all.bytes_up)
                     .set("bytes_down", all.bytes_down)
                     .set("seconds", all.seconds);
    if (relays_) {
        event.set("stream_bytes_up", all.stream_bytes_up).set("stream_bytes_down", all.stream_bytes_down);
    }
    add_metric(config_.evaluation.metric, records_.empty() ? nullptr : &records_.back(), event);
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
                    .set("submitted_by", saved_.submitted_by)
                    .set("priority", config_.experiment.priority)
                    .set("parent", saved_.parent != 0 ? Json(saved_.parent) : Json());
    add_metric(config_.evaluation.metric, records_.empty() ? nullptr : &records_.back(), line);
    if (records_.empty()) {
        return line;
    }
    line.set("loss", number_or_null(records_.back().loss)).set("accuracy", accuracy_of(records_.back()));
    add_figures(records_.back(), line);
    if (const auto* found = best()) {
        line.set("best_round", found->round);
    }
    return line.set("model_sha256", records_.back().model.hex());
}

Json ExperimentMachine::status(Instant now) const {
    static constexpr const char* phases[] = {
        "queued", "waiting for clients", "making the initial model", "training", "committing", "evaluating", "over",
        "waiting for the build that began it"};
    const bool sums = phase_ == Phase::open && round_->number() == 0;
    auto all = summary().set("phase", sums ? "summing columns" : phases[static_cast<int>(phase_)]);
    if (config_.data.normalise != "none") {
        all.set("normalise", config_.data.normalise);
    }
    all.set("dataset", config_.data.dataset).set("min_clients", config_.sync.min_clients);
    all.set("build", saved_.build.empty() ? Json() : Json(saved_.build));
    if (saved_.parent != 0) {
        all.set("parent_round", saved_.parent_round);
    }
    all.set("time", last_times_);
    if (round_) {
        all.set("open_round", round_->number()).set("quorum", round_->quorum()).set("members", round_->status(now));
    }
    return all;
}

}  // namespace causeway
