// A private folder for one test, gone with it; and a child process that is killed at a moment of the test's choosing.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/digest.h"
#include "common/file.h"

namespace causeway {

struct TemporaryFolder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("causeway-test-" + to_hex(secret_random_bytes(6)));
    TemporaryFolder() { REQUIRE(make_private_folder(path)); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

/// Runs `work` in a child process, which calls its argument after each finished step; kill -9 falls after `steps` of
/// them, somewhere inside the next. A child whose work ends by itself before that is fine too.
inline void kill_after(int steps, const std::function<void(const std::function<void()>& finished)>& work) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        work([&] { (void)!::write(ends[1], "x", 1); });
        ::_exit(0);
    }
    ::close(ends[1]);
    char byte = 0;
    for (int seen = 0; seen < steps && ::read(ends[0], &byte, 1) == 1; ++seen) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
}

}  // namespace causeway
