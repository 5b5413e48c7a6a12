// The machine: what any process of Causeway needs of it. See doctor_checks.h.
#include <sys/timex.h>

#include <fmt/format.h>

#include "cli/doctor_checks.h"
#include "common/text.h"
#include "kernels/device.h"

namespace causeway::cli {
Finding check_device(const std::string& device) {
    const auto opened = Device::open(device, {.threads = 1});
    if (!opened) {
        return {"device", Verdict::fail, opened.error().message, "without a device nothing can be computed",
                "choose another with --device (cpu works everywhere)"};
    }
    return {"device", Verdict::ok, opened->signature()};
}

Findings check_need(const Need& need, const Machine& machine) {
    Findings findings;
    const auto capacity = judge(need, machine);
    for (const auto& finding : capacity.findings) {
        const auto verdict = finding.enough == Enough::yes      ? Verdict::ok
                             : finding.enough == Enough::little ? Verdict::warn
                                                                : Verdict::fail;
        findings.push_back({finding.check, verdict, finding.error.message, finding.why, finding.mend});
    }
    return findings;
}

Finding check_quota(const std::string& key, std::uint64_t used, std::uint64_t quota) {
    if (quota == 0) {
        return {"quota", Verdict::ok, fmt::format("{} in use, no {} is set", format_bytes(used), key)};
    }
    const auto what = fmt::format("{} of {} = {} in use", format_bytes(used), key, format_bytes(quota));
    if (used <= quota / 10 * 9) {
        return {"quota", Verdict::ok, what};
    }
    return {
        "quota", used > quota ? Verdict::fail : Verdict::warn, what,
        "at the quota experiments are paused until there is room",
        "raise it in the settings (coordinator.toml, node.toml of the state folder) and reload the daemon (SIGHUP)"};
}

Finding check_clock_service() {
    timex state{};
    if (::adjtimex(&state) != TIME_ERROR) {
        return {"clock_service", Verdict::ok, "the system keeps its clock in step"};
    }
    return {"clock_service", Verdict::warn, "no time service keeps this machine's clock in step",
            "certificates and tokens are judged by the clock",
            "install one: apt-get install systemd-timesyncd, or chrony"};
}

}  // namespace causeway::cli
