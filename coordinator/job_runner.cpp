// Each job is a chain of tasks that hop from thread to thread with all they need; the last hop answers.
#include "coordinator/job_runner.h"

#include <algorithm>
#include <system_error>

#include <malloc.h>

#include <fmt/format.h>

#include "common/folder_size.h"
#include "common/log.h"
#include "common/text.h"
#include "configs/dataset_file.h"
#include "configs/workload.h"
#include "coordinator/kept_segments.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_read_model = std::uint64_t{64} << 30;
constexpr std::size_t most_being_evaluated = 16;  // snapshots kept beyond what the store names
constexpr std::uint64_t largest_update = std::uint64_t{64} << 30;
constexpr Duration measure_interval = std::chrono::seconds(1);  // each looks at every snapshot
constexpr std::size_t small_model = 4 << 20;  // served from memory: the page cache costs an open and a read a client

void remove_quietly(const fs::path& path) {
    std::error_code ignored;
    fs::remove(path, ignored);
}

}  // namespace

Result<std::unique_ptr<JobRunner>> JobRunner::start(JobRunnerOptions options) {
    TRY_ASSIGN(auto snapshots, Snapshots::open(options.state));
    TRY_ASSIGN(auto segments, Segments::open(options.state));
    return std::make_unique<JobRunner>(std::move(options), std::move(snapshots), std::move(segments));
}

JobRunner::JobRunner(JobRunnerOptions options, Snapshots snapshots, std::unique_ptr<Segments> segments)
    : options_(std::move(options)),
      snapshots_(std::move(snapshots)),
      segments_(std::move(segments)),
      sums_(std::make_unique<WorkThread>()),
      trainer_thread_(std::make_unique<WorkThread>()) {
    for (std::uint32_t i = 0; i < std::max(1u, options_.checkers); ++i) {
        checkers_.push_back(std::make_unique<WorkThread>());
    }
    sums_->post([this] { measure_state(); });
}

/// Each ends what it has; none goes before all have ended, for they post to each other.
JobRunner::~JobRunner() {
    for (const auto& checker : checkers_) {
        checker->close();
    }
    trainer_thread_->close();
    sums_->close();
}

void JobRunner::know(const SaveExperiment& saved) {
    const auto known = setups_.find(saved.experiment);
    if (known != setups_.end() && known->second->file == saved.file) {
        return;
    }
    if (auto setup = read_setup(saved)) {
        setups_[saved.experiment] = std::make_shared<const ExperimentSetup>(*std::move(setup));
    } else {
        setups_.erase(saved.experiment);
        unreadable_[saved.experiment] = setup.error();
    }
}

JobRunner::Setup JobRunner::setup_of(ExperimentId experiment, std::uint32_t round, const std::string& job) {
    const auto known = setups_.find(experiment);
    if (known != setups_.end()) {
        return known->second;
    }
    const auto why = unreadable_.find(experiment);
    answer_failed(experiment, round, job,
                  why != unreadable_.end() ? why->second
                                           : Error{ErrorKind::not_found, "unknown_experiment", "no such experiment"});
    return nullptr;
}

void JobRunner::open_round(const OpenRound& job) {
    if (auto setup = setup_of(job.experiment, job.round, "open_round")) {
        sums_->post([this, job, setup] {
            if (const auto input = open(setup, job); !input) {
                rounds_.erase(job.experiment);
                unopened_[job.experiment] = input.error();
                answer_failed(job.experiment, job.round, "open_round", input.error());
            }
        });
    }
}

Result<std::shared_ptr<const RoundInput>> JobRunner::open(const Setup& setup, const OpenRound& job) {
    begin_counting(job.experiment);
    shares_.open_round(job.experiment, job.start_model);
    if (job.round == 0) {
        TRY_ASSIGN(auto input, make_round_input(*setup, job, {}));
        TRY(rounds_[job.experiment].open_round(input));
        RoundOpened opened{.experiment = job.experiment, .round = 0, .segments = {}};
        count_traffic(opened);
        options_.answer(opened);
        return input;
    }
    const auto newest = newest_.load();
    std::shared_ptr<const Bytes> model;
    if (newest && newest->digest == job.start_model) {
        model = newest->file;
    } else {
        TRY_ASSIGN(auto read, start_model(*setup, job));
        model = std::make_shared<const Bytes>(std::move(read));
    }
    TRY_ASSIGN(auto input, make_round_input(*setup, job, *model));
    TRY(rounds_[job.experiment].open_round(input));
    if (setup->split) {
        TRY(open_relays(*setup, job, *input));
    }
    return input;
}

