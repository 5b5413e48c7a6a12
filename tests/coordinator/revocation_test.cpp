// Revocation in the machines: closed at once, dropped at once, heard no more.
#include <catch2/catch.hpp>

#include "coordinator/machine.h"

namespace causeway {
namespace {

using namespace std::chrono_literals;

const std::string file =
    "[experiment]\nname = \"test\"\nrounds = 2\n[data]\ndataset = \"digits\"\nshape = [8, 8, 1]\n"
    "[model]\nlayers = [\"flatten\", \"dense 10\"]\n[regime]\npreset = \"fedavg\"\n"
    "[sync]\nmin_clients = 2\nquorum = 1\nrejoin = \"60s\"\n";
const Digest revocation_model = sha256(std::string_view("model"));

/// Clients a and b in the open first round of an experiment.
struct Federation {
    Coordinator machine{{}, {}};
    CoordinatorEffects last = machine.start(0s);
    SessionId next = 1;
    SessionId a = join("a", "client");
    SessionId b = join("b", "client");

    Federation() {
        const auto admin = join("admin", "operator");
        step(2s, MessageReceived{admin, Request{1, "experiment.submit", Json::object().set("file", file).dump()}});
        step(3s, ModelMade{1, revocation_model, 100});
    }
    const CoordinatorEffects& step(Instant now, const CoordinatorEvent& event) {
        last = machine.step(now, event);
        return last;
    }
    SessionId join(const std::string& node, const std::string& role) {
        Hello hello;
        if (role == "client") {
            hello.datasets.push_back({"digits", {}, 100, {8, 8, 1}, 10});
        }
        step(1s, SessionOpened{next, node, role, hello});
        return next++;
    }
    [[nodiscard]] const SaveDecision* decision() const {
        for (const auto& persist : last.persist) {
            if (const auto* found = std::get_if<SaveDecision>(&persist)) {
                return found;
            }
        }
        return nullptr;
    }
    [[nodiscard]] std::string state() const { return machine.experiments().at(1).saved().state; }
};

}  // namespace

TEST_CASE("a revoked member's session is closed and it is dropped from the round at once", "[machine][revocation]") {
    Federation f;
    f.step(4s, NodeRevoked{"a", "admin"});
    REQUIRE(f.last.close.size() == 1);
    CHECK(f.last.close[0].session == f.a);
    CHECK(f.last.close[0].code == "revoked");
    CHECK_THAT(f.last.close[0].message, Catch::Contains("admin"));
    REQUIRE(f.decision() != nullptr);  // not after `rejoin`
    CHECK(f.decision()->kind == "dropped");
    CHECK(f.decision()->detail["node"].text() == "a");
    CHECK(f.decision()->detail["code"].text() == "revoked");
    CHECK(f.machine.members().by_node("a") == nullptr);
    CHECK(f.machine.members().by_node("b") != nullptr);
    CHECK(f.state() == "running");
}

TEST_CASE("nothing that a revoked node says is heard any more", "[machine][revocation]") {
    Federation f;
    f.step(4s, NodeRevoked{"a", "admin"});
    const Lease lease{1, 1, 1, 1};
    HeldUpdate update{.experiment = 1, .round = 1, .digest = sha256(std::string_view("u")), .bytes = 10, .weight = 1};
    update.start_model = revocation_model;
    f.step(5s, MessageReceived{f.a, Offer{lease, update}});
    CHECK(f.last.jobs.empty());
    CHECK(f.last.send.empty());
    f.step(5s, MessageReceived{f.b, Offer{lease, update}});
    CHECK(f.last.jobs.size() == 1);
    f.step(6s, SessionClosed{f.a, "revoked"});  // the link's own word comes later
    CHECK(f.last.persist.empty());
}

TEST_CASE("a member that is away is dropped too when it is revoked", "[machine][revocation]") {
    Federation f;
    f.step(4s, SessionClosed{f.a, "connection_lost"});
    CHECK(f.decision() == nullptr);  // it may come back
    f.step(5s, NodeRevoked{"a", "admin"});
    CHECK(f.last.close.empty());
    REQUIRE(f.decision() != nullptr);
    CHECK(f.decision()->detail["code"].text() == "revoked");
}

TEST_CASE("a round that loses its quorum to a revocation fails with that reason", "[machine][revocation]") {
    Federation f;
    f.step(4s, NodeRevoked{"a", "admin"});
    f.step(4s, NodeRevoked{"b", "admin"});
    CHECK(f.state() == "failed");
    CHECK_THAT(f.machine.experiments().at(1).saved().reason,
               Catch::Contains("quorum_lost") && Catch::Contains("revoked by admin"));
}

TEST_CASE("a revoked operator loses every session, and its watches with them", "[machine][revocation]") {
    Federation f;
    const auto first = f.join("alice", "operator");
    const auto second = f.join("alice", "operator");
    f.step(2s, MessageReceived{first, Request{1, "experiment.watch", R"({"experiment":1})"}});
    f.step(4s, NodeRevoked{"alice", "admin"});
    REQUIRE(f.last.close.size() == 2);
    CHECK(f.last.close[0].session == first);
    CHECK(f.last.close[1].session == second);
    f.step(5s, MessageReceived{second, Request{2, "experiment.list", "{}"}});
    CHECK(f.last.send.empty());
    f.step(5s, NodeRevoked{"a", "admin"});
    f.step(5s, NodeRevoked{"b", "admin"});  // the experiment ends
    for (const auto& send : f.last.send) {
        CHECK(send.session != first);
    }
}

TEST_CASE("a name that nobody has can be revoked without effect", "[machine][revocation]") {
    Federation f;
    f.step(4s, NodeRevoked{"nobody", "admin"});
    CHECK(f.last.close.empty());
    CHECK(f.last.persist.empty());
}

}  // namespace causeway
