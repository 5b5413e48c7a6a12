// Memory instead of files, calls instead of threads; every computation is the daemons' own function.
#include "simulation/real_work.h"

#include <algorithm>
#include <numeric>

#include "client/evaluation_request.h"
#include "configs/statistics.h"
#include "configs/workload.h"
#include "model/checkpoint.h"
#include "simulation/modelled_work.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

// A plausible machine: whatever is neither an update nor a commit (modelled_work.h) takes 1 ms.
constexpr Duration coordinator_job = 1ms;

JobFailed failed(ExperimentId experiment, std::uint32_t round, std::string job, Error error) {
    return {.experiment = experiment, .round = round, .job = std::move(job), .error = std::move(error)};
}

Refused as_refused(const AbsorbUpdate& job, Refusal refusal) {
    return {.update = job.update.digest,
            .code = std::move(refusal.code),
            .message = std::move(refusal.message),
            .tensor = std::move(refusal.tensor),
            .index = refusal.index};
}

}  // namespace

/// A file that cannot be read has failed before it came here.
void RealCoordinatorWork::know(const SaveExperiment& experiment) {
    if (auto setup = read_setup(experiment)) {
        setups_.insert_or_assign(experiment.experiment, *std::move(setup));
    }
}

void RealCoordinatorWork::open_round(const OpenRound& job) {
    const auto setup = setups_.find(job.experiment);
    const auto model = snapshots_.find(job.start_model);
    ASSERT(setup != setups_.end() && (job.round == 0 || model != snapshots_.end()));
    const auto input = make_round_input(setup->second, job, job.round == 0 ? ByteView() : ByteView(model->second));
    ASSERT(input.has_value());
    ASSERT(rounds_[job.experiment].open_round(*input).has_value());
}

std::optional<RoundOpened> RealCoordinatorWork::opened(const OpenRound& job) {
    const auto& setup = setups_.at(job.experiment);
    if (!setup.split || job.round == 0) {
        return std::nullopt;
    }
    RoundOpened opened{.experiment = job.experiment, .round = job.round, .segments = {}};
    for (auto& file : cut_segments(*setup.split, rounds_.at(job.experiment).input()->start())) {
        const auto digest = sha256(file);
        opened.segments.emplace_back(digest, file.size());
        segments_[job.experiment][digest] = std::move(file);
    }
    for (const auto& [digest, file] : segments_[job.experiment]) {  // those of earlier rounds do no harm
        opened.segments.emplace_back(digest, file.size());
    }
    return opened;
}

void RealCoordinatorWork::release(const ReleaseExperiment& job) {
    segments_.erase(job.experiment);
    rounds_.erase(job.experiment);
}

Duration RealCoordinatorWork::time_of(const Job& job) {
    if (const auto* update = std::get_if<AbsorbUpdate>(&job)) {
        return time_to_add(update->update.bytes);
    }
    if (const auto* finish = std::get_if<FinishRound>(&job)) {
        return time_to_commit(sizeof(float) * setups_.at(finish->experiment).chain.parameter_count());
    }
    return coordinator_job;
}

CoordinatorEvent RealCoordinatorWork::make_model(const MakeModel& job, const SaveExperiment& experiment) {
    auto setup = read_setup(experiment);
    if (!setup) {
        return failed(job.experiment, 0, "make_model", setup.error());
    }
    if (const auto committed = snapshots_.find(job.from); committed != snapshots_.end()) {
        const ModelMade made{.experiment = job.experiment, .model = job.from, .bytes = committed->second.size()};
        setups_.insert_or_assign(job.experiment, *std::move(setup));
        return made;
    }
    auto file = first_model(*setup);
    if (!file) {
        return failed(job.experiment, 0, "make_model", file.error());
    }
    const ModelMade made{.experiment = job.experiment, .model = sha256(*file), .bytes = file->size()};
    setups_.insert_or_assign(job.experiment, *std::move(setup));
    snapshots_[made.model] = *std::move(file);
    return made;
}

