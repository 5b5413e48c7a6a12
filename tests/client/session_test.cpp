// The client's session machine, message by message.
#include <catch2/catch.hpp>

#include "client/session.h"

namespace causeway::node {
namespace {

using namespace std::chrono_literals;

const Digest session_model = sha256(std::string_view("model"));

Assign assign(std::uint32_t round = 1, std::uint32_t attempt = 1, std::uint64_t epoch = 1) {
    Assign a;
    a.lease = {epoch, 9, round, attempt};
    a.experiment_name = "digits";
    a.rounds = 5;
    a.model = round == 1 ? session_model : sha256("model " + std::to_string(round));
    a.model_bytes = 10;
    return a;
}

HeldUpdate session_update_of(const Assign& a) {
    return {9, a.lease.round, sha256("update " + std::to_string(a.lease.round)), 10, 3, {}, a.model};
}

template <class Kind, class List>
const Kind* find(const List& list) {
    for (const auto& item : list) {
        if (const auto* found = std::get_if<Kind>(&item)) {
            return found;
        }
    }
    return nullptr;
}

struct SessionBench {
    explicit SessionBench(std::vector<HeldUpdate> held = {}) : session(options(std::move(held))) {
        last = session.start(0s);
    }
    static SessionOptions options(std::vector<HeldUpdate> held) {
        SessionOptions o;
        o.node = "a";
        o.held = std::move(held);
        o.policy = [](const Assign& a, Asked) -> std::optional<Objection> {
            return a.dataset == "secret" ? std::optional(Objection{"policy", "not this one"}) : std::nullopt;
        };
        return o;
    }
    Session session;
    Effects last;

    const Effects& step(const Event& event, Instant now = 1s) { return last = session.step(now, event); }
    const Effects& hear(Message message, Instant now = 1s) { return step(MessageReceived{std::move(message)}, now); }
    void join(Instant now = 1s) {
        if (find<Connect>(last.jobs) == nullptr) {
            step(Tick{}, last.wake_at);
        }
        REQUIRE(find<Connect>(last.jobs) != nullptr);
        step(Connected{}, now);
        REQUIRE(find<Hello>(last.send) != nullptr);
        hear(Welcome{1, 1, 1, "f"}, now);
    }
    void train(const Assign& a) {
        hear(a);
        step(ModelFetched{a.model, {}});
        REQUIRE(find<Train>(last.jobs) != nullptr);
    }
};

}  // namespace

TEST_CASE("an assignment is fetched, trained, offered and kept until it is committed", "[session]") {
    SessionBench bench;
    bench.join();
    bench.hear(assign());
    REQUIRE(find<FetchModel>(bench.last.jobs) != nullptr);
    CHECK(find<Progress>(bench.last.send) != nullptr);
    bench.step(ModelFetched{session_model, {}});
    REQUIRE(find<Train>(bench.last.jobs) != nullptr);
    bench.step(Trained{assign().lease, session_update_of(assign()), {}});
    REQUIRE(find<Offer>(bench.last.send) != nullptr);
    bench.hear(Counted{assign().lease, session_update_of(assign()).digest});
    CHECK(bench.session.held().size() == 1);
    bench.hear(Committed{9, 1, session_model, true, session_update_of(assign()).digest});
    REQUIRE(find<ResolvePending>(bench.last.persist) != nullptr);
    CHECK(find<ResolvePending>(bench.last.persist)->counted);
    CHECK(bench.session.held().empty());
}

TEST_CASE("a round that starts from no model is worked on at once", "[session]") {
    SessionBench bench;
    bench.join();
    auto sums = assign(0);
    sums.program = "statistics";
    sums.model = {};
    sums.model_bytes = 0;
    bench.hear(sums);
    CHECK(find<FetchModel>(bench.last.jobs) == nullptr);
    REQUIRE(find<Train>(bench.last.jobs) != nullptr);
    bench.step(Trained{sums.lease, session_update_of(sums), {}});
    REQUIRE(find<Offer>(bench.last.send) != nullptr);
    bench.hear(Committed{9, 0, session_model, true, session_update_of(sums).digest});
    const auto* resolved = find<ResolvePending>(bench.last.persist);
    REQUIRE(resolved != nullptr);
    CHECK(resolved->counted);
}

TEST_CASE("an update counts only when the commit names it", "[session]") {
    const auto named = GENERATE(sha256(std::string_view("other")), Digest{});
    SessionBench bench({session_update_of(assign())});
    bench.join();
    bench.hear(Committed{9, 1, session_model, true, named});
    REQUIRE(find<ResolvePending>(bench.last.persist) != nullptr);
    CHECK_FALSE(find<ResolvePending>(bench.last.persist)->counted);
}

TEST_CASE("the hello names what is held, and the next lease gets it at once", "[session]") {
    SessionBench bench({session_update_of(assign())});
    bench.step(Connected{});
    REQUIRE(find<Hello>(bench.last.send)->held.size() == 1);
    bench.hear(Welcome{1, 1, 2, "f"});
    bench.hear(assign(1, 1, 2));
    REQUIRE(find<Offer>(bench.last.send) != nullptr);
    CHECK(find<Offer>(bench.last.send)->lease.epoch == 2);
    CHECK(find<FetchModel>(bench.last.jobs) == nullptr);
}

TEST_CASE("an update that is made between greeting and welcome is offered after it", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign());
    bench.step(Disconnected{{ErrorKind::disconnected, "gone", "gone"}}, 2s);
    bench.step(Tick{}, bench.last.wake_at);
    bench.step(Connected{}, 20s);
    REQUIRE(find<Hello>(bench.last.send)->held.empty());
    bench.step(Trained{assign().lease, session_update_of(assign()), {}}, 20s);
    CHECK(find<Offer>(bench.last.send) == nullptr);
    bench.hear(Welcome{1, 1, 1, "f"}, 20s);
    const auto* offer = find<Offer>(bench.last.send);
    REQUIRE(offer != nullptr);  // or nobody would say that the experiment is over
    CHECK(offer->update.digest == session_update_of(assign()).digest);
    bench.hear(Ended{9, "failed", "quorum_lost"}, 21s);
    CHECK(bench.session.held().empty());
}

