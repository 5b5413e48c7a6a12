// fork and exec; waiting with a bound is a pidfd in poll, not a loop of sleeps.
#include "cli/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/file.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

constexpr std::uint64_t largest_log = 64 << 20;
constexpr std::size_t tail_lines = 8;

/// In the child: never returns. Only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, int input, int log) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(input, STDIN_FILENO);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(arguments[0], arguments);
    _exit(127);
}

/// True when the process has ended within the bound.
bool ended_within(pid_t pid, Duration bound) {
    const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) {
        return true;  // it is gone already
    }
    pollfd wait{descriptor, POLLIN, 0};
    const int got =
        ::poll(&wait, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(bound).count()));
    ::close(descriptor);
    return got > 0;
}

}  // namespace

Result<Process> Process::start(const std::vector<std::string>& arguments, const std::string& input,
                               const std::filesystem::path& log) {
    int pipe[2];
    const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0 || ::pipe2(pipe, O_CLOEXEC) != 0) {
        return fail(ErrorKind::io, "cannot_start", log.string() + ": " + std::strerror(errno));
    }
    std::vector<char*> words;
    std::ranges::transform(arguments, std::back_inserter(words),
                           [](const std::string& word) { return const_cast<char*>(word.c_str()); });
    words.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
        become(words.data(), pipe[0], log_file);
    }
    const int reason = errno;
    ::close(pipe[0]);
    ::close(log_file);
    // A token is far below the pipe's buffer (64 KiB), so this never waits for the child.
    [[maybe_unused]] const auto written = ::write(pipe[1], input.data(), input.size());
    ::close(pipe[1]);
    if (pid < 0) {
        return fail(ErrorKind::io, "cannot_start", arguments.front() + ": " + std::strerror(reason));
    }
    return Process(pid, log);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_), log_(std::move(other.log_)) {}

Process& Process::operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    std::swap(log_, other.log_);
    return *this;
}

Process::~Process() {
    stop();
}

bool Process::running() {
    int status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        pid_ = -1;
    }
    return pid_ > 0;
}

void Process::ask_to_stop() {
    if (running()) {
        ::kill(pid_, SIGTERM);
    }
}

void Process::stop(Duration patience) {
    if (!running()) {
        return;
    }
    ask_to_stop();
    if (!ended_within(pid_, patience)) {
        ::kill(pid_, SIGKILL);
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
}

std::string Process::log_tail() const {
    const auto bytes = read_file(log_, largest_log);
    if (!bytes) {
        return {};
    }
    auto lines = split_text(trim(as_text(*bytes)), '\n');
    const auto count = std::min(tail_lines, lines.size());
    return join(std::span(lines).last(count), "\n");
}

ProcessUsage process_usage(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    ProcessUsage usage;
    std::ifstream status(folder + "/status");
    for (std::string word; status >> word;) {
        auto* bytes = word == "VmRSS:" ? &usage.resident : word == "VmHWM:" ? &usage.peak : nullptr;
        if (bytes && status >> *bytes) {
            *bytes *= 1024;
        }
    }
    std::ifstream stat(folder + "/stat");
    std::string text;
    std::getline(stat, text);
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string skipped;
    for (int i = 0; i < 11; ++i) {  // state to cmajflt; user and system time follow, in ticks
        fields >> skipped;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    usage.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
    return usage;
}

}  // namespace causeway::cli
