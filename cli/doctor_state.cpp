// The state folder: modes, lock, certificates, policy. See doctor_checks.h.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/doctor_checks.h"
#include "cli/output.h"
#include "client/policy.h"
#include "common/file.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t soon_s = 10 * day_s;             // renewal is due at 30 days left; at 10 it has failed for weeks
constexpr std::int64_t authority_soon_s = 365 * day_s;  // a new federation takes its people months to arrange
constexpr std::size_t most_listed = 20;                 // wide files; more of them are one mistake

std::string days(std::int64_t span_s) {
    return span_s < 2 * day_s ? fmt::format("{} hours", span_s / 3600) : fmt::format("{} days", span_s / day_s);
}

/// "12 days (until 2026-12-01)"
std::string time_left(std::int64_t end_s, std::int64_t now_s) {
    return fmt::format("{} (until {})", days(end_s - now_s), utc_text(end_s).substr(0, 10));
}

Finding certificate_fault(const Error& error, const std::string& what, Role role) {
    const auto mend =
        error.code == "certificate_not_yet_valid"
            ? "set this machine's clock; if it is right, the clock that made the certificate was ahead: join again"
        : error.kind == ErrorKind::refused && error.code == "wide_mode" ? "the chmod above"
        : role == Role::operator_
            ? "a coordinator renews its first operator's at its start; for another one have a token made (causeway "
              "token new --name NAME --role operator) and join with it in a new folder"
        : role == Role::client
            ? "remove the folder `node` and `coordinators` here, have a new token made (causeway token new "
              "--name NAME --state COORDINATOR) and join with it"
            : "restore the folder from a backup; a coordinator whose keys are lost is a new federation";
    return {"certificate", Verdict::fail, what + ": " + error.message, "no peer accepts a connection without it", mend};
}

/// Certificates are renewed from the last third of their lives on; where one is not, this is what renews it.
std::string renewal_advice(Role role) {
    switch (role) {
        case Role::coordinator:
            return "start the coordinator, or restart it: it renews its own; an authority elsewhere has to sign "
                   "STATE/requests/coordinator.csr, see docs/security.md";
        case Role::operator_:
            return "run any command as this operator while the coordinator runs, as `causeway node list`: it renews it";
        default:
            return "keep the node connected: its certificate is renewed in session, long before its end";
    }
}

}  // namespace

StateKind kind_of_state(const fs::path& state) {
    std::error_code ignored;
    if (!fs::is_directory(state, ignored)) {
        return StateKind::absent;
    }
    if (fs::exists(state / "coordinator" / "node.crt", ignored) || fs::exists(state / "ca", ignored)) {
        return StateKind::coordinator;
    }
    if (fs::exists(state / "operator" / "node.crt", ignored)) {
        return StateKind::operator_;
    }
    return fs::exists(state / "node" / "node.crt", ignored) ? StateKind::node : StateKind::empty;
}

/// The lock is tried and let go at once; where there is no lock file nobody has held it.
bool state_in_use(const fs::path& state) {
    const int descriptor = ::open((state / "lock").c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        return false;
    }
    const bool held = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(descriptor);
    return held;
}

Findings check_modes(const fs::path& state) {
    struct stat info {};
    if (::stat(state.c_str(), &info) != 0) {
        return {{"modes", Verdict::fail, state.string() + ": " + std::strerror(errno), "the folder cannot be read",
                 "run doctor as the user that runs the daemon"}};
    }
    Findings findings;
    if (info.st_uid != ::geteuid()) {
        findings.push_back(
            {"modes", Verdict::warn,
             fmt::format("{} belongs to user {}, doctor runs as {}", state.string(), info.st_uid, ::geteuid()),
             "the daemon's own view may differ", "run doctor as the user that runs the daemon"});
    }
    if ((info.st_mode & 077) != 0) {
        findings.push_back({"modes", Verdict::fail, state.string() + " can be read by others",
                            "keys and models lie in it; the daemon refuses to start", "chmod 700 " + state.string()});
    }
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(state, error); !error && entry != fs::end(entry);
         entry.increment(error)) {
        const auto& path = entry->path();
        if (path.extension() == ".key" && !require_secret_mode(path) && findings.size() < most_listed) {
            findings.push_back({"modes", Verdict::fail, path.string() + " can be read by others",
                                "whoever has the key is this node; it is refused", "chmod 600 " + path.string()});
        }
    }
    if (findings.empty()) {
        findings.push_back({"modes", Verdict::ok, "only this user can read " + state.string() + " and its keys"});
    }
    return findings;
}

