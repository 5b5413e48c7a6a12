// Lines of 100 columns at most. A missing accuracy is `-`, and its reason is said once below the table.
#include "cli/live_view.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "common/text.h"
#include "common/time.h"

namespace causeway::cli {
namespace {

constexpr const char* columns_format = "{:>9}  {:>7}  {:>8}  {:>8}  {:>9}  {:>9}  {:>7}  {:>7}";

std::string number(const Json& value, const char* format, double scale = 1) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.number() * scale) : "-";
}

std::string bytes(const Json& value) {
    return value.is_number() ? format_bytes(static_cast<std::uint64_t>(value.integer())) : "-";
}

}  // namespace

std::string progress_bar(std::int64_t part, std::int64_t whole, int columns) {
    const int room = std::max(columns, 3) - 2;
    const auto filled = whole > 0 ? static_cast<int>(part * room / whole) : 0;
    return "[" + std::string(static_cast<std::size_t>(filled), '#') +
           std::string(static_cast<std::size_t>(room - filled), '-') + "]";
}

std::string round_header() {
    return fmt::format(fmt::runtime(columns_format), "round", "clients", "loss", "accuracy", "up", "down", "time",
                       "ETA");
}

std::string round_line(const Json& event, const std::string& time_left) {
    const auto rounds = event["rounds"].integer();
    const auto round =
        rounds > 0 ? fmt::format("{}/{}", event["round"].integer(), rounds) : std::to_string(event["round"].integer());
    const auto cohort = event["cohort"].integer();
    const auto clients = cohort > 0 ? fmt::format("{}/{}", event["clients"].integer(), cohort)
                                    : std::to_string(event["clients"].integer());
    return fmt::format(fmt::runtime(columns_format), round, clients, number(event["loss"], "{:.4f}"),
                       number(event["accuracy"], "{:.2f} %", 100), bytes(event["bytes_up"]), bytes(event["bytes_down"]),
                       format_duration(from_seconds(event["seconds"].number())), time_left);
}

/// At the mean pace of the rounds shown so far.
std::string LiveView::time_left(const Json& event) const {
    const auto left = event["rounds"].integer() - event["round"].integer();
    if (rounds_seen_ == 0 || left < 0) {
        return "-";
    }
    const double time = seconds_ / static_cast<double>(rounds_seen_) * static_cast<double>(left);
    return format_duration(from_seconds(time < 10 ? time : std::ceil(time)));
}

LiveView::~LiveView() {
    clear_bar();
}

void LiveView::event(const Json& event) {
    output_.object(event);
    if (output_.json) {
        return;
    }
    clear_bar();
    const auto kind = event["event"].text();
    if (kind == "round") {
        round(event);
    } else if (kind == "done") {
        done(event);
    }
}

void LiveView::status(const std::string& text) {
    if (!output_.json && at_terminal()) {
        clear_bar();
        draw_bar(text);
    }
}

void LiveView::round(const Json& event) {
    if (!header_shown_) {
        output_.line(styled(round_header(), "1"));
        header_shown_ = true;
    }
    seconds_ += event["seconds"].number();
    ++rounds_seen_;
    output_.line(round_line(event, time_left(event)));
    if (event["accuracy"].is_null() && event["accuracy_note"].is_text() && !note_shown_) {
        output_.line("  accuracy -: " + event["accuracy_note"].text());
        note_shown_ = true;
    }
    const auto rounds = event["rounds"].integer();
    if (at_terminal() && rounds > 0) {
        draw_bar(fmt::format("{} {:>3.0f} %  round {} of {}  ETA {}",
                             progress_bar(event["round"].integer(), rounds, 50),
                             100.0 * static_cast<double>(event["round"].integer()) / static_cast<double>(rounds),
                             event["round"].integer(), rounds, time_left(event)));
    }
}

void LiveView::done(const Json& event) {
    const auto state = event["state"].text();
    const auto reason = event["reason"].text();
    output_.line(styled(state, state == "succeeded" ? "32" : "31") + (reason.empty() ? "" : ": " + reason) +
                 fmt::format("  {} rounds  loss {}  accuracy {}  up {}  down {}  {}", event["rounds"].integer(),
                             number(event["loss"], "{:.4f}"), number(event["accuracy"], "{:.2f} %", 100),
                             bytes(event["bytes_up"]), bytes(event["bytes_down"]),
                             format_duration(from_seconds(event["seconds"].number()))));
}

void LiveView::draw_bar(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    bar_shown_ = true;
}

void LiveView::clear_bar() {
    if (bar_shown_) {
        std::fputs("\r\033[K", stdout);
        std::fflush(stdout);
        bar_shown_ = false;
    }
}

}  // namespace causeway::cli
