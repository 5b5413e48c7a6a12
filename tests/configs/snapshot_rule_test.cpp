// How often a round under way is kept: the texts, and the decisions.
#include "configs/snapshot_rule.h"

#include <catch2/catch.hpp>

namespace causeway {
namespace {

using namespace std::chrono_literals;

bool due(const char* text, const SinceSnapshot& since) {
    const auto rule = parse_snapshot_rule(text);
    REQUIRE(rule);
    return snapshot_due(*rule, since);
}

}  // namespace

TEST_CASE("a snapshot rule has one spelling, and anything else is refused with the forms", "[unit][configs]") {
    for (const auto* text : {"off", "auto", "30s", "90s", "2h", "1500ms", "5m", "1 batches", "100 batches"}) {
        CAPTURE(text);
        const auto rule = parse_snapshot_rule(text);
        REQUIRE(rule);
        CHECK(to_text(*rule) == text);
    }
    CHECK(*parse_snapshot_rule("") == *parse_snapshot_rule("off"));
    CHECK(to_text(*parse_snapshot_rule("120s")) == "2m");
    for (const auto* text :
         {"0s", "0 batches", "-1 batches", "1.5 batches", "batches", "31d", "always", "9999999999 batches"}) {
        CAPTURE(text);
        const auto rule = parse_snapshot_rule(text);
        REQUIRE_FALSE(rule);
        CHECK(rule.error().code == "bad_snapshot_rule");
    }
}

TEST_CASE("by default a round is kept every minute, and more seldom where that is dear", "[unit][configs]") {
    CHECK_FALSE(due("auto", {.batches = 1'000'000, .time = 59s}));
    CHECK(due("auto", {.batches = 1, .time = 60s}));
    CHECK(due("auto", {.batches = 1, .time = 60s, .cost = 1200ms}));
    CHECK_FALSE(due("auto", {.batches = 1, .time = 60s, .cost = 1201ms}));
    CHECK(due("auto", {.batches = 1, .time = 100s, .cost = 2s}));
    CHECK_FALSE(due("off", {.batches = 1'000'000, .time = 24h}));
    CHECK(due("30s", {.batches = 1, .time = 30s, .cost = 30s}));
    CHECK_FALSE(due("30s", {.batches = 1'000'000, .time = 29s}));
    CHECK(due("10 batches", {.batches = 10}));
    CHECK_FALSE(due("10 batches", {.batches = 9, .time = 24h}));
}

}  // namespace causeway