Result<Bytes> RealCoordinatorWork::first_model(const ExperimentSetup& setup) const {
    return make_first_model(setup, [this](const std::string& name) -> Result<Bytes> {
        const auto known = models_.find(name);
        return known != models_.end() ? Result<Bytes>(known->second)
                                      : fail(ErrorKind::not_found, "unknown_model", "no such --model was given");
    });
}

/// From here on what was held out is evaluated as the clients train. Given scaled, and not normalised yet.
Status RealCoordinatorWork::normalise_held_out(Experiment& experiment, const std::string& numbers) {
    set_statistics(experiment, numbers);
    if (held_out_) {
        auto options = data_options_of(experiment);
        options.scale.reset();
        normalised_ = *held_out_;
        normalised_by_ = experiment.data.normalise;
        return apply_options(*normalised_, options);
    }
    return {};
}

UpdateAbsorbed RealCoordinatorWork::absorb(const AbsorbUpdate& job, ByteView update) {
    UpdateAbsorbed absorbed{.experiment = job.experiment,
                            .round = job.round,
                            .attempt = job.attempt,
                            .node = job.node,
                            .update = job.update.digest};
    if (!job.segment.empty()) {
        const auto input = rounds_[job.experiment].input();
        if (!input) {  // the experiment is over: nobody waits for the answer
            absorbed.fetch_error = Error{ErrorKind::refused, "cancelled", "no round is open"};
        } else if (auto refusal =
                       check_segment(*setups_.at(job.experiment).split, *input, job.segment, job.update, update)) {
            absorbed.refusal = as_refused(job, *std::move(refusal));
        } else {
            segments_[job.experiment][job.update.digest] = to_bytes(update);
        }
        return absorbed;
    }
    if (auto refusal = rounds_[job.experiment].absorb(job.node, job.update, update)) {
        absorbed.refusal = as_refused(job, *std::move(refusal));
    }
    return absorbed;
}

CoordinatorEvent RealCoordinatorWork::finish_round(const FinishRound& job) {
    auto& sum = rounds_[job.experiment];
    auto& segments = segments_[job.experiment];
    for (std::size_t group = 0; group < job.groups.size(); ++group) {
        const auto& result = job.groups[group];
        std::array<Bytes, 2> files;
        for (std::size_t stage = 0; stage < files.size(); ++stage) {
            const auto segment = segments.find(result.segments.at(stage));
            if (segment == segments.end()) {  // let go of: the experiment is over
                return failed(job.experiment, job.round, "finish_round",
                              {ErrorKind::not_found, "not_found", "no segment of that digest is here"});
            }
            files[stage] = segment->second;
        }
        auto update = group_update(*setups_.at(job.experiment).split, *sum.input(), group, files, result.examples);
        const auto refusal = update ? sum.add(*std::move(update)) : std::optional(std::move(update).error());
        if (refusal) {
            return failed(job.experiment, job.round, "finish_round",
                          {ErrorKind::corrupt, refusal->code, refusal->message});
        }
    }
    auto& setup = setups_.at(job.experiment);
    const auto finished = sum.finish([&] { return first_model(setup); });
    if (!finished) {
        return failed(job.experiment, job.round, "finish_round", finished.error());
    }
    const auto& round = **finished;
    if (!round.normalise.empty()) {
        if (const auto normalised = normalise_held_out(setup.experiment, round.normalise); !normalised) {
            return failed(job.experiment, job.round, "finish_round", normalised.error());
        }
    }
    snapshots_[round.digest] = round.file;
    return SnapshotWritten{.experiment = job.experiment,
                           .round = job.round,
                           .model = round.digest,
                           .bytes = round.file.size(),
                           .update_norm = round.update_norm,
                           .normalise = round.normalise,
                           .examples = round.examples};
}

