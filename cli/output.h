// What a command prints: text for people, one JSON object a line for programs, and errors that say what to do next.
//
// Everything on stdout goes through here, so that --json is never mixed with words, and a closed pipe ends the command
// quietly. Colours and redrawing only at a terminal. Main thread only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"
#include "common/output_file.h"
#include "common/result.h"

namespace causeway::cli {

/// Exit codes of every command (docs/errors.md).
enum ExitCode : int {
    exit_done = 0,
    exit_failed = 1,
    exit_usage = 2,        // usage, or an invalid configuration
    exit_unreachable = 3,  // cannot reach, or not allowed
    exit_timed_out = 4,
};

/// What --force says of files that are there already.
[[nodiscard]] inline Existing existing_of(bool force) {
    return force ? Existing::replaced : Existing::kept;
}

/// The exit code that belongs to an error's kind.
[[nodiscard]] int exit_code(ErrorKind kind);

struct Output {
    bool json = false;
    bool beside = false;  // lines for people go to stderr: stdout is the output itself (`--out -`)

    /// For a command that writes this file: beside it, where the file is standard output.
    ///
    /// errors  invalid `usage`: --json would be mixed with it
    [[nodiscard]] Result<Output> for_file(const std::string& file) const;
    /// A line for people; nothing with --json.
    void line(std::string_view text) const;
    /// A question for people, without an end of line; nothing with --json.
    void prompt(std::string_view text) const;
    /// A line for programs; nothing without --json.
    void object(const Json& value) const;
    /// The same with `"event": event` before the value's own fields.
    void object(std::string_view event, const Json& value) const;
    /// Text as it is, with and without --json: help, and what redraws a line.
    static void text(std::string_view text);
    /// The error on stderr (with --json also as an object on stdout). Returns its exit code.
    [[nodiscard]] int error(const Error& error) const;
};

/// A daemon works whether or not anybody reads its words; any other command's words are what it is for.
enum class LostOutput { ends_command, is_ignored };
/// What happens when stdout cannot be written to, in the main thread; the words of other threads are dropped.
void on_lost_output(LostOutput what);

/// Stdout is a terminal, and may be redrawn.
[[nodiscard]] bool at_terminal();
/// Columns of the terminal, 100 when unknown, never more than 200.
[[nodiscard]] int terminal_columns();
/// Text in bold, or in a colour ("31" red, "32" green, "2" dim) at a terminal; as it is elsewhere.
[[nodiscard]] std::string styled(std::string_view text, std::string_view sgr);

/// "2030-03-17T17:46:40Z".
[[nodiscard]] std::string utc_text(std::int64_t unix_s);

/// A line cut to the terminal, where stdout is one; a `~` stands for what is left out.
[[nodiscard]] std::string fitted(const std::string& line);

/// A table with a header line; columns as wide as their content. At a terminal that is too narrow for them the widest
/// are cut, so that the last one keeps some room.
///
/// shapes   rows of as many cells as the header
[[nodiscard]] std::string table(const std::vector<std::string>& header,
                                const std::vector<std::vector<std::string>>& rows);

}  // namespace causeway::cli
