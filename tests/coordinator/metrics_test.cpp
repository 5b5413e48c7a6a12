// The page of /metrics: Prometheus' format, names and docs.
#include <fstream>
#include <regex>
#include <set>

#include <catch2/catch.hpp>

#include "coordinator/http.h"
#include "coordinator/metrics.h"

namespace causeway {
namespace {

CoordinatorMetrics sample() {
    CoordinatorMetrics metrics{.version = "0.1.0", .uptime_seconds = 1.5};
    metrics.sessions = {{"client", 3}};
    metrics.experiments = {{"running", 1}, {"failed", 2}};
    metrics.rounds_committed = 12;
    metrics.bytes_received = std::uint64_t{1} << 40;
    metrics.bytes_relayed = 12'345;
    metrics.running.push_back({.id = 4, .name = "a\"b\\c\nd", .round = 3, .rounds = 9, .round_seconds = 0.25});
    return metrics;
}

bool has_line(const std::string& text, const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("every state and role has a sample, so that a query finds 0 instead of nothing", "[coordinator][metrics]") {
    const auto text = to_prometheus(sample());
    CHECK(has_line(text, "causeway_experiments{state=\"running\"} 1"));
    CHECK(has_line(text, "causeway_experiments{state=\"failed\"} 2"));
    CHECK(has_line(text, "causeway_experiments{state=\"paused\"} 0"));
    CHECK(has_line(text, "causeway_sessions{role=\"client\"} 3"));
    CHECK(has_line(text, "causeway_sessions{role=\"operator\"} 0"));
}

TEST_CASE("large counts are whole numbers, fractions keep their digits, label values are escaped",
          "[coordinator][metrics]") {
    const auto text = to_prometheus(sample());
    CHECK(has_line(text, "causeway_received_bytes_total 1099511627776"));
    CHECK(has_line(text, "causeway_relayed_bytes_total 12345"));
    CHECK(has_line(text, "causeway_uptime_seconds 1.5"));
    CHECK(has_line(text, "causeway_experiment_round_seconds{experiment=\"4\",name=\"a\\\"b\\\\c\\nd\"} 0.25"));
}

TEST_CASE("every line is a help, a type or a sample of the metric above it", "[coordinator][metrics]") {
    const std::regex sample_line(R"(([a-z_]+)(\{([a-z]+="(\\.|[^"\\])*",?)+\})? [0-9.e+-]+)");
    const std::regex head(R"(# (HELP|TYPE) (causeway_[a-z_]+) .+)");
    std::istringstream lines(to_prometheus(sample()));
    std::string metric;
    for (std::string line; std::getline(lines, line);) {
        INFO(line);
        std::smatch match;
        if (std::regex_match(line, match, head)) {
            metric = match[2];
        } else {
            REQUIRE(std::regex_match(line, match, sample_line));
            CHECK(match[1] == metric);
        }
    }
}

TEST_CASE("names follow the conventions and docs/metrics.md explains each", "[coordinator][metrics]") {
    std::ifstream file(std::string(CAUSEWAY_SOURCE_ROOT) + "/docs/metrics.md");
    const std::string docs((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto text = to_prometheus(sample());
    std::set<std::string> seen;
    for (const auto& name : exported_metric_names()) {
        INFO(name);
        CHECK(seen.insert(name).second);
        CHECK(docs.find("| `" + name + "` |") != std::string::npos);
        const bool counter = text.find("# TYPE " + name + " counter") != std::string::npos;
        CHECK(counter == name.ends_with("_total"));
    }
}

TEST_CASE("--http serves loopback addresses only", "[coordinator][metrics]") {
    for (const auto* host : {"0.0.0.0", "::", "*", "192.0.2.1", "example.org", "127.example.org"}) {
        INFO(host);
        const auto started = HttpServer::start({host, 0}, [] { return std::optional<CoordinatorMetrics>(); });
        REQUIRE_FALSE(started.has_value());
        CHECK(started.error().code == "http_not_loopback");
    }
}

TEST_CASE("a server that is stopped at once stops, and its port is free again", "[coordinator][metrics]") {
    std::uint16_t port = 0;
    {
        const auto first = HttpServer::start({"127.0.0.1", 0}, [] { return std::optional<CoordinatorMetrics>(); });
        REQUIRE(first.has_value());
        port = (*first)->port();
        const auto second = HttpServer::start({"127.0.0.1", port}, [] { return std::optional<CoordinatorMetrics>(); });
        REQUIRE_FALSE(second.has_value());
        CHECK(second.error().code == "port_in_use");
    }
    CHECK(HttpServer::start({"127.0.0.1", port}, [] { return std::optional<CoordinatorMetrics>(); }).has_value());
}

}  // namespace causeway
