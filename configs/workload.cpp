// From fields to the texts of an assignment; every text is made by the folder that will read it.
#include "configs/workload.h"

#include <array>

#include "configs/statistics.h"
#include "split/flow.h"

namespace causeway {

namespace {

Error bad_layers(const std::vector<LayerError>& errors) {
    std::string message = "the model is wrong";
    for (const auto& error : errors) {
        message += "; " + error.message;
    }
    return {ErrorKind::invalid, "bad_configuration", message};
}

}  // namespace

DataOptions data_options_of(const Experiment& experiment) {
    DataOptions options{experiment.data.label == "own" ? "" : experiment.data.label, experiment.data.shape, {}};
    if (const auto scale = parse_scale(experiment.data.scale)) {
        options.scale = *scale;  // "none" is no scale
    }
    for (const auto& text : experiment.data.categories) {
        if (auto category = parse_category(text)) {
            options.categories.push_back(*std::move(category));
        }
    }
    if (const auto missing = parse_missing(experiment.data.missing)) {
        options.missing = *missing;
    }
    const auto& data = experiment.data;
    const std::array words{&data.header, &data.separator, &data.encoding, &data.decimal, &data.quote};
    for (std::size_t i = 0; i < words.size(); ++i) {
        (void)set_table_form(options.form, table_form_keys()[i], *words[i]);  // checked with the fields
    }
    for (const auto& text : experiment.data.augment) {
        if (auto step = parse_augment(text)) {
            options.augment.push_back(*std::move(step));
        }
    }
    if (const auto numbers = found_statistics(experiment); !numbers.empty()) {
        if (auto step = parse_augment("normalise " + numbers)) {
            options.augment.push_back(*std::move(step));
        }
    }
    // Yes-or-no outputs take their one label as a number just as well from a set of classes.
    if (const auto loss = parse_loss(experiment.model.loss); loss && !loss->counts_correct()) {
        options.target = Target::number;
    }
    if (experiment.evaluation.at_clients()) {
        options.holdout = experiment.evaluation.holdout;
    }
    return options;
}

PartitionSpec partition_of(const Experiment& experiment) {
    const auto& options = experiment.data.partition;
    PartitionSpec spec{options.kind, {}};
    if (options.kind == "dirichlet") {
        spec.parameters = {{"alpha", options.alpha}};
    } else if (options.kind == "shards") {
        spec.parameters = {{"labels", options.labels}};
    } else if (options.kind == "quantity") {
        spec.parameters = {{"power", options.power}};
    }
    return spec;
}

tl::expected<Chain, std::vector<LayerError>> parse_chain(const Experiment& experiment) {
    const auto& model = experiment.model;
    return Chain::parse(model.layers, experiment.data.shape, model.loss,
                        parse_batch_norm_rule(model.batch_norm).value_or(BatchNormRule::average));
}

Result<Chain> chain_of(const Experiment& experiment) {
    auto chain = parse_chain(experiment);
    if (!chain) {
        return fail(bad_layers(chain.error()));
    }
    return std::move(*chain);
}

Result<OptimizerSpec> optimizer_of(const Experiment& experiment) {
    TRY_ASSIGN(auto spec, parse_optimizer(experiment.train.optimizer.text()));
    const auto& options = experiment.train.schedule;
    TRY_ASSIGN(const auto kind, parse_schedule_kind(options.kind));
    Schedule& schedule = spec.rule.schedule;
    schedule.warmup = options.warmup;
    // Only the numbers that a kind uses travel: the text of a plain optimizer stays what it was.
    schedule.kind = kind;
    schedule.rounds = kind == ScheduleKind::cosine ? experiment.experiment.rounds : schedule.rounds;
    schedule.every = kind == ScheduleKind::step ? options.every : schedule.every;
    schedule.at = kind == ScheduleKind::two_phase ? options.at : schedule.at;
    schedule.factor = kind == ScheduleKind::constant ? schedule.factor : options.factor;
    spec.rule.clip_norm = experiment.train.clip_norm;
    TRY_ASSIGN(spec.rule.compute, parse_compute(experiment.train.compute));
    return spec;
}

BatchRule batch_rule_of(const Experiment& experiment) {
    const auto& train = experiment.train;
    using Snapshots = BatchRule::Snapshots;
    return {.parts = train.microbatch > 0 ? BatchRule::Parts::microbatches : BatchRule::Parts::batch,
            .recompute = train.recompute,
            .step_deadline_ms = static_cast<std::uint32_t>(
                std::chrono::duration_cast<std::chrono::milliseconds>(train.step_deadline).count()),
            .snapshots = train.snapshot_every == "off" ? Snapshots::absent : Snapshots::present};
}

Result<WorkTexts> work_texts(const Experiment& experiment) {
    TRY_ASSIGN(const auto chain, chain_of(experiment));
    const FlowInput input{.chain = chain,
                          .cell = whole_chain(chain),
                          .stages = experiment.mesh.stages,
                          .batch = batch_rule_of(experiment)};
    TRY_ASSIGN(const auto program, compile_flow(experiment.flow.kind, input));
    return work_texts(experiment, chain, program);
}

Result<WorkTexts> work_texts(const Experiment& experiment, const Chain& chain, const Program& program) {
    TRY_ASSIGN(const auto optimizer, optimizer_of(experiment));
    WorkTexts texts;
    texts.dataset = experiment.data.dataset;
    texts.data_options = to_text(data_options_of(experiment));
    texts.architecture = chain.architecture();
    texts.program = to_text(program);
    texts.optimizer = to_text(optimizer);
    texts.optimizer_state = experiment.train.optimizer_state;
    texts.uplink = experiment.codec.uplink;
    texts.batch = experiment.train.batch;
    texts.local_epochs = experiment.train.local_epochs;
    texts.microbatch = experiment.train.microbatch;
    texts.snapshot_every = experiment.train.snapshot_every;
    return texts;
}

}  // namespace causeway