Finding check_lock(const fs::path& state) {
    return {"lock", Verdict::ok, state_in_use(state) ? "a live process uses the folder" : "no process uses the folder"};
}

Findings check_certificate(const fs::path& folder, Role role, std::int64_t now_s) {
    const auto loaded = load_credentials(folder);
    if (!loaded) {
        return {certificate_fault(loaded.error(), folder.string(), role)};
    }
    const auto facts = read_certificate(loaded->certificate);
    if (!facts) {
        return {certificate_fault(facts.error(), folder.string(), role)};
    }
    const auto name = loaded->identity.uri();
    Findings findings;
    const auto judged = verify_certificate(loaded->certificate, {}, loaded->authority_certificate,
                                           {loaded->identity.role}, loaded->identity.federation, now_s);
    const auto left = facts->not_after_s - now_s;
    if (!judged) {
        findings.push_back(certificate_fault(judged.error(), name, role));
    } else if (left < soon_s) {
        findings.push_back({"certificate", Verdict::warn,
                            fmt::format("{} is valid for {} more", name, time_left(facts->not_after_s, now_s)),
                            "no peer accepts it afterwards", renewal_advice(role)});
    } else {
        findings.push_back({"certificate", Verdict::ok,
                            fmt::format("{}, valid {}", name,
                                        time_left(facts->not_after_s, now_s))});
    }
    findings.push_back(check_clock(*facts, now_s));
    return findings;
}

Finding check_authority(const fs::path& certificate, std::int64_t now_s) {
    const auto* const why = "with it ends every certificate that it signed, and no node can connect";
    const auto read = read_certificates(certificate);
    const auto times = read ? certificate_validity(read->front()) : Result<Validity>(fail(read.error()));
    if (!times) {
        return {"authority", Verdict::fail, certificate.string() + ": " + times.error().message,
                "without the authority's certificate no peer can be believed",
                "restore it from a backup, or from another member of the federation: all have the same ca.crt"};
    }
    // Its key is what every token and node was given, so nothing can take its place within the federation.
    const auto* const mend =
        "begin a new federation in a new folder (causeway coordinator --state NEW), give every node a token and a new "
        "folder, and take the models along: `experiment export` here, --model NAME=PATH there";
    if (now_s >= times->not_after_s) {
        return {"authority", Verdict::fail,
                "the federation's authority ended on " + utc_text(times->not_after_s).substr(0, 10), why, mend};
    }
    const auto what = "the federation's authority is valid for " + time_left(times->not_after_s, now_s);
    if (times->not_after_s - now_s < authority_soon_s) {
        return {"authority", Verdict::warn, what, why, mend};
    }
    return {"authority", Verdict::ok, what};
}

/// A certificate begins clock_tolerance_s before it was made, so that clocks may differ; but time does not run back.
Finding check_clock(const CertificateFacts& certificate, std::int64_t now_s) {
    const auto behind = certificate.not_before_s + clock_tolerance_s - now_s;
    if (behind <= 60) {
        return {"clock", Verdict::ok, "the clock is past the moment at which the certificate was made"};
    }
    const bool outside = now_s < certificate.not_before_s;
    return {"clock", outside ? Verdict::fail : Verdict::warn,
            fmt::format("the clock is at least {} behind",
                        behind < 7200 ? fmt::format("{} minutes", behind / 60) : days(behind)),
            "the certificate was made later than now, by this clock", "set the clock, and start a time service"};
}

Finding check_policy(const fs::path& state) {
    const auto policy = node::load_policy(state, {});
    if (!policy) {
        return {"policy", Verdict::fail, policy.error().message, "the node does not start with it",
                "correct what is named; docs/policy.md has the keys"};
    }
    return {"policy", Verdict::ok,
            policy->places.empty() ? "none: all are welcome but split learning and data.normalise"
                                   : fmt::format("policy.toml sets {} keys", policy->places.size())};
}

}  // namespace causeway::cli
