// The coordinator's machine from the outside: sessions, operators, the queue, and what a restart goes on with.
#include <catch2/catch.hpp>

#include "bench.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

std::string machine_experiment(const std::string& sync, const std::string& dataset = "digits") {
    return "[experiment]\nname = \"test\"\nrounds = 2\n[data]\ndataset = \"" + dataset +
           "\"\nshape = [8, 8, 1]\n[model]\nlayers = [\"flatten\", \"dense 10\"]\n[regime]\npreset = "
           "\"fedavg\"\n[sync]\n" +
           sync + "\n";
}

/// Sessions of any role, and of clients that hold updates.
struct RolesBench : MachineBench {
    using MachineBench::MachineBench;
    SessionId join(Instant now, const std::string& node, const std::string& role = "client",
                   std::vector<HeldUpdate> held = {}) {
        Hello hello;
        hello.held = std::move(held);
        if (role == "client") {
            return MachineBench::join(now, node, std::move(hello));
        }
        step(now, SessionOpened{next, node, role, hello});
        return next++;
    }
};

const Digest machine_model = sha256(std::string_view("model"));

}  // namespace

TEST_CASE("a session is welcomed with its number and the epoch", "[machine]") {
    Recovered recovered;
    recovered.epoch = 5;
    RolesBench bench({}, recovered);
    const auto session = bench.join(1s, "a");
    REQUIRE(sent<Welcome>(bench.last, session) != nullptr);
    CHECK(sent<Welcome>(bench.last, session)->epoch == 5);
    CHECK(persisted<SaveDeclaration>(bench.last) != nullptr);
    bench.join(2s, "a");
    CHECK(persisted<SaveDeclaration>(bench.last) == nullptr);  // nothing new
    REQUIRE(bench.last.close.size() == 1);
    CHECK(bench.last.close[0].session == session);
}

TEST_CASE("whoever keeps something of an experiment that is not known any more hears that it may let go", "[machine]") {
    RolesBench bench;
    const auto role = GENERATE(as<std::string>{}, "client", "host");
    Hello hello;
    hello.experiments = {77};
    bench.step(1s, SessionOpened{1, "a", role, hello});
    REQUIRE(sent<Ended>(bench.last, 1) != nullptr);
    CHECK(sent<Ended>(bench.last, 1)->experiment == 77);
}

TEST_CASE("a dataset of more examples than can count is left out, with a word to its node", "[machine]") {
    RolesBench bench;
    Hello hello;
    const auto most = (std::uint64_t{1} << 29) - 1;
    const auto too_many = GENERATE_COPY(most + 1, std::uint64_t{1} << 61, UINT64_MAX);
    hello.datasets = {{"endless", {}, too_many, {8, 8, 1}, 10}, {"large", {}, most, {8, 8, 1}, 2, {most, 0}}};
    const auto session = bench.MachineBench::join(1s, "a", hello);
    REQUIRE(sent<ErrorNotice>(bench.last, session) != nullptr);
    CHECK(sent<ErrorNotice>(bench.last, session)->code == "too_many_examples");
    CHECK(std::holds_alternative<Welcome>(bench.last.send.front().message));
    CHECK(bench.machine.members().examples_of("a", "endless") == 0);
    CHECK(bench.machine.members().examples_of("a", "large") == most);
    CHECK(bench.machine.members().ever_declared("endless") == false);
    CHECK(bench.machine.members().live_holders("endless").empty());
}

TEST_CASE("labels of more examples than there are say nothing", "[machine]") {
    RolesBench bench;
    Hello hello;
    hello.datasets = {{"a lie", {}, 100, {8, 8, 1}, 2, {101, 0}}, {"the truth", {}, 100, {8, 8, 1}, 2, {100, 0}}};
    bench.MachineBench::join(1s, "a", hello);
    CHECK(sent<ErrorNotice>(bench.last, 1) == nullptr);
    for (const auto& dataset : bench.machine.members().by_node("a")->datasets) {
        CHECK(dataset.labels.empty() == (dataset.name != "the truth"));
    }
}

TEST_CASE("a node that speaks no common version is closed with the reason", "[machine]") {
    RolesBench bench;
    Hello hello;
    hello.version_min = hello.version_max = protocol_version + 1;
    bench.step(1s, SessionOpened{1, "a", "client", hello});
    REQUIRE(bench.last.close.size() == 1);
    CHECK(bench.last.close[0].code == "version");
    CHECK(bench.machine.members().by_node("a") == nullptr);
}

