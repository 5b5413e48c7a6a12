// Lines of the live view: what a person sees of a round is what its event says, and no more.
// Pure texts; the picture at a terminal is looked at from outside (tests/e2e/terminal_test.py).
// Thread: the test's.
#include <catch2/catch.hpp>

#include "cli/live_view.h"

namespace causeway::cli {
namespace {

Json round() {
    return Json::object()
        .set("event", "round")
        .set("round", 2)
        .set("rounds", 5)
        .set("clients", 3)
        .set("cohort", 3)
        .set("loss", 0.5)
        .set("accuracy", 0.75)
        .set("bytes_up", 1000)
        .set("bytes_down", 1000)
        .set("seconds", 1.5);
}

Json relays() {
    return round().set("stream_bytes_up", 3000).set("stream_bytes_down", 2000);
}

TEST_CASE("a round of groups names the one that it waited for, a round without them the client", "[live_view]") {
    const auto groups = relays().set("critical_group", 2);
    CHECK(round_line(groups, "3s").ends_with("5.00 KB   group 2"));
    const auto together = relays().set("critical_client", "client-3");
    CHECK(round_line(together, "3s").ends_with("5.00 KB  client-3"));
    CHECK(round_line(together, "3s").find("group") == std::string::npos);
    for (const auto& event : {groups, together}) {
        CHECK(round_header(event).ends_with("streams      last"));
    }
}

TEST_CASE("a round without relays has no columns for them", "[live_view]") {
    CHECK(round_header(round()).ends_with("ETA"));
    CHECK(round_line(round(), "3s").ends_with("3s"));
}

TEST_CASE("a run is shown by the metric that it is judged by, a regression never by an accuracy", "[live_view]") {
    const auto regression =
        round().set("accuracy", Json()).set("metric", "rmse").set("metric_value", 0.25).set("rmse", 0.25);
    CHECK(round_header(regression).find("RMSE") != std::string::npos);
    CHECK(round_header(regression).find("accuracy") == std::string::npos);
    CHECK(round_line(regression, "3s").find("0.2500") != std::string::npos);
    const auto shares = round().set("metric", "macro_f1").set("metric_value", 0.5);
    CHECK(round_line(shares, "3s").find("50.00 %") != std::string::npos);
    const auto absent = round().set("metric", "auc").set("metric_value", Json());
    CHECK(round_line(absent, "3s").find("75.00 %") == std::string::npos);
}

}  // namespace
}  // namespace causeway::cli
