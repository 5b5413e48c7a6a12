// `causeway demo`: the real thing on one machine, shown round by round, with what to try next.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/live_view.h"
#include "cli/local_federation.h"
#include "cli/stop_signal.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

Result<fs::path> make_folder(const std::string& given) {
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

Result<LocalOptions> local_options(const DemoOptions& options) {
    LocalOptions local;
    TRY_ASSIGN(local.experiment, load_experiment(options.example, options.set));
    require_all(local.experiment, options.clients);
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY_ASSIGN(local.dataset, find_dataset(local.experiment.data.dataset, paths));
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

/// Copies the model out of the coordinator's folder, and says where it is and what to do with all this.
Status print_closing(const DemoOptions& options, const LocalOptions& local, const LocalFederation& federation,
                     const Json& done, Output output) {
    const auto model = federation.folder() / "model.safetensors";
    std::error_code failed;
    fs::copy_file(done["model"].text(), model, fs::copy_options::overwrite_existing, failed);
    if (failed) {
        return fail(ErrorKind::io, "io", model.string() + ": " + failed.message());
    }
    const auto self = shell_quoted(own_path().string());
    // A dataset that lies with the binary is found again by its name.
    const auto data =
        options.data.empty()
            ? std::string()
            : " --data " + shell_quoted(local.experiment.data.dataset + "=" + fs::absolute(local.dataset).string());
    output.line("");
    output.line(styled("model    ", "1") + model.string());
    output.line(styled("SHA-256  ", "1") + done["model_sha256"].text());
    output.line(styled("logs     ", "1") + federation.folder().string());
    output.line("\nNext, try:");
    output.line("  the same run on a virtual clock, with the same SHA-256");
    output.line(fmt::format("    {} simulate {} --clients {}{}{}", self, example_words(options), options.clients, data,
                            model_words(options)));
    output.line("  every setting of it, and where each came from");
    output.line(fmt::format("    {} experiment show {}", self, example_words(options)));
    output.line("  what one client held");
    output.line(fmt::format("    {} data inspect {}", self, shell_quoted(federation.part(0).string())));
    return {};
}

Result<int> demo(const DemoOptions& options, Output output) {
    StopSignal signal([] { std::quick_exit(130); });  // the processes end with this one
    TRY_ASSIGN(auto local, local_options(options));
    const auto& experiment = local.experiment;
    output.line(fmt::format("{}: a coordinator and {} clients on this machine, {} on \"{}\", {} rounds",
                            experiment.experiment.name, options.clients, experiment.regime.preset,
                            experiment.data.dataset, experiment.experiment.rounds));
    LiveView view(output);
    local.status = [&](const std::string& text) { view.status(text); };
    local.working = [&](const Json& status) { view.working(status); };
    TRY_ASSIGN(const auto federation, LocalFederation::start(local));
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) { view.event(event); }));
    if (done["state"].text() == "succeeded") {
        TRY(print_closing(options, local, *federation, done, output));
    }
    federation->stop();
    return done["state"].text() == "succeeded" ? exit_done : exit_failed;
}

}  // namespace

int run_demo(const DemoOptions& options, Output output) {
    const auto code = demo(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
