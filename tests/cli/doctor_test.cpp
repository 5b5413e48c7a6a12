// The doctor's judgement, at clocks, disks and limits that this machine does not have. What needs real processes is in
// tests/e2e/doctor_test.py.
#include <algorithm>
#include <fstream>

#include <catch2/catch.hpp>

#include "cli/doctor_checks.h"
#include "common/file.h"
#include "tests/temporary_folder.h"

namespace causeway::cli {
namespace {

constexpr std::int64_t made_s = 1'800'000'000;

/// A node's folder with a certificate that was made at `made_s`.
void enrol(const std::filesystem::path& folder) {
    const auto authority = make_authority("clinic", made_s);
    REQUIRE(authority.has_value());
    const auto key = make_key();
    const Identity identity{"clinic", Role::client, "site-a"};
    const auto certificate = issue_certificate(*authority, key.public_key, identity, made_s);
    REQUIRE(certificate.has_value());
    REQUIRE(make_private_folder(folder));
    REQUIRE(save_credentials(folder, {identity, key, *certificate, authority->certificate}));
}

Verdict verdict_of(const Findings& findings, std::string_view check) {
    auto worst = Verdict::ok;
    for (const auto& finding : findings) {
        INFO(finding.what);
        CHECK((finding.verdict == Verdict::ok) == finding.mend.empty());
        worst = finding.check == check ? std::max(worst, finding.verdict) : worst;
    }
    return worst;
}

}  // namespace

TEST_CASE("a certificate is fine in its time, looked at near its end, and mended outside of it", "[doctor]") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path / "node";
    enrol(folder);
    const auto at = [&](std::int64_t later_s) { return check_certificate(folder, Role::client, made_s + later_s); };
    CHECK(verdict_of(at(day_s), "certificate") == Verdict::ok);
    CHECK(verdict_of(at(day_s), "clock") == Verdict::ok);
    CHECK(verdict_of(at(85 * day_s), "certificate") == Verdict::warn);
    CHECK(verdict_of(at(91 * day_s), "certificate") == Verdict::fail);
    CHECK(at(91 * day_s)[0].mend.find("token new") != std::string::npos);
    CHECK(verdict_of(at(-2 * day_s), "certificate") == Verdict::fail);
    CHECK(verdict_of(at(-2 * day_s), "clock") == Verdict::fail);
    CHECK(verdict_of(at(-7200), "certificate") == Verdict::ok);
    CHECK(verdict_of(at(-7200), "clock") == Verdict::warn);
}

TEST_CASE("the authority's end is said years before, with what to do, and found when it is there", "[doctor]") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path / "node";
    enrol(folder);
    const auto at = [&](std::int64_t later_s) { return check_authority(folder / "ca.crt", made_s + later_s); };
    CHECK(at(day_s).verdict == Verdict::ok);
    CHECK(at(day_s).what.find("2037-01-12") != std::string::npos);
    CHECK(at(3000 * day_s).verdict == Verdict::ok);
    CHECK(at(3300 * day_s).verdict == Verdict::warn);
    CHECK(at(3300 * day_s).mend.find("new federation") != std::string::npos);
    CHECK(at(3650 * day_s).verdict == Verdict::fail);
    std::filesystem::remove(folder / "ca.crt");
    CHECK(at(day_s).verdict == Verdict::fail);
}

TEST_CASE("who is to renew a certificate that ends soon is said for each role", "[doctor]") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path / "own";
    enrol(folder);
    const auto mend = [&](Role role) { return check_certificate(folder, role, made_s + 85 * day_s)[0].mend; };
    CHECK(mend(Role::coordinator).find("coordinator.csr") != std::string::npos);
    CHECK(mend(Role::operator_).find("causeway node list") != std::string::npos);
    CHECK(mend(Role::client).find("keep the node connected") != std::string::npos);
}