CoordinatorEvent RealCoordinatorWork::evaluate(const EvaluateModel& job) {
    if (!held_out_) {
        return failed(job.experiment, job.round, "evaluate",
                      {ErrorKind::not_found, "no_holdout", "the coordinator holds no examples to evaluate with"});
    }
    const auto& setup = setups_.at(job.experiment);
    const bool found_here = normalised_ && normalised_by_ == setup.experiment.data.normalise;
    const auto evaluation =
        evaluate_model(*trainer_, setup, snapshots_.at(job.model), found_here ? *normalised_ : *held_out_);
    if (!evaluation) {
        return failed(job.experiment, job.round, "evaluate", evaluation.error());
    }
    return evaluated(job.experiment, job.round, *evaluation);
}

Result<Bytes> RealCoordinatorWork::read_model(const Digest& model) {
    for (const auto& [experiment, files] : segments_) {
        if (const auto segment = files.find(model); segment != files.end()) {
            return segment->second;
        }
    }
    const auto known = snapshots_.find(model);
    if (known == snapshots_.end()) {
        return fail(ErrorKind::not_found, "not_found", "no model " + model.short_hex());
    }
    return known->second;
}

void RealCoordinatorWork::crash() {
    rounds_.clear();
}

/// Times are those of a whole model's layers, whichever of them the program works on.
Result<std::vector<CellAct>> RealClientWork::acts_of(const Assign& assign) const {
    TRY_ASSIGN(const auto work, node::parse_work(assign));
    CellData data{.examples = assign.segment.empty() ? part_.size() : assign.examples,
                  .batch = assign.batch,
                  .microbatch = assign.microbatch,
                  .local_epochs = assign.local_epochs};
    for (const auto& peer : assign.peers) {
        if (works_for_clients(work.program)) {
            data.clients.push_back(peer.examples);
        }
    }
    const auto table = table_ ? *table_ : layers_by_arithmetic(work.chain, seconds(training_per_example));
    return causeway::acts_of(work.program, work.chain, table, data);
}

std::vector<CellAct> RealClientWork::acts_of_turn(const Assign& assign) {
    auto acts = acts_of(assign);
    return acts ? *std::move(acts) : std::vector<CellAct>{};  // begin_turn says what is wrong
}

Duration RealClientWork::time_to_train(const Assign& assign) {
    if (table_ && assign.program != statistics_program) {
        if (const auto acts = acts_of(assign)) {
            const auto add = [](double sum, const CellAct& act) { return sum + act.seconds; };
            return from_seconds(std::accumulate(acts->begin(), acts->end(), 0.0, add));
        }
    }
    return training_per_example * static_cast<std::int64_t>(part_.size() * std::max(1u, assign.local_epochs));
}

/// Prepared once per experiment, as a node does it.
Result<const DatasetFile*> RealClientWork::examples_for(const Assign& assign) {
    auto key = std::pair(assign.data_options, assign.seed);
    if (!examples_ || examples_key_ != key) {
        TRY_ASSIGN(const auto options, parse_data_options(assign.data_options));
        DatasetFile file{.train = part_, .test = test_, .digest = {}};
        TRY(prepare_examples(file, options, assign.seed));
        examples_ = std::make_shared<const DatasetFile>(std::move(file));
        examples_key_ = std::move(key);
    }
    return examples_.get();
}

node::Trained RealClientWork::train(const Assign& assign) {
    node::Trained trained{.lease = assign.lease};
    const auto work = [&]() -> Result<node::TrainingOutput> {
        TRY_ASSIGN(const DatasetFile* file, examples_for(assign));
        if (assign.program == statistics_program) {
            return node::sum_columns(assign, file->train, {});
        }
        const node::TrainingInput input{.assign = assign,
                                        .node = name_,
                                        .model = models_.at(assign.model),
                                        .dataset = file->train,
                                        .base = base_of(assign)};
        return node::train_assignment(*trainer_, input, {}, {});
    };
    auto output = work();
    if (!output) {
        trained.error = output.error();
        return trained;
    }
    trained.update = output->held;
    pending_[assign.lease.experiment] = *std::move(output);
    return trained;
}

