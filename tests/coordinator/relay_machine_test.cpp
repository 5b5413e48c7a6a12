// A whole coordinator's machine with an experiment of relays: hosts that it waits for, groups that it logs, and what it
// goes on from.
#include <algorithm>
#include <tuple>

#include <catch2/catch.hpp>

#include "bench.h"
#include "common/text.h"
#include "coordinator/decisions.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

std::string relay_experiment(const std::string& regime = "groups = 2", const std::string& sync = "") {
    return "[experiment]\nname = \"test\"\nrounds = 3\n[data]\ndataset = \"digits\"\nshape = [8, 8, 1]\n"
           "[model]\nlayers = [\"flatten\", \"dense 8\", \"relu\", \"dense 10\"]\n[train]\nbatch = 10\n"
           "[regime]\npreset = \"gsfl\"\ncut = \"relu\"\n" +
           regime + "\n[evaluation]\nwhere = \"none\"\n[sync]\n" + sync + "\n";
}

struct RelayMachine : MachineBench {
    using MachineBench::MachineBench;

    static Hello splits() {
        Hello hello;
        hello.features = {split_feature};
        return hello;
    }
    SessionId host(Instant now, const std::string& node, Hello hello = splits()) {
        sessions[node] = next;
        step(now, SessionOpened{next, node, "host", hello});
        return next++;
    }
    SessionId client(Instant now, const std::string& node) { return join(now, node, splits()); }
    void opened(Instant now, std::uint32_t round, std::vector<Digest> kept = {}) {
        const auto number = std::to_string(round);
        RoundOpened answer{1, round, {{sha256("c" + number), 10}, {sha256("h" + number), 20}}};
        for (const auto& segment : kept) {
            answer.segments.emplace_back(segment, 10);
        }
        step(now, answer);
    }
    /// Every turn to its end, as long as turns are assigned.
    void all_turns(Instant now) {
        std::vector<std::pair<SessionId, Assign>> due = assigned();
        while (!due.empty()) {
            std::vector<std::pair<SessionId, Assign>> later;
            for (const auto& [session, assign] : due) {
                const auto [experiment, round, attempt] =
                    std::tuple(assign.lease.experiment, assign.lease.round, assign.lease.attempt);
                const auto end = sha256(assign.model.hex() + assign.data_node + assign.segment);
                const HeldUpdate update{experiment, round, end, 10, 5, {}, assign.model};
                step(now, MessageReceived{session, Offer{assign.lease, update}});
                step(now, UpdateAbsorbed{experiment, round, attempt, name_of(session), end, {}, {}});
                std::ranges::move(assigned(), std::back_inserter(later));
            }
            due = std::move(later);
        }
    }
    std::vector<std::pair<SessionId, Assign>> assigned() const {
        std::vector<std::pair<SessionId, Assign>> all;
        for (const auto& send : last.send) {
            if (const auto* assign = std::get_if<Assign>(&send.message)) {
                all.emplace_back(send.session, *assign);
            }
        }
        return all;
    }
    std::string name_of(SessionId session) const {
        for (const auto& [name, own] : sessions) {
            if (own == session) {
                return name;
            }
        }
        return "";
    }
    const SaveDecision* decision(const std::string& kind) const {
        for (const auto& persist : last.persist) {
            if (const auto* found = std::get_if<SaveDecision>(&persist); found != nullptr && found->kind == kind) {
                return found;
            }
        }
        return nullptr;
    }
};

template <class Kind>
const Kind* job_of(const CoordinatorEffects& effects) {
    for (const auto& job : effects.jobs) {
        if (const auto* found = std::get_if<Kind>(&job)) {
            return found;
        }
    }
    return nullptr;
}

/// Clients a and b and host h1 are there, the first model is made: the round is open.
RelayMachine running(const std::string& file = relay_experiment()) {
    RelayMachine bench;
    bench.client(1s, "a");
    bench.client(1s, "b");
    bench.host(1s, "h1");
    const auto reply = bench.submit(2s, file);
    INFO(reply.body << (reply.error ? reply.error->message : ""));
    bench.make_model(3s, 1);
    REQUIRE(bench.state(1) == "running");
    return bench;
}

}  // namespace

TEST_CASE("an experiment of relays waits for a host, and fails by name when none comes", "[relay_machine]") {
    RelayMachine bench;
    bench.client(1s, "a");
    bench.host(1s, "whole", {});  // takes no cells
    bench.submit(2s, relay_experiment("groups = 1", "start_timeout = \"60s\""));
    CHECK(job_of<MakeModel>(bench.last) == nullptr);
    SECTION("none comes") {
        bench.step(62s, Tick{});
        CHECK(bench.state(1) == "failed");
        CHECK(bench.experiment(1).saved().reason.starts_with("insufficient hosts 0/1"));
    }
    SECTION("one comes") {
        bench.host(10s, "h1");
        CHECK(job_of<MakeModel>(bench.last) != nullptr);
    }
}

