// The machine: what any process of Causeway needs of it. See doctor_checks.h.
#include <sys/resource.h>
#include <sys/timex.h>

#include <fmt/format.h>

#include "cli/doctor_checks.h"
#include "common/text.h"
#include "kernels/device.h"

namespace causeway::cli {
namespace {

// A node has a handful of connections and files; a coordinator up to five connections a node, and models and updates.
constexpr std::uint64_t node_descriptors = 256;
constexpr std::uint64_t coordinator_descriptors = 1024;
constexpr std::uint64_t many_nodes_descriptors = 8192;

// Three snapshots, the store and the spool of a small model fit into the first; a large one needs the second.
constexpr std::uint64_t least_bytes = 100'000'000;
constexpr std::uint64_t comfortable_bytes = 2'000'000'000;

}  // namespace

Finding check_device(const std::string& device) {
    const auto opened = Device::open(device, {.threads = 1});
    if (!opened) {
        return {"device", Verdict::fail, opened.error().message, "without a device nothing can be computed",
                "choose another with --device (cpu works everywhere)"};
    }
    return {"device", Verdict::ok, opened->signature()};
}

std::uint64_t descriptor_limit() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

Finding check_descriptors(std::uint64_t limit, StateKind kind) {
    const bool coordinator = kind == StateKind::coordinator;
    const auto least = coordinator ? coordinator_descriptors : node_descriptors;
    const auto what = fmt::format("{} open files and connections at most", limit);
    const auto* const mend = "LimitNOFILE=16384 in the systemd unit, or `ulimit -Hn 16384` before the start";
    if (limit < least) {
        return {"descriptors", Verdict::fail, what, fmt::format("at least {} are needed to start", least), mend};
    }
    if (coordinator && limit < many_nodes_descriptors) {
        return {"descriptors", Verdict::warn, what,
                fmt::format("each node takes up to five: enough for about {} nodes", limit / 5), mend};
    }
    return {"descriptors", Verdict::ok, what};
}

Finding check_disk(const std::filesystem::path& folder, std::uint64_t available_bytes) {
    const auto what = fmt::format("{} free under {}", format_bytes(available_bytes), folder.string());
    const auto* const mend = "free some room, or move the folder to a larger disk";
    if (available_bytes < least_bytes) {
        return {"disk", Verdict::fail, what, "models and the store are written durably; a full disk pauses experiments",
                mend};
    }
    if (available_bytes < comfortable_bytes) {
        return {"disk", Verdict::warn, what, "several snapshots of a large model may not fit", mend};
    }
    return {"disk", Verdict::ok, what};
}

Finding check_disk(const std::filesystem::path& folder) {
    std::error_code error;
    const auto space = std::filesystem::space(folder, error);
    if (error) {
        return {"disk", Verdict::fail, folder.string() + ": " + error.message(), "its room could not be read",
                "is the disk mounted"};
    }
    return check_disk(folder, space.available);
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
