// What `--http` shows of a coordinator: a plain value, filled by the loop, printed as Prometheus' text.
//
// The text is written by hand: it is a page long, while prometheus-cpp brings a registry, threads of its own and a web
// server for what are a dozen numbers that the loop has at hand anyway. Names follow Prometheus' conventions (a unit at
// the end, _total for what only rises); docs/metrics.md lists each, and a test compares. Pure.
// source: https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace causeway {

struct ExperimentMetrics {
    std::uint64_t id = 0;
    std::string name;
    std::uint32_t round = 0;  // the last committed
    std::uint32_t rounds = 0;
    double round_seconds = 0;  // of the last committed
    std::uint64_t cohort = 0;  // members of the open round
};

struct CoordinatorMetrics {
    std::string version;
    double uptime_seconds = 0;
    std::map<std::string, std::uint64_t> sessions;     // by role
    std::map<std::string, std::uint64_t> experiments;  // by state
    std::uint64_t rounds_committed = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_relayed = 0;  // part of those sent
    std::uint64_t store_flushes = 0;
    std::uint64_t queued_events = 0;
    std::uint64_t spool_bytes = 0;
    std::uint64_t spool_quota = 0;  // both: 0: none
    std::uint64_t state_bytes = 0;
    std::uint64_t state_quota = 0;
    std::vector<ExperimentMetrics> running;  // starting, running or paused
};

[[nodiscard]] std::string to_prometheus(const CoordinatorMetrics& metrics);
/// Every name that to_prometheus can print.
[[nodiscard]] std::vector<std::string> exported_metric_names();

}  // namespace causeway