TEST_CASE("groups by labels rest on the histograms that policies share, and the log has them and who shares none",
          "[relay_machine]") {
    RelayMachine bench;
    const auto client = [&](const std::string& name, std::vector<std::uint64_t> labels) {
        auto hello = RelayMachine::splits();
        hello.datasets = {{"digits", {}, 100, {8, 8, 1}, 2, std::move(labels)}};
        bench.sessions[name] = bench.next;
        bench.step(1s, SessionOpened{bench.next++, name, "client", hello});
    };
    client("a", {90, 10});
    const auto* kept = persisted<SaveDeclaration>(bench.last);
    REQUIRE(kept != nullptr);
    CHECK(kept->datasets.front().labels.empty());  // shared, not stored
    client("b", {90, 10});
    client("c", {10, 90});
    client("d", {10, 90});
    const bool silent = GENERATE(false, true);
    if (silent) {
        client("e", {});
    }
    bench.host(1s, "h1");
    bench.submit(2s, relay_experiment("groups = 2\ngrouping = \"labels\""));
    bench.make_model(3s, 1);
    const auto* made = bench.decision(decisions::groups);
    REQUIRE(made != nullptr);
    for (const auto& group : made->detail["groups"].items()) {
        std::string members;
        for (const auto& name : group.items()) {
            members += name.text();
        }
        CAPTURE(members);
        CHECK((members.find('a') != std::string::npos) != (members.find('b') != std::string::npos));
        CHECK((members.find('c') != std::string::npos) != (members.find('d') != std::string::npos));
    }
    CHECK(made->detail["labels"]["c"].items().at(1).integer() == 90);
    CHECK(made->detail["labels"].has("e") == false);
    REQUIRE(made->detail["without_labels"].items().size() == (silent ? 1 : 0));
    CHECK((!silent || made->detail["without_labels"].items().front().text() == "e"));
}

namespace {

// One group of relay_experiment takes 360 bytes of parameters three times, and 10 x 18 values and gradients.
constexpr std::uint64_t group_bytes = 3 * 360 + 2 * 4 * 10 * 18;
constexpr std::uint64_t once_bytes = 4 * 360;  // while a turn begins or ends

Hello with_memory(std::uint64_t bytes) {
    auto hello = RelayMachine::splits();
    hello.memory = bytes;
    return hello;
}

}  // namespace

TEST_CASE("groups go to hosts that have room for them, and without room a run waits and fails with the numbers",
          "[relay_machine]") {
    RelayMachine bench;
    for (const auto* name : {"a", "b", "c"}) {
        bench.client(1s, name);
    }
    bench.host(1s, "h1", with_memory(2 * group_bytes + once_bytes + 5));
    bench.submit(2s, relay_experiment("groups = 3", "start_timeout = \"60s\""));
    CHECK(job_of<MakeModel>(bench.last) == nullptr);
    SECTION("nobody helps") {
        bench.step(62s, Tick{});
        CHECK(bench.state(1) == "failed");
        const auto& why = bench.experiment(1).saved().reason;
        CHECK(why.starts_with("insufficient host memory for 3 groups of " + format_bytes(group_bytes)));
        CHECK(why.find("h1 has " + format_bytes(2 * group_bytes + once_bytes + 5)) != std::string::npos);
        CHECK(why.find("join --memory") != std::string::npos);
    }
    SECTION("a second host takes the third group") {
        bench.host(10s, "h2", with_memory(group_bytes + once_bytes));
        bench.make_model(11s, 1);
        const auto* made = bench.decision(decisions::groups);
        REQUIRE(made != nullptr);
        std::map<std::string, int> groups;
        for (const auto& host : made->detail["hosts"].items()) {
            ++groups[host.text()];
        }
        CHECK(groups == std::map<std::string, int>{{"h1", 2}, {"h2", 1}});
        CHECK(bench.machine.experiments().at(1).host_bytes() ==
              std::map<std::string, std::uint64_t>{{"h1", 2 * group_bytes + once_bytes},
                                                   {"h2", group_bytes + once_bytes}});
    }
    SECTION("one that does not say how much it has takes all") {
        bench.host(10s, "h2");
        CHECK(job_of<MakeModel>(bench.last) != nullptr);
    }
}