TEST_CASE("a node beyond what the coordinator has room for is told the number, the bound and what raises it",
          "[machine]") {
    CoordinatorOptions options;
    options.max_sessions = 2;
    options.sessions_bound = "150 more files and connections may be open";
    options.sessions_raised_by = "`ulimit -Hn 32768` before the start";
    MachineBench bench(options);
    const auto first = bench.join(1s, "a");
    bench.join(1s, "b");
    bench.join(1s, "c");
    REQUIRE(bench.last.close.size() == 1);
    CHECK(bench.last.close[0].code == "too_many_sessions");
    CHECK(bench.last.close[0].kind == ErrorKind::overloaded);  // tried again, with growing pauses
    for (const auto* part : {"at most 2 ", "150 more files", "ulimit -Hn"}) {
        CHECK(bench.last.close[0].message.find(part) != std::string::npos);
    }
    CHECK(bench.machine.members().by_node("c") == nullptr);
    CHECK_FALSE(bench.ask(1s, "node.list", Json::object()).error);  // who is to look why gets in
    bench.step(2s, SessionClosed{bench.next - 1, "done"});  // the operator's
    bench.step(2s, SessionClosed{first, "gone"});
    bench.join(2s, "c");
    CHECK(bench.machine.members().by_node("c") != nullptr);
}

TEST_CASE("only operators may ask, and unknown words are answered", "[machine]") {
    RolesBench bench;
    const auto client = bench.join(1s, "a");
    for (const auto* verb : {"experiment.submit", "experiment.list", "node.list", "experiment.cancel"}) {
        bench.step(1s, MessageReceived{client, Request{1, verb, "{}"}});
        REQUIRE(sent<Reply>(bench.last, client) != nullptr);
        CHECK(sent<Reply>(bench.last, client)->error->code == "not_an_operator");
    }
    CHECK(bench.ask(1s, "experiment.dance", Json::object()).error->code == "unknown_verb");
    CHECK(bench.ask(1s, "experiment.status", Json::object()).error->code == "missing_argument");
    CHECK(bench.ask(1s, "experiment.status", Json::object().set("experiment", 3)).error->code == "unknown_experiment");
    CHECK(bench.ask(1s, "experiment.submit", Json::object()).error->code == "missing_argument");
    const auto op = bench.join(1s, "admin", "operator");
    bench.step(1s, MessageReceived{op, Request{1, "node.list", "{not json"}});
    CHECK(sent<Reply>(bench.last, op)->error->kind == ErrorKind::corrupt);
}

TEST_CASE("a dataset that no node ever declared is refused at submit, with the known names", "[machine]") {
    RolesBench bench;
    const auto session = bench.join(1s, "a");
    const auto wrong = bench.submit(2s, machine_experiment("", "digit"));
    REQUIRE(wrong.error);
    CHECK(wrong.error->code == "unknown_dataset");
    CHECK_THAT(wrong.error->message, Catch::Contains("digits"));
    bench.step(3s, SessionClosed{session, "bye"});
    CHECK_FALSE(bench.submit(4s, machine_experiment("")).error);  // offline, but it declared it once
    CHECK_FALSE(bench.submit(5s, "[experiment").error == std::nullopt);
}

TEST_CASE("experiments run first in, first out, as many as may", "[machine]") {
    const std::uint32_t parallel = GENERATE(1, 2);
    RolesBench bench({.federation = "f", .parallel = parallel});
    bench.join(1s, "a");
    for (int i = 0; i < 3; ++i) {
        bench.submit(2s, machine_experiment("min_clients = 5"));
    }
    CHECK(bench.state(1) == "starting");
    CHECK(bench.state(2) == (parallel == 1 ? "queued" : "starting"));
    CHECK(bench.state(3) == "queued");
    CHECK_FALSE(bench.ask(3s, "experiment.cancel", Json::object().set("experiment", 1)).error);
    CHECK(bench.state(1) == "cancelled");
    CHECK(bench.state(2) == "starting");
    CHECK(bench.ask(3s, "experiment.cancel", Json::object().set("experiment", 1)).error->code == "already_over");
}

TEST_CASE("too few clients end an experiment at its start timeout, not before", "[machine]") {
    RolesBench bench;
    bench.join(1s, "a");
    bench.submit(2s, machine_experiment("min_clients = 2\nstart_timeout = \"3s\""));
    CHECK(bench.last.wake_at == 5s);
    bench.step(4900ms, Tick{});
    CHECK(bench.state(1) == "starting");
    bench.step(5s, Tick{});
    CHECK(bench.state(1) == "failed");
    CHECK(bench.machine.experiments().at(1).saved().reason == "insufficient clients 1/2");
}

