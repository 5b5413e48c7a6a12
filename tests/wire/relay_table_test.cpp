// The relay's rules without connections: who is forwarded to whom, how much, and what is refused by name.
#include <set>

#include <catch2/catch.hpp>

#include "wire/relay_table.h"

namespace causeway {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t table_experiment = 7;
constexpr ConnectionId carrier_a = 11;
constexpr ConnectionId carrier_b = 12;

struct Office {
    std::vector<std::pair<ConnectionId, Message>> sent;
    std::vector<std::pair<std::string, RelayOpen>> asked;
    std::set<std::string> here{"a", "b", "c"};
    Instant now = seconds(1);
    RelayTable table{{[this](ConnectionId to, Message m) { sent.emplace_back(to, std::move(m)); },
                      [this](const std::string& node, const RelayOpen& open) {
                          asked.emplace_back(node, open);
                          return here.contains(node);
                      }}};

    void allow(std::uint64_t quota = 1 << 30) { table.allow({{"b", "a", table_experiment, seconds(61), quota}}, now); }
    std::string say(ConnectionId from, Message message) {
        const auto status = table.handle(from, std::move(message), now);
        return status ? "" : status.error().code;
    }
    template <class M>
    std::vector<std::pair<ConnectionId, M>> take() {
        std::vector<std::pair<ConnectionId, M>> found;
        std::erase_if(sent, [&](const auto& one) {
            const auto* m = std::get_if<M>(&one.second);
            if (m) {
                found.emplace_back(one.first, *m);
            }
            return m != nullptr;
        });
        return found;
    }
    /// a asks for b, both have a relay connection; returns b's number of the pair.
    std::uint64_t join() {
        table.opened(carrier_a, "a");
        table.opened(carrier_b, "b");
        REQUIRE(say(carrier_a, RelayOpen{5, "b", table_experiment}).empty());
        const auto opened = take<RelayOpen>();
        REQUIRE(opened.size() == 1);
        CHECK(opened.front().first == carrier_b);
        CHECK(opened.front().second.node == "a");
        CHECK(opened.front().second.experiment == table_experiment);
        return opened.front().second.pair;
    }
    std::string ended_at(ConnectionId carrier) {
        for (const auto& [to, end] : take<RelayEnd>()) {
            if (to == carrier) {
                return end.code;
            }
        }
        return "nothing";
    }
};

Bytes bytes(std::size_t size) {
    return Bytes(size, std::byte{9});
}

TEST_CASE("frames of an allowed pair are forwarded both ways, as far as the receiver grants", "[wire][relay]") {
    Office office;
    office.allow();
    const auto at_b = office.join();
    REQUIRE(office.say(carrier_b, RelayCredit{at_b, 1000}).empty());
    auto granted = office.take<RelayCredit>();
    REQUIRE(granted.size() == 1);
    CHECK(granted.front() == std::pair(carrier_a, RelayCredit{5, 1000}));
    REQUIRE(office.say(carrier_a, RelayFrame{5, bytes(600)}).empty());
    REQUIRE(office.say(carrier_a, RelayFrame{5, bytes(400)}).empty());
    REQUIRE(office.say(carrier_a, RelayCredit{5, 10}).empty());
    REQUIRE(office.say(carrier_b, RelayFrame{at_b, bytes(10)}).empty());
    const auto frames = office.take<RelayFrame>();
    REQUIRE(frames.size() == 3);
    CHECK(frames[0] == std::pair(carrier_b, RelayFrame{at_b, bytes(600)}));
    CHECK(frames[2] == std::pair(carrier_a, RelayFrame{5, bytes(10)}));
    REQUIRE(office.table.use().size() == 1);
    CHECK(office.table.use().front().first == "a");
    CHECK(office.table.use().front().bytes == 1010);
    REQUIRE(office.say(carrier_b, RelayEnd{at_b, "", ""}).empty());
    CHECK(office.ended_at(carrier_a) == "ended");
    CHECK(office.table.empty());
}

TEST_CASE("a node that has no relay connection is asked to open one, and then hears what it missed", "[wire][relay]") {
    Office office;
    office.allow();
    office.table.opened(carrier_a, "a");
    REQUIRE(office.say(carrier_a, RelayOpen{5, "b", table_experiment}).empty());
    REQUIRE(office.say(carrier_a, RelayCredit{5, 77}).empty());
    REQUIRE(office.asked.size() == 1);
    CHECK(office.asked.front().first == "b");
    CHECK(office.sent.empty());
    SECTION("it opens one") {
        office.table.opened(carrier_b, "b");
        const auto opened = office.take<RelayOpen>();
        REQUIRE(opened.size() == 1);
        CHECK(office.take<RelayCredit>() ==
              std::vector{std::pair(carrier_b, RelayCredit{opened.front().second.pair, 77})});
    }
    SECTION("it does not, and the pair is not kept half open") {
        office.now += seconds(6);
        office.table.tick(office.now);
        CHECK(office.ended_at(carrier_a) == "relay_timeout");
        CHECK(office.table.empty());
    }
    SECTION("nothing goes to it before it has granted anything") {
        REQUIRE(office.say(carrier_a, RelayFrame{5, bytes(1)}).empty());
        CHECK(office.ended_at(carrier_a) == "beyond_credit");
    }
}

TEST_CASE("only pairs that the coordinator allows are opened", "[wire][relay]") {
    Office office;
    office.allow();
    office.table.opened(carrier_a, "a");
    RelayOpen asked{5, "b", table_experiment};
    std::string expected = "not_on_roster";
    SECTION("another node") {
        asked.node = "c";
    }
    SECTION("another experiment") {
        asked.experiment += 1;
    }
    SECTION("itself") {
        asked.node = "a";
    }
    SECTION("too late") {
        office.now += seconds(61);
    }
    SECTION("a node without a session") {
        office.here.clear();
        expected = "peer_gone";
    }
    CHECK(office.say(carrier_a, asked).empty());
    CHECK(office.ended_at(carrier_a) == expected);
    CHECK(office.table.empty());
}

TEST_CASE("who sends or grants more than it may loses the pair, at both ends, by name", "[wire][relay]") {
    Office office;
    office.allow(5000);
    const auto at_b = office.join();
    REQUIRE(office.say(carrier_b, RelayCredit{at_b, relay_window}).empty());
    std::string expected;
    SECTION("more than was granted") {
        REQUIRE(office.say(carrier_a, RelayCredit{5, 100}).empty());
        CHECK(office.say(carrier_b, RelayFrame{at_b, bytes(101)}).empty());
        expected = "beyond_credit";
    }
    SECTION("more than the window is granted") {
        CHECK(office.say(carrier_b, RelayCredit{at_b, 1}).empty());
        expected = "too_much_credit";
    }
    SECTION("so much more that a sum would overflow") {
        CHECK(office.say(carrier_b, RelayCredit{at_b, std::uint64_t{1} << 62}).empty());
        expected = "too_much_credit";
    }
    SECTION("more than the pair's quota") {
        REQUIRE(office.say(carrier_a, RelayFrame{5, bytes(4000)}).empty());
        CHECK(office.say(carrier_a, RelayFrame{5, bytes(1001)}).empty());
        expected = "relay_quota";
    }
    const auto ends = office.take<RelayEnd>();
    REQUIRE(ends.size() == 2);
    CHECK(ends[0].second.code == expected);
    CHECK(ends[1].second.code == expected);
    office.sent.clear();
    CHECK(office.say(carrier_a, RelayFrame{5, bytes(1)}).empty());  // what was on the way is nobody's fault
    CHECK(office.sent.empty());
}

TEST_CASE("a pair ends with its permit, and with either relay connection", "[wire][relay]") {
    Office office;
    office.allow();
    office.join();
    SECTION("it expires") {
        office.now += seconds(61);
        office.table.tick(office.now);
        CHECK(office.ended_at(carrier_a) == "roster_expired");
    }
    SECTION("it is taken back") {
        office.table.allow({}, office.now);
        CHECK(office.ended_at(carrier_b) == "roster_expired");
    }
    SECTION("the asker's connection goes") {
        office.table.closed(carrier_a);
        CHECK(office.ended_at(carrier_b) == "peer_gone");
    }
    SECTION("the asked node's goes") {
        office.table.closed(carrier_b);
        CHECK(office.ended_at(carrier_a) == "peer_gone");
    }
    CHECK(office.table.empty());
}

TEST_CASE("numbers that are nobody's are the sender's mistake", "[wire][relay]") {
    Office office;
    office.allow();
    const auto at_b = office.join();
    CHECK(office.say(carrier_a, RelayFrame{6, bytes(1)}) == "unknown_pair");
    CHECK(office.say(carrier_a, RelayCredit{at_b, 1}) == "unknown_pair");  // another's
    CHECK(office.say(carrier_a, RelayEnd{99, "", ""}) == "unknown_pair");
    CHECK(office.say(carrier_a, RelayOpen{5, "b", table_experiment}) == "bad_pair");
    CHECK(office.say(carrier_a, RelayOpen{0, "b", table_experiment}) == "bad_pair");
    CHECK(office.say(carrier_a, RelayOpen{at_b, "b", table_experiment}) == "bad_pair");
    CHECK(office.say(carrier_a, Credit{1, 1}) == "wrong_connection");
    std::size_t open = 1;
    for (std::uint64_t number = 100; number < 200; ++number) {
        REQUIRE(office.say(carrier_a, RelayOpen{number, "b", table_experiment}).empty());
        open += office.take<RelayEnd>().empty() ? 1 : 0;
    }
    CHECK(open == relay_pairs_per_node);
}

}  // namespace
}  // namespace causeway
