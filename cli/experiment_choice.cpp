// See experiment_choice.h. The coordinator would take a name as well; asking for the list first lets the command say
// which one it took, and what else there is.
#include "cli/experiment_choice.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::cli {
namespace {

constexpr std::size_t most_named = 10;  // in a message

std::string experiment_number(const Json& line) {
    return std::to_string(line["id"].integer());
}

/// Newest first, as people look for them.
std::string newest(const std::vector<Json>& lines) {
    std::vector<std::string> known;
    for (auto line = lines.rbegin(); line != lines.rend() && known.size() < most_named; ++line) {
        known.push_back(fmt::format("{} ({})", experiment_number(*line), (*line)["name"].text()));
    }
    return join(known, ", ") + (lines.size() > known.size() ? ", ..." : "");
}

Error unknown(const std::string& wanted, const std::vector<Json>& lines) {
    std::vector<std::string> names;
    for (const auto& line : lines) {
        names.push_back(line["name"].text());
    }
    const auto near = nearest_name(wanted, names);
    return {ErrorKind::not_found, "unknown_experiment",
            fmt::format("there is no experiment \"{}\"{} The newest are: {}", wanted,
                        near ? "; did you mean \"" + *near + "\"?" : ".", newest(lines))};
}

void say_which(const std::vector<std::string>& numbers, const std::string& name, Output output) {
    output.line(fmt::format("note: {} experiments are called \"{}\" ({}); this is about {}, the newest", numbers.size(),
                            name, join(numbers, ", "), numbers.back()));
}

}  // namespace

Result<Json> choose_experiment(OperatorSession& session, const std::string& wanted, const std::string& state,
                               Output output) {
    TRY_ASSIGN(const auto list, session.ask("experiment.list", Json::object()));
    const auto& lines = list["experiments"].items();
    if (lines.empty()) {
        return fail(ErrorKind::not_found, "no_experiments",
                    fmt::format("no experiment was submitted yet; next: causeway experiment submit FILE --state {}",
                                shell_quoted(state)));
    }
    if (wanted.empty()) {
        return lines.back();
    }
    // A number first: a name of digits only is reached by its number.
    const auto numbered = std::ranges::find(lines, wanted, experiment_number);
    if (numbered != lines.end()) {
        return *numbered;
    }
    const Json* chosen = nullptr;
    std::vector<std::string> numbers;
    for (const auto& line : lines) {
        if (line["name"].text() == wanted) {
            chosen = &line;
            numbers.push_back(experiment_number(line));
        }
    }
    if (chosen == nullptr) {
        return fail(unknown(wanted, lines));
    }
    if (numbers.size() > 1) {
        say_which(numbers, wanted, output);
    }
    return *chosen;
}

Result<std::uint64_t> choose_experiment_id(OperatorSession& session, const std::string& wanted,
                                           const std::string& state, Output output) {
    TRY_ASSIGN(const auto chosen, choose_experiment(session, wanted, state, output));
    return static_cast<std::uint64_t>(chosen["id"].integer());
}

}  // namespace causeway::cli
