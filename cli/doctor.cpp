// `causeway doctor`: what is wrong with this machine or this state folder, why it matters, and how to mend it.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/daemon_settings.h"
#include "cli/doctor_checks.h"
#include "common/folder_size.h"
#include "coordinator/http_connections.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

std::string_view word(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok:
            return "ok";
        case Verdict::warn:
            return "warn";
        case Verdict::fail:
            return "fail";
    }
    return "fail";
}

std::string_view colour(Verdict verdict) {
    return verdict == Verdict::ok ? "32" : verdict == Verdict::warn ? "33" : "31";
}

void print_finding(const Finding& finding, Output output) {
    output.object(Json::object()
                      .set("event", "check")
                      .set("check", finding.check)
                      .set("result", word(finding.verdict))
                      .set("what", finding.what)
                      .set("why", finding.why)
                      .set("mend", finding.mend));
    output.line(fmt::format("{}  {:<13} {}",
                            styled(fmt::format("{:<4}", word(finding.verdict)), colour(finding.verdict)), finding.check,
                            finding.what));
    if (finding.verdict != Verdict::ok) {
        output.line(fmt::format("      why:  {}\n      mend: {}", finding.why, finding.mend));
    }
}

void append(Findings& all, Findings more) {
    std::ranges::move(more, std::back_inserter(all));
}

void check_coordinator_state(const fs::path& state, const Address& listen, Findings& all) {
    const auto now_s = wall_clock_unix_s();
    all.push_back(check_authority(state / "ca" / "ca.crt", now_s));
    append(all, check_certificate(state / "coordinator", Role::coordinator, now_s));
    append(all, check_certificate(state / "operator", Role::operator_, now_s));
    if (state_in_use(state)) {
        append(all, check_coordinators(state / "operator", state / "operator" / "address"));
    } else {
        all.push_back(check_port(listen));
    }
}

/// Old models of a node go by themselves when new ones come, so only the coordinator's can be near its bound for long.
void check_quotas(const fs::path& state, StateKind kind, Findings& all) {
    const bool coordinator = kind == StateKind::coordinator;
    const auto file = state / (coordinator ? "coordinator.toml" : "node.toml");
    const auto settings = load_settings(file, coordinator ? DaemonKind::coordinator : DaemonKind::node);
    if (!settings) {
        all.push_back({"quota", Verdict::fail, settings.error().message, "the daemon does not start with it",
                       "correct what is named; docs/service.md has the keys"});
    } else if (coordinator) {
        const auto spool = folder_bytes(state / "spool");
        all.push_back(check_quota("spool_quota", spool, settings->spool_quota));
        all.push_back(check_quota("state_quota", folder_bytes(state) - spool, settings->state_quota));
    } else {
        all.push_back(check_quota("cache_quota", folder_bytes(state / "cache") + folder_bytes(state / "downloads"),
                                  settings->cache_quota));
    }
}

/// What a node and an operator of its own machine have alike; their addresses lie at different places.
void check_member_state(const fs::path& credentials, Role role, const fs::path& addresses, Findings& all) {
    const auto now_s = wall_clock_unix_s();
    all.push_back(check_authority(credentials / "ca.crt", now_s));
    append(all, check_certificate(credentials, role, now_s));
    append(all, check_coordinators(credentials, addresses));
}

Findings check_state(const fs::path& state, StateKind kind, const Address& listen) {
    if (kind == StateKind::absent) {
        return {{"state", Verdict::fail, state.string() + " is not a folder", "there is nothing to look at",
                 "`causeway coordinator --state DIR` or `causeway join TOKEN --state DIR` makes one"}};
    }
    Findings all = check_modes(state);
    all.push_back(check_lock(state));
    if (kind == StateKind::coordinator || kind == StateKind::node) {
        check_quotas(state, kind, all);
    }
    if (kind == StateKind::coordinator) {
        check_coordinator_state(state, listen, all);
    } else if (kind == StateKind::node) {
        all.push_back(check_policy(state));
        check_member_state(state / "node", Role::client, state / "coordinators", all);
    } else if (kind == StateKind::operator_) {
        check_member_state(state / "operator", Role::operator_, state / "operator" / "address", all);
    } else {
        all.push_back({"state", Verdict::warn, state.string() + " holds neither a coordinator, a node nor an operator",
                       "nothing was started on it yet, or another folder is meant", "name the folder of --state"});
    }
    return all;
}

/// A coordinator is looked at as if it had --http: then it fits without, too.
Need need_of(StateKind kind) {
    auto need = kind == StateKind::coordinator ? coordinator_need(HttpConnections::descriptors) : node_need();
    need.first_start = kind == StateKind::empty || kind == StateKind::absent;
    return need;
}

Result<Findings> examine(const DoctorOptions& options) {
    TRY_ASSIGN(const auto listen, parse_address(options.listen));
    const auto kind = options.state.empty() ? StateKind::empty : kind_of_state(options.state);
    Findings all = {check_device(options.device), check_clock_service()};
    append(all, check_need(need_of(kind), read_machine(options.state.empty() ? fs::path(".") : fs::path(options.state),
                                                       wall_clock_unix_s())));
    if (options.state.empty()) {
        all.push_back(check_port(listen));
    } else {
        append(all, check_state(options.state, kind, listen));
    }
    return all;
}

}  // namespace

int run_doctor(const DoctorOptions& options, Output output) {
    if (options.repair) {
        return run_repair(options.state, output);
    }
    const auto all = examine(options);
    if (!all) {
        return output.error(all.error());
    }
    std::ranges::for_each(*all, [&](const auto& finding) { print_finding(finding, output); });
    const auto count = [&](Verdict verdict) {
        return static_cast<std::int64_t>(std::ranges::count(*all, verdict, &Finding::verdict));
    };
    output.object(Json::object()
                      .set("event", "checked")
                      .set("ok", count(Verdict::ok))
                      .set("warn", count(Verdict::warn))
                      .set("fail", count(Verdict::fail)));
    output.line(fmt::format("{} ok, {} to look at, {} to mend", count(Verdict::ok), count(Verdict::warn),
                            count(Verdict::fail)));
    return count(Verdict::fail) == 0 ? exit_done : exit_failed;
}

}  // namespace causeway::cli
