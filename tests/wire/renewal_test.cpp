// Renewal without a network: requests, the crash-safe pair of files, and credentials that change under a live link.
#include <thread>

#include "common/file.h"
#include "common/json.h"
#include "tests/wire/link_fixtures.h"
#include "wire/certificate_request.h"
#include "wire/enrolment.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

/// A folder with an identity in it, and the authority that renews it.
struct Renewable {
    Federation federation;
    TemporaryFolder folder;
    Credentials present = federation.node(Role::client, "site-a");

    Renewable() { REQUIRE(save_credentials(folder.path, present)); }
    [[nodiscard]] Bytes successor(const KeyPair& key, std::int64_t now_s) const {
        return *issue_certificate(federation.authority, key.public_key, present.identity, now_s);
    }
};

TEST_CASE("a certificate is due past two thirds of its life, and allowed past half", "[wire][renewal]") {
    const Federation federation;
    const auto key = make_key();
    const Identity identity{"clinic", Role::client, "site-a"};
    for (const std::int64_t life : {std::int64_t{6}, day_s, node_certificate_s}) {
        const auto facts =
            *read_certificate(*issue_certificate(federation.authority, key.public_key, identity, test_now_s, life));
        CHECK(facts.not_before_s == test_now_s - day_s);  // so that clocks may differ by a day
        CHECK(facts.not_after_s == test_now_s + life);
        CHECK(renewal_due_s(facts) == test_now_s + life * 2 / 3);
        CHECK(renewal_allowed_s(facts) == test_now_s + life / 2);
    }
    // Of an authority elsewhere, which does not lay notBefore back and lets live for hours.
    CHECK(renewal_due_s({{}, test_now_s, test_now_s + 9000, {}}) == test_now_s + 6000);
}

TEST_CASE("a request says who asks, by a key that its sender has, and nothing else passes", "[wire][renewal]") {
    const Identity identity{"clinic", Role::client, "site-a"};
    const auto key = make_key();
    const auto der = *make_certificate_request(key, identity);
    const auto read = read_certificate_request(der);
    REQUIRE(read.has_value());
    CHECK(read->identity == identity);
    CHECK(read->public_key == key.public_key);

    for (std::size_t at = 0; at < der.size(); ++at) {  // one flipped bit anywhere: an error, or another request
        auto altered = der;
        altered[at] ^= std::byte{1};
        CHECK_FALSE(read_certificate_request(altered).has_value());
    }
    for (std::size_t size = 0; size < der.size(); ++size) {
        CHECK_FALSE(read_certificate_request(ByteView(der).first(size)).has_value());
    }
    auto altered = der;
    altered[der.size() - 3] ^= std::byte{1};
    const auto code = read_certificate_request(altered).error().code;
    CHECK((code == "bad_signature" || code == "bad_certificate_request"));
    CHECK_FALSE(make_certificate_request(key, {"clinic", Role::client, "no such/name"}).has_value());

    const Identity other{"clinic", Role::client, "site-b"};
    const auto body = Json::object().set("request", to_base64url(der)).dump();
    CHECK(read_renewal_body(body, identity).has_value());
    CHECK(read_renewal_body(body, other).error().code == "wrong_identity");
    CHECK(read_renewal_body(body, {"clinic", Role::operator_, "site-a"}).error().code == "wrong_identity");
    for (const auto* bad : {"", "{}", "[]", R"({"request":7})", R"({"request":"!"})", R"({"request":"AAAA"})"}) {
        INFO(bad);
        CHECK_FALSE(read_renewal_body(bad, identity).has_value());
    }
}

TEST_CASE("until a renewed pair is whole the old one is; asked again, the same key asks", "[wire][renewal]") {
    const Renewable node;
    const auto key = *next_key(node.folder.path);
    CHECK(next_key(node.folder.path)->public_key == key.public_key);
    CHECK(load_credentials(node.folder.path)->certificate == node.present.certificate);

    const auto certificate = node.successor(key, test_now_s + 60 * day_s);
    const auto renewed = accept_renewal(node.folder.path, node.present, certificate, test_now_s + 60 * day_s);
    REQUIRE(renewed.has_value());
    CHECK(renewed->certificate == certificate);
    CHECK(renewed->key.public_key == key.public_key);
    CHECK(load_credentials(node.folder.path)->certificate == certificate);
    CHECK(next_key(node.folder.path)->public_key != key.public_key);
    CHECK(require_secret_mode(node.folder.path / "next.key"));
}

TEST_CASE("a certificate for another name, key or authority is not put into force", "[wire][renewal]") {
    const Renewable node;
    const auto key = *next_key(node.folder.path);
    const auto refuse = [&](const Bytes& certificate, std::int64_t at = test_now_s) {
        const auto answer = accept_renewal(node.folder.path, node.present, certificate, at);
        CHECK(load_credentials(node.folder.path)->certificate == node.present.certificate);
        return answer ? "accepted" : answer.error().code;
    };
    const auto& authority = node.federation.authority;
    CHECK(refuse(*issue_certificate(authority, key.public_key, {"clinic", Role::client, "b"}, test_now_s)) ==
          "wrong_certificate");
    CHECK(refuse(*issue_certificate(authority, key.public_key, {"clinic", Role::operator_, "site-a"}, test_now_s)) ==
          "wrong_role");
    CHECK(refuse(node.successor(make_key(), test_now_s)) == "key_mismatch");
    CHECK(refuse(node.successor(key, test_now_s), test_now_s + 91 * day_s) == "certificate_expired");
    const auto stranger = *make_authority("clinic", test_now_s);
    CHECK(refuse(*issue_certificate(stranger, key.public_key, node.present.identity, test_now_s)) == "unknown_ca");
    CHECK(refuse(to_bytes("no certificate")) == "bad_certificate");
}

