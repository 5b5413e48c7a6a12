// See machine.h.
#include "common/machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "common/build_time.h"
#include "common/large_memory.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

/// A file of one number. Nothing: it is not there, or says "max".
std::optional<std::uint64_t> number_in(const fs::path& file) {
    std::ifstream in(file);
    std::uint64_t number = 0;
    return in >> number ? std::optional(number) : std::nullopt;
}

/// The number after `key` in a file of lines "key number" or "key: number kB".
std::optional<std::uint64_t> number_of(const fs::path& file, std::string_view key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const auto after = line.find_first_not_of(": \t", key.size());
        if (line.starts_with(key) && after != key.size() && after != std::string::npos) {
            return std::strtoull(line.c_str() + after, nullptr, 10);
        }
    }
    return std::nullopt;
}

std::uint64_t left_of(std::uint64_t from, std::uint64_t what) {
    return from - std::min(from, what);
}

enum class Measure { room, limit };

/// One version of control groups has its files under other names, and its groups under another mount.
struct GroupFiles {
    const char* folder;
    const char* limit;
    const char* used;
    const char* reclaimable;  // in memory.stat: pages of files that go when memory is wanted
};
constexpr GroupFiles version_2{"", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles version_1{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

std::optional<std::uint64_t> bound_of_group(const fs::path& group, const GroupFiles& names, Measure measure) {
    const auto limit = number_in(group / names.limit);
    if (!limit || measure == Measure::limit) {
        return limit;
    }
    const auto used = number_in(group / names.used).value_or(0);
    return left_of(*limit, left_of(used, number_of(group / "memory.stat", names.reclaimable).value_or(0)));
}

/// The least bound of the process's group and of those above it. Where the group is not seen under its own name (a
/// container that has only its own part mounted), the mount itself is that group.
std::optional<std::uint64_t> bound_of_groups(const KernelFiles& files, const std::string& path, const GroupFiles& names,
                                             Measure measure) {
    const auto mount = files.cgroup / names.folder;
    std::optional<std::uint64_t> least;
    const auto note = [&](const fs::path& group) {
        if (const auto bound = bound_of_group(group, names, measure)) {
            least = std::min(least.value_or(*bound), *bound);
        }
    };
    note(mount);
    auto group = mount;
    for (const auto& part : fs::path(path).relative_path()) {
        if (part == "..") {
            break;  // the group lies outside of what is mounted here
        }
        group /= part;
        note(group);
    }
    return least;
}

/// source  cgroups(7), /proc/pid/cgroup: "0::/path" of version 2, "4:memory:/path" of version 1
std::optional<std::uint64_t> bound_of_cgroup(const KernelFiles& files, Measure measure) {
    std::ifstream in(files.proc / "self" / "cgroup");
    std::optional<std::uint64_t> least;
    for (std::string line; std::getline(in, line);) {
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool unified = controllers == ",,";
        if (unified || controllers.find(",memory,") != std::string::npos) {
            const auto bound =
                bound_of_groups(files, line.substr(second + 1), unified ? version_2 : version_1, measure);
            least = bound ? std::min(least.value_or(*bound), *bound) : least;
        }
    }
    return least;
}

std::optional<std::uint64_t> bound_of_process(int resource, std::uint64_t used, Measure measure) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return std::nullopt;
    }
    return measure == Measure::limit ? limit.rlim_cur : left_of(limit.rlim_cur, used);
}

struct UsedMemory {
    std::uint64_t address_space = 0;
    std::uint64_t data = 0;
};

/// source  proc(5), /proc/pid/statm: size, resident, shared, text, lib, data, in pages
UsedMemory used_by_process(const KernelFiles& files) {
    std::ifstream in(files.proc / "self" / "statm");
    std::uint64_t size = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
    in >> size >> resident >> shared >> text >> library >> data;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return {size * page, data * page};
}

std::optional<MemoryRoom> least_bound(const KernelFiles& files, Measure measure) {
    const auto machine = number_of(files.proc / "meminfo", measure == Measure::room ? "MemAvailable" : "MemTotal");
    const auto used = used_by_process(files);
    const std::pair<std::optional<std::uint64_t>, std::string_view> bounds[] = {
        {machine ? std::optional(*machine * 1024) : std::nullopt, "the machine"},
        {bound_of_cgroup(files, measure), "the control group"},
        {bound_of_process(RLIMIT_AS, used.address_space, measure), "ulimit -v"},
        {bound_of_process(RLIMIT_DATA, used.data, measure), "ulimit -d"}};
    std::optional<MemoryRoom> least;
    for (const auto& [bytes, name] : bounds) {
        if (bytes && (!least || *bytes < least->bytes)) {
            least = MemoryRoom{*bytes, name};
        }
    }
    return least;
}

}  // namespace

std::optional<MemoryRoom> memory_room(const KernelFiles& files) {
    auto room = least_bound(files, Measure::room);
    if (room) {
        room->bytes += spare_memory();
    }
    return room;
}

std::optional<std::uint64_t> available_memory() {
    const auto room = memory_room();
    return room ? std::optional(room->bytes) : std::nullopt;
}

std::optional<MemoryRoom> memory_limit(const KernelFiles& files) {
    return least_bound(files, Measure::limit);
}

Descriptors descriptors(const KernelFiles& files) {
    Descriptors found;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        found.limit = limit.rlim_max;
    }
    std::error_code error;
    for (auto entry = fs::directory_iterator(files.proc / "self" / "fd", error);
         !error && entry != fs::directory_iterator(); entry.increment(error)) {
        ++found.open;
    }
    return found;
}

std::uint64_t raise_descriptors(std::uint64_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
        (void)::getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur;
}

std::optional<std::uint64_t> disk_room(const fs::path& path) {
    std::error_code error;
    auto folder = fs::absolute(path, error);
    while (!error && !fs::exists(folder, error) && folder.has_relative_path()) {
        folder = folder.parent_path();
        error.clear();
    }
    const auto space = fs::space(folder, error);
    return error ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

std::int64_t build_time_unix_s() {
    return built_at_unix_s;
}

}  // namespace causeway
