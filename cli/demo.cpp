// `causeway demo`: the real thing on one machine, shown round by round, with what to try next.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/live_view.h"
#include "cli/local_federation.h"
#include "cli/metric_text.h"
#include "cli/plan_commands.h"
#include "common/file.h"
#include "common/output_file.h"
#include "common/output_folder.h"
#include "common/scratch.h"
#include "common/system_error.h"
#include "common/text.h"
#include "model/loss.h"
#include "simulation/mix.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

/// Where everything of the demo lies: one of its own, or the one that --state names and that is to stay.
struct DemoFolder {
    std::optional<ScratchFolder> own;
    std::optional<OutputFolder> made;  // of --state
    fs::path path;

    static Result<DemoFolder> make(const std::string& given) {
        DemoFolder folder;
        if (given.empty()) {
            TRY_ASSIGN(folder.own, ScratchFolder::make_temporary("causeway-demo-"));
            folder.path = folder.own->path();
            return folder;
        }
        TRY(check_state_argument(given));
        TRY_ASSIGN(folder.path, absolute_path(given));
        std::error_code ignored;
        if (fs::exists(folder.path, ignored) && !fs::is_empty(folder.path, ignored) && !ignored) {
            return fail(ErrorKind::invalid, "folder_in_use", given + ": is not empty; name a new folder with --state");
        }
        TRY_ASSIGN(folder.made, OutputFolder::make(folder.path, 0700));
        TRY(make_private_folder(folder.path));
        return folder;
    }
    void keep() {
        if (own) {
            own->keep();
        }
        if (made) {
            made->keep();
        }
    }
    /// Nothing was started in it, so there is nothing to look at.
    [[nodiscard]] bool has_logs() const {
        std::error_code ignored;
        return fs::exists(path / "coordinator.log", ignored);
    }
    /// What was written into the folder of --state before it failed to start.
    void clear() const {
        std::error_code ignored;
        if (made) {
            fs::remove_all(path / "data", ignored);
            fs::remove(path / "coordinator.log", ignored);
        }
    }
};

Result<LocalOptions> local_options(const ShapedDemoOptions& options) {
    LocalOptions local;
    TRY_ASSIGN(local.experiment, load_experiment(options.example, options.set));
    TRY(require_all(local.experiment, options.clients));
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY(refuse_other_datasets(local.experiment, paths));
    TRY_ASSIGN(const auto dataset, find_dataset(local.experiment.data.dataset, paths));
    TRY_ASSIGN(local.dataset, absolute_path(dataset));
    if (!options.link.empty()) {
        TRY_ASSIGN(local.links,
                   simulation::parse_shaped_links(options.link, options.clients, local.experiment.experiment.seed));
    }
    if (!options.slow.empty()) {
        TRY_ASSIGN(local.slow,
                   simulation::parse_slownesses(options.slow, options.clients, local.experiment.experiment.seed));
    }
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

/// Copies the model out of the coordinator's folder, and says where everything is.
Status print_kept(const LocalFederation& federation, const Json& done, Output output) {
    const auto model = federation.folder() / "model.safetensors";
    TRY(copy_to_output(done["model"].text(), model, output_mode({}), Existing::replaced));
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
            : " --data " + shell_quoted(local.experiment.data.dataset + "=" + local.dataset.string());
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
    output.line(fmt::format("They learn one model that can {} an example of \"{}\".\n"
                            "Each client has a part of the examples, which never leaves it.\n"
                            "  loss      how wrong the clients' own examples come out in training\n"
                            "  {:<8}  of the new model on examples that were kept apart\n"
                            "  up, down  bytes on the wire",
                            task, experiment.data.dataset, metric_title(experiment.evaluation.metric)));
    if (experiment.mesh.stages > 1) {
        output.line(
            "  streams   activations and gradients between clients and host\n"
            "  last      the group that the round waited for");
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
    TRY_ASSIGN(auto local, local_options(options));
    TRY_ASSIGN(auto folder, DemoFolder::make(options.state));
    local.folder = folder.path;
    if (stays(options)) {
        forget_scratch(folder.path);  // also where the demo is interrupted
    }
    const auto& experiment = local.experiment;
    const bool cut = experiment.mesh.stages > 1;
    output.line(fmt::format("{}: a coordinator{} {} clients{} on this machine, {} on \"{}\", {} rounds",
                            experiment.experiment.name, cut ? "," : " and", options.clients, cut ? " and a host" : "",
                            experiment.regime.preset, experiment.data.dataset, experiment.experiment.rounds));
    print_what_is_learned(experiment, output);
    const auto done = run_in(options, local, output);
    const bool succeeded = done && (*done)["state"].text() == "succeeded";
    if (!succeeded && folder.has_logs()) {
        folder.keep();
        output.line("what it wrote is kept for a look, with the log of each process: " + local.folder.string());
    } else if (!succeeded) {
        folder.clear();
    } else if (stays(options)) {
        folder.keep();
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