TEST_CASE("killed between any two steps of a renewal the folder holds a whole pair, and goes on", "[wire][renewal]") {
    // The steps as they are on disk, each in the state that a kill right after it leaves.
    for (int steps = 0; steps <= 3; ++steps) {
        INFO(steps);
        const Renewable node;
        const auto& folder = node.folder.path;
        KeyPair key;
        Bytes certificate;
        if (steps >= 1) {
            key = *next_key(folder);
            certificate = node.successor(key, test_now_s);
        }
        if (steps >= 2) {
            REQUIRE(write_file_durably(folder / "node.crt", certificate_to_pem(certificate)));
        }
        if (steps >= 3) {
            REQUIRE(rename_durably(folder / "next.key", folder / "node.key"));
        }
        const auto after = load_credentials(folder);
        REQUIRE(after.has_value());
        CHECK(after->certificate == (steps >= 2 ? certificate : node.present.certificate));
        CHECK(after->key.public_key == (steps >= 2 ? key.public_key : node.present.key.public_key));
        // The next renewal goes through from there.
        const auto next = *next_key(folder);
        CHECK((next.public_key == key.public_key) == (steps == 1));
        const auto again = accept_renewal(folder, *after, node.successor(next, test_now_s), test_now_s);
        REQUIRE(again.has_value());
        CHECK(again->key.public_key == next.public_key);
        CHECK_FALSE(fs::exists(folder / "next.key"));
    }
}

TEST_CASE("who reads while a pair is replaced finds a whole one, every time", "[wire][renewal]") {
    const Renewable node;
    std::atomic<bool> stop{false};
    std::atomic<int> broken{0}, reads{0};
    std::thread reader([&] {
        while (!stop) {
            broken += load_credentials(node.folder.path) ? 0 : 1;
            ++reads;
        }
    });
    for (int i = 0; i < 100 || reads < 100; ++i) {
        const auto key = *next_key(node.folder.path);
        REQUIRE(save_renewed(node.folder.path, node.successor(key, test_now_s)));
    }
    stop = true;
    reader.join();
    CHECK(broken == 0);
}

TEST_CASE("a link shows a renewed certificate in the next handshake, and its sessions go on", "[wire][renewal][link]") {
    const Federation federation;
    TestLink server(federation.node(Role::coordinator, "coordinator"), Address{"*", 0});
    const auto first = federation.node(Role::client, "site-a");
    TestLink client(first);
    const auto session = open_session(client, server);
    REQUIRE(client.link->use(federation.node(Role::client, "site-a", test_now_s + 1)));
    const auto renewed_server = federation.node(Role::coordinator, "coordinator", test_now_s + 2);
    REQUIRE(server.link->use(renewed_server));
    CHECK(client.link->use({}).error().kind == ErrorKind::corrupt);  // and changes nothing

    client.link->send(session.at_client, Request{1, "still there", "{}"});
    CHECK(server.wait_message<Request>()->verb == "still there");
    const auto bulk = client.link->connect({.to = server.address(),
                                            .kind = ConnectionKind::bulk,
                                            .control = session.at_client,
                                            .session = session.at_server});
    const auto attached = TestLink::wait_for<PeerOpened>(*server.bulk);
    REQUIRE(attached.has_value());  // another certificate, the same identity: it belongs to the session
    CHECK(attached->control == session.at_server);
    CHECK(attached->peer->fingerprint != certificate_fingerprint(first.certificate));
    const auto seen = TestLink::wait_for<PeerOpened>(*client.bulk);
    REQUIRE(seen.has_value());
    CHECK(seen->connection == bulk);
    CHECK(seen->peer->fingerprint == certificate_fingerprint(renewed_server.certificate));
}

TEST_CASE("an enrolment carries a request for an authority elsewhere, which is for its own key and name",
          "[wire][renewal][enrolment]") {
    const Federation federation;
    const JoinToken token{.addresses = {{"127.0.0.1", 1}},
                          .authority_key = *certificate_key_digest(federation.authority.certificate),
                          .federation = "clinic",
                          .role = Role::host,
                          .name = "site-a",
                          .secret = Bytes(token_secret_bytes, std::byte{1}),
                          .expires_s = test_now_s};
    const auto key = make_key();
    auto request = *make_join_request(token, key);
    const auto enclosed = read_certificate_request(request.request);
    REQUIRE(enclosed.has_value());
    CHECK(enclosed->identity == Identity{"clinic", Role::host, "site-a"});
    CHECK(enclosed->public_key == key.public_key);
    const EnrolmentDecision any = [](const EnrolmentClaim&, const Issue& issue) { return issue(Role::host); };
    CHECK(answer_join_request(federation.authority, request, test_now_s, any).has_value());
    request.request = *make_certificate_request(make_key(), {"clinic", Role::host, "site-a"});
    CHECK(answer_join_request(federation.authority, request, test_now_s, any).error().code ==
          "bad_certificate_request");
    request.request = *make_certificate_request(key, {"clinic", Role::host, "site-b"});
    CHECK(answer_join_request(federation.authority, request, test_now_s, any).error().code ==
          "bad_certificate_request");
    request.request = {};  // an older node
    CHECK(answer_join_request(federation.authority, request, test_now_s, any).has_value());
}

}  // namespace
}  // namespace causeway