TEST_CASE("a certificate of another authority, a wide key and a missing key are told", "[doctor]") {
    const TemporaryFolder temporary;
    const auto folder = temporary.path / "node";
    enrol(folder);
    const auto other = temporary.path / "other";
    enrol(other);
    std::filesystem::copy_file(other / "ca.crt", folder / "ca.crt", std::filesystem::copy_options::overwrite_existing);
    CHECK(verdict_of(check_certificate(folder, Role::client, made_s), "certificate") == Verdict::fail);
    std::filesystem::permissions(other / "node.key", std::filesystem::perms(0644));
    CHECK(verdict_of(check_certificate(other, Role::client, made_s), "certificate") == Verdict::fail);
    CHECK(verdict_of(check_modes(temporary.path), "modes") == Verdict::fail);
    std::filesystem::remove(other / "node.key");
    CHECK(verdict_of(check_certificate(other, Role::client, made_s), "certificate") == Verdict::fail);
}

TEST_CASE("modes: a folder or key that others can read is named with its chmod", "[doctor]") {
    const TemporaryFolder temporary;
    enrol(temporary.path / "node");
    CHECK(verdict_of(check_modes(temporary.path), "modes") == Verdict::ok);
    std::filesystem::permissions(temporary.path, std::filesystem::perms(0755));
    const auto findings = check_modes(temporary.path);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].mend == "chmod 700 " + temporary.path.string());
}

TEST_CASE("a lock that is held is seen and not disturbed; looking makes no lock file", "[doctor]") {
    const TemporaryFolder temporary;
    CHECK_FALSE(state_in_use(temporary.path));
    CHECK_FALSE(std::filesystem::exists(temporary.path / "lock"));
    {
        const auto lock = FolderLock::acquire(temporary.path);
        REQUIRE(lock.has_value());
        CHECK(state_in_use(temporary.path));
    }
    CHECK_FALSE(state_in_use(temporary.path));
    CHECK(FolderLock::acquire(temporary.path).has_value());
}

TEST_CASE("a quota is fine, nearly reached, or reached", "[doctor]") {
    CHECK(check_quota("state_quota", 1 << 30, 0).verdict == Verdict::ok);
    CHECK(check_quota("state_quota", 80, 100).verdict == Verdict::ok);
    CHECK(check_quota("state_quota", 95, 100).verdict == Verdict::warn);
    CHECK(check_quota("state_quota", 101, 100).verdict == Verdict::fail);
    CHECK(check_quota("state_quota", 101, 100).what.find("state_quota") != std::string::npos);
}

TEST_CASE("the machine is judged as a start judges it: enough, little, too little", "[doctor]") {
    Machine machine{.descriptors = 1 << 20,
                    .memory = MemoryRoom{std::uint64_t{16} << 30, "the machine"},
                    .disk = 10'000'000'000,
                    .folder = "/",
                    .now_s = made_s,
                    .built_s = made_s - day_s};
    const auto verdict = [&](std::string_view check) {
        return verdict_of(check_need(coordinator_need(), machine), check);
    };
    for (const auto* check : {"descriptors", "memory", "disk", "clock"}) {
        CHECK(verdict(check) == Verdict::ok);
    }
    machine.descriptors = 512;
    CHECK(verdict("descriptors") == Verdict::warn);
    machine.descriptors = 100;
    CHECK(verdict("descriptors") == Verdict::fail);
    machine.memory->bytes = 10'000'000;
    CHECK(verdict("memory") == Verdict::fail);
    machine.disk = 1'000'000;
    CHECK(verdict("disk") == Verdict::warn);
    machine.now_s = made_s - 30 * day_s;
    CHECK(verdict("clock") == Verdict::warn);
    auto first = node_need();
    first.first_start = true;
    CHECK(verdict_of(check_need(first, machine), "clock") == Verdict::fail);
}

TEST_CASE("a device that does not exist is a failure with the known ones, a policy's mistake has its place",
          "[doctor]") {
    CHECK(check_device("cpu").verdict == Verdict::ok);
    CHECK(check_device("abacus").verdict == Verdict::fail);
    const TemporaryFolder temporary;
    CHECK(check_policy(temporary.path).verdict == Verdict::ok);
    std::ofstream(temporary.path / "policy.toml") << "min_cohort = 0\n";
    CHECK(check_policy(temporary.path).what.find("policy.toml:1:14") != std::string::npos);
}

}  // namespace causeway::cli