/// What every group starts from; those of the experiment's other rounds go. After a restart: what is left of this one.
Status JobRunner::open_relays(const ExperimentSetup& setup, const OpenRound& job, const RoundInput& input) {
    TRY(segments_->open_round(job.experiment, job.round));
    RoundOpened opened{.experiment = job.experiment, .round = job.round, .segments = {}};
    for (const auto& file : cut_segments(*setup.split, input.start())) {
        const auto digest = sha256(file);
        TRY(segments_->write(job.experiment, job.round, digest, file));
        opened.segments.emplace_back(digest, file.size());
    }
    TRY_ASSIGN(const auto kept, kept_segments(*segments_, options_.state, job.experiment, job.round, largest_read_model,
                                              opened.segments));
    opened.segments.insert(opened.segments.end(), kept.begin(), kept.end());
    for (const auto& [segment, size] : opened.segments) {
        shares_.serves(job.experiment, segment);
    }
    options_.answer(std::move(opened));
    return {};
}

void JobRunner::absorb(const AbsorbUpdate& job, FetchedBlob update) {
    auto setup = setup_of(job.experiment, job.round, "absorb");
    if (!setup) {
        return;
    }
    sums_->post([this, job, setup, update = std::move(update)] {
        const auto round = rounds_.find(job.experiment);
        const auto input = round == rounds_.end() ? nullptr : round->second.input();
        if (!input || input->round() != job.round) {
            const auto why = unopened_.find(job.experiment);
            return answer_absorbed(job, std::nullopt,
                                   why != unopened_.end() ? why->second
                                                          : Error{ErrorKind::io, "no_round", "the round is not open"});
        }
        auto& checker = *checkers_[next_checker_++ % checkers_.size()];
        checker.post([this, job, setup, update, input] { check(job, update, input, setup); });
    });
}

void JobRunner::discard(const FetchedBlob& update) {
    if (!update.bytes) {
        sums_->post([file = update.file] { remove_quietly(file); });
    }
}

void JobRunner::check(const AbsorbUpdate& job, const FetchedBlob& update,
                      const std::shared_ptr<const RoundInput>& input, const Setup& setup) {
    const auto begun = real_now();
    auto bytes = update.bytes;
    if (!bytes) {
        auto read = read_file(update.file, largest_update);
        remove_quietly(update.file);
        if (!read) {
            return answer_absorbed(job, std::nullopt, read.error());
        }
        bytes = *std::move(read);
    }
    if (!job.segment.empty()) {
        ASSERT(setup->split.has_value());  // the machine asks for segments where its experiment is cut
        if (auto refusal = check_segment(*setup->split, *input, job.segment, job.update, bytes.view())) {
            return answer_absorbed(job, std::move(refusal), std::nullopt);
        }
        const auto verify = real_now() - begun;
        return sums_->post([this, job, bytes, verify] { keep_segment(job, bytes, verify); });
    }
    auto checked = input->check(job.node, job.update, bytes);
    if (!checked) {
        return answer_absorbed(job, std::move(checked).error(), std::nullopt);
    }
    const auto verify = real_now() - begun;
    sums_->post([this, job, verify, update = *std::move(checked)]() mutable { add(job, std::move(update), verify); });
}

/// Durable before the turn counts.
void JobRunner::keep_segment(const AbsorbUpdate& job, const SharedBytes& file, Duration verify) {
    const auto begun = real_now();
    const auto written = segments_->write(job.experiment, job.round, job.update.digest, file.view());
    shares_.serves(job.experiment, job.update.digest);
    answer_absorbed(job, std::nullopt, written ? std::nullopt : std::optional(written.error()), verify,
                    real_now() - begun);
}

/// Each group's last segments enter the sum as one update. Asked again after a full disk it finds them there.
Status JobRunner::add_groups(const ExperimentSetup& setup, const FinishRound& job) {
    auto& round = rounds_[job.experiment];
    for (std::size_t group = 0; group < job.groups.size(); ++group) {
        const auto& result = job.groups[group];
        std::array<Bytes, 2> files;
        for (std::size_t stage = 0; stage < files.size(); ++stage) {
            TRY_ASSIGN(files[stage], segments_->read(result.segments.at(stage), largest_read_model));
        }
        auto update = group_update(*setup.split, *round.input(), group, files, result.examples);
        const auto refusal = update ? round.add(*std::move(update)) : std::optional(std::move(update).error());
        if (refusal) {
            return fail(ErrorKind::corrupt, refusal->code, fmt::format("group {}: {}", group, refusal->message));
        }
    }
    return {};
}

