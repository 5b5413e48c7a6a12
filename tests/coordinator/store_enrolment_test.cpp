// Join tokens work once, for one name and one key; a repeated request with that key gets the same certificate.
#include "coordinator/enrolment_store.h"

#include "coordinator/audit_store.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

constexpr std::int64_t enrolment_now = 1'800'000'000;
const Bytes key_a = to_bytes("public key a");
const Bytes key_b = to_bytes("public key b");

TokenRecord token_of(const std::string& name, std::int64_t expires = enrolment_now + 60) {
    return {sha256("secret of " + name), name, "client", expires};
}

EnrolmentRequest request_of(const std::string& name, const Bytes& key, std::int64_t at = enrolment_now) {
    return {name, sha256("secret of " + name), key, at};
}

/// Signs a certificate that is another one at each call, as a real authority's would be.
class TestAuthority {
public:
    Result<CertificateRecord> operator()(const TokenRecord& token, const Bytes& key) {
        ++issued;
        const auto der = to_bytes(token.name + std::to_string(issued));
        return CertificateRecord{
            sha256(der), token.name, token.role, key, der, enrolment_now, enrolment_now + 90 * 86'400, {}};
    }
    int issued = 0;
};

struct EnrolmentFixture {
    TemporaryFolder folder;
    Store store = *Store::open(folder.path);
    EnrolmentStore enrolment{store.database()};
    TestAuthority authority;

    Result<CertificateRecord> enrol(const EnrolmentRequest& request) {
        return enrolment.enrol(request, std::ref(authority));
    }
    std::string refusal(const EnrolmentRequest& request) {
        const auto answer = enrol(request);
        return answer ? "accepted" : answer.error().code;
    }
};

}  // namespace

TEST_CASE("a token enrols the node it was made for, and the node is listed", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    const auto certificate = f.enrol(request_of("ann", key_a));
    REQUIRE(certificate);
    CHECK(certificate->name == "ann");
    CHECK(certificate->role == "client");
    CHECK(f.enrolment.find_certificate(certificate->fingerprint)->public_key == key_a);
    REQUIRE(f.enrolment.nodes()->size() == 1);
    CHECK(f.enrolment.nodes()->front().certificate == certificate->certificate);
}

TEST_CASE("the same key gets the same certificate again, also when the token has expired since", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    const auto first = f.enrol(request_of("ann", key_a));
    const auto again = f.enrol(request_of("ann", key_a, enrolment_now + 3600));
    REQUIRE(again);
    CHECK(again->certificate == first->certificate);
    CHECK(f.authority.issued == 1);
}

TEST_CASE("a used token is refused to every other key", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    REQUIRE(f.enrol(request_of("ann", key_a)));
    CHECK(f.refusal(request_of("ann", key_b)) == "token_used");
    CHECK(f.enrol(request_of("ann", key_b)).error().kind == ErrorKind::refused);
    CHECK(f.authority.issued == 1);
}

TEST_CASE("unknown, expired and misnamed tokens are told apart, and leave no trace", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    CHECK(f.refusal(request_of("bob", key_a)) == "token_unknown");
    auto stolen = request_of("ann", key_a);
    stolen.name = "bob";
    CHECK(f.refusal(stolen) == "token_name");
    CHECK(f.refusal(request_of("ann", key_a, enrolment_now + 60)) == "token_expired");
    CHECK(f.authority.issued == 0);
    CHECK(f.enrolment.nodes()->empty());
    CHECK(f.refusal(request_of("ann", key_a)) == "accepted");
}

TEST_CASE("when signing fails the token is not used up", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    const auto answer = f.enrolment.enrol(request_of("ann", key_a), [](const TokenRecord&, const Bytes&) {
        return Result<CertificateRecord>(fail(ErrorKind::invalid, "bad_key", "no P-256 key"));
    });
    CHECK(answer.error().code == "bad_key");
    CHECK(f.refusal(request_of("ann", key_b)) == "accepted");
}