TEST_CASE("what another experiment has at a host is not there, until that one is over", "[relay_machine]") {
    CoordinatorOptions two;
    two.parallel = 2;
    RelayMachine bench(two);
    for (const auto* name : {"a", "b"}) {
        bench.client(1s, name);
    }
    bench.host(1s, "h1", with_memory(2 * group_bytes + once_bytes - 1));
    const auto one_client = relay_experiment("groups = 1", "cohort = 1");
    bench.submit(2s, one_client);
    bench.make_model(3s, 1);
    REQUIRE(bench.state(1) == "running");
    bench.submit(4s, one_client);
    CHECK(job_of<MakeModel>(bench.last) == nullptr);
    CHECK(bench.machine.experiments().at(1).host_bytes() ==
          std::map<std::string, std::uint64_t>{{"h1", group_bytes + once_bytes}});
    bench.ask(5s, "experiment.cancel", Json::object().set("experiment", 1));
    CHECK(job_of<MakeModel>(bench.last) != nullptr);
}

TEST_CASE("clients that take no cells are not drawn, and the log says why", "[relay_machine]") {
    RelayMachine bench;
    bench.client(1s, "a");
    bench.join(1s, "plain");
    bench.host(1s, "h1");
    bench.submit(2s, relay_experiment("groups = 1"));
    bench.make_model(3s, 1);
    CHECK(bench.cohort(1) == std::vector<std::string>{"a"});
    const auto* selection = bench.decision(decisions::selection);
    REQUIRE(selection != nullptr);
    CHECK(selection->detail["left_out"]["plain"].text() == "no_split");
}

TEST_CASE("groups and their hosts are persisted with the cohort, before anybody is assigned", "[relay_machine]") {
    auto bench = running();
    CHECK(persisted<SaveCommit>(bench.last)->next_cohort == std::vector<std::string>{"a", "b"});
    const auto* groups = bench.decision(decisions::groups);
    REQUIRE(groups != nullptr);
    CHECK(groups->round == 1);
    CHECK(groups->detail["groups"].items().size() == 2);
    CHECK(groups->detail["hosts"].dump() == R"(["h1","h1"])");
    CHECK(groups->detail["examples"]["a"].integer() == 100);
    CHECK(bench.assigned().empty());
    REQUIRE(job_of<OpenRound>(bench.last) != nullptr);
    REQUIRE(sent<Roster>(bench.last, bench.sessions["a"]) != nullptr);  // streams open while the round is made ready
    CHECK(sent<Roster>(bench.last, bench.sessions["h1"])->entries.size() == 2);
    bench.opened(4s, 1);
    CHECK(bench.assigned().size() == 4);
}

TEST_CASE("rosters stay as they are from one round to the next, and are taken back at the end", "[relay_machine]") {
    auto bench = running();
    bench.opened(4s, 1);
    bench.all_turns(5s);
    CHECK(sent<Roster>(bench.last, bench.sessions["h1"]) == nullptr);
    bench.step(6s, SnapshotWritten{1, 1, RelayMachine::model(1, 1), 10, 1.0, 0, 0});
    CHECK(sent<Roster>(bench.last, bench.sessions["a"]) == nullptr);
    CHECK(sent<Roster>(bench.last, bench.sessions["h1"]) == nullptr);
    REQUIRE_FALSE(bench.ask(7s, "experiment.cancel", Json::object().set("experiment", 1)).error);
    REQUIRE(sent<Roster>(bench.last, bench.sessions["h1"]) != nullptr);
    CHECK(sent<Roster>(bench.last, bench.sessions["h1"])->entries.empty());
}

TEST_CASE("a round of relays ends in one job with what its groups have come to, and hosts hear of the commit",
          "[relay_machine]") {
    auto bench = running();
    bench.opened(4s, 1);
    bench.all_turns(5s);
    REQUIRE(job_of<FinishRound>(bench.last) != nullptr);
    CHECK(job_of<FinishRound>(bench.last)->groups.size() == 2);
    bench.step(6s, SnapshotWritten{1, 1, RelayMachine::model(1, 1), 10, 1.0, 0, 0});
    CHECK(persisted<SaveCommit>(bench.last)->participants.size() == 2);
    REQUIRE(sent<Committed>(bench.last, bench.sessions["h1"]) != nullptr);
    CHECK_FALSE(sent<Committed>(bench.last, bench.sessions["h1"])->counted);
    CHECK(sent<Committed>(bench.last, bench.sessions["a"])->counted);
    bench.ask(7s, "experiment.cancel", Json::object().set("experiment", "1"));
    CHECK(bench.state(1) == "cancelled");
    CHECK(sent<Ended>(bench.last, bench.sessions["h1"]) != nullptr);
}

