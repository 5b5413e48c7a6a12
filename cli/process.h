// Child processes of the demo: started from this very binary, their output in a log file, ended with the parent.
//
// A child dies with its parent (PR_SET_PDEATHSIG), so an interrupted demo leaves nothing running. Main thread only.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/result.h"
#include "common/time.h"

namespace causeway::cli {

class Process {
public:
    /// Runs `arguments` (the first is the program) with `input` on its stdin; stdout and stderr go to `log`.
    ///
    /// errors  io: it cannot be started
    static Result<Process> start(const std::vector<std::string>& arguments, const std::string& input,
                                 const std::filesystem::path& log);
    Process(Process&& other) noexcept;
    Process& operator=(Process&& other) noexcept;
    ~Process();  // stop()

    /// Whether it still runs; its exit status afterwards is exit_status().
    [[nodiscard]] bool running();
    [[nodiscard]] int exit_status() const { return status_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Sends SIGTERM and does not wait.
    void ask_to_stop();
    /// Asks it to end and waits; kills it after `patience`.
    void stop(Duration patience = std::chrono::seconds(5));
    /// The last lines of its log, for an error message.
    [[nodiscard]] std::string log_tail() const;

private:
    Process(pid_t pid, std::filesystem::path log) : pid_(pid), log_(std::move(log)) {}

    pid_t pid_ = -1;
    int status_ = 0;
    std::filesystem::path log_;
};

/// What the kernel says of a process; zeros when it is gone.
struct ProcessUsage {
    double cpu_seconds = 0;        // user and system
    std::uint64_t resident = 0;    // bytes
    std::uint64_t peak = 0;        // of resident
};
[[nodiscard]] ProcessUsage process_usage(pid_t pid);

}  // namespace causeway::cli
