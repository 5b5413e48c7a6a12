// The real daemon with real sockets, an honest node, and a client with a valid certificate that lies.
#include <cmath>
#include <limits>

#include "tests/cli/running.h"

namespace causeway {
namespace {

constexpr std::string_view experiment = R"(
[experiment]
name = "lies"
rounds = 3
[data]
dataset = "points"
label = "last"
shape = [2]
[model]
layers = ["dense 2"]
[train]
optimizer = { kind = "sgd", learning_rate = 0.1 }
[regime]
preset = "fedavg"
[sync]
quorum = 1
min_clients = 2
)";

}  // namespace

TEST_CASE("a client that answers with garbage is told what was expected, stays, and disturbs nobody", "[e2e]") {
    const TemporaryFolder temporary;
    const RunningDaemon daemon(temporary.path / "coordinator");
    TestPeer operator_peer(*load_credentials(temporary.path / "coordinator" / "operator"), daemon.address(), {});
    const RunningNode honest(temporary.path / "honest", new_token(operator_peer, "honest"),
                             write_points(temporary.path));
    TestPeer liar(enrol(new_token(operator_peer, "liar")), daemon.address(),
                  {{.name = "points", .digest = {}, .examples = 3, .shape = {3}, .classes = 0}});
    const auto submitted = operator_peer.ask("experiment.submit", Json::object().set("file", experiment));

    const auto garbage = to_bytes("these are no parameters");
    liar.serve(garbage);
    const auto assign = liar.next<Assign>();
    CHECK(assign.lease.round == 1);
    liar.send(Offer{assign.lease,
                    {.experiment = assign.lease.experiment,
                     .round = 1,
                     .digest = sha256(garbage),
                     .bytes = garbage.size(),
                     .weight = 3,
                     .metrics = {},
                     .start_model = assign.model}});
    const auto refused = liar.next<Refused>();
    CHECK(refused.update == sha256(garbage));
    CHECK(refused.message.find("update") != std::string::npos);

    const auto again = liar.next<Assign>();  // still a member: it is asked again
    CHECK(again.lease.round == 2);
    liar.send(Offer{again.lease,
                    {.experiment = again.lease.experiment,
                     .round = 2,
                     .digest = sha256(garbage),
                     .bytes = std::uint64_t{1} << 60,  // a giant that is never sent
                     .weight = -5,
                     .metrics = {},
                     .start_model = again.model}});
    CHECK_FALSE(liar.next<Refused>().code.empty());
    const auto last = liar.next<Assign>();
    liar.send(Decline{last.lease, "busy", "not today"});

    const auto done = operator_peer.ask("experiment.wait", Json::object().set("experiment", submitted["id"]));
    CHECK(done["state"].text() == "succeeded");
    CHECK(done["rounds"].integer() == 3);
}

TEST_CASE("only an operator may command, and a client that tries is told so", "[e2e]") {
    const TemporaryFolder temporary;
    const RunningDaemon daemon(temporary.path / "coordinator");
    TestPeer operator_peer(*load_credentials(temporary.path / "coordinator" / "operator"), daemon.address(), {});
    TestPeer client(enrol(new_token(operator_peer, "site")), daemon.address(), {});
    for (const auto* verb : {"token.new", "token.list", "token.revoke", "ca.requests", "ca.import", "experiment.list",
                             "experiment.submit", "node.list", "node.revoke", "audit.show", "model.where"}) {
        INFO(verb);
        client.send(Request{.id = 1, .verb = verb, .body = "{}"});
        const auto reply = client.next<Reply>();
        REQUIRE(reply.error.has_value());
        CHECK(reply.error->kind == ErrorKind::refused);
    }
    operator_peer.send(Request{.id = 99, .verb = "make.coffee", .body = "{}"});
    CHECK(operator_peer.next<Reply>().error->kind == ErrorKind::unsupported);
    operator_peer.send(Request{.id = 100, .verb = "token.new", .body = "not json"});
    CHECK(operator_peer.next<Reply>().error->kind == ErrorKind::corrupt);
}

