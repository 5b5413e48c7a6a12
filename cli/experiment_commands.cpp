// The experiment commands that need no coordinator: validate, show, fields.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "common/file.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/documents.h"
#include "configs/workload.h"
#include "model/footprint.h"
#include "model/memory_plan.h"

namespace causeway::cli {
namespace {

/// What a person wants to know of a valid file in one line.
std::string summary(const Experiment& experiment) {
    const auto chain = parse_chain(experiment);
    const auto parameters = chain ? chain->table().arena_size(ArenaKind::trainable) : 0;
    return fmt::format("{}: {} on \"{}\", {} rounds, {} layers, {} parameters ({} as f32)", experiment.experiment.name,
                       experiment.regime.preset, experiment.data.dataset, experiment.experiment.rounds,
                       experiment.model.layers.size(), parameters, format_bytes(4 * parameters));
}

}  // namespace

int run_experiment_validate(const FileOptions& options, Output output) {
    const auto experiment = load_experiment(options.file, options.set);
    if (!experiment) {
        return output.error(experiment.error());
    }
    output.line("valid: " + summary(*experiment));
    const auto self = shell_quoted(own_path().string());
    const auto file = shell_quoted(options.file);
    output.line(
        fmt::format("next: {} simulate {}\nor, with a coordinator and nodes:\n  {} experiment submit {} --state DIR",
                    self, file, self, file));
    output.object(Json::object().set("event", "valid").set("name", experiment->experiment.name));
    return exit_done;
}

namespace {

/// What is computed at once. A full batch is as large as a client's data, which nobody knows here: one example stands
/// for it.
std::int64_t footprint_batch(const Experiment& experiment) {
    const auto& train = experiment.train;
    return std::max<std::int64_t>(1, train.microbatch > 0 ? train.microbatch : train.batch);
}

Result<Footprint> experiment_footprint(const Experiment& experiment) {
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    TRY_ASSIGN(const auto optimizer, optimizer_of(experiment));
    return footprint_of(chain, optimizer, footprint_batch(experiment),
                        recompute_blocks(chain, experiment.train.recompute));
}

}  // namespace

int run_experiment_show(const FileOptions& options, Output output) {
    const auto experiment = load_experiment(options.file, options.set);
    if (!experiment) {
        return output.error(experiment.error());
    }
    const auto footprint = experiment_footprint(*experiment);
    if (!footprint) {
        return output.error(footprint.error());
    }
    const auto batch = footprint_batch(*experiment);
    auto memory = to_text(*footprint, batch);  // three lines: one is wider than a terminal
    memory.replace(memory.find("; "), 2, "\n# ");
    memory.replace(memory.find(": "), 2, ":\n#   ");
    output.line("# " + summary(*experiment) + "\n# " + memory + "\n" + show_toml(*experiment));
    output.object(Json::object()
                      .set("event", "experiment")
                      .set("name", experiment->experiment.name)
                      .set("toml", canonical_toml(*experiment))
                      .set("parameters", footprint->parameters)
                      .set("batch", batch)
                      .set("weight_bytes", footprint->weight_bytes)
                      .set("gradient_bytes", footprint->gradient_bytes)
                      .set("optimizer_bytes", footprint->optimizer_bytes)
                      .set("activation_bytes", footprint->activation_bytes));
    return exit_done;
}

int run_experiment_fields(Output output) {
    output.line(trim(configuration_markdown()));
    output.object(Json::object().set("event", "fields").set("markdown", configuration_markdown()));
    return exit_done;
}

}  // namespace causeway::cli
