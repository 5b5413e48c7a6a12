// Lines of 100 columns at most. A missing accuracy is `-`, and its reason is said once below the table.
#include "cli/live_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "cli/metric_text.h"
#include "common/printable.h"
#include "common/text.h"
#include "common/time.h"

namespace causeway::cli {
namespace {

constexpr const char* columns_format = "{:>9}  {:>7}  {:>8}  {:>8}  {:>9}  {:>9}  {:>7}  {:>7}";

constexpr const char* relay_columns_format = "  {:>9}  {:>8}";

constexpr int shortest_bar = 10;
constexpr int longest_bar = 50;

std::string shown_number(const Json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.number()) : "-";
}

/// What the columns have no room for: the error of a regression, or how the worst tenth of the clients fares.
std::string remark(const Json& event) {
    if (event["stream_bytes_up"].is_number()) {
        const auto streams = event["stream_bytes_up"].integer() + event["stream_bytes_down"].integer();
        return fmt::format(fmt::runtime(relay_columns_format), format_bytes(static_cast<std::uint64_t>(streams)),
                           event["critical_group"].is_number()
                               ? fmt::format("group {}", event["critical_group"].integer())
                               : event["critical_client"].text());
    }
    if (event["rmse"].is_number() && metric_of_event(event) != "rmse") {
        return fmt::format("  RMSE {:.4f}", event["rmse"].number());
    }
    const auto& worst = event["evaluated_by_clients"]["spread"]["accuracy"]["worst_decile"];
    return worst.is_number() ? fmt::format("  worst {:.1f} %", 100 * worst.number()) : std::string();
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

/// Of relays also what clients and hosts streamed, and the group, or without groups the client, that the round waited
/// for.
std::string round_header(const Json& event) {
    const bool relays = event["stream_bytes_up"].is_number();
    return fmt::format(fmt::runtime(columns_format), "round", "clients", "loss", metric_title(metric_of_event(event)),
                       "up", "down", "time", "ETA") +
           (relays ? fmt::format(fmt::runtime(relay_columns_format), "streams", "last") : std::string());
}

std::string round_line(const Json& event, const std::string& time_left) {
    const auto rounds = event["rounds"].integer();
    const auto round =
        rounds > 0 ? fmt::format("{}/{}", event["round"].integer(), rounds) : std::to_string(event["round"].integer());
    const auto cohort = event["cohort"].integer();
    const auto clients = cohort > 0 ? fmt::format("{}/{}", event["clients"].integer(), cohort)
                                    : std::to_string(event["clients"].integer());
    return fmt::format(fmt::runtime(columns_format), round, clients, shown_number(event["loss"], "{:.4f}"),
                       metric_text(metric_of_event(event), metric_value_of_event(event)), bytes(event["bytes_up"]),
                       bytes(event["bytes_down"]), format_duration(from_seconds(event["seconds"].number())),
                       time_left) +
           remark(event);
}

/// Who is at work in which group, as far as a line has room: "  1:client-4 2:client-2"; without groups just who.
std::string turns_of(const std::vector<Json>& members) {
    constexpr std::size_t room = 32;
    std::string text;
    for (const auto& member : members) {
        const auto state = member["state"].text();
        if (!member.has("group") || (state != "working" && state != "uploading")) {
            continue;
        }
        const auto group = member["group"].is_number() ? fmt::format("{}:", member["group"].integer() + 1) : "";
        const auto turn = " " + group + member["node"].text();
        if (text.size() + turn.size() > room) {
            return text + " ..";
        }
        text += turn;
    }
    return text;
}

std::string away_text(const Json& status) {
    std::string names;
    std::string why;
    std::string setting;
    double longest = 0;
    bool for_ever = false;
    for (const auto& member : status["members"].items()) {
        if (!member.has("waits_s")) {
            continue;
        }
        names += (names.empty() ? "" : ", ") + member["node"].text();
        why = member["reason"].text();
        setting = member["waits_by"].text();
        longest = std::max(longest, member["waits_s"].number());
        for_ever = for_ever || member["waits_s"].is_null();
    }
    return names.empty() ? ""
                         : fmt::format("waits for {} ({}), {}", names, why,
                                       for_ever ? "however long it takes"
                                                : fmt::format("up to {} more ({})",
                                                              format_duration(from_seconds(std::ceil(longest))),
                                                              setting));
}

/// At the mean pace of the rounds shown so far.
std::string LiveView::time_left(std::int64_t done, std::int64_t rounds) const {
    const auto left = rounds - done;
    if (rounds_seen_ == 0 || left < 0) {
        return "-";
    }
    if (left == 0) {
        return "0s";
    }
    // Whole seconds: a forecast's milliseconds only flicker.
    return format_duration(
        from_seconds(std::ceil(seconds_ / static_cast<double>(rounds_seen_) * static_cast<double>(left))));
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
    } else if (kind == "statistics") {
        statistics(event);
    } else if (kind == "done") {
        done(event);
    }
}

void LiveView::note(const std::string& text, const Json& event) {
    output_.object(event);
    clear_bar();
    output_.line(text);
}

void LiveView::status(const std::string& text) {
    if (!output_.json && at_terminal()) {
        clear_bar();
        draw_bar(text.substr(0, static_cast<std::size_t>(terminal_columns()) - 1));
    }
}

void LiveView::working(const Json& status) {
    if (output_.json || !at_terminal()) {
        return;
    }
    const auto& members = status["members"].items();
    const auto counted =
        std::ranges::count_if(members, [](const Json& member) { return member["state"].text() == "counted"; });
    const auto what = members.empty() ? status["phase"].text()
                                      : fmt::format("round {}: {}/{} updates", status["open_round"].integer(), counted,
                                                    members.size());
    const auto away = away_text(status);
    clear_bar();
    draw_progress(status["round"].integer(), status["rounds"].integer(),
                  what + (away.empty() ? turns_of(members) : ", " + away));
}

void LiveView::round(const Json& event) {
    if (!header_shown_) {
        output_.line(styled(round_header(event), "1"));
        header_shown_ = true;
    }
    seconds_ += event["seconds"].number();
    ++rounds_seen_;
    const auto done = event["round"].integer();
    const auto rounds = event["rounds"].integer();
    output_.line(round_line(event, time_left(done, rounds)));
    if (event["metric_note"].is_text() && !note_shown_) {
        output_.line("  " + named_metric(event) + ": " + event["metric_note"].text());
        note_shown_ = true;
    } else if (event["accuracy_note"].is_text() && !note_shown_) {
        const bool none = metric_value_of_event(event).is_null();
        output_.line((none ? "  " + named_metric(event) + ": " : "  ") + event["accuracy_note"].text());
        note_shown_ = true;
    }
    for (const auto& member : event["without"].items()) {
        output_.line(fmt::format("  without {}: {}, after {}", member["node"].text(), member["why"].text(),
                                 format_duration(from_seconds(member["seconds"].number()))));
    }
    if (at_terminal()) {
        draw_progress(done, rounds, fmt::format("round {} of {}", done, rounds));
    }
}

/// Before the first round: nothing is trained in it, so it has no place in the table.
void LiveView::statistics(const Json& event) {
    output_.line(fmt::format("before round 1: {} columns summed over {} of {} clients  up {}  down {}  {}",
                             event["columns"].integer(), event["clients"].integer(), event["cohort"].integer(),
                             bytes(event["bytes_up"]), bytes(event["bytes_down"]),
                             format_duration(from_seconds(event["seconds"].number()))));
}

/// A bar as wide as the rest of the line leaves room for.
void LiveView::draw_progress(std::int64_t done, std::int64_t rounds, const std::string& detail) {
    const auto part = rounds > 0 ? 100 * done / rounds : 0;
    const auto text = fmt::format(" {:>3} %  {}  ETA {}", part, detail, time_left(done, rounds));
    const int room = terminal_columns() - 1 - static_cast<int>(text.size());
    draw_bar(progress_bar(done, rounds, std::clamp(room, shortest_bar, longest_bar)) + text);
}

void LiveView::done(const Json& event) {
    const auto state = event["state"].text();
    const auto reason = event["reason"].text();
    output_.line(styled(state, state == "succeeded" ? "32" : "31") + (reason.empty() ? "" : ": " + reason) +
                 fmt::format("  {} {}  loss {}  {}  up {}  down {}  {}", event["rounds"].integer(),
                             event["rounds"].integer() == 1 ? "round" : "rounds", shown_number(event["loss"], "{:.4f}"),
                             named_metric(event), bytes(event["bytes_up"]), bytes(event["bytes_down"]),
                             format_duration(from_seconds(event["seconds"].number()))));
}

void LiveView::draw_bar(const std::string& text) {
    Output::text(printable(text, Lines::one));
    bar_shown_ = true;
}

void LiveView::clear_bar() {
    if (bar_shown_) {
        Output::text("\r\033[K");
        bar_shown_ = false;
    }
}

}  // namespace causeway::cli
