// See boundary.h. A command whose standard output nobody reads any more ends without a word, as by SIGPIPE: its exit
// status is 141, but what it holds (folders, processes, files half written) goes with it in order.
#include "cli/boundary.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/lost_output.h"

namespace causeway::cli {
namespace {

constexpr int ended_by_pipe = 128 + SIGPIPE;
/// A link with its threads has 20 to 30 open, and libraries below it stop the process where there are none left.
constexpr rlim_t least_descriptors = 64;
/// Threads' stacks and libraries before the first model: below it libraries stop the process.
constexpr rlim_t least_address_space = rlim_t{512} << 20;

/// What the exception that is at hand says, for people.
Error error_of(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
        return {ErrorKind::overloaded, "out_of_memory",
                "this machine, or this process's limit (`ulimit -v`), has no memory left for it; give it more, or less "
                "to do (a smaller model, batch or dataset)"};
    } catch (const std::filesystem::filesystem_error& failed) {
        return {ErrorKind::io, "io", fmt::format("{}: {}", failed.path1().string(), failed.code().message())};
    } catch (const std::system_error& failed) {
        const bool threads = failed.code() == std::errc::resource_unavailable_try_again;
        return {threads ? ErrorKind::overloaded : ErrorKind::io, threads ? "too_few_threads" : "io",
                fmt::format("the machine refused: {}{}", failed.code().message(),
                            threads ? "; no further thread can be started: raise `ulimit -u` or `ulimit -v`" : "")};
    } catch (const std::exception& other) {
        return {ErrorKind::io, "unexpected",
                fmt::format("unexpected: {}; this is a bug in Causeway, please report this line", other.what())};
    } catch (...) {
        return {ErrorKind::io, "unexpected", "unexpected: this is a bug in Causeway, please report this line"};
    }
}

/// An exception in a thread that nobody waits for, or a second one: nothing can be cleared up any more.
[[noreturn]] void last_words() {
    const auto thrown = std::current_exception();
    std::array<char, 512> line{};
    std::size_t length = 0;
    try {
        const auto said = thrown ? error_of(thrown).message : std::string("unexpected end; this is a bug in Causeway");
        length = static_cast<std::size_t>(
            fmt::format_to_n(line.data(), line.size() - 1, "error: {}\n", said).out - line.data());
    } catch (...) {
        constexpr std::string_view plain = "error: no memory is left; give this process more, or less to do\n";
        std::memcpy(line.data(), plain.data(), length = plain.size());
    }
    (void)!::write(STDERR_FILENO, line.data(), length);
    std::_Exit(exit_failed);
}

/// A closed descriptor's number would go to the next file that is opened, and words to a person into it. Reading one
/// that was closed finds an end, writing to it fails.
void hold_standard_descriptors() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
            (void)!::open("/dev/null", descriptor == STDERR_FILENO ? O_RDWR : O_RDONLY);  // gets the lowest free number
        }
    }
}

Status check_limits() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < least_descriptors) {
        limit.rlim_cur = std::min(least_descriptors, limit.rlim_max);
        ::setrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur < least_descriptors) {
            return fail(ErrorKind::io, "too_few_descriptors",
                        fmt::format("this process may have {} files open and needs {}; raise `ulimit -n`",
                                    limit.rlim_cur, least_descriptors));
        }
    }
    if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < least_address_space) {
        return fail(ErrorKind::overloaded, "too_little_memory",
                    fmt::format("this process may have {} MiB of memory and needs {}; raise `ulimit -v`",
                                limit.rlim_cur >> 20, least_address_space >> 20));
    }
    return {};
}

}  // namespace

Status prepare_process() {
    hold_standard_descriptors();
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    std::set_terminate(last_words);
    return check_limits();
}

int guarded(Output output, const std::function<int()>& command) {
    try {
        return command();
    } catch (const OutputIsLost& lost) {
        if (lost.reason == EPIPE) {
            return ended_by_pipe;
        }
        output.json = false;  // there is nowhere to print it
        return output.error({ErrorKind::io, lost.reason == ENOSPC ? "disk_full" : "output_lost",
                             fmt::format("standard output: cannot write: {}; what this command did stays done, its "
                                         "words are lost: give it another output and ask again",
                                         lost.reason == EBADF ? "it is closed" : std::strerror(lost.reason))});
    } catch (...) {
        const auto error = error_of(std::current_exception());
        try {
            return output.error(error);
        } catch (const OutputIsLost&) {
            return exit_code(error.kind);
        }
    }
}

}  // namespace causeway::cli
