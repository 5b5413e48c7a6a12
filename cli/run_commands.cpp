// Experiments at the coordinator: submit, list, status, watch, wait, cancel, export.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_choice.h"
#include "cli/experiment_file.h"
#include "cli/follow.h"
#include "cli/metric_text.h"
#include "cli/model_file.h"
#include "cli/operator_session.h"
#include "common/json_lists.h"
#include "common/output_folder.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

Json about(std::uint64_t id) {
    return Json::object().set("experiment", id);
}

Result<std::uint64_t> find_id(OperatorSession& session, const ExperimentOptions& options, Output output) {
    return choose_experiment_id(session, options.experiment, options.state, output);
}

int exit_of(const Json& done) {
    return done["state"].text() == "succeeded" ? exit_done : exit_failed;
}

/// Only demo and simulate divide a dataset; a submitted file that asks for it deserves a word.
bool hands_out_data(const Experiment& experiment) {
    const auto given = [&](const char* path) {
        const auto place = experiment.places.find(path);
        return place != experiment.places.end() && place->second.origin >= Place::Origin::file;
    };
    return given("data.partition.kind") || given("data.holdout");
}

Result<int> submit(const FileOptions& options, Output output) {
    auto overrides = options.set;
    if (options.priority != 0) {
        overrides.push_back(fmt::format("experiment.priority={}", options.priority));
    }
    TRY_ASSIGN(const auto text, load_experiment_text(options.file));
    TRY_ASSIGN(const auto experiment, load_experiment(options.file, overrides));
    TRY_ASSIGN(const auto patience, parse_duration_option("--reconnect", options.reconnect));
    std::optional<FollowInterrupt> interrupt;
    if (options.watch) {
        interrupt.emplace(output);
    }
    TRY_ASSIGN(auto session, OperatorSession::connect(options.state));
    auto request = Json::object().set("file", text.text).set("file_name", text.file_name);
    TRY_ASSIGN(const auto reply, session->ask("experiment.submit", request.set("set", json_of(overrides))));
    const auto id = static_cast<std::uint64_t>(reply["id"].integer());
    output.object(Json::object().set("event", "submitted").set("experiment", id).set("name", reply["name"]));
    output.line(fmt::format("submitted experiment {} ({})", id, reply["name"].text()));
    if (hands_out_data(experiment)) {
        output.line("note: data.partition and data.holdout are ignored: every node trains on all that it holds");
    }
    if (options.watch) {
        interrupt->leave_running(id, options.state);
        return follow_experiment({std::move(session), options.state, id, patience, output});
    }
    output.line(fmt::format("next: {} experiment watch {} --state {}", shell_quoted(own_path().string()), id,
                            shell_quoted(options.state)));
    return exit_done;
}

/// With its place in the queue, and what it goes on from.
std::string state_text(const Json& line) {
    auto text = line["state"].text();
    if (line["place"].is_number()) {
        text += fmt::format(" #{}", line["place"].integer());
    }
    return line["parent"].is_number() ? text + fmt::format(", resumes {}", line["parent"].integer()) : text;
}

/// Where the last round's time went, the longest parts first.
std::string time_text(const Json& time) {
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [name, value] : time.fields()) {
        if (name != "wall" && name != "last") {
            parts.emplace_back(-value.number(), name);
        }
    }
    std::ranges::sort(parts);
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i) {
        const auto took = format_duration(from_seconds(-parts[i].first));
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", parts[i].second, took);
    }
    return text;
}

