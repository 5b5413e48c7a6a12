// `experiment leakage`: how much of a client's inputs each cut would let out, on the client's own data.
//
// The client's program of each cut runs on one batch of examples until it waits for the host: what it has sent by then
// is the smashed data of a real turn, dropout included. Nothing leaves this machine. Main thread.
#include <algorithm>

#include <fmt/format.h>

#include "cli/experiment_file.h"
#include "cli/model_file.h"
#include "cli/plan_commands.h"
#include "common/random.h"
#include "common/text.h"
#include "configs/batches.h"
#include "configs/dataset_file.h"
#include "configs/split_plan.h"
#include "configs/workload.h"
#include "model/initialise.h"
#include "model/trainer.h"
#include "split/flow.h"
#include "split/leakage.h"
#include "split/smash_noise.h"

namespace causeway::cli {
namespace {

struct LeakageSubject {
    Experiment experiment;
    Chain chain;
    ModelState model;
    Dataset sample;
    double noise = 0;
    std::vector<std::uint32_t> chosen;  // the file's own cuts
};

/// Examples in their stored order; what is sent is kept.
class Capture : public EvaluationBatches {
public:
    using EvaluationBatches::EvaluationBatches;

    Status send(std::uint32_t, CellMessage message) override {
        if (message.payload == Payload::activations) {
            sent = std::move(message.values);
        }
        return {};
    }
    Result<std::optional<CellMessage>> receive(std::uint32_t, Payload) override { return std::optional<CellMessage>(); }

