// The texts of an assignment become a training job; its result becomes an update.
#include "client/training_work.h"

#include <limits>

#include <fmt/format.h>

#include "aggregation/column_sums.h"
#include "common/random.h"
#include "compression/update_format.h"
#include "configs/snapshot_rule.h"
#include "configs/statistics.h"
#include "model/checkpoint.h"
#include "model/local_state.h"
#include "model/optimizer_state.h"

namespace causeway::node {
namespace {

constexpr std::string_view optimizer_section = "optimizer";

/// And what only one of a whole model says.
struct Work : AssignedWork {
    Codec uplink;
};

Result<Work> parse_training(const Assign& assign) {
    TRY_ASSIGN(auto work, parse_work(assign));
    TRY_ASSIGN(auto uplink, parse_codec(assign.uplink));
    TRY(parse_snapshot_rule(assign.snapshot_every));
    if (assign.optimizer_state != "reset" && assign.optimizer_state != "keep") {
        return fail(ErrorKind::unsupported, "optimizer_state_unsupported",
                    fmt::format("optimizer_state \"{}\": this node knows reset and keep", assign.optimizer_state));
    }
    return Work{std::move(work), std::move(uplink)};
}

Result<TrainJob> make_job(const Work& work, const TrainingInput& input, const std::function<Duration()>& clock) {
    TRY_ASSIGN(auto start, start_of(work.chain, input.model, input.base, input.assign.lease.round));
    TrainJob job{.program = work.program, .chain = work.chain, .start = std::move(start), .optimizer = work.optimizer};
    job.batch = input.assign.batch;
    job.local_epochs = input.assign.local_epochs;
    job.microbatch = input.assign.microbatch;
    job.clock = clock;
    job.draws = {.seed = input.assign.seed, .round = input.assign.lease.round, .node = node_key(input.node)};
    job.resume = input.resume;
    const auto kept = input.base.find(std::string(optimizer_section));
    if (input.assign.optimizer_state == "keep" && kept != input.base.end()) {
        TRY_ASSIGN(job.optimizer_state, decode_optimizer_state(kept->second, work.optimizer, work.chain.layer_count(),
                                                               work.chain.parameter_count()));
    }
    return job;
}

Bytes encode(const Work& work, const ModelState& end) {
    const auto& table = work.chain.table();
    const ArenaValues arenas{end.trainable.values, end.buffers.values, end.frozen.values};
    return encode_update(work.uplink, borrow_update(table, exchanged_ranges(table), arenas));
}

/// What the node keeps of the model for itself goes from the base, where it was before, to the next one.
Status keep_own(const Work& work, const TrainingInput& input, const ModelState& end, StateSections& sections) {
    const auto& table = work.chain.table();
    if (!has_local_tensors(table)) {
        return {};
    }
    const auto before = input.base.find(std::string(local_section));
    TRY_ASSIGN(sections[std::string(local_section)],
               keep_local(table, before == input.base.end() ? ByteView{} : before->second,
                          input.assign.lease.round, end));
    return {};
}

}  // namespace

Result<AssignedWork> parse_work(const Assign& assign) {
    TRY_ASSIGN(auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(auto program, parse_program(assign.program));
    TRY_ASSIGN(auto optimizer, parse_optimizer(assign.optimizer));
    TRY(check_runnable(program, chain));
    TRY_ASSIGN(auto data, parse_data_options(assign.data_options));
    return AssignedWork{std::move(chain), std::move(program), std::move(optimizer), std::move(data)};
}

Result<ModelState> start_of(const Chain& chain, ByteView model, const StateSections& base, std::uint32_t round) {
    TRY_ASSIGN(auto start, from_safetensors(chain, model));
    const auto own = base.find(std::string(local_section));
    if (has_local_tensors(chain.table()) && own != base.end()) {
        TRY(put_local(chain.table(), own->second, round, start));
    }
    return start;
}

Status check_compute(const AssignedWork& work, const Status& bf16) {
    return work.optimizer.rule.compute == Compute::bf16 ? bf16 : Status();
}

Result<TrainingOutput> train_assignment(Trainer& trainer, const TrainingInput& input, const TrainingHooks& hooks,
                                        const std::function<Duration()>& clock) {
    TRY_ASSIGN(const auto work, parse_training(input.assign));
    TRY(check_dataset_fits(input.dataset, work.chain));
    TRY_ASSIGN(auto job, make_job(work, input, clock));
    const BatchKey key{.seed = input.assign.seed, .round = input.assign.lease.round, .node = node_key(input.node)};
    const BatchPlan plan{
        .batch = input.assign.batch, .microbatch = input.assign.microbatch, .augment = work.data.augment};
    TrainingBatches batches(input.dataset, plan, key, hooks);
    const auto begin = clock ? clock() : Duration{};
    TRY_ASSIGN(const auto result, trainer.train(std::move(job), batches));
    const double took = clock ? seconds(clock() - begin) : 0;
    TrainingOutput output;
    output.update = encode(work, result.end);
    output.seconds = result.seconds;
    if (input.assign.optimizer_state == "keep") {
        output.sections[std::string(optimizer_section)] = encode_optimizer_state(result.optimizer_state);
    }
    TRY(keep_own(work, input, result.end, output.sections));
    output.held = {.experiment = input.assign.lease.experiment,
                   .round = input.assign.lease.round,
                   .digest = sha256(output.update),
                   .bytes = output.update.size(),
                   .weight = static_cast<std::int64_t>(input.dataset.size()),
                   .metrics = {.loss = result.loss,
                               .examples = result.examples,
                               .train_seconds = took,
                               .compute_seconds = took},
                   .start_model = input.assign.model};
    return output;
}

Digest training_digest(const TrainingInput& input, const Digest& dataset, std::string_view signature) {
    const Assign& assign = input.assign;
    ByteWriter all;
    all.put(assign.lease.experiment);
    all.put(assign.lease.round);
    all.put(assign.seed);
    all.put(assign.batch);
    all.put(assign.local_epochs);
    all.put(assign.microbatch);
    all.put(assign.model);
    all.put(dataset);
    all.put(std::uint64_t{input.dataset.size()});
    for (const std::string_view text : {std::string_view(input.node), signature, std::string_view(assign.data_options),
                                        std::string_view(assign.architecture), std::string_view(assign.program),
                                        std::string_view(assign.optimizer),
                                        std::string_view(assign.optimizer_state)}) {
        all.put_text(text);
    }
    for (const auto& [name, bytes] : input.base) {
        all.put_text(name);
        all.put(sha256(bytes));
    }
    return sha256(all.take());
}

Result<TrainingOutput> sum_columns(const Assign& assign, const Dataset& dataset,
                                   const std::function<Duration()>& clock) {
    const auto begin = clock ? clock() : Duration{};
    if (dataset.size() == 0) {
        return fail(ErrorKind::invalid, "no_examples", fmt::format("\"{}\" has no examples here", assign.dataset));
    }
    ColumnSums sums(static_cast<std::size_t>(dataset.shape.back()), assign.cohort);
    TRY(sums.add(dataset.features));
    TrainingOutput output;
    output.update = sums.partial();
    output.held = {.experiment = assign.lease.experiment,
                   .round = assign.lease.round,
                   .digest = sha256(output.update),
                   .bytes = output.update.size(),
                   .weight = static_cast<std::int64_t>(dataset.size()),
                   .metrics = {.loss = std::numeric_limits<double>::quiet_NaN(),
                               .examples = dataset.size(),
                               .train_seconds = clock ? seconds(clock() - begin) : 0},
                   .start_model = assign.model};
    return output;
}

Status check_assignment(const Assign& assign, const Status& bf16) {
    if (assign.program == statistics_program) {
        TRY(parse_data_options(assign.data_options));
        return {};
    }
    TRY_ASSIGN(const auto work, parse_training(assign));
    return check_compute(work, bf16);
}

}  // namespace causeway::node
