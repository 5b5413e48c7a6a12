// The table of metrics, each with its help and its samples.
#include "coordinator/metrics.h"

#include <cmath>

#include <fmt/format.h>

#include "common/printable.h"

namespace causeway {

namespace {

// Always shown, so that a query finds 0 instead of nothing.
const std::vector<std::string> metric_states = {"queued",    "starting", "running",  "paused",
                                                "succeeded", "failed",   "cancelled"};
const std::vector<std::string> metric_roles = {"client", "host", "aggregator", "operator"};

struct MetricSample {
    std::string labels;  // `state="running"`, may be empty
    double value = 0;
};
using Samples = std::vector<MetricSample>;

struct Metric {
    std::string name;
    const char* type;
    const char* help;
    Samples (*samples)(const CoordinatorMetrics& metrics);
};

/// A label's value may hold anything: what steers is not shown, backslash, quote and line end are escaped.
std::string escaped(const std::string& text) {
    std::string safe;
    for (const char c : printable(text, Lines::many)) {
        safe += c == '\n' ? "\\n" : c == '\t' ? " " : c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return safe;
}

std::string label(const char* name, const std::string& value) {
    return fmt::format("{}=\"{}\"", name, escaped(value));
}

Samples one(std::uint64_t value) {
    return {{"", static_cast<double>(value)}};
}

/// One sample for each of `always`, and for what else there is.
Samples by(const char* name, const std::vector<std::string>& always, std::map<std::string, std::uint64_t> counts) {
    for (const auto& key : always) {
        counts.try_emplace(key, 0);
    }
    Samples samples;
    for (const auto& [key, count] : counts) {
        samples.push_back({label(name, key), static_cast<double>(count)});
    }
    return samples;
}

template <class Value>
Samples each_experiment(const CoordinatorMetrics& metrics, Value value) {
    Samples samples;
    for (const auto& experiment : metrics.running) {
        samples.push_back({label("experiment", std::to_string(experiment.id)) + "," + label("name", experiment.name),
                           static_cast<double>(value(experiment))});
    }
    return samples;
}

const std::vector<Metric>& published_metrics() {
    static const std::vector<Metric> metrics = {
        {"causeway_build_info", "gauge", "Always 1; the label is the version.",
         [](const CoordinatorMetrics& m) {
             return Samples{{label("version", m.version), 1}};
         }},
        {"causeway_uptime_seconds", "gauge", "Since this process started.",
         [](const CoordinatorMetrics& m) {
             return Samples{{"", m.uptime_seconds}};
         }},
        {"causeway_sessions", "gauge", "Connected nodes and operators, by role.",
         [](const CoordinatorMetrics& m) { return by("role", metric_roles, m.sessions); }},
        {"causeway_experiments", "gauge", "Experiments of the federation, by state.",
         [](const CoordinatorMetrics& m) { return by("state", metric_states, m.experiments); }},
        {"causeway_rounds_committed_total", "counter", "Rounds committed, of all experiments that are kept.",
         [](const CoordinatorMetrics& m) { return one(m.rounds_committed); }},
        {"causeway_received_bytes_total", "counter", "Received from nodes, at the socket, after encryption.",
         [](const CoordinatorMetrics& m) { return one(m.bytes_received); }},
        {"causeway_sent_bytes_total", "counter", "Sent to nodes, at the socket, after encryption.",
         [](const CoordinatorMetrics& m) { return one(m.bytes_sent); }},
        {"causeway_relayed_bytes_total", "counter",
         "Sent to nodes of what other nodes stream to them through the relay.",
         [](const CoordinatorMetrics& m) { return one(m.bytes_relayed); }},
        {"causeway_store_flushes_total", "counter", "Flushes of the database to the disk.",
         [](const CoordinatorMetrics& m) { return one(m.store_flushes); }},
        {"causeway_loop_queued_events", "gauge", "Events that wait for the loop; it stands near 0 when healthy.",
         [](const CoordinatorMetrics& m) { return one(m.queued_events); }},
        {"causeway_spool_bytes", "gauge",
         "Updates that are coming or wait to be checked, and parts of broken transfers.",
         [](const CoordinatorMetrics& m) { return one(m.spool_bytes); }},
        {"causeway_spool_quota_bytes", "gauge", "Their bound; 0: none.",
         [](const CoordinatorMetrics& m) { return one(m.spool_quota); }},
        {"causeway_state_bytes", "gauge", "Models and store on the disk, as of the last commit.",
         [](const CoordinatorMetrics& m) { return one(m.state_bytes); }},
        {"causeway_state_quota_bytes", "gauge", "Their bound; 0: none.",
         [](const CoordinatorMetrics& m) { return one(m.state_quota); }},
        {"causeway_experiment_round", "gauge", "The last committed round of an experiment that is not over.",
         [](const CoordinatorMetrics& m) { return each_experiment(m, [](const auto& e) { return e.round; }); }},
        {"causeway_experiment_rounds", "gauge", "The rounds that it is to have.",
         [](const CoordinatorMetrics& m) { return each_experiment(m, [](const auto& e) { return e.rounds; }); }},
        {"causeway_experiment_round_seconds", "gauge", "How long its last committed round took.",
         [](const CoordinatorMetrics& m) { return each_experiment(m, [](const auto& e) { return e.round_seconds; }); }},
        {"causeway_experiment_cohort", "gauge", "Members of its open round.",
         [](const CoordinatorMetrics& m) { return each_experiment(m, [](const auto& e) { return e.cohort; }); }},
    };
    return metrics;
}

/// Whole numbers without an exponent, so that a person can read them.
std::string number(double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{}", value);
}

}  // namespace

std::string to_prometheus(const CoordinatorMetrics& metrics) {
    std::string text;
    for (const auto& metric : published_metrics()) {
        const auto samples = metric.samples(metrics);
        text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name, metric.type);
        for (const auto& sample : samples) {
            text += sample.labels.empty()
                        ? fmt::format("{} {}\n", metric.name, number(sample.value))
                        : fmt::format("{}{{{}}} {}\n", metric.name, sample.labels, number(sample.value));
        }
    }
    return text;
}

std::vector<std::string> exported_metric_names() {
    std::vector<std::string> names;
    for (const auto& metric : published_metrics()) {
        names.push_back(metric.name);
    }
    return names;
}

}  // namespace causeway
