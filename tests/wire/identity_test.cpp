// Identities: names, certificates, the judgement of a peer, and the files they are kept in.
#include <unistd.h>

#include <filesystem>

#include <catch2/catch.hpp>

#include "common/file.h"
#include "tests/wire/fixtures.h"

namespace causeway {
namespace {

TEST_CASE("an identity is spelt as a URI and read back; anything else is refused", "[wire][identity]") {
    const Identity identity{"clinic", Role::client, "site-a.1"};
    CHECK(identity.uri() == "causeway://clinic/client/site-a.1");
    CHECK(identity_from_uri(identity.uri()) == identity);
    for (const auto* uri : {"", "causeway://", "causeway://clinic/client", "causeway://clinic/client/a/b",
                            "causeway://clinic/root/a", "http://clinic/client/a", "causeway://clinic/client/",
                            "causeway://cli nic/client/a", "causeway://clinic/client/../a", "causeway:///client/a"}) {
        INFO(uri);
        CHECK_FALSE(identity_from_uri(uri).has_value());
    }
    CHECK(role_from("operator") == Role::operator_);
    CHECK(role_from("root").error().code == "unknown_role");
    CHECK(check_name(std::string(65, 'a'), "name").error().code == "bad_name");
    CHECK(check_name("-a", "name").error().code == "bad_name");
}

TEST_CASE("a certificate says what it was issued for, from a day back to 90 days ahead", "[wire][identity]") {
    const Federation federation;
    const auto node = federation.node(Role::client, "site-a");
    const auto facts = read_certificate(node.certificate);
    REQUIRE(facts.has_value());
    CHECK(facts->identity == node.identity);
    CHECK(facts->not_before_s == test_now_s - day_s);
    CHECK(facts->not_after_s == test_now_s + 90 * day_s);
    CHECK(facts->fingerprint == certificate_fingerprint(node.certificate));
    CHECK(certificate_common_name(federation.authority.certificate) == "clinic");
    CHECK(read_certificate(as_bytes("not a certificate")).error().code == "bad_certificate");
}

TEST_CASE("a peer is believed only with our authority's certificate, in its time, in its role", "[wire][identity]") {
    const Federation federation;
    const Federation other;
    const Trust trust = federation.authority.certificate;
    const auto node = federation.node(Role::client, "site-a");
    const auto judge = [&](ByteView certificate, std::vector<Role> roles, std::int64_t now_s) {
        const auto peer = verify_certificate(certificate, {}, trust, roles, "clinic", now_s);
        return peer ? std::string("believed ") + peer->identity.node : peer.error().code;
    };
    CHECK(judge(node.certificate, {Role::client}, test_now_s) == "believed site-a");
    CHECK(judge(node.certificate, {Role::coordinator}, test_now_s) == "wrong_role");
    CHECK(judge(node.certificate, {Role::client}, test_now_s + 91 * day_s) == "certificate_expired");
    CHECK(judge(node.certificate, {Role::client}, test_now_s - 2 * day_s) == "certificate_not_yet_valid");
    CHECK(judge(other.node(Role::client, "site-a").certificate, {Role::client}, test_now_s) == "unknown_ca");
    CHECK(judge(other.authority.certificate, {Role::client}, test_now_s) == "self_signed");
    CHECK(judge(federation.authority.certificate, {Role::client}, test_now_s) == "bad_identity");
    const auto stranger =
        issue_certificate(federation.authority, node.key.public_key, {"elsewhere", Role::client, "site-a"}, test_now_s);
    CHECK(judge(*stranger, {Role::client}, test_now_s) == "wrong_federation");
    CHECK(judge(as_bytes("junk"), {Role::client}, test_now_s) == "bad_certificate");
}

TEST_CASE("a joining node believes the authority in the chain that its token names", "[wire][identity]") {
    const Federation federation;
    const Federation other;
    const auto server = federation.node(Role::coordinator, "coordinator");
    const Trust trust = *certificate_key_digest(federation.authority.certificate);
    const auto judge = [&](const std::vector<Bytes>& chain) {
        return verify_certificate(server.certificate, chain, trust, {Role::coordinator}, "", test_now_s);
    };
    CHECK(judge({other.authority.certificate, federation.authority.certificate}).has_value());
    CHECK(judge({}).error().code == "unknown_ca");
    CHECK(judge({other.authority.certificate}).error().code == "unknown_ca");
}

TEST_CASE("mutated certificates are never believed as another identity and never crash", "[wire][identity][fuzz]") {
    const Federation federation;
    const auto node = federation.node(Role::client, "site-a");
    RandomStream random({.seed = 5, .purpose = "fuzz"});
    for (int i = 0; i < 500; ++i) {
        auto der = node.certificate;
        der[random.below(der.size())] ^= static_cast<std::byte>(1 + random.below(255));
        CHECK_FALSE(verify_certificate(der, {}, federation.authority.certificate, {Role::client}, "clinic", test_now_s)
                        .has_value());
    }
}

TEST_CASE("only keys on P-256 are certified, and a signature proves possession", "[wire][identity]") {
    const Federation federation;
    const auto key = make_key();
    const auto signature = sign(key, as_bytes("claim"));
    REQUIRE(signature.has_value());
    CHECK(verify_signature(key.public_key, as_bytes("claim"), *signature));
    CHECK_FALSE(verify_signature(key.public_key, as_bytes("claims"), *signature));
    CHECK_FALSE(verify_signature(make_key().public_key, as_bytes("claim"), *signature));
    CHECK_FALSE(verify_signature(as_bytes("junk"), as_bytes("claim"), *signature));
    CHECK(issue_certificate(federation.authority, as_bytes("junk"), {"clinic", Role::client, "a"}, test_now_s)
              .error()
              .code == "bad_public_key");
    CHECK(issue_certificate(federation.authority, key.public_key, {"clinic", Role::client, "a/b"}, test_now_s)
              .error()
              .code == "bad_name");
}

TEST_CASE("credentials survive their files, and a key that others may read is refused", "[wire][identity]") {
    const TemporaryFolder folder;
    const Federation federation;
    const auto node = federation.node(Role::host, "gpu-1");
    REQUIRE(save_credentials(folder.path, node).has_value());
    const auto loaded = load_credentials(folder.path);
    REQUIRE(loaded.has_value());
    CHECK(loaded->identity == node.identity);
    CHECK(loaded->certificate == node.certificate);
    CHECK(loaded->key.private_key == node.key.private_key);
    CHECK(loaded->key.public_key == node.key.public_key);

    REQUIRE(save_authority(folder.path, federation.authority).has_value());
    CHECK(load_authority(folder.path)->federation == "clinic");

    std::filesystem::permissions(folder.path / "node.key", std::filesystem::perms(0644));
    CHECK(load_credentials(folder.path).error().kind == ErrorKind::refused);
    std::filesystem::permissions(folder.path / "node.key", std::filesystem::perms(0600));

    REQUIRE(save_key(folder.path / "node.key", make_key()).has_value());
    CHECK(load_credentials(folder.path).error().code == "key_mismatch");
    REQUIRE(write_file_durably(folder.path / "node.crt", as_bytes("junk")).has_value());
    CHECK(load_credentials(folder.path).error().code == "bad_pem");
    std::filesystem::remove(folder.path / "node.key");
    CHECK(load_credentials(folder.path).error().kind == ErrorKind::not_found);
}

}  // namespace
}  // namespace causeway
