// The experiment commands that need no coordinator: init, validate, show, fields.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "common/file.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/documents.h"
#include "model/chain.h"

namespace causeway::cli {
namespace {

/// What a person wants to know of a valid file in one line.
std::string summary(const Experiment& experiment) {
    const auto chain = Chain::parse(experiment.model.layers, experiment.data.shape, experiment.model.loss);
    const auto parameters = chain ? chain->table().arena_size(ArenaKind::trainable) : 0;
    return fmt::format("{}: {} on \"{}\", {} rounds, {} layers, {} parameters ({} as f32)", experiment.experiment.name,
                       experiment.regime.preset, experiment.data.dataset, experiment.experiment.rounds,
                       experiment.model.layers.size(), parameters, format_bytes(4 * parameters));
}

}  // namespace

int run_experiment_init(const InitOptions& options, Output output) {
    std::error_code ignored;
    if (std::filesystem::exists(options.file, ignored)) {
        return output.error(
            {ErrorKind::invalid, "file_exists", options.file + ": already exists and is kept; name another file"});
    }
    const auto text = init_template({.name = options.name, .dataset = options.dataset});
    if (auto written = write_file_durably(options.file, as_bytes(text)); !written) {
        return output.error(written.error());
    }
    output.line(fmt::format("wrote {}\nnext: edit it, then run\n  {} experiment validate {}", options.file,
                            shell_quoted(own_path().string()), shell_quoted(options.file)));
    output.object(Json::object().set("event", "written").set("file", options.file));
    return exit_done;
}

int run_experiment_validate(const FileOptions& options, Output output) {
    const auto experiment = load_experiment(options.file, options.set);
    if (!experiment) {
        return output.error(experiment.error());
    }
    output.line("valid: " + summary(*experiment));
    output.line(fmt::format("next: {} experiment submit {} --state DIR, or simulate {}",
                            shell_quoted(own_path().string()), shell_quoted(options.file), shell_quoted(options.file)));
    output.object(Json::object().set("event", "valid").set("name", experiment->experiment.name));
    return exit_done;
}

int run_experiment_show(const FileOptions& options, Output output) {
    const auto experiment = load_experiment(options.file, options.set);
    if (!experiment) {
        return output.error(experiment.error());
    }
    output.line("# " + summary(*experiment) + "\n" + show_toml(*experiment));
    output.object(Json::object()
                      .set("event", "experiment")
                      .set("name", experiment->experiment.name)
                      .set("toml", canonical_toml(*experiment)));
    return exit_done;
}

int run_experiment_fields(Output output) {
    output.json = false;
    output.line(trim(configuration_markdown()));
    return exit_done;
}

}  // namespace causeway::cli