TEST_CASE("absurd words under a valid certificate change nothing and disturb nobody", "[e2e]") {
    const TemporaryFolder temporary;
    const RunningDaemon daemon(temporary.path / "coordinator");
    TestPeer operator_peer(*load_credentials(temporary.path / "coordinator" / "operator"), daemon.address(), {});
    const RunningNode honest(temporary.path / "honest", new_token(operator_peer, "honest"),
                             write_points(temporary.path));
    constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
    TestPeer liar(enrol(new_token(operator_peer, "liar")), daemon.address(),
                  {{.name = "points", .digest = {}, .examples = 3, .shape = {2}, .classes = 0}});
    // The honest node alone is enough, once it is there; the other may be shown the door for what it says.
    const auto nodes = [&] { return operator_peer.ask("node.list", Json::object()).dump(); };
    for (const auto end = real_now() + deadline; nodes().find("honest") == std::string::npos;) {
        REQUIRE(real_now() < end);
    }
    auto file = std::string(experiment);
    file.replace(file.find("min_clients = 2"), 15, "min_clients = 1\nrejoin = \"0s\"\nstraggler_deadline = \"5s\"");
    const auto submitted = operator_peer.ask("experiment.submit", Json::object().set("file", file));
    const auto assign = liar.next<Assign>();

    const std::string long_text(100'000, '\x01');
    const Lease nobodys{huge, huge, 4294967295U, 4294967295U};
    const HeldUpdate boundless{
        huge, 4294967295U, {}, huge, std::numeric_limits<std::int64_t>::max(), {1e308, huge, 1e308}, {}};
    for (const auto& lease : {nobodys, assign.lease}) {
        liar.send(Progress{lease, 4294967295U, 1, 1e308});
        liar.send(Progress{nobodys, 0, 0, std::numeric_limits<double>::quiet_NaN()});
        liar.send(Offer{nobodys, boundless});
        liar.send(Decline{nobodys, long_text, long_text});
        // What only the coordinator may say, and what belongs on other connections.
        liar.send(Welcome{});
        liar.send(Counted{lease, {}});
        liar.send(Committed{lease.experiment, lease.round, {}, true, {}});
        liar.send(Dropped{lease, "silent", long_text});
        liar.send(Ended{lease.experiment, "failed", long_text});
        liar.send(Hello{.version_min = 4294967295U, .software = long_text});
        liar.send(Reply{.id = huge, .body = long_text});
    }
    // Asked again and again it says the same impossible thing about its real lease; each is answered, none counts.
    auto impossible = boundless;
    impossible.experiment = assign.lease.experiment;
    impossible.round = assign.lease.round;
    impossible.start_model = assign.model;
    liar.send(Offer{assign.lease, impossible});
    for (int i = 0; i < 2000; ++i) {
        liar.send(Progress{assign.lease, 1, 1, 1e308});
    }
    const auto status = operator_peer.ask("experiment.status", Json::object().set("experiment", submitted["id"]));
    CHECK(status["state"].text() == "running");

    const auto done = operator_peer.ask("experiment.wait", Json::object().set("experiment", submitted["id"]));
    CHECK(done["state"].text() == "succeeded");
    CHECK(std::isfinite(done["loss"].number()));
}

TEST_CASE("a token is for one key: the same key gets the same certificate, any other is refused", "[e2e]") {
    const TemporaryFolder temporary;
    const RunningDaemon daemon(temporary.path / "coordinator");
    TestPeer operator_peer(*load_credentials(temporary.path / "coordinator" / "operator"), daemon.address(), {});
    const auto token = *parse_token(new_token(operator_peer, "site"));
    const auto key = make_key();
    const auto first = join_federation(token, key, [](std::string_view) {});
    const auto second = join_federation(token, key, [](std::string_view) {});
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK(first->certificate == second->certificate);
    const auto other = join_federation(token, make_key(), [](std::string_view) {});
    REQUIRE_FALSE(other.has_value());
    CHECK(other.error().code == "token_used");
    auto altered = token;
    altered.secret[0] ^= std::byte{1};
    CHECK(join_federation(altered, make_key(), [](std::string_view) {}).error().kind == ErrorKind::refused);
}

}  // namespace causeway