TEST_CASE("use and issue are one transaction: after a kill both are there or neither", "[enrolment][crash]") {
    for (const int steps : {0, 1, 2}) {
        const TemporaryFolder folder;
        kill_after(steps, [&](const auto& finished) {
            auto store = *Store::open(folder.path);
            EnrolmentStore enrolment(store.database());
            TestAuthority authority;
            (void)enrolment.add_token(token_of("ann"), enrolment_now);
            finished();
            (void)enrolment.enrol(request_of("ann", key_a), std::ref(authority));
            finished();
        });
        auto store = *Store::open(folder.path);
        EnrolmentStore enrolment(store.database());
        TestAuthority authority;
        (void)enrolment.add_token(token_of("ann"), enrolment_now);  // if the kill came before it
        const auto nodes = enrolment.nodes()->size();
        const auto answer = enrolment.enrol(request_of("ann", key_a), std::ref(authority));
        REQUIRE(answer);
        CHECK(authority.issued == (nodes == 0 ? 1 : 0));
        CHECK(enrolment.nodes()->size() == 1);
    }
}

TEST_CASE("names are unique: of live tokens and live nodes", "[unit][enrolment]") {
    EnrolmentFixture f;
    const auto second = [&](const std::string& name, std::int64_t at) {
        return f.enrolment.add_token({sha256("second " + name + std::to_string(at)), name, "client", at + 60}, at);
    };
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    CHECK(second("ann", enrolment_now).error().code == "name_taken");
    CHECK(second("ann", enrolment_now + 100));  // the first has expired unused
    CHECK(f.refusal(request_of("ann", key_a)) == "token_unknown");
    REQUIRE(f.enrolment.add_token(token_of("bob"), enrolment_now));
    REQUIRE(f.enrol(request_of("bob", key_b)));
    CHECK(second("bob", enrolment_now + 100).error().code == "name_taken");
    REQUIRE(f.enrolment.revoke("bob", enrolment_now + 5));
    CHECK(second("bob", enrolment_now + 100));
}

TEST_CASE("the name of a token whose text was lost is free again after a revocation", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    REQUIRE(f.enrolment.revoke("ann", enrolment_now + 1));
    CHECK(f.refusal(request_of("ann", key_a)) == "token_unknown");
    CHECK(f.enrolment.add_token({sha256("another secret"), "ann", "client", enrolment_now + 60}, enrolment_now + 2));
}

TEST_CASE("a revoked node stays known as revoked and cannot use its token again", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    const auto certificate = f.enrol(request_of("ann", key_a));
    REQUIRE(f.enrolment.revoke("ann", enrolment_now + 5));
    CHECK(f.enrolment.find_certificate(certificate->fingerprint)->revoked_unix_s == enrolment_now + 5);
    CHECK(f.refusal(request_of("ann", key_a)) == "revoked");
    CHECK(f.enrolment.revoke("ann", enrolment_now + 6).error().code == "unknown_node");
    CHECK(f.enrolment.revoke("eve", enrolment_now).error().kind == ErrorKind::not_found);
}

TEST_CASE("the revoked certificates are known again after a restart, older ones of the name too", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    auto older = *f.enrol(request_of("ann", key_a));
    auto renewed = older;
    renewed.fingerprint = sha256("renewed");
    REQUIRE(f.enrolment.adopt(renewed));
    REQUIRE(f.enrolment.add_token(token_of("bob"), enrolment_now));
    REQUIRE(f.enrol(request_of("bob", key_b)));
    CHECK(f.enrolment.revoked()->empty());
    REQUIRE(f.enrolment.revoke("ann", enrolment_now + 5, "alice"));
    CHECK(*f.enrolment.revoked() == std::set<Digest>{older.fingerprint, renewed.fingerprint});
}

TEST_CASE("a certificate is adopted once, and a new one of a revoked key is revoked", "[unit][enrolment]") {
    EnrolmentFixture f;
    const auto record = [](const char* text, const Bytes& key) {
        return CertificateRecord{sha256(text),   "operator",    "operator",        key,
                                 to_bytes(text), enrolment_now, enrolment_now + 1, {}};
    };
    REQUIRE(f.enrolment.adopt(record("first", key_a)));
    REQUIRE(f.enrolment.adopt(record("first", key_a)));
    CHECK(f.enrolment.nodes()->size() == 1);
    CHECK(f.enrolment.add_token(token_of("operator"), enrolment_now).error().code == "name_taken");
    REQUIRE(f.enrolment.revoke("operator", enrolment_now + 5));
    REQUIRE(f.enrolment.adopt(record("second", key_a)));
    CHECK(f.enrolment.revoked()->contains(sha256("second")));
    REQUIRE(f.enrolment.adopt(record("third", key_b)));
    CHECK_FALSE(f.enrolment.revoked()->contains(sha256("third")));
    CHECK_FALSE(f.enrolment.nodes()->front().revoked_unix_s);  // of a name, the live one is shown
}