void JobRunner::add(const AbsorbUpdate& job, CheckedUpdate checked, Duration verify) {
    const auto begun = real_now();
    const auto round = rounds_.find(job.experiment);
    if (round == rounds_.end()) {
        return answer_absorbed(job, std::nullopt, Error{ErrorKind::refused, "cancelled", "the experiment is over"});
    }
    auto refusal = round->second.add(std::move(checked));
    answer_absorbed(job, std::move(refusal), std::nullopt, verify, real_now() - begun);
}

void JobRunner::answer_absorbed(const AbsorbUpdate& job, std::optional<Refusal> refusal, std::optional<Error> error,
                                Duration verify, Duration aggregate) {
    UpdateAbsorbed absorbed{.experiment = job.experiment,
                            .round = job.round,
                            .attempt = job.attempt,
                            .node = job.node,
                            .update = job.update.digest};
    if (refusal) {
        absorbed.refusal = Refused{.update = job.update.digest,
                                   .code = std::move(refusal->code),
                                   .message = std::move(refusal->message),
                                   .tensor = std::move(refusal->tensor),
                                   .index = refusal->index};
    }
    absorbed.fetch_error = std::move(error);
    absorbed.verify = verify;
    absorbed.aggregate = aggregate;
    options_.answer(std::move(absorbed));
}

void JobRunner::finish_round(const FinishRound& job) {
    auto setup = setup_of(job.experiment, job.round, "finish_round");
    if (!setup) {
        return;
    }
    sums_->post([this, job, setup] {
        const auto begun = real_now();
        if (const auto added = add_groups(*setup, job); !added) {
            return answer_failed(job.experiment, job.round, "finish_round", added.error());
        }
        const auto finished = rounds_[job.experiment].finish([&] {
            return make_first_model(*setup, [this](const std::string& name) { return read_named_model(name); });
        });
        const auto divided = real_now() - begun;
        if (!finished) {
            return answer_failed(job.experiment, job.round, "finish_round", finished.error());
        }
        const auto& round = **finished;
        if (const auto written = write_snapshot(round.file, round.digest); !written) {
            return answer_failed(job.experiment, job.round, "finish_round", written.error());
        }
        publish(round.digest, round.file);
        if (round.file.size() > small_model) {
            malloc_trim(0);  // a round's sums and updates are gone; what they leave in the heap would only pile up
        }
        SnapshotWritten event{.experiment = job.experiment,
                              .round = job.round,
                              .model = round.digest,
                              .bytes = round.file.size(),
                              .update_norm = round.update_norm};
        event.aggregate = divided;
        event.normalise = round.normalise;
        event.examples = round.examples;
        shares_.serves(job.experiment, round.digest);
        count_traffic(event);
        options_.answer(event);
    });
}

void JobRunner::evaluate(const EvaluateModel& job) {
    auto setup = setup_of(job.experiment, job.round, "evaluate");
    if (!setup) {
        return;
    }
    sums_->post([this, job, setup] {
        being_evaluated_[{job.experiment, job.round}] = job.model;
        // Evaluations that never come (no client answered) must not fill the disk.
        const auto oldest = being_evaluated_.lower_bound({job.experiment, 0});
        if (being_evaluated_.size() > most_being_evaluated && oldest->first.second != job.round) {
            being_evaluated_.erase(oldest);
        }
        if (setup->experiment.evaluation.at_coordinator()) {
            trainer_thread_->post([this, job, setup] {
                auto answer = evaluate_now(job, *setup);
                if (std::holds_alternative<JobFailed>(answer)) {
                    evaluation_stored(job.experiment, job.round);  // it never will be
                }
                options_.answer(std::move(answer));
            });
        }
    });
}

void JobRunner::evaluation_stored(ExperimentId experiment, std::uint32_t round) {
    sums_->post([this, experiment, round] { being_evaluated_.erase({experiment, round}); });
}

CoordinatorEvent JobRunner::evaluate_now(const EvaluateModel& job, const ExperimentSetup& setup) {
    const auto evaluation = [&]() -> Result<Figures> {
        TRY_ASSIGN(const auto* dataset, held_out(setup));
        TRY_ASSIGN(const auto model, snapshots_.read(job.model, largest_read_model));
        return evaluate_model(*trainer_, setup, model, *dataset);
    }();
    if (!evaluation) {
        return JobFailed{
            .experiment = job.experiment, .round = job.round, .job = "evaluate", .error = evaluation.error()};
    }
    return evaluated(job.experiment, job.round, *evaluation);
}