TEST_CASE("training goes on while the link is down and is offered under the new lease", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign());
    bench.step(Disconnected{{ErrorKind::disconnected, "disconnected", "gone"}});
    const bool ends_before_the_link_is_back = GENERATE(true, false);
    if (ends_before_the_link_is_back) {
        bench.step(Trained{assign().lease, session_update_of(assign()), {}});
        CHECK(bench.last.send.empty());
    }
    bench.step(Tick{}, 10s);
    bench.join(10s);
    bench.hear(assign(1, 2));
    CHECK(find<StopTraining>(bench.last.jobs) == nullptr);
    CHECK(find<Train>(bench.last.jobs) == nullptr);
    if (!ends_before_the_link_is_back) {
        bench.step(Trained{assign().lease, session_update_of(assign()), {}});
    }
    REQUIRE(find<Offer>(bench.last.send) != nullptr);
    CHECK(find<Offer>(bench.last.send)->lease.attempt == 2);
}

TEST_CASE("a drop stops the work, is confirmed, and a late result is not kept", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign(1, 2));
    bench.hear(Dropped{assign(1, 1).lease, "silent", "old news"});
    CHECK(bench.session.working());
    bench.hear(Dropped{assign(1, 2).lease, "straggler_deadline", "late"});
    CHECK_FALSE(bench.session.working());
    CHECK(find<StopTraining>(bench.last.jobs) != nullptr);
    REQUIRE(find<Decline>(bench.last.send) != nullptr);
    CHECK(find<Decline>(bench.last.send)->code == "dropped");
    bench.step(Trained{assign(1, 2).lease, session_update_of(assign()), {}});
    CHECK(bench.last.send.empty());
    REQUIRE(find<ResolvePending>(bench.last.persist) != nullptr);
    CHECK_FALSE(find<ResolvePending>(bench.last.persist)->counted);
}

TEST_CASE("a stale lease keeps the update, the firewall's refusal drops it", "[session]") {
    SessionBench bench({session_update_of(assign())});
    bench.join();
    bench.hear(Refused{assign().lease, session_update_of(assign()).digest, "stale_lease", "", "", 0});
    CHECK(bench.session.held().size() == 1);
    bench.hear(Refused{assign().lease, session_update_of(assign()).digest, "non_finite", "NaN", "w", 3});
    CHECK(bench.session.held().empty());
    CHECK_FALSE(find<ResolvePending>(bench.last.persist)->counted);
}

