// What --http shows, gathered on the loop's thread: the numbers are of one moment.
#include "coordinator/loop.h"

namespace causeway {
namespace {

ExperimentMetrics metrics_of(ExperimentId id, const ExperimentMachine& experiment) {
    ExperimentMetrics metrics{.id = id, .name = experiment.saved().name};
    metrics.rounds = experiment.config().experiment.rounds;
    metrics.cohort = experiment.members_in_round().size();
    if (!experiment.records().empty()) {
        metrics.round = experiment.records().back().round;
        metrics.round_seconds = experiment.records().back().seconds;
    }
    return metrics;
}

}  // namespace

void Loop::on(const ScrapeMetrics& event) {
    CoordinatorMetrics metrics{.version = CAUSEWAY_VERSION, .uptime_seconds = seconds(now_)};
    for (const auto& [connection, session] : sessions_) {
        if (session.greeted) {
            ++metrics.sessions[std::string(to_string(session.peer.identity.role))];
        }
    }
    for (const auto& [id, experiment] : machine_.experiments()) {
        ++metrics.experiments[experiment.saved().state];
        metrics.rounds_committed += experiment.records().empty() ? 0 : experiment.records().back().round;
        if (experiment.active()) {
            metrics.running.push_back(metrics_of(id, experiment));
        }
    }
    const auto traffic = partners_.link.traffic();
    metrics.bytes_received = traffic.received;
    metrics.bytes_sent = traffic.sent;
    metrics.bytes_relayed = partners_.link.stream_traffic().sent;
    metrics.store_flushes = partners_.store.flushes();
    metrics.queued_events = queue_->size();
    metrics.spool_bytes = room_.bytes();
    metrics.spool_quota = partners_.limits->spool_quota;
    metrics.state_bytes = partners_.jobs.state_bytes();
    metrics.state_quota = partners_.limits->state_quota;
    (void)event.answer->try_push(metrics);
}

}  // namespace causeway
