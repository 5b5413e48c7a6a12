// The turns of relays at a node: begun, fetched for, run, offered, and let go, message by message.
#include <catch2/catch.hpp>

#include "client/session.h"
#include "client/turns.h"

namespace causeway::node {
namespace {

using namespace std::chrono_literals;

const Error gone{ErrorKind::disconnected, "disconnected", "gone"};

Assign turn(std::uint32_t attempt, std::uint32_t group = 0, std::uint32_t round = 1, std::uint64_t experiment = 9) {
    Assign assign;
    assign.lease = {1, experiment, round, attempt};
    assign.experiment_name = "digits";
    assign.group = group;
    assign.segment = "[0, 3)";
    assign.model = sha256("segment " + std::to_string(attempt));
    assign.model_bytes = 10;
    return assign;
}

HeldUpdate made(const Assign& assign) {
    return {assign.lease.experiment,
            assign.lease.round,
            sha256("made " + std::to_string(assign.lease.attempt)),
            10,
            5,
            {},
            assign.model};
}

template <class Kind, class List>
std::vector<Kind> all(const List& list) {
    std::vector<Kind> found;
    for (const auto& item : list) {
        if (const auto* one = std::get_if<Kind>(&item)) {
            found.push_back(*one);
        }
    }
    return found;
}

struct TurnsBench {
    Turns turns;
    Effects last;

