// Stdout and stderr of the commands. Width is counted in code points: names may hold letters beyond ASCII.
#include "cli/output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <span>
#include <thread>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/lost_output.h"
#include "common/printable.h"

namespace causeway::cli {
namespace {

constexpr std::array<std::string_view, 7> known_styles = {"\033[0m",  "\033[1m",  "\033[2m", "\033[31m",
                                                          "\033[32m", "\033[33m", "\033[36m"};
constexpr int default_columns = 100;
constexpr int most_columns = 200;
constexpr std::size_t column_gap = 2;
constexpr std::size_t least_last = 30;  // columns of a table's last cell, which says why
constexpr std::size_t least_cut = 20;   // of a name that is cut

std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

const auto main_thread = std::this_thread::get_id();
LostOutput lost_output = LostOutput::ends_command;

void write_text(std::FILE* file, std::string_view text) {
    errno = 0;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
    const int reason = errno;
    if (written || file != stdout) {
        return;
    }
    std::clearerr(file);
    if (lost_output == LostOutput::ends_command && std::this_thread::get_id() == main_thread) {
        throw OutputIsLost{reason};
    }
}

/// Text for people: whoever's words it holds, it only shows. Of escape sequences the ones that styled() makes are left,
/// and those at a terminal alone.
std::string without_steering(std::string_view text) {
    std::string whole;
    while (!text.empty()) {
        const auto escape = text.find('\033');
        whole += printable(text.substr(0, escape), Lines::many);
        text.remove_prefix(std::min(escape, text.size()));
        const auto end = text.find('m');
        const auto sequence = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
        const bool ours = at_terminal() && std::ranges::find(known_styles, sequence) != known_styles.end();
        whole += ours ? std::string(sequence) : text.empty() ? "" : "?";
        text.remove_prefix(ours ? sequence.size() : std::min<std::size_t>(1, text.size()));
    }
    return whole;
}

void write_line(std::FILE* file, std::string_view text) {
    write_text(file, std::string(text) + '\n');
}

std::string cut(const std::string& text, std::size_t columns) {
    if (width(text) <= columns) {
        return text;
    }
    std::size_t bytes = 0;
    for (std::size_t seen = 0; bytes < text.size() && seen + 1 < columns; ++seen) {
        do {
            ++bytes;
        } while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80);
    }
    return text.substr(0, bytes) + "~";
}

/// Takes from the widest column but the last, until the last has its least room or nothing can be taken any more.
void narrow(std::vector<std::size_t>& widths, std::size_t columns) {
    if (widths.size() < 2) {
        return;
    }
    const auto last = std::min(widths.back(), least_last);
    const auto others = std::span(widths).first(widths.size() - 1);
    while (std::accumulate(others.begin(), others.end(), last + column_gap * others.size()) > columns) {
        auto& widest = *std::ranges::max_element(others);
        if (widest <= least_cut) {
            return;
        }
        --widest;
    }
}

}  // namespace

int exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid:
        case ErrorKind::not_found:
        case ErrorKind::unsupported:
            return exit_usage;
        case ErrorKind::refused:
        case ErrorKind::disconnected:
            return exit_unreachable;
        case ErrorKind::timed_out:
            return exit_timed_out;
        case ErrorKind::overloaded:
        case ErrorKind::corrupt:
        case ErrorKind::io:
            return exit_failed;
    }
    return exit_failed;
}

Result<Output> Output::for_file(const std::string& file) const {
    Output chosen = *this;
    chosen.beside = is_standard_output(file);
    if (chosen.beside && json) {
        return fail(ErrorKind::invalid, "usage",
                    "--out - and --json both write to standard output; leave one of them out");
    }
    return chosen;
}

void Output::line(std::string_view text) const {
    if (!json) {
        write_line(beside ? stderr : stdout, without_steering(text));
    }
}

void Output::prompt(std::string_view text) const {
    if (!json) {
        write_text(stdout, without_steering(text));
    }
}

void Output::text(std::string_view text) {
    write_text(stdout, text);
}

void on_lost_output(LostOutput what) {
    lost_output = what;
}

void Output::object(const Json& value) const {
    if (json) {
        write_line(stdout, value.dump());
    }
}

void Output::object(std::string_view event, const Json& value) const {
    auto tagged = Json::object().set("event", event);
    for (const auto& [key, field] : value.fields()) {
        tagged.set(key, field);
    }
    object(tagged);
}

int Output::error(const Error& error) const {
    // A list of configuration errors already says `file:line:column: error:` on each of its lines.
    const bool placed = error.message.find(": error: ") != std::string::npos;
    write_line(stderr, printable(placed ? error.message : "error: " + error.message, Lines::many));
    object(Json::object()
               .set("event", "error")
               .set("kind", to_string(error.kind))
               .set("code", error.code)
               .set("message", error.message));
    return exit_code(error.kind);
}

bool at_terminal() {
    return ::isatty(STDOUT_FILENO) == 1;
}

int terminal_columns() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return std::min<int>(size.ws_col, most_columns);
    }
    return default_columns;
}

std::string styled(std::string_view text, std::string_view sgr) {
    static const bool plain = !at_terminal() || std::getenv("NO_COLOR") != nullptr;
    return plain ? std::string(text) : fmt::format("\033[{}m{}\033[0m", sgr, text);
}

std::string utc_text(std::int64_t unix_s) {
    const auto time = static_cast<std::time_t>(unix_s);
    std::tm parts{};
    char text[32] = "-";
    if (::gmtime_r(&time, &parts) != nullptr) {
        (void)std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    return text;
}

std::string fitted(const std::string& line) {
    return at_terminal() ? cut(line, static_cast<std::size_t>(terminal_columns())) : line;
}

std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(header.size());
    const auto measure = [&](const std::vector<std::string>& row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], width(row[i]));
        }
    };
    measure(header);
    std::ranges::for_each(rows, measure);
    if (at_terminal()) {
        narrow(widths, static_cast<std::size_t>(terminal_columns()));
    }
    const auto print = [&](const std::vector<std::string>& row) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool last = i + 1 == row.size();
            const auto cell = last ? row[i] : cut(row[i], widths[i]);
            line += cell + (last ? "" : std::string(widths[i] - width(cell) + column_gap, ' '));
        }
        line.erase(line.find_last_not_of(' ') + 1);  // an empty last cell leaves nothing
        return fitted(line);
    };
    std::string text = print(header);
    for (const auto& row : rows) {
        text += "\n" + print(row);
    }
    return text;
}

}  // namespace causeway::cli