TEST_CASE("the end of an experiment stops its work and forgets its state, and only its", "[session]") {
    auto other = session_update_of(assign());
    other.experiment = 8;
    SessionBench bench({other});
    bench.join();
    bench.train(assign());
    bench.hear(Ended{9, "cancelled", "by admin"});
    CHECK_FALSE(bench.session.working());
    CHECK(find<ForgetExperiment>(bench.last.persist)->experiment == 9);
    CHECK(find<StopTraining>(bench.last.jobs) != nullptr);
    CHECK(bench.session.held().size() == 1);
}

TEST_CASE("an assignment of another round replaces the work", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign());
    bench.hear(assign(2));
    CHECK(find<StopTraining>(bench.last.jobs) != nullptr);
    CHECK(find<FetchModel>(bench.last.jobs)->model == assign(2).model);
}

TEST_CASE("a fetch that fails is tried again with growing pauses", "[session]") {
    SessionBench bench;
    bench.join();
    bench.hear(assign(), 10s);
    const Error error{ErrorKind::disconnected, "disconnected", "gone"};
    bench.step(ModelFetched{session_model, error}, 10s);
    CHECK(bench.last.wake_at == 11s);
    bench.step(Tick{}, 11s);
    REQUIRE(find<FetchModel>(bench.last.jobs) != nullptr);
    bench.step(ModelFetched{session_model, error}, 11s);
    CHECK(bench.last.wake_at == 13s);
}

TEST_CASE("a cached model that turns out damaged is fetched again, and the work is not declined", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign());
    const Error error{ErrorKind::corrupt, "model_lost", "damaged"};
    auto stale = assign().lease;
    ++stale.attempt;
    bench.step(ModelLost{stale, error}, 10s);
    CHECK(bench.last.wake_at == never);
    bench.step(ModelLost{assign().lease, error}, 10s);
    CHECK(find<Decline>(bench.last.send) == nullptr);
    CHECK(bench.last.wake_at == 11s);
    bench.step(Tick{}, 11s);
    REQUIRE(find<FetchModel>(bench.last.jobs) != nullptr);
    bench.step(ModelFetched{session_model, {}}, 11s);
    CHECK(find<Train>(bench.last.jobs) != nullptr);
}

TEST_CASE("what cannot or may not be done is declined with the reason", "[session]") {
    SessionBench bench;
    bench.join();
    auto secret = assign();
    secret.dataset = "secret";
    bench.hear(secret);
    REQUIRE(find<Decline>(bench.last.send) != nullptr);
    CHECK(find<Decline>(bench.last.send)->code == "policy");
    CHECK_FALSE(bench.session.working());
    bench.train(assign());
    bench.step(Trained{assign().lease, {}, Error{ErrorKind::invalid, "program_bounds", "no such layer"}});
    REQUIRE(find<Decline>(bench.last.send) != nullptr);
    CHECK(find<Decline>(bench.last.send)->code == "program_bounds");
}

TEST_CASE("attempts to connect pause longer and longer, never longer than the limit, and always end", "[session]") {
    SessionBench bench;
    Instant now = 0s;
    Duration before{};
    for (int i = 0; i < 20; ++i) {
        REQUIRE(find<Connect>(bench.last.jobs) != nullptr);
        bench.step(Disconnected{{ErrorKind::disconnected, "refused", "nobody there"}}, now);
        const auto pause = bench.last.wake_at - now;
        CHECK(pause >= reconnect_first / 2);
        CHECK(pause <= reconnect_longest);
        CHECK((i > 4 || pause * 2 > before));
        before = pause;
        now = bench.last.wake_at;
        bench.step(Tick{}, now);
    }
}

TEST_CASE("a greeting without an answer ends the session", "[session]") {
    SessionBench bench;
    bench.step(Connected{}, 1s);
    CHECK(bench.last.wake_at == 1s + greeting_limit);
    bench.step(Tick{}, 1s + greeting_limit);
    CHECK(find<Disconnect>(bench.last.jobs) != nullptr);
    bench.hear(Welcome{1, 1, 1, "f"}, 12s);
    CHECK_FALSE(bench.session.online());
}

TEST_CASE("progress is told at most twice a second", "[session]") {
    SessionBench bench;
    bench.join();
    bench.train(assign());
    int told = 0;
    for (int i = 0; i < 1000; ++i) {  // one second of steps
        bench.step(TrainingProgress{assign().lease, static_cast<std::uint32_t>(i), 1000, 0.5},
                   1s + std::chrono::milliseconds(i));
        told += find<Progress>(bench.last.send) != nullptr ? 1 : 0;
    }
    CHECK(told == 2);
}

}  // namespace causeway::node
