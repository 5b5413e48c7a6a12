// A federation that lives for months, on a clock that the test moves: certificates are renewed under running sessions.
#include <atomic>

#include "tests/cli/running.h"
#include "wire/certificate_request.h"

namespace causeway {
namespace {

constexpr std::string_view endless = R"(
[experiment]
name = "months"
rounds = 100000
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
min_clients = 1
)";

/// The clock of every certificate in this process.
struct Clock {
    std::atomic<std::int64_t> now_s{wall_clock_unix_s()};
    void pass_days(std::int64_t days) { now_s += days * day_s; }
    [[nodiscard]] UnixClock read() {
        return [this] { return now_s.load(); };
    }
};

Json node_row(TestPeer& operator_peer, const std::string& name) {
    const auto reply = operator_peer.ask("node.list", Json::object());
    for (const auto& node : reply["nodes"].items()) {
        if (node["node"].text() == name) {
            return node;
        }
    }
    return {};
}

std::vector<Json> audit_lines(TestPeer& operator_peer, const std::string& event) {
    std::vector<Json> lines;
    const auto reply = operator_peer.ask("audit.show", Json::object());
    for (const auto& item : reply["entries"].items()) {
        const auto entry = *Json::parse(item["entry"].text());
        if (entry["event"].text() == event) {
            lines.push_back(entry);
        }
    }
    return lines;
}

template <class Condition>
void wait_until(const Condition& condition) {
    for (const auto end = real_now() + deadline; !condition();) {
        REQUIRE(real_now() < end);
    }
}

}  // namespace

TEST_CASE("a node's certificate is renewed in the middle of a run, and neither session nor run notice", "[e2e]") {
    Clock clock;
    const TemporaryFolder temporary;
    const auto state = temporary.path / "coordinator";
    const RunningDaemon daemon(state, clock.read());
    TestPeer operator_peer(*load_credentials(state / "operator"), daemon.address(), {}, clock.read());
    const RunningNode node(temporary.path / "node", new_token(operator_peer, "node"), write_points(temporary.path),
                           clock.read());
    wait_until([&] { return node_row(operator_peer, "node")["datasets"].items().size() == 1; });
    const auto id = operator_peer.ask("experiment.submit", Json::object().set("file", endless))["id"];
    const auto before = *load_credentials(temporary.path / "node" / "node");
    const auto expires = node_row(operator_peer, "node")["expires_unix_s"].integer();

    clock.pass_days(59);
    CHECK(audit_lines(operator_peer, "certificate.renewed").empty());
    clock.pass_days(2);
    wait_until([&] { return node_row(operator_peer, "node")["expires_unix_s"].integer() > expires; });
    wait_until([&] {
        const auto now = load_credentials(temporary.path / "node" / "node");
        return now && now->certificate != before.certificate;
    });
    const auto after = *load_credentials(temporary.path / "node" / "node");
    CHECK(after.key.public_key != before.key.public_key);
    CHECK(node_row(operator_peer, "node")["state"].text() == "online");
    bool told = false;
    for (const auto& line : audit_lines(operator_peer, "certificate.renewed")) {
        told = told || (line["node"].text() == "node" &&
                        line["fingerprint"].text() == certificate_fingerprint(after.certificate).hex());
    }
    CHECK(told);
    const auto status = operator_peer.ask("experiment.status", Json::object().set("experiment", id));
    CHECK(status["state"].text() == "running");

    // A year of it: each renewal leads on to the next, long after the first certificates have expired.
    const auto in_force = [&] {
        const auto credentials = load_credentials(temporary.path / "node" / "node");
        return credentials ? read_certificate(credentials->certificate)->not_after_s : 0;
    };
    for (int i = 0; i < 6; ++i) {
        const auto last = in_force();
        clock.pass_days(61);
        wait_until([&] { return in_force() > last; });
        CHECK(node_row(operator_peer, "node")["expires_unix_s"].integer() == in_force());
    }
    operator_peer.ask("experiment.cancel", Json::object().set("experiment", id));
}

TEST_CASE("the coordinator renews its own certificate without a restart, and new connections see it", "[e2e]") {
    Clock clock;
    const TemporaryFolder temporary;
    const auto state = temporary.path / "coordinator";
    const RunningDaemon daemon(state, clock.read());
    const auto first = load_credentials(state / "coordinator")->certificate;
    TestPeer operator_peer(*load_credentials(state / "operator"), daemon.address(), {}, clock.read());
    CHECK(operator_peer.coordinator() == certificate_fingerprint(first));
    clock.pass_days(61);
    wait_until([&] { return load_credentials(state / "coordinator")->certificate != first; });
    wait_until([&] { return !audit_lines(operator_peer, "certificate.renewed").empty(); });  // the old session goes on
    const auto renewed = certificate_fingerprint(load_credentials(state / "coordinator")->certificate);
    wait_until([&] {
        const TestPeer another(*load_credentials(state / "operator"), daemon.address(), {}, clock.read());
        return another.coordinator() == renewed;
    });
    const auto lines = audit_lines(operator_peer, "certificate.renewed");
    REQUIRE(lines.size() == 1);
    CHECK(lines.front()["role"].text() == "coordinator");
    CHECK(lines.front()["fingerprint"].text() == renewed.hex());
}

TEST_CASE("a renewal is for the asker's own identity, once it is due, and the same key gets the same one", "[e2e]") {
    Clock clock;
    const TemporaryFolder temporary;
    const RunningDaemon daemon(temporary.path / "coordinator", clock.read());
    TestPeer operator_peer(*load_credentials(temporary.path / "coordinator" / "operator"), daemon.address(), {},
                           clock.read());
    const auto credentials = enrol(new_token(operator_peer, "site"));
    auto client =
        std::make_unique<TestPeer>(credentials, daemon.address(), std::vector<DatasetDeclaration>{}, clock.read());
    const auto ask = [&](const Identity& identity, const KeyPair& key) {
        const auto request = *make_certificate_request(key, identity);
        client->send(Request{
            .id = 1, .verb = "certificate.renew", .body = Json::object().set("request", to_base64url(request)).dump()});
        return client->next<Reply>();
    };
    const auto key = make_key();
    CHECK(ask(credentials.identity, key).error->code == "renewal_not_due");
    CHECK(ask({"causeway", Role::operator_, "operator"}, key).error->code == "wrong_identity");
    CHECK(ask({"causeway", Role::operator_, "site"}, key).error->code == "wrong_identity");
    clock.pass_days(46);
    const auto first = ask(credentials.identity, key);
    REQUIRE_FALSE(first.error.has_value());
    CHECK(ask(credentials.identity, key).body == first.body);
    const auto reply = *Json::parse(first.body);
    const auto certificate = *from_base64url(reply["certificate"].text());
    CHECK(read_certificate(certificate)->identity == credentials.identity);
    auto renewed = credentials;
    renewed.key = key;
    renewed.certificate = certificate;
    client.reset();
    TestPeer again(renewed, daemon.address(), {}, clock.read());
    operator_peer.ask("node.revoke", Json::object().set("name", "site"));
    again.send(Request{.id = 2, .verb = "certificate.renew", .body = "{}"});
    CHECK(again.next<ErrorNotice>().code == "revoked");
}

}  // namespace causeway