TEST_CASE("the first cohort is part of the commit of the initial model, and assigned after it", "[machine]") {
    RolesBench bench;
    const auto a = bench.join(1s, "a");
    bench.submit(2s, machine_experiment("min_clients = 1"));
    bench.step(3s, ModelMade{1, machine_model, 100});
    const auto* commit = persisted<SaveCommit>(bench.last);
    REQUIRE(commit != nullptr);
    CHECK(commit->round == 0);
    CHECK(commit->next_cohort == std::vector<std::string>{"a"});
    REQUIRE(sent<Assign>(bench.last, a) != nullptr);
    CHECK(sent<Assign>(bench.last, a)->model == machine_model);
    bench.step(3s, ModelMade{1, sha256(std::string_view("late")), 100});  // a job's answer that is not asked for
    CHECK(bench.last.persist.empty());
}

TEST_CASE("a cohort by count is drawn by the seed alone", "[machine]") {
    std::vector<std::string> first;
    for (const bool reversed : {false, true}) {
        RolesBench bench;
        for (int i = 0; i < 8; ++i) {
            bench.join(1s, std::string(1, static_cast<char>(reversed ? 'h' - i : 'a' + i)));
        }
        bench.submit(2s, machine_experiment("min_clients = 3\ncohort = 3"));
        bench.step(3s, ModelMade{1, machine_model, 100});
        const auto* commit = persisted<SaveCommit>(bench.last);
        REQUIRE(commit != nullptr);
        CHECK(commit->next_cohort.size() == 3);
        CHECK(std::is_sorted(commit->next_cohort.begin(), commit->next_cohort.end()));
        CHECK((first.empty() || first == commit->next_cohort));
        first = commit->next_cohort;
    }
}

TEST_CASE("a member that fell silent speaks again under the next attempt, on the same session", "[machine]") {
    RolesBench bench;
    const auto a = bench.join(1s, "a");
    bench.submit(2s, machine_experiment("rejoin = \"60s\""));
    bench.step(3s, ModelMade{1, machine_model, 100});
    bench.step(10s, SessionSilent{a});
    CHECK(bench.last.wake_at == 70s);
    bench.step(20s, SessionHeard{a});
    REQUIRE(sent<Assign>(bench.last, a) != nullptr);
    CHECK(sent<Assign>(bench.last, a)->lease.attempt == 2);
    CHECK(persisted<SaveDecision>(bench.last)->kind == "attempt");
}

TEST_CASE("after a restart the round is open again, and members have time to come back", "[machine]") {
    Recovered recovered;
    recovered.epoch = 2;
    recovered.declared["a"] = {{"digits", {}, 100, {8, 8, 1}, 10}};
    RecoveredExperiment running;
    running.saved = {1, "test", machine_experiment("rejoin = \"0s\""), "running", "", "admin"};
    running.add({0, machine_model, 100, Json::object(), {}});
    running.next_cohort = {"a", "b"};
    recovered.experiments = {running};
    RolesBench bench({}, recovered);
    REQUIRE(bench.last.jobs.size() == 1);
    CHECK(std::get<OpenRound>(bench.last.jobs[0]).round == 1);
    CHECK(bench.last.wake_at == limits::restart_grace);
    const auto a = bench.join(1s, "a");
    REQUIRE(sent<Assign>(bench.last, a) != nullptr);
    CHECK(sent<Assign>(bench.last, a)->lease == Lease{2, 1, 1, 1});
}

TEST_CASE("a hello's held updates are answered: counted, not counted, or the end", "[machine]") {
    const auto update = sha256(std::string_view("u"));
    Recovered recovered;
    recovered.epoch = 2;
    RecoveredExperiment over;
    over.saved = {1, "test", machine_experiment(""), "succeeded", "", "admin"};
    for (std::uint32_t round = 0; round <= 2; ++round) {
        over.add({round, machine_model, 1, Json::object(), {}});
    }
    over.last_counted["a"] = {2, update};
    recovered.experiments = {over};
    RolesBench bench({}, recovered);
    const auto a = bench.join(1s, "a", "client", {{1, 2, update, 10, 1, {}, machine_model}});
    REQUIRE(sent<Committed>(bench.last, a) != nullptr);
    CHECK(sent<Committed>(bench.last, a)->counted);
    CHECK(sent<Ended>(bench.last, a) != nullptr);
    const auto b = bench.join(1s, "b", "client",
                              {{1, 2, update, 10, 1, {}, machine_model}, {99, 1, update, 10, 1, {}, machine_model}});
    CHECK(sent<Committed>(bench.last, b) == nullptr);
    CHECK(sent<Ended>(bench.last, b) != nullptr);
}

