// Tokens and enrolment: what is pasted, what is asked, who is refused.
#include <thread>

#include <catch2/catch.hpp>

#include "tests/wire/link_fixtures.h"
#include "wire/join.h"

namespace causeway {
namespace {

JoinToken sample_token(const Federation& federation) {
    return {{{"192.0.2.7", 7400}, {"2001:db8::1", 7400}, {"coordinator.example.org", 99}},
            *certificate_key_digest(federation.authority.certificate),
            "clinic",
            Role::client,
            "site-a",
            secret_random_bytes(token_secret_bytes),
            test_now_s + day_s};
}

TEST_CASE("a token survives being printed and pasted, space around it included", "[wire][token]") {
    const Federation federation;
    const auto token = sample_token(federation);
    const auto text = format_token(token);
    CHECK(parse_token(text) == token);
    CHECK(parse_token("  " + text + "\n") == token);
    CHECK(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
          std::string::npos);
}

TEST_CASE("every truncation of a token is called one", "[wire][token]") {
    const Federation federation;
    const auto text = format_token(sample_token(federation));
    for (std::size_t size = 1; size < text.size(); ++size) {
        const auto parsed = parse_token(text.substr(0, size));
        INFO(size << " of " << text.size());
        REQUIRE_FALSE(parsed.has_value());
        CHECK(parsed.error().code == "truncated_token");
    }
    CHECK(parse_token("").error().code == "not_a_token");
    CHECK(parse_token("hello").error().code == "not_a_token");
    CHECK(parse_token(std::string(10'000, 'a')).error().code == "not_a_token");
}

TEST_CASE("an altered token is never believed", "[wire][token][fuzz]") {
    const std::uint64_t seed = 4;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "fuzz"});
    const Federation federation;
    const auto text = format_token(sample_token(federation));
    for (int i = 0; i < 5000; ++i) {
        auto altered = text;
        const auto edits = 1 + random.below(3);
        for (std::uint64_t edit = 0; edit < edits; ++edit) {
            altered[random.below(altered.size())] = static_cast<char>(random.below(256));
        }
        if (random.below(4) == 0) {
            altered += static_cast<char>('a' + random.below(26));
        }
        const auto parsed = parse_token(altered);
        // The last character may carry unused bits: what is believed is the token itself.
        CHECK((!parsed.has_value() || *parsed == *parse_token(text)));
    }
}

TEST_CASE("a token that nobody could use is refused though its checksum is right", "[wire][token]") {
    const Federation federation;
    const auto refused = [&](auto change) {
        auto token = sample_token(federation);
        change(token);
        const auto parsed = parse_token(format_token(token));
        return !parsed && parsed.error().code == "bad_token";
    };
    CHECK(refused([](JoinToken& t) { t.addresses.clear(); }));
    CHECK(refused([](JoinToken& t) { t.addresses.resize(17, {"host", 1}); }));
    CHECK(refused([](JoinToken& t) { t.addresses[0].host = "a b"; }));
    CHECK(refused([](JoinToken& t) { t.addresses[0].host = "*"; }));
    CHECK(refused([](JoinToken& t) { t.name = "../x"; }));
    CHECK(refused([](JoinToken& t) { t.federation = ""; }));
    CHECK(refused([](JoinToken& t) { t.role = Role::coordinator; }));
    CHECK(refused([](JoinToken& t) { t.expires_s = -1; }));
}

/// The store as the coordinator's database does it: one token, one use.
struct OneToken {
    JoinToken token;
    std::int64_t now_s = test_now_s;
    Bytes used_by;
    Bytes certificate;

    Result<Bytes> decide(const EnrolmentClaim& claim, const Issue& issue) {
        if (claim.secret != sha256(token.secret) || claim.name != token.name) {
            return fail(unknown_token());
        }
        if (!used_by.empty()) {
            return used_by == claim.public_key ? Result<Bytes>(certificate) : fail(token_used());
        }
        if (now_s > token.expires_s) {
            return fail(token_expired());
        }
        TRY_ASSIGN(certificate, issue(token.role));
        used_by = claim.public_key;
        return certificate;
    }
    [[nodiscard]] EnrolmentDecision store() {
        return [this](const EnrolmentClaim& claim, const Issue& issue) { return decide(claim, issue); };
    }
};

TEST_CASE("a token gives one key one certificate, however often it asks", "[wire][enrolment]") {
    const Federation federation;
    OneToken token{sample_token(federation)};
    const auto key = make_key();
    const auto request = *make_join_request(token.token, key);
    const auto reply = answer_join_request(federation.authority, request, test_now_s, token.store());
    REQUIRE(reply.has_value());
    const auto credentials = accept_join_reply(token.token, key, *reply, test_now_s);
    REQUIRE(credentials.has_value());
    CHECK(credentials->identity == Identity{"clinic", Role::client, "site-a"});

    CHECK(answer_join_request(federation.authority, *make_join_request(token.token, key), test_now_s, token.store())
              ->certificate == reply->certificate);
    const auto thief = make_key();
    CHECK(answer_join_request(federation.authority, *make_join_request(token.token, thief), test_now_s, token.store())
              .error()
              .code == "token_used");
}

TEST_CASE("each wrong request is refused with its own code", "[wire][enrolment]") {
    const Federation federation;
    OneToken token{sample_token(federation)};
    const auto key = make_key();
    const auto good = *make_join_request(token.token, key);
    const auto answer = [&](const JoinRequest& request) {
        const auto reply = answer_join_request(federation.authority, request, test_now_s, token.store());
        return reply ? "issued" : reply.error().code;
    };
    auto other_key = good;
    other_key.public_key = make_key().public_key;
    CHECK(answer(other_key) == "bad_signature");
    auto other_name = good;
    other_name.name = "site-b";
    CHECK(answer(other_name) == "bad_signature");
    auto junk_key = good;
    junk_key.public_key = to_bytes("junk");
    CHECK(answer(junk_key) == "bad_public_key");
    auto bad_name = good;
    bad_name.name = "a/b";
    CHECK(answer(bad_name) == "bad_name");
    auto stranger = token.token;
    stranger.secret = secret_random_bytes(32);
    CHECK(answer(*make_join_request(stranger, key)) == "unknown_token");
    token.now_s = token.token.expires_s + 1;
    CHECK(answer(good) == "token_expired");
    CHECK(token.used_by.empty());
}

TEST_CASE("a node refuses a certificate that is not what its token promised", "[wire][enrolment]") {
    const Federation federation, other;
    const auto token = sample_token(federation);
    const auto key = make_key();
    const auto judge = [&](const Authority& authority, const KeyPair& certified, const Identity& identity) {
        const JoinReply reply{*issue_certificate(authority, certified.public_key, identity, test_now_s),
                              authority.certificate, authority.federation};
        const auto accepted = accept_join_reply(token, key, reply, test_now_s);
        return accepted ? "accepted" : accepted.error().code;
    };
    CHECK(judge(federation.authority, key, {"clinic", Role::client, "site-a"}) == "accepted");
    CHECK(judge(other.authority, key, {"clinic", Role::client, "site-a"}) == "wrong_certificate");
    CHECK(judge(federation.authority, make_key(), {"clinic", Role::client, "site-a"}) == "wrong_certificate");
    CHECK(judge(federation.authority, key, {"clinic", Role::client, "site-b"}) == "wrong_certificate");
    CHECK(judge(federation.authority, key, {"clinic", Role::operator_, "site-a"}) == "wrong_role");
}

/// Answers enrolments on a link until its queue is closed: what the coordinator's loop does.
void serve_joins(TestLink& server, const Authority& authority, EnrolmentDecision store) {
    while (auto event = server.control->pop()) {
        const auto* message = std::get_if<PeerMessage>(&*event);
        const auto* request = message ? std::get_if<JoinRequest>(&message->message) : nullptr;
        if (!request) {
            continue;
        }
        auto reply = answer_join_request(authority, *request, test_now_s, store);
        if (reply) {
            server.link->send(message->connection, std::move(*reply));
        } else {
            server.link->close(message->connection, reply.error());
        }
    }
}

TEST_CASE("join tries each address, names each failure, and gets the certificate", "[wire][enrolment][link]") {
    const Federation federation, other;
    TestLink server(federation.node(Role::coordinator, "coordinator"), Address{"*", 0});
    TestLink imposter(other.node(Role::coordinator, "coordinator"), Address{"*", 0});
    OneToken token{sample_token(federation)};
    token.token.addresses = {{"127.0.0.1", 1}, imposter.address(), server.address()};
    std::thread serving([&] { serve_joins(server, federation.authority, token.store()); });
    std::vector<std::string> said;
    const auto say = [&](std::string_view line) { said.emplace_back(line); };
    const auto now = [] { return test_now_s; };

    const auto key = make_key();
    const auto credentials = join_federation(token.token, key, say, now);
    CHECK(credentials.has_value());
    REQUIRE(said.size() == 2);
    CHECK(said[0].find("unreachable") != std::string::npos);
    CHECK(said[1].find("unknown_ca") != std::string::npos);
    CHECK(imposter.control->size() == 0);  // it never saw the secret

    said.clear();
    const auto refused = join_federation(token.token, make_key(), say, now);
    CHECK(refused.error().code == "token_used");
    CHECK(said.size() == 3);

    auto nowhere = token.token;
    nowhere.addresses = {{"127.0.0.1", 1}};
    CHECK(join_federation(nowhere, key, say, now).error().code == "unreachable");
    server.control->close();
    serving.join();
}

}  // namespace
}  // namespace causeway
