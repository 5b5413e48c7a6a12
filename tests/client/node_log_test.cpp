// The node's own log: numbered, bounded, readable after a kill, and silent about what is not for others.
#include <fstream>

#include <catch2/catch.hpp>

#include "client/log_entries.h"
#include "client/node_log.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

std::vector<std::int64_t> numbers(const std::vector<Json>& lines) {
    std::vector<std::int64_t> all;
    for (const auto& line : lines) {
        all.push_back(line["n"].integer());
    }
    return all;
}

void write_lines(const std::filesystem::path& state, int count, const std::string& filler = "") {
    const auto log = *NodeLog::open(state);
    for (int i = 0; i < count; ++i) {
        log->add({"assigned", Json::object().set("round", i).set("name", filler)});
    }
}  // its thread has written everything when it goes

}  // namespace

TEST_CASE("lines are numbered across restarts, and read from the end or after a number", "[client][log]") {
    const TemporaryFolder temporary;
    CHECK(read_node_log(temporary.path, 0, 5).error().code == "no_node_log");
    write_lines(temporary.path, 3);
    write_lines(temporary.path, 2);
    CHECK(numbers(*read_node_log(temporary.path, 0, 100)) == std::vector<std::int64_t>{1, 2, 3, 4, 5});
    CHECK(numbers(*read_node_log(temporary.path, 0, 2)) == std::vector<std::int64_t>{4, 5});
    CHECK(numbers(*read_node_log(temporary.path, 2, 2)) == std::vector<std::int64_t>{3, 4});
    CHECK(read_node_log(temporary.path, 5, 2)->empty());
}

TEST_CASE("two files bound the log, and the newest lines are whole", "[client][log]") {
    const TemporaryFolder temporary;
    const std::string filler(150, 'x');
    const int count = 20'000;  // about 4 MB
    for (int part = 0; part < 4; ++part) {
        write_lines(temporary.path, count / 4, filler);
    }
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(temporary.path / "log")) {
        bytes += entry.file_size();
    }
    CHECK(bytes < 2 * max_log_file_bytes + 1000);
    CHECK(bytes > max_log_file_bytes);
    CHECK(numbers(*read_node_log(temporary.path, 0, 2)) == std::vector<std::int64_t>{count - 1, count});
}

TEST_CASE("a line that a kill cut short is skipped, and the next one is whole", "[client][log]") {
    const TemporaryFolder temporary;
    write_lines(temporary.path, 2);
    std::ofstream(temporary.path / "log" / "node.log", std::ios::app) << R"({"n":3,"wh)";
    write_lines(temporary.path, 1);
    CHECK(numbers(*read_node_log(temporary.path, 0, 9)) == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("a long text of a peer is cut", "[client][log]") {
    const TemporaryFolder temporary;
    write_lines(temporary.path, 1, std::string(100'000, 'y'));
    CHECK((*read_node_log(temporary.path, 0, 1))[0]["name"].text().size() == max_log_text);
}

TEST_CASE("messages that may quote the data leave only their code in the log", "[client][log]") {
    const Decline data{{1, 2, 3, 1}, "bad_value", "part.csv:7: 'patient 4711' is no number"};
    const auto declined = entry_of_said(data);
    REQUIRE(declined);
    CHECK(declined->detail.dump() == R"({"experiment":2,"round":3,"code":"bad_value"})");
    const auto policy = entry_of_said(Decline{{1, 2, 3, 1}, "policy_cohort", "policy.toml:4:1: min_cohort: ..."});
    REQUIRE(policy);
    CHECK(policy->detail["why"].text() == "policy.toml:4:1: min_cohort: ...");
    const auto failed = entry_of_event(Trained{{1, 2, 3, 1}, {}, Error{ErrorKind::corrupt, "bad_csv", "row 7: 4711"}});
    REQUIRE(failed);
    CHECK(failed->detail.dump() == R"({"experiment":2,"round":3,"code":"bad_csv"})");
    const auto refused = entry_of_heard(Refused{{1, 2, 3, 1}, {}, "norm", "tensor w1 is 4711", "w1", 9});
    REQUIRE(refused);
    CHECK(refused->detail.dump() == R"({"experiment":2,"round":3,"code":"norm"})");
    CHECK_FALSE(entry_of_said(Progress{}));
    CHECK_FALSE(entry_of_heard(Counted{}));
}

}  // namespace causeway::node
