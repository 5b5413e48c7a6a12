// The picture of a running experiment: one line per round, and at a terminal a progress bar redrawn below them.
//
// It is fed with the documented `--json` events (statistics, round, done) and nothing else, so that what a person sees
// and what a program reads cannot differ. To a pipe the lines are plain and nothing is redrawn. Main thread only.
#pragma once

#include <string>

#include "cli/output.h"
#include "common/json.h"

namespace causeway::cli {

/// "waits for client-2 (gone), up to 43s more (sync.rejoin)", from what `experiment.status` says; empty: for nobody.
[[nodiscard]] std::string away_text(const Json& status);

class LiveView {
public:
    explicit LiveView(Output output) : output_(output) {}
    ~LiveView();
    LiveView(const LiveView&) = delete;
    LiveView& operator=(const LiveView&) = delete;

    /// An event as watch, demo and simulate give it; with --json it is printed as it is.
    void event(const Json& event);
    /// A line apart from the table, and the event that says it to programs.
    void note(const std::string& text, const Json& event);
    /// What is being waited for, shown until the first round ("waiting for 2 more clients").
    void status(const std::string& text);
    /// A round takes its time: who is done with it, from the answer of `experiment.status`. At a terminal only.
    void working(const Json& status);

private:
    void round(const Json& event);
    void statistics(const Json& event);
    void done(const Json& event);
    void draw_progress(std::int64_t done, std::int64_t rounds, const std::string& detail);
    void draw_bar(const std::string& text);
    void clear_bar();
    [[nodiscard]] std::string time_left(std::int64_t done, std::int64_t rounds) const;

    Output output_;
    bool header_shown_ = false;
    bool bar_shown_ = false;
    bool note_shown_ = false;
    double seconds_ = 0;  // of the rounds shown
    std::int64_t rounds_seen_ = 0;
};

/// One round as a table line; the header that goes above such lines.
[[nodiscard]] std::string round_line(const Json& event, const std::string& time_left);
[[nodiscard]] std::string round_header(const Json& event);
/// [#########-----------------] 9/25, of `columns` characters.
[[nodiscard]] std::string progress_bar(std::int64_t part, std::int64_t whole, int columns);

}  // namespace causeway::cli