TEST_CASE("tokens, enrolments and revocations are lines of the audit log, and only those that happened",
          "[unit][enrolment][audit]") {
    EnrolmentFixture f;
    auto token = token_of("ann");
    token.made_by = "alice";
    REQUIRE(f.enrolment.add_token(token, enrolment_now));
    CHECK_FALSE(f.enrolment.add_token(token, enrolment_now));
    CHECK(f.refusal(request_of("bob", key_a)) == "token_unknown");
    const auto certificate = *f.enrol(request_of("ann", key_a));
    REQUIRE(f.enrol(request_of("ann", key_a)));  // a repeated request issues nothing
    REQUIRE(f.enrolment.revoke("ann", enrolment_now + 5, "alice"));
    CHECK_FALSE(f.enrolment.revoke("ann", enrolment_now + 6, "alice"));
    AuditStore audit(f.store.database());
    const auto lines = *audit.entries_after(0, 10);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].entry == R"({"at":1800000000,"event":"token.new","node":"ann","role":"client",)"
                            R"("expires_unix_s":1800000060,"by":"alice"})");
    CHECK(Json::parse(lines[1].entry)->operator[]("event").text() == "node.enrolled");
    CHECK(Json::parse(lines[1].entry)->operator[]("fingerprint").text() == certificate.fingerprint.hex());
    CHECK(lines[2].entry == R"({"at":1800000005,"event":"node.revoked","node":"ann","by":"alice"})");
    CHECK(*audit.verify() == 3);
}

TEST_CASE("a renewed certificate is the one that is listed", "[unit][enrolment]") {
    EnrolmentFixture f;
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    auto renewed = *f.enrol(request_of("ann", key_a));
    renewed.fingerprint = sha256("renewed");
    renewed.issued_unix_s += 1000;
    REQUIRE(f.enrolment.adopt(renewed));
    REQUIRE(f.enrolment.nodes()->size() == 1);
    CHECK(f.enrolment.nodes()->front().fingerprint == sha256("renewed"));
    CHECK(f.enrolment.find_certificate(sha256("none")).error().code == "unknown_certificate");
}

TEST_CASE("the secret itself is nowhere in the state folder", "[unit][enrolment]") {
    EnrolmentFixture f;
    const std::string secret = "secret of ann";
    REQUIRE(f.enrolment.add_token(token_of("ann"), enrolment_now));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(f.folder.path)) {
        const auto bytes = read_file(entry.path(), 1 << 24);
        REQUIRE(bytes);
        CHECK(as_text(*bytes).find(secret) == std::string_view::npos);
    }
}

TEST_CASE("the audit log is a chain: it verifies, grows only, and a change shows", "[unit][audit]") {
    EnrolmentFixture f;
    AuditStore audit(f.store.database());
    CHECK(audit.head()->empty());
    CHECK(*audit.verify() == 0);
    Digest head;
    for (int i = 0; i < 20; ++i) {
        head = *audit.append(Json::object().set("event", "join").set("number", i));
    }
    CHECK(*audit.head() == head);
    CHECK(*audit.verify() == 20);
    CHECK(audit.entries_after(17, 10)->size() == 3);
    CHECK(audit.entries_after(0, 5)->front().entry == R"({"event":"join","number":0})");
    CHECK_FALSE(f.store.database().run_script("DELETE FROM audit WHERE sequence = 5"));
    CHECK_FALSE(f.store.database().run_script("UPDATE audit SET entry = 'x' WHERE sequence = 5"));
    // Someone with the file in hand can drop the triggers; the chain still tells.
    REQUIRE(f.store.database().run_script("DROP TRIGGER audit_is_not_changed"));
    REQUIRE(f.store.database().run_script("UPDATE audit SET entry = 'x' WHERE sequence = 5"));
    CHECK(audit.verify().error().code == "audit_broken");
}

}  // namespace causeway