void print_status(const Json& status, Output output) {
    output.object("status", status);
    output.line(fmt::format("experiment {}  {}  {}{}", status["id"].integer(), status["name"].text(),
                            status["state"].text(),
                            status["reason"].text().empty() ? "" : ": " + status["reason"].text()));
    const auto phase = status["phase"].text();
    output.line(fmt::format("round {} of {}  loss {}  {}{}", status["round"].integer(), status["rounds"].integer(),
                            status["loss"].is_number() ? fmt::format("{:.4f}", status["loss"].number()) : "-",
                            named_metric(status), phase == "over" ? "" : "  now: " + phase));
    if (status["parent"].is_number()) {
        output.line(fmt::format("resumes experiment {} from round {}", status["parent"].integer(),
                                status["parent_round"].integer()));
    }
    if (status["time"].is_object()) {
        output.line("the last round's time: " + time_text(status["time"]));
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& member : status["members"].items()) {
        rows.push_back({member["node"].text(), member["state"].text(),
                        member["steps"].integer() > 0
                            ? fmt::format("{}/{}", member["step"].integer(), member["steps"].integer())
                            : "-"});
        if (member.has("host")) {
            rows.back().push_back(member["group"].is_number() ? std::to_string(member["group"].integer() + 1) : "-");
            rows.back().push_back(member["host"].text());
        }
    }
    if (!rows.empty()) {
        const bool relays = rows.front().size() > 3;
        output.line(relays ? table({"member", "state", "step", "group", "host"}, rows)
                           : table({"member", "state", "step"}, rows));
    }
}

Result<int> status(const ExperimentOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, find_id(*session, options, output));
    TRY_ASSIGN(const auto reply, session->ask("experiment.status", about(id)));
    print_status(reply, output);
    return exit_done;
}

Result<int> list(const ExperimentOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto reply, session->ask("experiment.list", Json::object()));
    std::vector<std::vector<std::string>> rows;
    for (const auto& line : reply["experiments"].items()) {
        output.object("experiment", line);
        rows.push_back({std::to_string(line["id"].integer()), line["name"].text(), state_text(line),
                        fmt::format("{}/{}", line["round"].integer(), line["rounds"].integer()), named_metric(line),
                        line["reason"].text()});
    }
    output.line(rows.empty() ? fmt::format("no experiments yet; next: causeway experiment submit FILE --state {}",
                                           shell_quoted(options.state))
                             : table({"id", "name", "state", "round", "judged by", "reason"}, rows));
    return exit_done;
}

Result<int> watch_command(const ExperimentOptions& options, Output output) {
    TRY_ASSIGN(const auto patience, parse_duration_option("--reconnect", options.reconnect));
    FollowInterrupt interrupt(output);
    TRY_ASSIGN(auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, find_id(*session, options, output));
    interrupt.leave_running(id, options.state);
    return follow_experiment({std::move(session), options.state, id, patience, output});
}

Result<int> wait(const ExperimentOptions& options, Output output) {
    Instant deadline = never;
    if (!options.timeout.empty()) {
        TRY_ASSIGN(const auto bound, parse_duration_option("--timeout", options.timeout));
        deadline = real_now() + bound;
    }
    TRY_ASSIGN(const auto patience, parse_duration_option("--reconnect", options.reconnect));
    FollowInterrupt interrupt(output);
    TRY_ASSIGN(auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, find_id(*session, options, output));
    interrupt.leave_running(id, options.state);
    output.line(
        fmt::format("waiting for experiment {} to end{}", id,
                    options.timeout.empty() ? " (no time limit; --timeout sets one)" : ", at most " + options.timeout));
    TRY_ASSIGN(const auto done, await_end({std::move(session), options.state, id, patience, output},
                                          [&] { return real_now() < deadline; }));
    if (done.is_null()) {
        return fail(ErrorKind::timed_out, "wait_timed_out",
                    fmt::format("experiment {} has not ended within {}", id, options.timeout));
    }
    output.object(done);
    output.line(done["state"].text() + (done["reason"].text().empty() ? "" : ": " + done["reason"].text()));
    return exit_of(done);
}

Result<int> cancel(const ExperimentOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, find_id(*session, options, output));
    TRY_ASSIGN(const auto reply, session->ask("experiment.cancel", about(id)));
    output.object("cancelled", reply);
    output.line(fmt::format("experiment {}: {}", id, reply["state"].text()));
    return exit_done;
}

