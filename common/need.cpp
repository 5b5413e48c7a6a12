// See need.h.
#include "common/need.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::uint64_t own_descriptors = 128;    // state files, the store, threads' wake-ups, plugins
constexpr std::uint64_t node_connections = 16;    // to its coordinator and to hosts
constexpr std::uint64_t session_descriptors = 5;  // a control connection and four transfers (wire/link.h)
constexpr std::uint64_t most_sessions = 4096;
constexpr std::uint64_t few_sessions = 1024;  // below it doctor speaks of it
/// Of what is left, so much is for connections that have not said who they are: a restart brings all members at once.
constexpr std::uint64_t share_of_strangers = 8;
constexpr std::uint64_t most_strangers = 1024;

// Measured: a coordinator without nodes has 28 MB in 13 threads and 240 MB of addresses, an idle session 62 KB. The
// rest is for frames under way; models are judged by themselves, when they are submitted.
constexpr std::uint64_t own_memory = 64'000'000;
constexpr std::uint64_t own_addresses_more = 150'000'000;  // stacks and heaps of threads: reserved, not used
constexpr std::uint64_t session_memory = 256 * 1024;

// Three snapshots, the store and the spool of a small model fit into the first; a large one needs the second.
constexpr std::uint64_t least_disk = 100'000'000;
constexpr std::uint64_t comfortable_disk = 2'000'000'000;

constexpr std::int64_t build_clock_tolerance_s = 24 * 3600;  // as far as clocks may differ anywhere

constexpr auto more_descriptors = "LimitNOFILE=32768 in the systemd unit, or `ulimit -Hn 32768` before the start";

std::uint64_t what_is_left(std::uint64_t of, std::uint64_t taken) {
    return of - std::min(of, taken);
}

std::string date_of(std::int64_t unix_s) {
    const std::time_t time = unix_s;
    std::tm parts{};
    char text[16] = {};
    ::gmtime_r(&time, &parts);
    return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts));
}

std::string more_memory(std::string_view bound_by) {
    if (bound_by == "the control group") {
        return "MemoryMax= in the systemd unit, or the container's limit, with more";
    }
    return bound_by == "the machine" ? "end other programs, or take a machine with more memory"
                                     : fmt::format("`{} unlimited` before the start", bound_by);
}

struct Bound {
    std::uint64_t sessions = 0;
    std::string what;
    std::string raised_by;
};

Bound bound_of_descriptors(const Need& need, const Machine& machine, Capacity& capacity) {
    const auto left = what_is_left(machine.descriptors, need.descriptors);
    capacity.strangers = std::min(most_strangers, left / share_of_strangers);
    return {(left - capacity.strangers) / std::max<std::uint64_t>(1, need.descriptors_per_session),
            fmt::format("{} more files and connections may be open", machine.descriptors), more_descriptors};
}

std::uint64_t fixed_memory(const MemoryRoom& room) {
    return own_memory + (room.bound_by == "ulimit -v" ? own_addresses_more : 0);
}

/// Limits of a process (`ulimit`) are each process's own, all other bounds those of all together.
Bound bound_of_memory(const Need& need, const MemoryRoom& room) {
    const auto each = room.bound_by.starts_with("ulimit") ? session_memory : need.memory_per_session;
    return {what_is_left(room.bytes, fixed_memory(room)) / std::max<std::uint64_t>(1, each),
            fmt::format("{} of memory are left by {}", format_bytes(room.bytes), room.bound_by),
            more_memory(room.bound_by)};
}

/// `least` is what nothing can run without.
NeedFinding compare(std::string check, std::string code, const Need& need, const Bound& bound, bool starts,
                    const std::string& least) {
    NeedFinding finding{std::move(check), Enough::yes, {ErrorKind::io, std::move(code), bound.what}, {}, {}};
    if (!starts) {
        finding.enough = Enough::no;
        finding.why = fmt::format("{} needs {} to start", need.who, least);
        finding.mend = bound.raised_by;
    } else if (need.sessions > 0 && bound.sessions < need.sessions_asked) {
        finding.enough = Enough::no;
        finding.why = fmt::format("there is room for {} nodes and operators, and {} asks for {}", bound.sessions,
                                  need.asked_by, need.sessions_asked);
        finding.mend = fmt::format("{} with fewer; or {}", need.asked_by, bound.raised_by);
    } else if (need.sessions > 0 && need.sessions_asked == 0 &&
               bound.sessions < std::min(need.sessions, few_sessions)) {
        finding.enough = Enough::little;
        finding.why = fmt::format("enough for {} nodes and operators", bound.sessions);
        finding.mend = bound.raised_by;
    }
    return finding;
}

NeedFinding compare_descriptors(const Need& need, const Bound& bound, const Machine& machine) {
    const auto least = need.descriptors + need.descriptors_per_session;
    const bool starts = machine.descriptors >= least && (need.sessions == 0 || bound.sessions > 0);
    return compare("descriptors", "too_few_descriptors", need, bound, starts,
                   fmt::format("{}", need.sessions == 0 ? least : least + least / share_of_strangers));
}

