// One open round against its members' messages: which counts, which is refused, when it closes.
#include <catch2/catch.hpp>

#include "bench.h"
#include "coordinator/federated_round.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

using Left = std::vector<std::pair<std::string, std::string>>;

const Digest start_model = sha256(std::string_view("start"));

RoundPlan plan(std::vector<std::string> cohort, Duration straggler = 0s, Duration rejoin = 60s) {
    RoundPlan p;
    p.epoch = 4;
    p.assignment.lease = {0, 9, 3, 0};
    p.assignment.model = start_model;
    p.cohort = std::move(cohort);
    p.quorum = {CountOrShare::Kind::count, 1, 0};
    p.rejoin = rejoin;
    p.straggler_deadline = straggler;
    return p;
}

Offer round_offer(const std::string& what, std::uint32_t attempt = 1, std::int64_t weight = 5) {
    Offer o{{4, 9, 3, attempt}, {9, 3, sha256(what), 100, weight, {}, start_model}};
    o.update.metrics.loss = static_cast<double>(weight);
    return o;
}

UpdateAbsorbed absorbed(const std::string& node, const std::string& what) {
    return {9, 3, 1, node, sha256(what), std::nullopt, std::nullopt};
}

template <class Kind>
std::size_t job_count(const CoordinatorEffects& effects) {
    std::size_t count = 0;
    for (const auto& job : effects.jobs) {
        count += std::holds_alternative<Kind>(job) ? 1 : 0;
    }
    return count;
}

/// a has session 1, b has session 2.
FederatedRound opened(RoundPlan p) {
    CoordinatorEffects effects;
    FederatedRound round(std::move(p), 0s);
    round.ready(0s, "a", 1, {}, effects);
    round.ready(0s, "b", 2, {}, effects);
    REQUIRE(sent<Assign>(effects, 1) != nullptr);
    REQUIRE(sent<Assign>(effects, 1)->lease == Lease{4, 9, 3, 1});
    return round;
}

}  // namespace

TEST_CASE("a round is complete when every member has reported", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua", 1, 1), effects);
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    CHECK(sent<Counted>(effects, 1) != nullptr);
    CHECK(round.outcome() == Round::Outcome::open);
    round.on_offer("b", 2, round_offer("ub", 1, 3), effects);
    CHECK(round.outcome() == Round::Outcome::open);
    round.on_absorbed(2s, absorbed("b", "ub"), effects);
    CHECK(round.outcome() == Round::Outcome::complete);
    CHECK(round.participants().size() == 2);
    CHECK(round.train_loss() == Approx((1 * 1 + 3 * 3) / 4.0));
}

TEST_CASE("nothing said under another lease counts", "[round]") {
    auto wrong = GENERATE_COPY(values<Lease>({{3, 9, 3, 1}, {4, 9, 2, 1}, {4, 9, 3, 0}, {4, 9, 3, 2}}));
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    auto stale = round_offer("ua");
    stale.lease = wrong;
    round.on_offer("a", 1, stale, effects);
    REQUIRE(sent<Refused>(effects, 1) != nullptr);
    CHECK(sent<Refused>(effects, 1)->code == "stale_lease");
    CHECK(effects.jobs.empty());
    round.on_decline("a", {wrong, "no", "no"}, effects);
    CHECK(round.take_dropped().empty());
    round.on_offer("a", 1, round_offer("ua"), effects);  // and the member can still report
    CHECK(job_count<AbsorbUpdate>(effects) == 1);
}

TEST_CASE("a weight that is no weight is refused and never becomes another", "[round]") {
    const auto weight = GENERATE(as<std::int64_t>{}, -1, std::int64_t{1} << 29, INT64_MAX, INT64_MIN);
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua", 1, weight), effects);
    REQUIRE(sent<Refused>(effects, 1) != nullptr);
    CHECK(sent<Refused>(effects, 1)->code == "bad_weight");
    CHECK(effects.jobs.empty());
    CHECK(std::get<SaveDecision>(effects.persist.at(0)).kind == "refused");
    CHECK(round.possible() == 1);
}

