// Makes a causeway executable that can be killed at a crash point; linked beside the objects of the real one.
//
//   CAUSEWAY_CRASH_RECORD=FILE      appends "<process> <point> <of>" for every point that is reached
//   CAUSEWAY_CRASH_AT="POINT OF N"  the process that reaches this point for the N-th time (from 0) kills itself ...
//   CAUSEWAY_CRASH_MARK=FILE        ... if it is the first to create this file: one kill per run, none after a restart
//
// `of` is made general: digests become *, numbers #, only the last two parts of a path are kept. Where a point is
// called `unflushed`, half of the file is taken away first, for a power cut keeps no promise about such bytes.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "common/crash_point.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shortest_digest = 16;  // also the width of a use in a cached model's name

bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string general(std::string_view of) {
    auto path = fs::path(of);
    if (path.extension() == ".tmp") {
        path.replace_extension();
    }
    const auto text = (path.parent_path().filename() / path.filename()).string();
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        auto hex = at;
        while (hex < text.size() && is_hex(text[hex])) {
            ++hex;
        }
        auto digits = at;
        while (digits < text.size() && is_digit(text[digits])) {
            ++digits;
        }
        if (hex - at >= shortest_digest) {
            out += '*';
            at = hex;
        } else if (digits > at) {
            out += '#';
            at = digits;
        } else {
            out += text[at++];
        }
    }
    return out;
}

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);  // NOLINT: before main, with one thread
    return value == nullptr ? "" : value;
}

struct CrashPlan {
    std::string record = from_environment("CAUSEWAY_CRASH_RECORD");
    std::string place = from_environment("CAUSEWAY_CRASH_AT");
    std::string mark = from_environment("CAUSEWAY_CRASH_MARK");
    int passes = 0;  // how often the place is passed unharmed
    std::atomic<int> seen = 0;

    CrashPlan() {
        if (const auto space = place.rfind(' '); space != std::string::npos) {
            passes = std::atoi(place.c_str() + space + 1);
            place.resize(space);
        }
    }
};

CrashPlan& plan() {
    static CrashPlan made;
    return made;
}

void append_line(const std::string& file, const std::string& line) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor < 0 || ::write(descriptor, line.data(), line.size()) < 0) {
        std::abort();
    }
    ::close(descriptor);
}

void die(std::string_view point, const char* of) {
    if (::open(plan().mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) < 0) {
        return;
    }
    if (point.ends_with("unflushed")) {
        std::error_code ignored;
        const auto size = fs::file_size(of, ignored);
        if (!ignored) {
            fs::resize_file(of, size / 2, ignored);
        }
    }
    ::kill(::getpid(), SIGKILL);
}

void reached(const char* point, const char* of) {
    const auto place = std::string(point) + " " + general(of);
    if (!plan().record.empty()) {
        append_line(plan().record, std::to_string(::getpid()) + " " + place + "\n");
    }
    if (place == plan().place && plan().seen.fetch_add(1) == plan().passes) {
        die(point, of);
    }
}

const bool installed = [] {
    (void)plan();
    crash_hook = reached;
    return true;
}();

}  // namespace
}  // namespace causeway