NeedFinding compare_memory(const Need& need, const MemoryRoom& room) {
    const auto bound = bound_of_memory(need, room);
    const auto least = fixed_memory(room) + (need.sessions > 0 ? session_memory : 0);
    return compare("memory", "too_little_memory", need, bound, room.bytes >= least, format_bytes(least));
}

/// Never forbids a start: room comes and goes, and who has none waits.
NeedFinding compare_disk(const Machine& machine) {
    NeedFinding finding{"disk", Enough::yes, {ErrorKind::io, "disk_full", ""}, {}, {}};
    if (!machine.disk) {
        finding.error.message = fmt::format("the room under {} cannot be read", machine.folder.string());
        finding.why = "models and the store are written there";
        finding.mend = "is the disk mounted";
        finding.enough = Enough::little;
        return finding;
    }
    finding.error.message = fmt::format("{} free under {}", format_bytes(*machine.disk), machine.folder.string());
    if (*machine.disk < comfortable_disk) {
        finding.enough = Enough::little;
        finding.why = *machine.disk < least_disk
                          ? "models and the store are written durably; a full disk pauses experiments"
                          : "several snapshots of a large model may not fit";
        finding.mend = "free some room, or move the folder to a larger disk";
    }
    return finding;
}

NeedFinding compare_clock(const Need& need, const Machine& machine) {
    NeedFinding finding{"clock", Enough::yes, {ErrorKind::io, "clock_before_build", ""}, {}, {}};
    finding.error.message = "the clock is past the time of this build, " + date_of(machine.built_s);
    if (machine.now_s >= machine.built_s - build_clock_tolerance_s) {
        return finding;
    }
    finding.enough = need.first_start ? Enough::no : Enough::little;
    finding.error.message =
        fmt::format("this machine's clock says {}, and this build was made on {}: the clock is behind",
                    date_of(machine.now_s), date_of(machine.built_s));
    finding.why = "certificates and tokens would have wrong times, and be refused once the clock is right";
    finding.mend = "set the clock (`timedatectl set-ntp true`), then start again";
    return finding;
}

}  // namespace

Need coordinator_need(std::uint64_t http, std::uint64_t sessions_asked) {
    return {.who = "a coordinator",
            .descriptors = own_descriptors + http,
            .descriptors_per_session = session_descriptors,
            .memory_per_session = session_memory,
            .sessions = most_sessions,
            .sessions_asked = sessions_asked};
}

Need node_need() {
    return {.who = "a node", .descriptors = own_descriptors + node_connections};
}

Need federation_need(std::uint64_t nodes) {
    auto need = coordinator_need();
    need.who = fmt::format("a coordinator and {} nodes", nodes);
    need.sessions_asked = nodes + 1;  // and this process, as their operator
    need.asked_by = "--clients";
    need.memory_per_session = own_memory;  // each is a process
    need.first_start = true;
    return need;
}

Machine read_machine(const std::filesystem::path& folder, std::int64_t now_s) {
    const auto files = descriptors();
    return {.descriptors = what_is_left(files.limit, files.open),
            .memory = memory_room(),
            .disk = disk_room(folder),
            .folder = folder,
            .now_s = now_s,
            .built_s = build_time_unix_s()};
}

Capacity judge(const Need& need, const Machine& machine) {
    Capacity capacity;
    auto least = bound_of_descriptors(need, machine, capacity);
    capacity.findings.push_back(compare_descriptors(need, least, machine));
    if (machine.memory) {
        capacity.findings.push_back(compare_memory(need, *machine.memory));
        if (auto memory = bound_of_memory(need, *machine.memory); memory.sessions < least.sessions) {
            least = std::move(memory);
        }
    }
    capacity.findings.push_back(compare_disk(machine));
    capacity.findings.push_back(compare_clock(need, machine));
    if (need.sessions > 0) {
        const auto wanted = need.sessions_asked > 0 ? std::min(need.sessions, need.sessions_asked) : need.sessions;
        capacity.sessions = std::min(least.sessions, wanted);
        const bool by_option = capacity.sessions == need.sessions_asked;
        capacity.bound = by_option                            ? fmt::format("{} {}", need.asked_by, need.sessions_asked)
                         : capacity.sessions == most_sessions ? "no coordinator serves more"
                                                              : least.what;
        capacity.raised_by = by_option                            ? need.asked_by + " with more"
                             : capacity.sessions == most_sessions ? "a second federation"
                                                                  : least.raised_by;
        capacity.connections = capacity.sessions * need.descriptors_per_session + capacity.strangers;
    }
    return capacity;
}

Status can_start(const Capacity& capacity) {
    for (const auto& finding : capacity.findings) {
        if (finding.enough == Enough::no) {
            return fail(finding.error.kind, finding.error.code,
                        fmt::format("{}; {}: {}", finding.error.message, finding.why, finding.mend));
        }
    }
    return {};
}

}  // namespace causeway