    template <class Call>
    const Effects& step(Call call) {
        last = {};
        call(last);
        return last;
    }
    const Effects& begin(const Assign& assign) {
        return step([&](Effects& e) { turns.begin(assign, e); });
    }
    const Effects& fetched(const Assign& assign, std::optional<Error> error = {}, Instant now = 1s) {
        return step([&](Effects& e) { CHECK(turns.fetched(now, {assign.model, error}, e)); });
    }
    const Effects& done(const Assign& assign, std::optional<Error> error = {}) {
        return step([&](Effects& e) { turns.done(1s, {assign.lease, error ? HeldUpdate{} : made(assign), error}, e); });
    }
    void run(const Assign& assign) {
        begin(assign);
        fetched(assign);
        REQUIRE(all<RunTurn>(last.jobs).size() == 1);
    }
};

}  // namespace

TEST_CASE("a turn is answered, fetched for, run and offered", "[turns]") {
    TurnsBench bench;
    CHECK(all<Progress>(bench.begin(turn(1)).send).size() == 1);
    CHECK(all<FetchModel>(bench.last.jobs).at(0).model == turn(1).model);
    CHECK(all<RunTurn>(bench.fetched(turn(1)).jobs).at(0).assign == turn(1));
    const auto offers = all<Offer>(bench.done(turn(1)).send);
    REQUIRE(offers.size() == 1);
    CHECK(offers[0].lease == turn(1).lease);
    CHECK(offers[0].update == made(turn(1)));
    CHECK(bench.turns.working());
}

TEST_CASE("a turn takes the place of the older one of its group, and of no other", "[turns]") {
    TurnsBench bench;
    bench.run(turn(1, 0));
    bench.run(turn(2, 1));
    bench.begin(turn(3, 0));
    const auto stops = all<StopTurn>(bench.last.jobs);
    REQUIRE(stops.size() == 1);
    CHECK(stops[0].lease == turn(1, 0).lease);
    // What the older one still made is let go, that of the other group is offered.
    CHECK(all<Offer>(bench.done(turn(1, 0)).send).empty());
    CHECK(all<LetGo>(bench.last.jobs).at(0).segment == made(turn(1)).digest);
    CHECK(all<Offer>(bench.done(turn(2, 1)).send).size() == 1);
}

TEST_CASE("a segment that could not be fetched is tried again, later each time", "[turns]") {
    TurnsBench bench;
    bench.begin(turn(1));
    Instant now = 1s;
    Duration before{};
    for (int i = 0; i < 20; ++i) {
        bench.fetched(turn(1), gone, now);
        const auto due = bench.turns.deadline();
        REQUIRE(due > now);
        CHECK(due - now >= before);
        CHECK(due - now <= fetch_retry_longest);
        before = due - now;
        bench.step([&](Effects& e) { bench.turns.tick(due - 1ns, e); });
        CHECK(bench.last.jobs.empty());
        bench.step([&](Effects& e) { bench.turns.tick(due, e); });
        CHECK(all<FetchModel>(bench.last.jobs).size() == 1);
        now = due;
    }
    bench.fetched(turn(1), {}, now);
    CHECK(all<RunTurn>(bench.last.jobs).size() == 1);
    CHECK(bench.turns.deadline() == never);
}

TEST_CASE("two groups that start from one segment both run when it has come", "[turns]") {
    TurnsBench bench;
    auto other = turn(2, 1);
    other.model = turn(1).model;
    bench.begin(turn(1));
    bench.begin(other);
    CHECK(all<RunTurn>(bench.fetched(turn(1)).jobs).size() == 2);
    bench.step([&](Effects& e) { CHECK_FALSE(bench.turns.fetched(1s, {turn(1).model, {}}, e)); });  // nobody waits now
}

TEST_CASE("a turn that breaks off is declined with its code", "[turns]") {
    TurnsBench bench;
    bench.run(turn(1));
    const auto declines = all<Decline>(bench.done(turn(1), Error{ErrorKind::disconnected, "stream_lost", "gone"}).send);
    REQUIRE(declines.size() == 1);
    CHECK(declines[0].code == "stream_lost");
    CHECK(declines[0].lease == turn(1).lease);
    CHECK_FALSE(bench.turns.working());
    CHECK(bench.done(turn(1), gone).send.empty());  // said once
}

TEST_CASE("a lost session stops every turn that runs", "[turns]") {
    TurnsBench bench;
    bench.run(turn(1, 0));
    bench.run(turn(2, 1));
    bench.begin(turn(3, 2));  // not running yet
    bench.step([&](Effects& e) { bench.turns.lose_link(e); });
    CHECK(all<StopTurn>(bench.last.jobs).size() == 2);
    CHECK_FALSE(bench.turns.working());
    CHECK(bench.turns.deadline() == never);
    bench.step([&](Effects& e) { CHECK_FALSE(bench.turns.fetched(2s, {turn(3).model, {}}, e)); });
}

TEST_CASE("of each group the two newest segments are kept", "[turns]") {
    TurnsBench bench;
    std::vector<Digest> gone_segments;
    for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
        bench.run(turn(attempt, attempt == 2 ? 1 : 0));
        bench.done(turn(attempt, attempt == 2 ? 1 : 0));
        for (const auto& job : all<LetGo>(bench.last.jobs)) {
            gone_segments.push_back(job.segment);
        }
    }
    CHECK(gone_segments == std::vector<Digest>{made(turn(1)).digest});  // the other group's is not among them
}

TEST_CASE("a commit ends the turns of its round and lets all their segments go", "[turns]") {
    TurnsBench bench;
    bench.run(turn(1));
    bench.done(turn(1));
    bench.run(turn(2));
    bench.run(turn(3, 0, 1, 8));  // of another experiment
    bench.step([&](Effects& e) { bench.turns.over(9, 1, e); });
    CHECK(all<StopTurn>(bench.last.jobs).size() == 1);
    CHECK(all<LetGo>(bench.last.jobs).size() == 1);
    CHECK(bench.turns.working());
    bench.step([&](Effects& e) { bench.turns.over(8, 0, e); });
    CHECK(bench.last.jobs.empty());  // a round before it
    bench.step([&](Effects& e) { bench.turns.over(8, UINT32_MAX, e); });
    CHECK_FALSE(bench.turns.working());
}

