// `experiment init`: a commented file to start from, by options or by a few questions at a terminal.
//
// An answer becomes an override as --set takes it and is judged at once by the reader of experiment files, so what is
// written is valid: a mistake costs one question, not the whole dialogue. Main thread.
#include <filesystem>
#include <iostream>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "common/text.h"
#include "configs/documents.h"
#include "configs/reader.h"

namespace causeway::cli {
namespace {

constexpr int most_tries = 5;  // of one question

struct Question {
    const char* text;
    const char* field;
    const char* suggestion;
};
constexpr Question questions[] = {
    {"The experiment's name", "experiment.name", "my-experiment"},
    {"The dataset's name, as nodes declare it with --data", "data.dataset", "digits"},
    {"Shape of one example, as 8x8x1", "data.shape", "8x8x1"},
    {"Column of the label: last, a name or an index; own: the format's own labels", "data.label", "last"},
    {"Map of the values, as 0..16 -> 0..1, or none", "data.scale", "none"},
    {"How many classes", "model.layers", "10"},
    {"How many rounds", "experiment.rounds", "20"},
    {"How many nodes must be there before it starts", "sync.min_clients", "1"},
};

/// "8x8x1" as TOML writes it; what is no shape stays as it is, and the reader says so.
std::string shape_list(const std::string& text) {
    std::string list = "[";
    for (const char c : text) {
        list += c == 'x' ? std::string(", ") : std::string(1, c);
    }
    return text.starts_with('[') ? text : list + "]";
}

/// A layer of its own between the input and the classes' scores: a start that learns, to be replaced.
std::string layers_for(const std::string& classes) {
    return fmt::format(R"(["flatten", "dense 64", "relu", "dense {}"])", classes);
}

std::string override_of(const Question& question, const std::string& answer) {
    const std::string field = question.field;
    return field + "=" +
           (field == "data.shape"     ? shape_list(answer)
            : field == "model.layers" ? layers_for(answer)
                                      : answer);
}

Result<Experiment> judged(const std::vector<std::string>& set) {
    const auto experiment = read_experiment(init_template(causeway::InitOptions{}), "the template", set);
    if (!experiment) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(experiment.error()));
    }
    return *experiment;
}

/// errors  invalid: stdin ended, or every try was wrong
Status ask_fields(const Question& question, std::vector<std::string>& set, Output output) {
    for (int tries = 0; tries < most_tries; ++tries) {
        output.prompt(fmt::format("{} [{}]: ", question.text, question.suggestion));
        std::string line;
        if (!std::getline(std::cin, line)) {
            return fail(
                ErrorKind::invalid, "no_answer",
                "stdin ended before the questions; the answers can be options: causeway experiment init --help");
        }
        const auto answer = std::string(trim(line));
        set.push_back(override_of(question, answer.empty() ? question.suggestion : answer));
        const auto experiment = judged(set);
        if (experiment) {
            return {};
        }
        set.pop_back();
        output.line("  " + experiment.error().message);
    }
    return fail(ErrorKind::invalid, "no_answer",
                fmt::format("no valid answer in {} tries; causeway experiment fields has what {} may be", most_tries,
                            question.field));
}

bool answers_questions(const InitOptions& options, Output output) {
    const bool given = !options.name.empty() || !options.dataset.empty() || !options.shape.empty() ||
                       options.rounds != 0 || !options.set.empty();
    return !given && !output.json && at_terminal() && ::isatty(STDIN_FILENO) == 1;
}

Result<std::vector<std::string>> choices(const InitOptions& options, Output output) {
    std::vector<std::string> set;
    if (answers_questions(options, output)) {
        for (const auto& question : questions) {
            TRY(ask_fields(question, set, output));
        }
        return set;
    }
    const auto add = [&](const char* field, const std::string& value) {
        if (!value.empty()) {
            set.push_back(std::string(field) + "=" + value);
        }
    };
    add("experiment.name", options.name);
    add("data.dataset", options.dataset);
    if (!options.shape.empty() && options.shape.find_first_not_of("0123456789x") != std::string::npos) {
        return fail(ErrorKind::invalid, "usage",
                    fmt::format("--shape {}: write the sizes with x between them, as 8x8x1", options.shape));
    }
    add("data.shape", options.shape.empty() ? "" : shape_list(options.shape));
    add("experiment.rounds", options.rounds == 0 ? "" : std::to_string(options.rounds));
    set.insert(set.end(), options.set.begin(), options.set.end());
    return set;
}

Status init(const InitOptions& options, Output given) {
    TRY_ASSIGN(const auto output, given.for_file(options.file));
    TRY(check_output(options.file, existing_of(options.force)));
    TRY_ASSIGN(const auto set, choices(options, output));
    TRY_ASSIGN(const auto experiment, judged(set));
    TRY(write_output(options.file, as_bytes(init_template(experiment)), public_mode(), existing_of(options.force)));
    if (!is_stream(options.file)) {
        output.line(fmt::format("wrote {}\nnext: edit it, then run\n  {} experiment validate {}", options.file,
                                shell_quoted(own_path().string()), shell_quoted(options.file)));
    }
    output.object(Json::object().set("event", "written").set("file", options.file));
    return {};
}

}  // namespace

int run_experiment_init(const InitOptions& options, Output output) {
    const auto written = init(options, output);
    return written ? exit_done : output.error(written.error());
}

}  // namespace causeway::cli