/// The safetensors file is fetched into a folder of our own beside the output, and takes its place; an NPZ is made from
/// it, and so is a file that says how the examples were normalised. Whose data the model was made of is not known here:
/// it is private.
Status fetch_as(OperatorSession& session, const Json& model, const std::string& format, const std::string& file,
                Existing existing) {
    const auto bytes = static_cast<std::uint64_t>(model["bytes"].integer());
    const auto& normalise = model["normalise"].text();
    const auto folder = std::filesystem::path(file).parent_path();
    TRY_ASSIGN(const auto scratch, is_stream(file) ? ScratchFolder::make_temporary()
                                                   : ScratchFolder::make(folder.empty() ? "." : folder));
    const auto fetched = scratch.path() / "model.safetensors";
    TRY(session.fetch(model["model_sha256"].text(), bytes, fetched));
    const auto mode = output_mode({});
    if (format == "safetensors" && normalise.empty()) {
        return place_output(fetched, file, mode, existing);
    }
    TRY_ASSIGN(const auto read, read_model_file(fetched));
    if (format == "safetensors") {
        return write_output(file, model_bytes(read.model, normalise), mode, existing);
    }
    TRY_ASSIGN(const auto npz, npz_bytes(read.model, normalise));
    return write_output(file, npz, mode, existing);
}

Result<int> export_model(const ExperimentOptions& options, Output given) {
    TRY_ASSIGN(const auto output, given.for_file(options.out));
    const auto existing = existing_of(options.force);
    if (!options.out.empty()) {
        TRY(check_output(options.out, existing));
    }
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, find_id(*session, options, output));
    auto request = about(id);
    if (options.chosen_round) {
        request.set("round", options.round);
    }
    if (options.best) {
        request.set("best", true);
    }
    TRY_ASSIGN(const auto model, session->ask("model.where", request));
    const auto file = options.out.empty() ? model["name"].text() + "." + options.format : options.out;
    TRY(check_output(file, existing));
    TRY(fetch_as(*session, model, options.format, file, existing));
    output.object(Json::object()
                      .set("event", "exported")
                      .set("experiment", id)
                      .set("round", model["round"])
                      .set("file", file)
                      .set("format", options.format)
                      .set("model_sha256", model["model_sha256"]));
    std::error_code unknown;
    const auto written = std::filesystem::file_size(file, unknown);
    output.line(fmt::format("{}  round {}  {} as {}\nSHA-256 of the model {}", file, model["round"].integer(),
                            format_bytes(unknown ? static_cast<std::uint64_t>(model["bytes"].integer()) : written),
                            options.format,
                            model["model_sha256"].text()));
    if (options.format == "safetensors" && !is_stream(file)) {
        output.line(
            fmt::format("next: {} experiment predict {} DATA", shell_quoted(own_path().string()), shell_quoted(file)));
    }
    return exit_done;
}

int finish_run(const Result<int>& code, Output output) {
    return code ? *code : output.error(code.error());
}

}  // namespace

int run_experiment_submit(const FileOptions& options, Output output) {
    return finish_run(submit(options, output), output);
}
int run_experiment_list(const ExperimentOptions& options, Output output) {
    return finish_run(list(options, output), output);
}
int run_experiment_status(const ExperimentOptions& options, Output output) {
    return finish_run(status(options, output), output);
}
int run_experiment_watch(const ExperimentOptions& options, Output output) {
    return finish_run(watch_command(options, output), output);
}
int run_experiment_wait(const ExperimentOptions& options, Output output) {
    return finish_run(wait(options, output), output);
}
int run_experiment_cancel(const ExperimentOptions& options, Output output) {
    return finish_run(cancel(options, output), output);
}
int run_experiment_export(const ExperimentOptions& options, Output output) {
    return finish_run(export_model(options, output), output);
}

}  // namespace causeway::cli