Result<const Dataset*> JobRunner::held_out(const ExperimentSetup& setup) {
    const auto& name = setup.experiment.evaluation.dataset;
    const auto path = options_.datasets.find(name);
    if (path == options_.datasets.end()) {
        return fail(
            ErrorKind::not_found, "no_holdout",
            fmt::format("the coordinator holds no \"{0}\" to evaluate with; start it with --data {0}=PATH", name));
    }
    auto options = data_options_of(setup.experiment);
    options.holdout = 0;  // that is for sets that are trained on
    auto& cached = held_outs_[name + " " + to_text(options)];
    if (!cached) {
        TRY_ASSIGN(auto file, read_dataset_file(path->second, options));
        TRY(prepare_examples(file, options, setup.experiment.experiment.seed));
        cached = std::make_unique<Dataset>(file.test ? *std::move(file.test) : std::move(file.train));
    }
    if (!trainer_) {
        TRY_ASSIGN(auto device, Device::open("auto"));
        trainer_ = std::make_unique<Trainer>(std::move(device));
    }
    return cached.get();
}

void JobRunner::release(const ReleaseExperiment& job) {
    sums_->post([this, job] {
        end_counting(job.experiment);
        rounds_.erase(job.experiment);
        unopened_.erase(job.experiment);
        segments_->forget(job.experiment);
        std::erase_if(being_evaluated_, [&](const auto& entry) { return entry.first.first == job.experiment; });
    });
}

void JobRunner::keep_only(std::set<Digest> named) {
    sums_->post([this, named = std::move(named)]() mutable {
        for (const auto& [key, model] : being_evaluated_) {
            named.insert(model);
        }
        if (const auto removed = snapshots_.remove_unnamed(named); !removed) {
            log_warn("coordinator", removed.error().message);
        }
        if (real_now() - measured_at_ >= measure_interval) {
            measure_state();
        }
    });
}

/// The quota is kept here, where models are made: the store's own lines are small beside them, and nothing is committed
/// without one. What is over lets go of nothing that is committed: the experiment waits for its owner.
Result<Digest> JobRunner::write_snapshot(const Bytes& file, const Digest& digest) {
    const auto quota = options_.limits->state_quota.load();
    if (quota != 0 && !snapshots_.has(digest)) {
        if (const auto used = measure_state(); used + file.size() > quota) {
            return fail(ErrorKind::io, "state_full",
                        fmt::format("models and store take {}, and with the next model's {} more than state_quota = "
                                    "{}: raise it in STATE/coordinator.toml and reload the coordinator (SIGHUP); it "
                                    "goes on by itself",
                                    format_bytes(used), format_bytes(file.size()), format_bytes(quota)));
        }
    }
    return snapshots_.write(file, digest);
}

/// All of STATE but the spool, which has a quota of its own.
std::uint64_t JobRunner::measure_state() {
    const auto all = folder_bytes(options_.state);
    const auto spool = folder_bytes(options_.state / "spool");
    state_bytes_ = all - std::min(all, spool);
    measured_at_ = real_now();
    return state_bytes_;
}

void JobRunner::remove_file(fs::path file) {
    checkers_.front()->post([file = std::move(file)] { remove_quietly(file); });
}

fs::path JobRunner::model_path(const Digest& model) const {
    return snapshots_.path(model);
}

void JobRunner::publish(const Digest& model, const Bytes& file) {
    if (file.size() <= small_model) {
        newest_.store(std::make_shared<const NewestModel>(NewestModel{model, std::make_shared<const Bytes>(file)}));
    } else {
        newest_.store(nullptr);
    }
}

Result<Blob> JobRunner::model_blob(const Digest& model) const {
    if (const auto newest = newest_.load(); newest && newest->digest == model) {
        return Blob(newest->file);
    }
    std::error_code ignored;
    if (auto segment = segments_->find(model); !segment.empty()) {
        return Blob(std::move(segment));
    }
    auto path = model_path(model);
    if (!fs::exists(path, ignored)) {
        return fail(ErrorKind::not_found, "not_found", "no model " + model.short_hex() + " is kept here");
    }
    return Blob(std::move(path));
}

void JobRunner::answer_failed(ExperimentId experiment, std::uint32_t round, std::string job, Error error) {
    options_.answer(
        JobFailed{.experiment = experiment, .round = round, .job = std::move(job), .error = std::move(error)});
}

}  // namespace causeway
