// Evaluation on the clients: who is left out is named, and the order of answers does not show.
#include <algorithm>

#include <catch2/catch.hpp>

#include "coordinator/client_evaluation.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{};

Reply reply_of(std::uint64_t examples, double accuracy) {
    return {.id = evaluation_request(3, 5),
            .body = to_json(Figures{examples, {{"loss", 1 - accuracy}, {"accuracy", accuracy}}}).dump()};
}

TEST_CASE("every order of answers gives the same figures, bit by bit") {
    std::vector<std::pair<std::string, Reply>> answers = {
        {"a", reply_of(7, 0.1)}, {"b", reply_of(11, 0.37)}, {"c", reply_of(13, 0.9)}, {"d", reply_of(3, 1.0 / 3)}};
    std::optional<Json> first;
    do {
        ClientEvaluation evaluation(start + 1min, {"a", "b", "c", "d"});
        for (const auto& [node, reply] : answers) {
            evaluation.answer(node, reply);
        }
        REQUIRE(evaluation.settled());
        first = first.value_or(evaluation.describe());
        CHECK(evaluation.describe().dump() == first->dump());
    } while (std::ranges::next_permutation(answers, {}, [](const auto& entry) { return entry.first; }).found);
}

TEST_CASE("who is gone, refuses, says nonsense or is late is left out by name") {
    ClientEvaluation evaluation(start + 1min, {"a", "b", "c", "d", "e"});
    evaluation.answer("a", reply_of(10, 0.5));
    evaluation.answer("a", reply_of(1000, 1.0));  // a second word changes nothing
    evaluation.answer("x", reply_of(1000, 1.0));  // nor does one who was not asked
    evaluation.leave_out("b", "gone");
    evaluation.answer("c", Reply{.id = 1, .error = ErrorNotice{ErrorKind::refused, "policy_hours", "not now"}});
    evaluation.answer("d", Reply{.id = 1, .body = "{\"examples\":\"many\"}"});
    CHECK_FALSE(evaluation.settled());
    CHECK(evaluation.deadline() == start + 1min);
    evaluation.tick(start + 59s);
    CHECK_FALSE(evaluation.settled());
    evaluation.tick(start + 60s);
    CHECK(evaluation.settled());
    CHECK(evaluation.together().examples == 10);
    CHECK(evaluation.missing().find("b (gone), c (policy_hours: not now), d (bad_figures") == 0);
    CHECK(evaluation.missing().find("e (late)") != std::string::npos);
    CHECK(evaluation.describe()["left_out"].items().size() == 4);
}

}  // namespace
}  // namespace causeway