TEST_CASE("an update larger than any of this model can be is refused before room is made for it", "[round]") {
    auto p = plan({"a", "b"});
    p.assignment.model_bytes = 1000;
    auto round = opened(p);
    const auto bytes = GENERATE(as<std::uint64_t>{}, 4 * 1000 + (1 << 20) + 1, std::uint64_t{60} << 30, UINT64_MAX);
    CoordinatorEffects effects;
    auto large = round_offer("ua");
    large.update.bytes = bytes;
    round.on_offer("a", 1, large, effects);
    REQUIRE(sent<Refused>(effects, 1) != nullptr);
    CHECK(sent<Refused>(effects, 1)->code == "too_large");
    CHECK(effects.jobs.empty());  // or it would be this machine's fault that its quota is smaller, and stop the clock
    CHECK(round.possible() == 1);
    large = round_offer("ub");
    large.update.bytes = 4 * 1000 + (1 << 20);
    round.on_offer("b", 2, large, effects);
    CHECK(job_count<AbsorbUpdate>(effects) == 1);
}

TEST_CASE("sums of columns have a bound, though they start from no model", "[round]") {
    auto p = plan({"a", "b"});
    p.assignment.model = {};
    auto round = opened(p);
    CoordinatorEffects effects;
    auto sums = round_offer("ua");
    sums.update.start_model = {};
    sums.update.bytes = (64 << 20) + 1;
    round.on_offer("a", 1, sums, effects);
    REQUIRE(sent<Refused>(effects, 1) != nullptr);
    CHECK(sent<Refused>(effects, 1)->code == "too_large");
    sums.update.bytes = 64 << 20;
    round.on_offer("b", 2, sums, effects);
    CHECK(job_count<AbsorbUpdate>(effects) == 1);
}

TEST_CASE("an update trained from another model is refused", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    auto other = round_offer("ua");
    other.update.start_model = sha256(std::string_view("other"));
    round.on_offer("a", 1, other, effects);
    REQUIRE(sent<Refused>(effects, 1) != nullptr);
    CHECK(sent<Refused>(effects, 1)->code == "wrong_start_model");
}

TEST_CASE("an update that was being pulled when its member fell silent counts once", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua"), effects);
    round.lost(1s, "a", true, effects);
    round.ready(2s, "a", 3, sha256(std::string_view("ua")), effects);
    CHECK(sent<Assign>(effects, 3)->lease.attempt == 2);
    round.on_offer("a", 3, round_offer("ua", 2), effects);
    CHECK(job_count<AbsorbUpdate>(effects) == 1);  // the first pull is not answered yet
    round.on_absorbed(3s, absorbed("a", "ua"), effects);
    REQUIRE(sent<Counted>(effects, 3) != nullptr);
    CHECK(sent<Counted>(effects, 3)->lease.attempt == 2);
}

TEST_CASE("an answer about an update that is not being pulled changes nothing", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    round.on_absorbed(1s, absorbed("stranger", "ua"), effects);
    round.on_offer("a", 1, round_offer("ua"), effects);
    round.on_absorbed(1s, absorbed("a", "another"), effects);
    CHECK(round.participants().empty());
    CHECK(effects.send.empty());
}

TEST_CASE("a broken transfer is asked for again, and given up after some tries", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua"), effects);
    Instant now = 1s;
    for (int i = 0; i < 10 && round.possible() == 2; ++i) {
        auto broken = absorbed("a", "ua");
        broken.fetch_error = Error{ErrorKind::disconnected, "disconnected", "gone"};
        round.on_absorbed(now, broken, effects);
        now = std::max(now, std::min<Instant>(round.deadline(), now + 60s));
        round.tick(now, effects);
    }
    CHECK(job_count<AbsorbUpdate>(effects) == 6);
    REQUIRE(sent<Dropped>(effects, 1) != nullptr);
    CHECK(sent<Dropped>(effects, 1)->code == "transfer_failed");
}

TEST_CASE("at the straggler deadline those who have not reported are dropped and told", "[round]") {
    auto round = opened(plan({"a", "b"}, 10s));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua"), effects);
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    CHECK(round.deadline() == 10s);
    round.tick(10s, effects);
    REQUIRE(sent<Dropped>(effects, 2) != nullptr);
    CHECK(sent<Dropped>(effects, 2)->code == "straggler_deadline");
    CHECK(round.take_dropped() == Left{{"b", "straggler_deadline"}});
    CHECK(round.outcome() == Round::Outcome::complete);
    CHECK(round.deadline() == never);
}

