// What this machine has for this process: memory, descriptors, room on disks. Readings only; whether they are enough is
// judged by pure functions: common/need.h for a start, a memory plan for a model.
//
// Several bounds hold at one time (the machine's memory, a control group's as of a container or a systemd unit, limits
// of the process as `ulimit -v` sets them): a reading is the least of them, and names which one it is.
// source   proc(5), cgroups(7), the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst
// threads  reentrant; each call reads files of a few KB: not in a hot loop
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace causeway {

/// Where the kernel says it; tests have folders of their own.
struct KernelFiles {
    std::filesystem::path proc = "/proc";
    std::filesystem::path cgroup = "/sys/fs/cgroup";
};

struct MemoryRoom {
    std::uint64_t bytes = 0;
    std::string_view bound_by;  // "the machine", "the control group", "ulimit -v", "ulimit -d"
};

/// What this process may still take before the first of its bounds; what it holds unused is counted as free
/// (large_memory.h). Nothing where the kernel says nothing.
[[nodiscard]] std::optional<MemoryRoom> memory_room(const KernelFiles& files = {});
/// The same, the bytes alone.
[[nodiscard]] std::optional<std::uint64_t> available_memory();

/// What the process could have at most with nothing of it in use: the machine's memory, a control group's limit, or one
/// of the process.
[[nodiscard]] std::optional<MemoryRoom> memory_limit(const KernelFiles& files = {});

struct Descriptors {
    std::uint64_t limit = 0;  // to which a process may raise its own (`ulimit -Hn`)
    std::uint64_t open = 0;   // of this process, now
};
[[nodiscard]] Descriptors descriptors(const KernelFiles& files = {});
/// Raises this process's own limit to `wanted`, or as far as it may, and says how many it then may have open.
std::uint64_t raise_descriptors(std::uint64_t wanted);

/// Free for this user on the disk of `path`, or of the nearest folder above that exists. Nothing: it could not be read.
[[nodiscard]] std::optional<std::uint64_t> disk_room(const std::filesystem::path& path);

/// Seconds since 1970 at which this program was built: no true clock is earlier.
[[nodiscard]] std::int64_t build_time_unix_s();

}  // namespace causeway
