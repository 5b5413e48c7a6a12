// Who is drawn, by each rule: functions of seed, round and names, whatever else there is.
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "coordinator/selection.h"

namespace causeway {
namespace {

std::vector<Candidate> eight() {
    std::vector<Candidate> all;
    for (std::uint32_t i = 0; i < 8; ++i) {
        all.push_back({std::string(1, static_cast<char>('a' + i)), 100 * (i + 1), 0});
    }
    return all;
}

std::map<std::string, int> drawn_in(const std::string& rule, std::uint32_t wanted, std::uint32_t rounds,
                                    std::vector<Candidate> candidates) {
    std::map<std::string, int> times;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
        for (const auto& name : select({rule, wanted, 7, round}, candidates)) {
            ++times[name];
            candidates[static_cast<std::size_t>(name[0] - 'a')].last_drawn = round;
        }
    }
    return times;
}

}  // namespace

TEST_CASE("as many as are wanted, all of them when more are wanted than there are", "[selection]") {
    for (const auto* rule : {"uniform", "weighted", "availability"}) {
        CHECK(select({rule, 3, 7, 1}, eight()).size() == 3);
        CHECK(select({rule, 9, 7, 1}, eight()).size() == 8);
        CHECK(select({rule, 3, 7, 1}, eight()) == select({rule, 3, 7, 1}, eight()));
        CHECK(select({rule, 3, 7, 1}, {}).empty());
    }
    CHECK(select({"uniform", 3, 7, 1}, eight()) != select({"uniform", 3, 7, 2}, eight()));
}

TEST_CASE("uniform draws every client about as often", "[selection]") {
    for (const auto& [name, times] : drawn_in("uniform", 2, 4000, eight())) {
        CHECK(times == Approx(1000).margin(110));  // 4 standard deviations
    }
}

TEST_CASE("weighted draws one in proportion to the examples", "[selection]") {
    const auto times = drawn_in("weighted", 1, 9000, eight());  // 36 hundreds of examples in all
    for (int i = 0; i < 8; ++i) {
        const double expected = 9000.0 * (i + 1) / 36;
        CHECK(times.at(std::string(1, static_cast<char>('a' + i))) == Approx(expected).margin(4 * std::sqrt(expected)));
    }
}

TEST_CASE("a client without examples is drawn by weight only when the others are", "[selection]") {
    auto candidates = eight();
    candidates[3].examples = 0;
    for (std::uint32_t round = 1; round < 200; ++round) {
        for (const auto& name : select({"weighted", 7, 7, round}, candidates)) {
            CHECK(name != "d");
        }
    }
}

TEST_CASE("availability takes turns: who has waited longest comes first", "[selection]") {
    for (const auto& [name, times] : drawn_in("availability", 3, 80, eight())) {
        CHECK(times == Approx(30).margin(1));
    }
    auto candidates = eight();
    for (auto& candidate : candidates) {
        candidate.last_drawn = 5;
    }
    candidates[6].last_drawn = 2;
    candidates[1].last_drawn = 4;
    CHECK(select({"availability", 2, 7, 6}, candidates) == std::vector<std::string>{"b", "g"});
}

}  // namespace causeway