    std::vector<float> sent;
};

/// At most so many, drawn by the experiment's seed.
Result<Dataset> sample_of(const Experiment& experiment, const Chain& chain, const LeakageOptions& options) {
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY(refuse_other_datasets(experiment, paths));
    TRY_ASSIGN(const auto path, find_dataset(experiment.data.dataset, paths));
    TRY_ASSIGN(auto file, read_dataset_file(path, data_options_of(experiment)));
    TRY(prepare_examples(file, data_options_of(experiment), experiment.experiment.seed));
    auto& all = file.train;
    TRY(fit_to_input(all, chain));
    TRY(check_dataset_fits(all, chain));
    auto order =
        RandomStream({.seed = experiment.experiment.seed, .purpose = "leakage-sample"}).permutation(all.size());
    order.resize(std::min<std::size_t>(order.size(), options.examples));
    return subset(all, order);
}

Result<LeakageSubject> load(const LeakageOptions& options) {
    TRY_ASSIGN(auto experiment, load_experiment(options.file, options.set));
    TRY_ASSIGN(auto chain, chain_of(experiment));
    TRY_ASSIGN(const auto plan, split_plan_of(experiment, chain));
    TRY_ASSIGN(auto sample, sample_of(experiment, chain, options));
    auto model = ModelState();
    if (options.model.empty()) {
        model = initial_model(chain, experiment.experiment.seed);
    } else {
        TRY_ASSIGN(auto file, read_model_file(options.model));
        if (!(file.model.chain == chain)) {
            return fail(ErrorKind::invalid, "wrong_model",
                        fmt::format("{} is another network than that of {}:\n  {}\n  {}", options.model, options.file,
                                    file.model.chain.architecture(), chain.architecture()));
        }
        model = std::move(file.model.state);
    }
    const auto noise = options.noise > 0 ? options.noise : experiment.regime.smash_noise;
    return LeakageSubject{std::move(experiment),
                          std::move(chain),
                          std::move(model),
                          std::move(sample),
                          noise,
                          plan ? plan->cuts : std::vector<std::uint32_t>()};
}

/// What the client's cell sends of the whole sample as one batch.
Result<std::vector<float>> smashed(const LeakageSubject& subject, Trainer& trainer, std::uint32_t cut) {
    TRY_ASSIGN(auto program,
               compile_flow("split", {.chain = subject.chain, .cell = {.stage = 0}, .stages = 2, .cuts = {cut}}));
    TRY_ASSIGN(const auto segment, Segment::make(subject.chain, {{0, cut}}));
    TRY_ASSIGN(const auto optimizer, optimizer_of(subject.experiment));
    Capture io(subject.sample);
    TrainJob job{.program = std::move(program),
                 .chain = subject.chain,
                 .segment = segment.layers(),
                 .start = segment.cut(subject.model),
                 .optimizer = optimizer,
                 .optimizer_state = {},
                 .batch = 0,
                 .local_epochs = 1,
                 .draws = {}};
    job.draws.seed = subject.experiment.experiment.seed;
    TRY_ASSIGN(auto run, trainer.begin(std::move(job), io));
    TRY(run.advance());  // to where it waits for the host's gradient
    return std::move(io.sent);
}

struct Leak {
    std::uint32_t cut = 0;
    std::size_t width = 0;  // values an example
    double correlation = 0;
    double chance = 0;
    double noisy = 0;
};

Result<Leak> leak_of(const LeakageSubject& subject, Trainer& trainer, std::uint32_t cut) {
    TRY_ASSIGN(auto values, smashed(subject, trainer, cut));
    const auto rows = subject.sample.size();
    const Sample inputs{subject.sample.features, subject.sample.example_size()};
    const Sample sent{values, values.size() / rows};
    const auto seed = subject.experiment.experiment.seed;
    Leak leak{.cut = cut, .width = sent.width};
    leak.correlation = distance_correlation(inputs, sent);
    leak.chance = shuffled_correlation(inputs, sent, seed);
    leak.noisy = leak.correlation;
    if (subject.noise > 0) {
        add_smash_noise(values, rows, {.scale = subject.noise, .seed = seed}, 0);
        leak.noisy = distance_correlation(inputs, sent);
    }
    return leak;
}

void print_leaks(const LeakageSubject& subject, const std::vector<Leak>& leaks, Output output) {
    const bool with_noise = subject.noise > 0;
    std::vector<std::string> header{"cut after", "values", "correlation", "by chance"};
    if (with_noise) {
        header.push_back(fmt::format("with noise {:g}", subject.noise));
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& leak : leaks) {
        const bool chosen = std::ranges::find(subject.chosen, leak.cut) != subject.chosen.end();
        const auto name = cut_name(subject.chain, leak.cut);
        rows.push_back({name + (chosen ? " *" : ""), std::to_string(leak.width),
                        fmt::format("{:.3f}", leak.correlation), fmt::format("{:.3f}", leak.chance)});
        if (with_noise) {
            rows.back().push_back(fmt::format("{:.3f}", leak.noisy));
        }
        output.object(Json::object()
                          .set("event", "leakage")
                          .set("cut", name)
                          .set("cut_index", leak.cut)
                          .set("chosen", chosen)
                          .set("values", std::uint64_t{leak.width})
                          .set("examples", std::uint64_t{subject.sample.size()})
                          .set("correlation", leak.correlation)
                          .set("chance", leak.chance)
                          .set("noise", subject.noise)
                          .set("noisy", leak.noisy));
    }
    output.line(table(header, rows));
}

Status leakage(const LeakageOptions& options, Output output) {
    TRY_ASSIGN(const auto subject, load(options));
    const auto cuts = valid_cuts(subject.chain);
    if (cuts.empty()) {
        return fail(ErrorKind::invalid, "no_cut", options.file + ": its model has no layer after which it can be cut");
    }
    TRY_ASSIGN(auto device, Device::open("auto"));
    Trainer trainer(std::move(device));
    std::vector<Leak> leaks;
    for (const auto cut : cuts) {
        TRY_ASSIGN(const auto leak, leak_of(subject, trainer, cut));
        leaks.push_back(leak);
    }
    output.line(fmt::format("distance correlation of {} inputs and what crosses each cut, {}", subject.sample.size(),
                            options.model.empty() ? "with the initial model" : "with " + options.model));
    print_leaks(subject, leaks, output);
    output.line(
        "1: what is sent tells as much as the input itself; by chance: the same pairs shuffled.\n* the file's own cut");
    return {};
}

}  // namespace

int run_experiment_leakage(const LeakageOptions& options, Output output) {
    const auto done = leakage(options, output);
    return done ? exit_done : output.error(done.error());
}

}  // namespace causeway::cli