Reply RealClientWork::evaluate(const node::Evaluate& job) {
    const auto figures = [&]() -> Result<Figures> {
        TRY_ASSIGN(const DatasetFile* file, examples_for(job.assign));
        if (!file->test) {
            return fail(ErrorKind::not_found, "no_holdout", "nothing is held out at " + name_);
        }
        TRY_ASSIGN(const auto chain, Chain::from_architecture(job.assign.architecture));
        TRY_ASSIGN(const auto state, node::start_of(chain, models_.at(job.assign.model), base_of(job.assign),
                                                    job.assign.lease.round));
        return evaluate_dataset(*trainer_, chain, state, *file->test);
    }();
    return node::evaluation_reply(job.request, figures);
}

Result<std::unique_ptr<node::TurnWork>> RealClientWork::begin_turn(const Assign& assign, Examples examples,
                                                                   node::TurnHooks hooks) {
    const auto segment = segments_.find(assign.model);
    const auto fetched = models_.find(assign.model);
    if (segment == segments_.end() && fetched == models_.end()) {
        return fail(ErrorKind::not_found, "not_cached", "no segment " + assign.model.short_hex() + " is here");
    }
    const auto& file = segment != segments_.end() ? segment->second : fetched->second;
    if (examples == Examples::none) {
        return node::TurnWork::begin(*trainer_, assign, file, nullptr, std::move(hooks));
    }
    auto& prepared = prepared_[assign.data_options + " " + std::to_string(assign.seed)];
    if (!prepared) {
        TRY_ASSIGN(const auto options, parse_data_options(assign.data_options));
        DatasetFile whole{.train = part_, .test = test_, .digest = {}};
        TRY(prepare_examples(whole, options, assign.seed));
        prepared = std::make_shared<DatasetFile>(std::move(whole));
    }
    return node::TurnWork::begin(*trainer_, assign, file, &prepared->train, std::move(hooks));
}

Result<Bytes> RealClientWork::read_update(const Digest& update) {
    if (const auto segment = segments_.find(update); segment != segments_.end()) {
        return segment->second;
    }
    for (const auto& [experiment, output] : pending_) {
        if (output.held.digest == update) {
            return output.update;
        }
    }
    return fail(ErrorKind::not_found, "not_found", "no update " + update.short_hex());
}

void RealClientWork::resolve(const node::ResolvePending& what) {
    const auto known = pending_.find(what.update.experiment);
    if (known == pending_.end() || known->second.held.digest != what.update.digest) {
        return;
    }
    if (what.counted) {
        bases_[known->first] = std::move(known->second.sections);
    } else {
        given_up_ = std::move(known->second);
    }
    pending_.erase(known);
}

/// Everything here is a file on a real node, and only removals are not flushed: what was given up may be back.
void RealClientWork::crash(Crash how) {
    if (how == Crash::power && given_up_) {
        pending_.try_emplace(given_up_->held.experiment, *given_up_);
    }
    given_up_.reset();
    segments_.clear();
}

/// As the state folder keeps them: a resumed experiment may go on with the base of one that is over.
void RealClientWork::forget(const node::ForgetExperiment& what) {
    pending_.erase(what.experiment);
}

node::StateSections RealClientWork::base_of(const Assign& assign) const {
    if (const auto own = bases_.find(assign.lease.experiment); own != bases_.end()) {
        return own->second;
    }
    for (const auto before : assign.continues) {
        if (const auto known = bases_.find(before); known != bases_.end()) {
            return known->second;
        }
    }
    return {};
}

std::vector<HeldUpdate> RealClientWork::held() {
    std::vector<HeldUpdate> all;
    for (const auto& [experiment, output] : pending_) {
        all.push_back(output.held);
    }
    return all;
}

DatasetDeclaration RealClientWork::declaration() const {
    return {.name = part_.name,
            .digest = dataset_digest(part_),
            .examples = part_.size(),
            .shape = part_.shape,
            .classes = part_.classes};
}

}  // namespace causeway::simulation