TEST_CASE("an experiment that this build cannot read fails with the reason, the others go on", "[machine]") {
    Recovered recovered;
    RecoveredExperiment broken;
    broken.saved = {1, "old", "[nonsense", "running", "", "admin"};
    RecoveredExperiment gaps;
    gaps.saved = {2, "gaps", machine_experiment(""), "running", "", "admin"};
    gaps.add({0, machine_model, 1, Json::object(), {}});
    gaps.add({2, machine_model, 1, Json::object(), {}});
    RecoveredExperiment good;
    good.saved = {3, "good", machine_experiment(""), "queued", "", "admin"};
    recovered.experiments = {broken, gaps, good};
    RolesBench bench({}, recovered);
    CHECK(bench.state(1) == "failed");
    CHECK(bench.state(2) == "failed");
    CHECK(bench.state(3) == "starting");
}

TEST_CASE("a watcher gets the past from the round it asks for, and the end as the last reply", "[machine]") {
    Recovered recovered;
    RecoveredExperiment over;
    over.saved = {1, "test", machine_experiment(""), "failed", "quorum_lost: ...", "admin"};
    std::vector<StoredRound> stored;
    for (std::uint32_t round = 0; round <= 200; ++round) {
        over.add(stored.emplace_back(StoredRound{round, machine_model, 1, Json::object(), {}}));
    }
    recovered.experiments = {over};
    RolesBench bench({}, recovered);
    const auto session = bench.join(1s, "admin", "operator");
    std::vector<Reply> replies;
    bench.step(1s, MessageReceived{session, Request{4, "experiment.watch", R"({"experiment":"test","from":11})"}});
    for (int i = 0; i < 20; ++i) {
        CHECK(bench.last.send.size() <= limits::events_per_step + 1);
        for (const auto& send : bench.last.send) {
            replies.push_back(std::get<Reply>(send.message));
        }
        if (bench.answer_reads(1s, stored)) {
            continue;
        }
        if (bench.last.wake_at == never) {
            break;
        }
        bench.step(1s, Tick{});
    }
    REQUIRE(replies.size() == 191);
    CHECK(Json::parse(replies[0].body)->operator[]("round").integer() == 11);
    CHECK_FALSE(replies[189].last);
    CHECK(replies[190].last);
    CHECK(Json::parse(replies[190].body)->operator[]("reason").text() == "quorum_lost: ...");
}

TEST_CASE("requests beyond the limits are refused, and a closed session's watches go", "[machine]") {
    RolesBench bench;
    bench.join(1s, "a");
    bench.submit(1s, machine_experiment("min_clients = 9"));
    const auto session = bench.join(1s, "admin", "operator");
    const auto watch = [&] {
        bench.step(1s, MessageReceived{session, Request{4, "experiment.watch", R"({"experiment":1})"}});
        return sent<Reply>(bench.last, session);
    };
    for (std::size_t i = 0; i < limits::watches_per_session; ++i) {
        REQUIRE(watch() == nullptr);
    }
    REQUIRE(watch() != nullptr);
    CHECK(watch()->error->kind == ErrorKind::overloaded);
    bench.step(1s, SessionClosed{session, "bye"});
    bench.ask(2s, "experiment.cancel", Json::object().set("experiment", 1));
    for (const auto& send : bench.last.send) {
        CHECK(send.session != session);
    }
    for (std::size_t i = 0; i <= limits::queued_experiments; ++i) {
        REQUIRE_FALSE(bench.submit(3s, machine_experiment("min_clients = 9")).error);
    }
    CHECK(bench.submit(3s, machine_experiment("min_clients = 9")).error->code == "queue_full");
}

TEST_CASE("a node's list says who is there, what it holds and what it works on", "[machine]") {
    RolesBench bench;
    const auto a = bench.join(1s, "a");
    const auto b = bench.join(1s, "b");
    bench.submit(2s, machine_experiment("min_clients = 2"));
    bench.step(3s, ModelMade{1, machine_model, 100});
    bench.step(4s, SessionSilent{a});
    bench.step(4s, SessionClosed{b, "bye"});
    const auto reply = bench.ask(5s, "node.list", Json::object());
    const auto body = Json::parse(reply.body);
    REQUIRE(body);
    const auto& nodes = (*body)["nodes"].items();
    REQUIRE(nodes.size() == 2);
    CHECK(nodes[0]["state"].text() == "silent");
    CHECK(nodes[0]["experiment"].integer() == 1);
    CHECK(nodes[0]["datasets"].items().at(0)["name"].text() == "digits");
    CHECK(nodes[1]["state"].text() == "offline");
}

}  // namespace causeway
