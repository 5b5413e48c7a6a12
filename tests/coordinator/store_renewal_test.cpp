// Successors of certificates, tokens that nobody used, and requests that wait for an authority elsewhere.
#include "coordinator/audit_store.h"
#include "coordinator/enrolment_store.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"
#include "wire/identity.h"

namespace causeway {
namespace {

constexpr std::int64_t renewal_now = 1'800'000'000;
constexpr std::int64_t life = 90 * day_s;
constexpr std::int64_t due = renewal_now + 60 * day_s;
const Bytes first_key = to_bytes("the first key");
const Bytes next = to_bytes("the next key");

struct RenewalFixture {
    TemporaryFolder folder;
    Store store = *Store::open(folder.path);
    EnrolmentStore enrolment{store.database()};
    int issued = 0;
    std::int64_t clock = renewal_now;

    IssueCertificate issue = [this](const TokenRecord& token, const Bytes& key) -> Result<CertificateRecord> {
        const auto der = to_bytes(token.name + std::to_string(++issued));
        return CertificateRecord{sha256(der), token.name, token.role, key, der, clock - day_s, clock + life, {}};
    };

    void add_token(const std::string& name) {
        REQUIRE(
            enrolment.add_token({sha256("secret of " + name), name, "client", renewal_now + 3600, "ann"}, renewal_now));
    }
    CertificateRecord enrol(const std::string& name) {
        add_token(name);
        return *enrolment.enrol({name, sha256("secret of " + name), first_key, renewal_now}, issue);
    }
    Result<CertificateRecord> renew(const CertificateRecord& present, const Bytes& key, std::int64_t at,
                                    Bytes request = {}) {
        clock = at;
        return enrolment.renew({present.name, present.role, present.fingerprint, key, at, std::move(request)}, issue);
    }
    std::vector<std::string> events() {
        std::vector<std::string> all;
        const auto lines = *AuditStore(store.database()).entries_after(0, 100);
        for (const auto& line : lines) {
            all.push_back((*Json::parse(line.entry))["event"].text());
        }
        return all;
    }
};

TEST_CASE("a certificate gets a successor once it is due, and the same key the same one again", "[unit][renewal]") {
    RenewalFixture f;
    const auto present = f.enrol("lab");
    const auto renewed = f.renew(present, next, due);
    REQUIRE(renewed);
    CHECK(renewed->public_key == next);
    CHECK(renewed->expires_unix_s == due + life);
    CHECK(f.renew(present, next, due + 100)->certificate == renewed->certificate);
    CHECK(f.issued == 2);
    CHECK(f.enrolment.nodes()->front().fingerprint == renewed->fingerprint);  // node list shows the newest
    CHECK(f.events() == std::vector<std::string>{"token.new", "node.enrolled", "certificate.renewed"});
}

TEST_CASE("nobody gets a successor in the first half of a life, nor many at once", "[unit][renewal]") {
    RenewalFixture f;
    const auto present = f.enrol("lab");
    CHECK(f.renew(present, next, renewal_now + 45 * day_s - 1).error().code == "renewal_not_due");
    for (const auto* key : {"2", "3", "4"}) {
        CHECK(f.renew(present, to_bytes(key), due).has_value());
    }
    const auto refused = f.renew(present, to_bytes("5"), due);
    CHECK(refused.error().code == "too_many_certificates");
    CHECK(refused.error().kind == ErrorKind::overloaded);
}

TEST_CASE("a revoked identity gets no successor, and a revocation takes successors along", "[unit][renewal]") {
    RenewalFixture f;
    const auto present = f.enrol("lab");
    const auto renewed = *f.renew(present, next, due);
    REQUIRE(f.enrolment.revoke("lab", due + 1));
    CHECK(f.enrolment.revoked()->contains(renewed.fingerprint));
    CHECK(f.enrolment.revoked()->contains(present.fingerprint));
    CHECK(f.renew(present, to_bytes("another"), due + 2).error().code == "revoked");
    CHECK(f.renew(present, next, due + 2).error().code == "revoked");
}

TEST_CASE("an unused token is listed and can be withdrawn, and frees its name; a used one cannot", "[unit][token]") {
    RenewalFixture f;
    f.add_token("lab");
    CHECK(f.enrolment.add_token({sha256("x"), "lab", "client", renewal_now + 60}, renewal_now).error().code ==
          "name_taken");
    REQUIRE(f.enrolment.tokens()->size() == 1);
    CHECK(f.enrolment.tokens()->front().name == "lab");
    REQUIRE(f.enrolment.withdraw_token("lab", renewal_now, "ann"));
    CHECK(f.enrolment.tokens()->empty());
    CHECK(f.enrolment.enrol({"lab", sha256("secret of lab"), first_key, renewal_now}, f.issue).error().code ==
          "token_unknown");
    CHECK(f.enrolment.withdraw_token("lab", renewal_now, "ann").error().code == "unknown_token");
    f.enrol("lab");
    CHECK(f.enrolment.withdraw_token("lab", renewal_now, "ann").error().kind == ErrorKind::not_found);
    CHECK(f.events() == std::vector<std::string>{"token.new", "token.revoked", "token.new", "node.enrolled"});
}

TEST_CASE("an enrolment waits for an authority elsewhere, and its key picks the certificate up", "[unit][renewal]") {
    RenewalFixture f;
    f.add_token("lab");
    const EnrolmentRequest request{"lab", sha256("secret of lab"), first_key, renewal_now, to_bytes("a request")};
    CHECK(f.enrolment.enrol(request, f.issue).error().code == "awaiting_signature");
    CHECK(f.enrolment.enrol(request, f.issue).error().kind == ErrorKind::timed_out);  // again: the same answer
    auto thief = request;
    thief.public_key = next;
    CHECK(f.enrolment.enrol(thief, f.issue).error().code == "token_used");
    CHECK(f.issued == 0);
    REQUIRE(f.enrolment.parked()->size() == 1);
    CHECK(f.enrolment.parked()->front().request == to_bytes("a request"));
    CHECK(f.enrolment.add_token({sha256("x"), "lab", "client", renewal_now + 60}, renewal_now).error().code ==
          "name_taken");

    auto wrong = *f.issue({{}, "other", "client"}, first_key);
    CHECK(f.enrolment.import(wrong, renewal_now, "ann").error().code == "wrong_certificate");
    CHECK(f.enrolment.import(*f.issue({{}, "lab", "client"}, next), renewal_now, "ann").error().code ==
          "unknown_request");
    const auto certificate = *f.issue({{}, "lab", "client"}, first_key);
    REQUIRE(f.enrolment.import(certificate, renewal_now, "ann"));
    CHECK(f.enrolment.parked()->empty());
    CHECK(f.enrolment.enrol(request, f.issue)->certificate == certificate.certificate);
    CHECK(f.events().back() == "node.enrolled");

    // A renewal waits likewise; a later request of the same name takes its place.
    CHECK(f.renew(certificate, to_bytes("lost"), due, to_bytes("r1")).error().code == "awaiting_signature");
    CHECK(f.renew(certificate, next, due, to_bytes("r2")).error().code == "awaiting_signature");
    REQUIRE(f.enrolment.parked()->size() == 1);
    f.clock = due;
    const auto successor = *f.issue({{}, "lab", "client"}, next);
    REQUIRE(f.enrolment.import(successor, due, "ann"));
    CHECK(f.renew(certificate, next, due)->certificate == successor.certificate);
    CHECK(f.events().back() == "certificate.renewed");
}

TEST_CASE("what waits for an authority elsewhere can be refused for good by a revocation", "[unit][renewal]") {
    RenewalFixture f;
    f.add_token("lab");
    const EnrolmentRequest request{"lab", sha256("secret of lab"), first_key, renewal_now, to_bytes("a request")};
    CHECK(f.enrolment.enrol(request, f.issue).error().code == "awaiting_signature");
    REQUIRE(f.enrolment.revoke("lab", renewal_now, "ann"));
    CHECK(f.enrolment.parked()->empty());
    CHECK(f.enrolment.enrol(request, f.issue).error().code == "revoked");
    CHECK(f.enrolment.import(*f.issue({{}, "lab", "client"}, first_key), renewal_now, "ann").error().code ==
          "unknown_request");
}

}  // namespace
}  // namespace causeway
