// Lines of logs for people: what a node sends of its own log is shown, and does nothing else.
// Pure texts. Thread: the test's.
#include <catch2/catch.hpp>

#include "cli/log_lines.h"

namespace causeway::cli {
namespace {

TEST_CASE("a node's log cannot steer the terminal that shows it", "[log_lines]") {
    const auto entry = Json::parse(R"({"n":1,"by":"\u001b[2Jann\nroot","\u001b[8m":"x","left":"out","none":null})", 1000);
    REQUIRE(entry);
    CHECK(details_text(*entry, {"n", "left"}) == "by=?[2Jann root ?[8m=x");
}

}  // namespace
}  // namespace causeway::cli