TEST_CASE("a member dropped while its update is pulled is decided by how the pull ends", "[round]") {
    const bool was_in_the_sum = GENERATE(true, false);
    auto round = opened(plan({"a", "b"}, 10s));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua"), effects);
    round.on_offer("b", 2, round_offer("ub"), effects);
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    round.tick(10s, effects);
    round.tick(11s, effects);
    CHECK(job_count<CancelAbsorb>(effects) == 1);
    CHECK(sent<Dropped>(effects, 2) == nullptr);
    CHECK(round.outcome() == Round::Outcome::open);
    auto answer = absorbed("b", "ub");
    if (!was_in_the_sum) {
        answer.fetch_error = Error{ErrorKind::refused, "cancelled", "given up"};
    }
    round.on_absorbed(12s, answer, effects);
    CHECK(round.outcome() == Round::Outcome::complete);
    CHECK(round.participants().size() == (was_in_the_sum ? 2 : 1));
    CHECK((sent<Counted>(effects, 2) != nullptr) == was_in_the_sum);
    CHECK((sent<Dropped>(effects, 2) != nullptr) != was_in_the_sum);
}

TEST_CASE("the quorum is lost as soon as it cannot be reached", "[round]") {
    auto p = plan({"a", "b", "c"}, 0s, 0s);
    p.quorum = {CountOrShare::Kind::share, 0, 0.7};
    auto round = opened(std::move(p));
    CoordinatorEffects effects;
    CHECK(round.quorum() == 3);
    round.tick(0s, effects);  // c has no session, and with rejoin = 0 it is not waited for
    CHECK(round.outcome() == Round::Outcome::quorum_lost);
}

TEST_CASE("weights of zero report and add nothing; all of them zero fail the round", "[round]") {
    const std::int64_t second = GENERATE(0, 4);
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua", 1, 0), effects);
    round.on_offer("b", 2, round_offer("ub", 1, second), effects);
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    round.on_absorbed(1s, absorbed("b", "ub"), effects);
    CHECK(round.outcome() == (second == 0 ? Round::Outcome::zero_total_weight : Round::Outcome::complete));
}

TEST_CASE("what an earlier process decided holds after a restart", "[round]") {
    auto first = opened(plan({"a", "b", "c"}, 10s));
    CoordinatorEffects effects;
    first.on_offer("a", 1, round_offer("ua", 1, -1), effects);
    first.tick(10s, effects);
    FederatedRound second(plan({"a", "b", "c"}, 10s), 0s);
    for (const auto& persist : effects.persist) {
        second.restore(std::get<SaveDecision>(persist));
    }
    CHECK(second.possible() == 0);
    CoordinatorEffects later;
    second.ready(1s, "a", 11, sha256(std::string_view("ua")), later);
    second.ready(1s, "b", 12, {}, later);
    CHECK(sent<Refused>(later, 11)->code == "bad_weight");
    CHECK(sent<Dropped>(later, 12)->code == "straggler_deadline");
    CHECK(sent<Assign>(later, 11) == nullptr);
}

TEST_CASE("a second update of a member is refused as a duplicate, the same one is confirmed again", "[round]") {
    auto round = opened(plan({"a", "b"}));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("ua"), effects);
    round.on_absorbed(1s, absorbed("a", "ua"), effects);
    CoordinatorEffects again;
    round.on_offer("a", 1, round_offer("ua"), again);
    CHECK(sent<Counted>(again, 1) != nullptr);
    round.on_offer("a", 1, round_offer("another"), again);
    REQUIRE(sent<Refused>(again, 1) != nullptr);
    CHECK(sent<Refused>(again, 1)->code == "duplicate");
    CHECK(again.jobs.empty());
}

TEST_CASE("a fault of this machine costs no member its place, and stops the straggler's clock", "[unit]") {
    auto round = opened(plan({"a", "b"}, 10s));
    CoordinatorEffects effects;
    round.on_offer("a", 1, round_offer("x"), effects);
    auto full = absorbed("a", "x");
    full.fetch_error = Error{ErrorKind::io, "disk_full", "no room"};
    for (auto now = Instant(1s); now < Instant(100s); now += 1s) {  // far more often than a transfer may break
        round.on_absorbed(now, full, effects);
        CHECK(round.machine_fault() == "disk_full: no room");
        CHECK(round.deadline() > now);
        effects = {};
        round.tick(now + 1s, effects);
        REQUIRE(job_count<AbsorbUpdate>(effects) == 1);
        REQUIRE(round.take_dropped().empty());
    }
    round.on_absorbed(101s, absorbed("a", "x"), effects);
    CHECK(round.machine_fault().empty());
    CHECK(round.counted("a").has_value());
    effects = {};
    round.tick(109s, effects);  // of its 10 s one had passed when the clock stopped
    CHECK(round.take_dropped().empty());
    round.tick(110s, effects);
    CHECK(round.take_dropped() == Left{{"b", "straggler_deadline"}});
}

}  // namespace causeway
