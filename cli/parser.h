// What the groups of commands share: the parser, and how options of one kind look in every command.
//
// Includes CLI11: for arguments.cpp and the files beside it only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/output.h"
#include "common/text.h"

namespace causeway::cli {

using Chosen = std::function<int(Output)>;

struct Parser {
    CLI::App app{"Causeway trains one model across places that share little bandwidth and no data.", "causeway"};
    Output output;
    bool log_json = false;
    bool verbose = false;
    Chosen chosen;
};

inline void add_json(Parser& parser, CLI::App* app) {
    app->add_flag("--json", parser.output.json, "one JSON object per line on stdout");
}

/// token, node, ca and audit, with their commands: arguments_federation.cpp.
void add_federation_commands(Parser& parser);

/// Adds a command with an example below its help; `run` gets the filled options.
template <class Options>
CLI::App* command(Parser& parser, CLI::App& parent, const std::string& name, const std::string& about,
                  const std::string& example, std::shared_ptr<Options> options, int (*run)(const Options&, Output)) {
    auto* added = parent.add_subcommand(name, about);
    added->footer("Example:\n  " + example);
    add_json(parser, added);
    added->callback(
        [&parser, options, run] { parser.chosen = [options, run](Output output) { return run(*options, output); }; });
    return added;
}

inline CLI::App* group(CLI::App& parent, const std::string& name, const std::string& about) {
    auto* added = parent.add_subcommand(name, about);
    added->require_subcommand(1);
    added->footer("Each of them has --help with an example, and --json.");
    return added;
}

/// Why an option has the bound that a value passed; empty: its numbers say it.
inline std::string why_bounded(const std::string& option) {
    static const std::map<std::string, const char*> reasons{
        {"--parallel", "each experiment at work has models and sums of its own in memory, and a client works for one "
                       "at a time; the others wait in the queue"},
        {"--workers", "more threads than processors only wait for each other"},
        {"--threads", "more threads than processors only wait for each other"},
        {"--lines", "an answer has a limit; the whole log lies in the node's state folder, where --follow reads it"},
        {"--priority", "it only orders the queue"},
        {"--rounds", "each committed round is kept in the store"},
        {"--parts", "each part is a file of its own"},
        {"--clients", "each takes memory of this machine, and in a demo a process"}};
    const auto known = reasons.find(option);
    return known == reasons.end() ? "" : std::string(": ") + known->second;
}

/// A whole number with its bounds in words, in place of CLI11's `UINT:INT in [1 - 64]`.
template <class Number>
void add_number(CLI::App* app, const std::string& name, Number& number, int least, int most, const std::string& about) {
    app->add_option(name, number, about + ", " + std::to_string(least) + " to " + std::to_string(most))
        ->capture_default_str()
        ->check(CLI::Validator(
            [name, range = CLI::Range(least, most)](std::string& text) {
                const auto wrong = range(text);
                return wrong.empty() ? wrong : wrong + why_bounded(name);
            },
            ""))
        ->type_name("N");
}

inline void add_choice(CLI::App* app, const std::string& name, std::string& choice,
                       const std::vector<std::string>& valid, const std::string& about) {
    app->add_option(name, choice, about + ": " + join(valid, ", "))
        ->capture_default_str()
        ->check(CLI::IsMember(valid).description(""))
        ->type_name("WORD");
}

inline void add_state(CLI::App* app, std::string& state,
                      const std::string& about = "a coordinator's or operator's state folder") {
    app->add_option("--state", state, about)->envname("CAUSEWAY_STATE")->type_name("DIR")->required();
}

/// What can be said of how a table is written.
template <class Form>
void add_form_options(CLI::App* app, Form& form) {
    app->add_option("--header", form.header, "of a table: yes or no; else by looking");
    app->add_option("--separator", form.separator, "between a table's cells: \",\", \";\", tab, ...; else by looking");
    app->add_option("--encoding", form.encoding, "utf-8, utf-16le, utf-16be, cp1252 or latin-1; else by looking");
    app->add_option("--decimal", form.decimal, "\".\" or \",\"; else by looking");
    app->add_option("--quote", form.quote, "'\"', \"'\" or none; else '\"'");
}

inline void add_force(CLI::App* app, bool& force, const std::string& about = "overwrite files that are there already") {
    app->add_flag("--force", force, about);
}

inline void add_data(CLI::App* app, std::vector<std::string>& data) {
    app->add_option("--data", data, "a dataset of this machine: its name and path (repeatable)")
        ->type_name("NAME=PATH");
}

inline void add_models(CLI::App* app, std::vector<std::string>& models) {
    app->add_option("--model", models, "a model that experiments may name in init_from (repeatable)")
        ->type_name("NAME=PATH");
}

inline void add_set(CLI::App* app, std::vector<std::string>& set) {
    app->add_option("--set", set, "override a field of the experiment (repeatable)")->type_name("TABLE.KEY=VALUE");
}

}  // namespace causeway::cli
