// What the kernel says of a machine, read from folders that look like other machines; and the bounds of this process,
// in a child that sets them.
#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "common/machine.h"
#include "common/time.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// A machine of 16 GiB with 8 available.
struct Pretended {
    TemporaryFolder folder;
    KernelFiles files{folder.path / "proc", folder.path / "cgroup"};

    Pretended() { write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n"); }

    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((folder.path / path).parent_path());
        std::ofstream(folder.path / path) << text;
    }
    void groups(const std::string& lines) const { write("proc/self/cgroup", lines); }

    [[nodiscard]] MemoryRoom room() const { return memory_room(files).value(); }
};

/// In a child, whose limits are its own.
template <class Check>
bool holds_in_child(Check check) {
    const auto child = ::fork();
    if (child == 0) {
        ::_exit(check() ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("without any other bound the room is what the machine has available", "[machine]") {
    const Pretended machine;
    CHECK(machine.room().bytes >= 8 * gib);
    CHECK(machine.room().bound_by == "the machine");
    CHECK(memory_limit(machine.files)->bytes == 16 * gib);
}

TEST_CASE("a control group of version 2 bounds the room by its limit less its use, files that can go left out",
          "[machine]") {
    const Pretended machine;
    machine.groups("0::/system.slice/causeway.service\n");
    machine.write("cgroup/system.slice/causeway.service/memory.max", "4294967296\n");
    machine.write("cgroup/system.slice/causeway.service/memory.current", "2147483648\n");
    machine.write("cgroup/system.slice/causeway.service/memory.stat", "anon 1073741824\ninactive_file 1073741824\n");
    CHECK(machine.room().bytes == 3 * gib);
    CHECK(machine.room().bound_by == "the control group");
    CHECK(memory_limit(machine.files)->bytes == 4 * gib);
}

TEST_CASE("a group without a limit of its own has that of the groups above it", "[machine]") {
    const Pretended machine;
    machine.groups("0::/a/b\n");
    machine.write("cgroup/a/memory.max", "1073741824\n");
    machine.write("cgroup/a/memory.current", "0\n");
    machine.write("cgroup/a/b/memory.max", "max\n");
    CHECK(machine.room().bytes == gib);
}

TEST_CASE("a container that sees only its own group has the limit of the mount", "[machine]") {
    const Pretended machine;
    for (const auto* path : {"0::/\n", "0::/../../elsewhere\n", "0::/not/mounted\n"}) {
        machine.groups(path);
        machine.write("cgroup/memory.max", "2147483648\n");
        machine.write("cgroup/memory.current", "1073741824\n");
        CHECK(machine.room().bytes == gib);
    }
}

TEST_CASE("a control group of version 1 bounds the room, beside an empty one of version 2", "[machine]") {
    const Pretended machine;
    machine.groups("5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
    machine.write("cgroup/memory/docker/abc/memory.limit_in_bytes", "3221225472\n");
    machine.write("cgroup/memory/docker/abc/memory.usage_in_bytes", "1073741824\n");
    CHECK(machine.room().bytes == 2 * gib);
    machine.write("cgroup/memory/docker/abc/memory.stat", "inactive_file 1\ntotal_inactive_file 536870912\n");
    CHECK(machine.room().bytes == 2 * gib + gib / 2);
    machine.write("cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");  // none is set
    CHECK(machine.room().bound_by == "the machine");
}

TEST_CASE("a group that has taken more than its limit has nothing left, not a huge number", "[machine]") {
    const Pretended machine;
    machine.groups("0::/\n");
    machine.write("cgroup/memory.max", "1000\n");
    machine.write("cgroup/memory.current", "2000\n");
    CHECK(machine.room().bytes < gib);
}

TEST_CASE("lines that are no groups, and files that hold no numbers, bound nothing", "[machine]") {
    const Pretended machine;
    for (const auto* lines : {"", "\n", "nonsense\n", "0:\n", "::\n", "1:name=systemd:/\n", "4:memoryless:/\n"}) {
        machine.groups(lines);
        machine.write("cgroup/memory/memory.limit_in_bytes", "lots\n");
        CHECK(machine.room().bound_by == "the machine");
    }
    CHECK_FALSE(memory_room({machine.folder.path / "none", machine.folder.path / "none"}).has_value());
}

TEST_CASE("limits of the process bound the room and are named", "[machine]") {
    const Pretended machine;
    const auto bounded_by = [&](__rlimit_resource resource, std::string_view name) {
        return holds_in_child([&] {
            const rlimit limit{gib, gib};
            return ::setrlimit(resource, &limit) == 0 && machine.room().bound_by == name &&
                   machine.room().bytes <= gib && memory_limit(machine.files)->bytes == gib;
        });
    };
    CHECK(bounded_by(RLIMIT_DATA, "ulimit -d"));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow takes terabytes of addresses
    CHECK(bounded_by(RLIMIT_AS, "ulimit -v"));
#endif
    CHECK(available_memory().has_value());
}

TEST_CASE("descriptors: what may be open and what is, and a limit is raised as far as the process may", "[machine]") {
    const auto before = descriptors();
    CHECK(before.open >= 3);
    CHECK(before.limit >= before.open);
    CHECK(holds_in_child([] {
        const rlimit limit{64, 200};
        return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && raise_descriptors(10) == 64 &&
               raise_descriptors(100) == 100 && raise_descriptors(1000) == 200 && descriptors().limit == 200;
    }));
}

TEST_CASE("room on the disk is that of the nearest folder there is", "[machine]") {
    const TemporaryFolder folder;
    CHECK(disk_room(folder.path / "not" / "yet" / "made").has_value());
    CHECK(disk_room(folder.path).has_value());
    CHECK(disk_room("relative/to/here").has_value());
}

TEST_CASE("the build's time is past", "[machine]") {
    CHECK(build_time_unix_s() > 1'790'000'000);
    CHECK(build_time_unix_s() <= wall_clock_unix_s());
}

}  // namespace causeway