TEST_CASE("regroup = once keeps the groups, every-round makes them anew", "[relay_machine]") {
    const auto lists = [](const std::string& regroup) {
        RelayMachine bench;
        for (int i = 0; i < 6; ++i) {
            bench.client(1s, std::string(1, static_cast<char>('a' + i)));
        }
        bench.host(1s, "h1");
        bench.submit(2s, relay_experiment("groups = 2\ngrouping = \"random\"\nregroup = \"" + regroup + "\""));
        bench.make_model(3s, 1);
        std::vector<std::string> all;
        for (std::uint32_t round = 1; round <= 3; ++round) {
            const auto* groups = bench.decision(decisions::groups);
            REQUIRE(groups != nullptr);
            all.push_back(groups->detail["groups"].dump());
            bench.opened(4s, round);
            bench.all_turns(5s);
            bench.step(6s, SnapshotWritten{1, round, RelayMachine::model(1, round), 10, 1.0, 0, 0});
        }
        return all;
    };
    const auto once = lists("once");
    CHECK((once[0] == once[1] && once[1] == once[2]));
    const auto anew = lists("every-round");
    CHECK((anew[0] != anew[1] || anew[1] != anew[2]));
}

TEST_CASE("after a restart the groups are the log's, and what is lost of them begins anew", "[relay_machine]") {
    const bool lost = GENERATE(true, false);
    const auto client = sha256(std::string_view("client")), server = sha256(std::string_view("server"));
    Recovered recovered;
    recovered.epoch = 2;
    recovered.declared["a"] = {{"digits", {}, 100, {8, 8, 1}, 10}};
    RecoveredExperiment experiment;
    experiment.saved = {1, "test", relay_experiment("groups = 1"), "running", "", "admin"};
    experiment.add({0, RelayMachine::model(1, 0), 100, Json::object(), {}});
    experiment.next_cohort = {"a", "b"};
    experiment.decisions = {
        {1, 1, decisions::groups, *Json::parse(R"({"groups":[["b","a"]],"hosts":["h1"],"examples":{"a":100,"b":70}})")},
        {1, 1, "handover",
         Json::object()
             .set("group", 0)
             .set("node", "b")
             .set("client_segment", client.hex())
             .set("server_segment", server.hex())
             .set("client_bytes", 10)
             .set("server_bytes", 20)
             .set("examples", 70)
             .set("loss", 1.0)}};
    recovered.experiments = {experiment};
    RelayMachine bench({}, recovered);
    CHECK(job_of<OpenRound>(bench.last) != nullptr);
    CHECK(bench.decision(decisions::groups) == nullptr);
    bench.host(1s, "h1");
    bench.client(1s, "a");
    bench.client(1s, "b");
    bench.opened(2s, 1, lost ? std::vector<Digest>{client} : std::vector<Digest>{client, server});
    CHECK((bench.decision("restarted") != nullptr) == lost);
    const auto* next = sent<Assign>(bench.last, bench.sessions[lost ? "b" : "a"]);
    REQUIRE(next != nullptr);
    CHECK(next->model == (lost ? sha256(std::string_view("c1")) : client));
    CHECK(next->examples == (lost ? 70 : 100));
    bench.all_turns(3s);
    CHECK(job_of<FinishRound>(bench.last) != nullptr);
}

TEST_CASE("a segment that is lost at the end of a round begins its group anew; what else is wrong fails it",
          "[relay_machine]") {
    auto bench = running(relay_experiment("groups = 1"));
    bench.opened(4s, 1);
    bench.all_turns(5s);
    const auto groups = job_of<FinishRound>(bench.last)->groups;
    REQUIRE(groups.size() == 1);
    bench.step(6s, JobFailed{1, 1, "finish_round", {ErrorKind::corrupt, "digest_mismatch", "damaged"}});
    CHECK(bench.state(1) == "paused");  // until it is known which segments are there
    REQUIRE(job_of<OpenRound>(bench.last) != nullptr);
    CHECK(job_of<FinishRound>(bench.last) == nullptr);
    SECTION("lost") {
        bench.opened(7s, 1, {groups[0].segments[0]});
        CHECK(bench.decision("restarted") != nullptr);
        bench.all_turns(8s);
        REQUIRE(job_of<FinishRound>(bench.last) != nullptr);
        CHECK(job_of<FinishRound>(bench.last)->groups == groups);
    }
    SECTION("all there") {
        bench.opened(7s, 1, groups[0].segments);
        CHECK(bench.state(1) == "failed");
        CHECK(bench.experiment(1).saved().reason == "digest_mismatch: damaged");
    }
}

}  // namespace causeway
