// `causeway demo`: the real thing on one machine, shown round by round, with what to try next.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/live_view.h"
#include "cli/local_federation.h"
#include "cli/metric_text.h"
#include "cli/plan_commands.h"
#include "cli/stop_signal.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/text.h"
#include "model/loss.h"
#include "simulation/mix.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

Result<fs::path> make_folder(const std::string& given) {
    TRY(check_state_argument(given));
    std::error_code ignored;
    fs::path folder = given;
    if (folder.empty()) {
        folder = fs::temp_directory_path() / ("causeway-demo-" + to_hex(secret_random_bytes(4)));
    } else if (fs::exists(folder, ignored) && !fs::is_empty(folder, ignored)) {
        return fail(ErrorKind::invalid, "folder_in_use",
                    folder.string() + ": is not empty; name a new folder with --state");
    }
    TRY(make_private_folder(folder));
    return fs::absolute(folder);
}

Result<LocalOptions> local_options(const ShapedDemoOptions& options) {
    LocalOptions local;
    TRY_ASSIGN(local.experiment, load_experiment(options.example, options.set));
    require_all(local.experiment, options.clients);
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY(refuse_other_datasets(local.experiment, paths));
    TRY_ASSIGN(local.dataset, find_dataset(local.experiment.data.dataset, paths));
    if (!options.link.empty()) {
        TRY_ASSIGN(local.links,
                   simulation::parse_shaped_links(options.link, options.clients, local.experiment.experiment.seed));
    }
    if (!options.slow.empty()) {
        TRY_ASSIGN(local.slow,
                   simulation::parse_slownesses(options.slow, options.clients, local.experiment.experiment.seed));
    }
    TRY_ASSIGN(local.folder, make_folder(options.state));
    local.clients = options.clients;
    local.workers = options.workers;
    TRY(parse_model_arguments(options.models));  // a slip shows before anything is started
    local.models = options.models;
    return local;
}

/// The example's name or file with what was changed, as the commands below take it.
std::string example_words(const DemoOptions& options) {
    auto words = shell_quoted(options.example);
    for (const auto& set : options.set) {
        words += " --set " + shell_quoted(set);
    }
    return words;
}

std::string model_words(const DemoOptions& options) {
    std::string words;
    for (const auto& model : options.models) {
        words += " --model " + shell_quoted(model);
    }
    return words;
}

bool stays(const DemoOptions& options) {
    return options.keep || !options.state.empty();
}

/// The processes may still be at work in it, so one attempt may not be enough.
void remove_folder(const fs::path& folder) {
    constexpr int attempts = 5;
    for (int i = 0; i < attempts; ++i) {
        std::error_code failed;
        fs::remove_all(folder, failed);
        if (!failed) {
            return;
        }
    }
}

/// Copies the model out of the coordinator's folder, and says where everything is.
Status print_kept(const LocalFederation& federation, const Json& done, Output output) {
    const auto model = federation.folder() / "model.safetensors";
    std::error_code failed;
    fs::copy_file(done["model"].text(), model, fs::copy_options::overwrite_existing, failed);
    if (failed) {
        return fail(ErrorKind::io, "io", model.string() + ": " + failed.message());
    }
    output.line(styled("model    ", "1") + model.string());
    output.line(styled("logs     ", "1") + federation.folder().string());
    return {};
}

void print_next(const DemoOptions& options, const LocalOptions& local, const LocalFederation& federation,
                Output output) {
    const auto self = shell_quoted(own_path().string());
    // A dataset that lies with the binary is found again by its name.
    const auto data =
        options.data.empty()
            ? std::string()
            : " --data " + shell_quoted(local.experiment.data.dataset + "=" + fs::absolute(local.dataset).string());
    output.line("\nNext, try:");
    output.line("  the same run on a virtual clock, with the same SHA-256");
    output.line(fmt::format("    {} simulate {} --clients {}{}{}", self, example_words(options), options.clients, data,
                            model_words(options)));
    output.line("  every setting of it, and where each came from");
    output.line(fmt::format("    {} experiment show {}", self, example_words(options)));
    if (stays(options)) {
        output.line("  what one client held");
        output.line(fmt::format("    {} data inspect {}", self, shell_quoted(federation.part(0).string())));
    } else {
        output.line("  once more, keeping the model, the logs and each client's part of the data");
        output.line(fmt::format("    {} demo {} --clients {}{}{} --keep", self, example_words(options), options.clients,
                                data, model_words(options)));
    }
}

/// For who sees such a table for the first time: what is learned, and what its columns are.
void print_what_is_learned(const Experiment& experiment, Output output) {
    const auto loss = parse_loss(experiment.model.loss);
    const bool regression = loss && !loss->counts_correct();
    const auto* task = regression ? "predict a number from" : "recognise the class of";
    output.line(
        fmt::format("They learn one model that can {} an example of \"{}\". Each client has a part of the\n"
                    "examples, which never leaves it; what they exchange are models.",
                    task, experiment.data.dataset));
    output.line(
        fmt::format("loss: how wrong the clients' own examples come out in training, less is better\n"
                    "{}: of the new model on examples that were kept apart; up, down: bytes on the wire",
                    metric_title(experiment.evaluation.metric)));
    if (experiment.mesh.stages > 1) {
        output.line("streams: activations and gradients between clients and host; last: the group waited for");
    }
}

/// A path that will be gone is none.
Json shown(const DemoOptions& options, const Json& event) {
    auto copy = event;
    if (event["event"].text() == "done" && !stays(options)) {
        copy.set("model", Json());
    }
    return copy;
}

Result<Json> run_in(const DemoOptions& options, LocalOptions local, Output output) {
    LiveView view(output);
    local.status = [&](const std::string& text) { view.status(text); };
    local.working = [&](const Json& status) { view.working(status); };
    TRY_ASSIGN(const auto federation, LocalFederation::start(local));
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) { view.event(shown(options, event)); }));
    if (done["state"].text() == "succeeded") {
        output.line("");
        if (stays(options)) {
            TRY(print_kept(*federation, done, output));
        }
        output.line(styled("SHA-256  ", "1") + done["model_sha256"].text());
        print_next(options, local, *federation, output);
    }
    federation->stop();
    return done;
}

Result<int> demo(const ShapedDemoOptions& options, Output output) {
    StopSignal signal([] { std::quick_exit(130); });  // the processes end with this one
    TRY_ASSIGN(const auto local, local_options(options));
    const auto& experiment = local.experiment;
    if (!stays(options)) {
        signal.set([folder = local.folder] {
            remove_folder(folder);
            std::quick_exit(130);
        });
    }
    const bool cut = experiment.mesh.stages > 1;
    output.line(fmt::format("{}: a coordinator{} {} clients{} on this machine, {} on \"{}\", {} rounds",
                            experiment.experiment.name, cut ? "," : " and", options.clients, cut ? " and a host" : "",
                            experiment.regime.preset, experiment.data.dataset, experiment.experiment.rounds));
    print_what_is_learned(experiment, output);
    const auto done = run_in(options, local, output);
    const bool succeeded = done && (*done)["state"].text() == "succeeded";
    if (!succeeded) {
        output.line("what it wrote is kept for a look, with the log of each process: " + local.folder.string());
    } else if (!stays(options)) {
        remove_folder(local.folder);
    }
    TRY(done);
    return succeeded ? exit_done : exit_failed;
}

}  // namespace

int run_demo(const DemoOptions& options, Output output) {
    return run_shaped_demo({options, "", ""}, output);
}

int run_shaped_demo(const ShapedDemoOptions& options, Output output) {
    const auto code = demo(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