TEST_CASE("a drop ends its turn and older ones of the round, never a newer one", "[turns]") {
    TurnsBench bench;
    bench.run(turn(2));
    bench.step([&](Effects& e) { bench.turns.dropped(turn(1).lease, e); });
    CHECK(bench.turns.working());
    bench.step([&](Effects& e) { bench.turns.dropped(turn(2, 0, 2).lease, e); });
    CHECK(bench.turns.working());
    bench.step([&](Effects& e) { bench.turns.dropped(turn(2).lease, e); });
    CHECK_FALSE(bench.turns.working());
    CHECK(all<StopTurn>(bench.last.jobs).size() == 1);
}

TEST_CASE("progress is said for a turn that is under way, and not too often", "[turns]") {
    TurnsBench bench;
    bench.run(turn(1));
    CHECK_FALSE(bench.turns.progress(1s, {turn(2).lease, 1, 10, 0.5}));
    const auto first = bench.turns.progress(1s, {turn(1).lease, 1, 10, 0.5});
    REQUIRE(first);
    CHECK(first->step == 1);
    CHECK_FALSE(bench.turns.progress(1s + progress_interval - 1ns, {turn(1).lease, 2, 10, 0.5}));
    CHECK(bench.turns.progress(1s + progress_interval, {turn(1).lease, 3, 10, 0.5}));
}

TEST_CASE("a node that was away asks about every experiment that had turns here, until it has ended", "[turns]") {
    Session session({.node = "h"});
    CHECK_FALSE(all<Connect>(session.start(0s).jobs).empty());
    const auto greet = [&](Instant now) {
        const auto hello = all<Hello>(session.step(now, Connected{}).send);
        REQUIRE(hello.size() == 1);
        (void)session.step(now, MessageReceived{Welcome{1, 1, 1, "f"}});
        return hello.front().experiments;
    };
    CHECK(greet(1s).empty());
    const auto one = turn(1);
    const auto other = turn(2, 0, 1, 8);
    for (const auto& assign : {one, other}) {
        (void)session.step(1s, MessageReceived{assign});
        (void)session.step(1s, ModelFetched{assign.model, {}});
        (void)session.step(1s, TurnDone{assign.lease, made(assign), {}});
    }
    (void)session.step(2s, MessageReceived{Committed{9, 1, {}, true, {}, {}}});  // another round of it may come
    const auto lost = session.step(2s, Disconnected{gone});
    CHECK(all<LetGo>(lost.jobs).empty());
    CHECK_FALSE(all<Connect>(session.step(lost.wake_at, Tick{}).jobs).empty());
    CHECK(greet(3s) == std::vector<std::uint64_t>{9, 8});
    const auto ended = session.step(3s, MessageReceived{Ended{8, "cancelled", ""}});
    CHECK(all<LetGo>(ended.jobs).size() == 1);
    CHECK(all<ForgetExperiment>(ended.persist).size() == 1);
    const auto again = session.step(4s, Disconnected{gone});
    (void)session.step(again.wake_at, Tick{});
    CHECK(greet(6s) == std::vector<std::uint64_t>{9});
}

TEST_CASE("an assignment with a segment is a turn, in the session too", "[turns]") {
    SessionOptions options;
    options.node = "a";
    Session session(options);
    (void)session.start(0s);
    (void)session.step(1s, Connected{});
    (void)session.step(1s, MessageReceived{Welcome{1, 1, 1, "f"}});
    auto effects = session.step(1s, MessageReceived{turn(1)});
    CHECK(all<FetchModel>(effects.jobs).size() == 1);
    effects = session.step(2s, ModelFetched{turn(1).model, {}});
    CHECK(all<RunTurn>(effects.jobs).size() == 1);
    CHECK(all<Train>(effects.jobs).empty());
    effects = session.step(3s, TurnDone{turn(1).lease, made(turn(1)), {}});
    CHECK(all<Offer>(effects.send).size() == 1);
    CHECK(session.held().empty());  // nothing of it outlives the turn
    effects = session.step(4s, Disconnected{gone});
    CHECK_FALSE(session.working());
}

}  // namespace causeway::node
