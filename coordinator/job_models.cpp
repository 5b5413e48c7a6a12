// The models that a job starts from: made from the seed, taken from an owner's file or a parent, read from the disk,
// and what there is to do when one is damaged. Part of JobRunner (job_runner.h).
#include <fmt/format.h>

#include "common/log.h"
#include "coordinator/job_runner.h"

namespace causeway {
namespace {

constexpr std::uint64_t largest_start_model = std::uint64_t{64} << 30;

/// The machine's fault, which the file mends when it is back: the experiment waits, paused.
Error snapshot_lost(const Error& why, std::string_view which) {
    return {
        ErrorKind::io, "snapshot_lost",
        fmt::format("the model {} is damaged or gone ({}); put the file back from a backup and the experiment goes on "
                    "by itself, or cancel it",
                    which, why.message)};
}

}  // namespace

void JobRunner::make_model(const MakeModel& job) {
    if (!job.from.empty()) {
        return use_committed_model(job);
    }
    if (auto setup = setup_of(job.experiment, 0, "make_model")) {
        trainer_thread_->post([this, job, setup] {
            auto file = make_first_model(*setup, [this](const std::string& name) { return read_named_model(name); });
            sums_->post([this, job, file = std::move(file)] { write_first_model(job, file); });
        });
    }
}

/// A resumed experiment's: its parent's last commit, which is kept. Read whole, for its digest is verified so.
void JobRunner::use_committed_model(const MakeModel& job) {
    sums_->post([this, job] {
        const auto model = snapshots_.read(job.from, largest_start_model);
        if (!model) {
            return answer_failed(job.experiment, 0, "make_model", snapshot_lost(model.error(), "that it goes on from"));
        }
        answer_made(job, job.from, model->size());
    });
}

void JobRunner::answer_made(const MakeModel& job, const Digest& model, std::uint64_t bytes) {
    ModelMade made{.experiment = job.experiment, .model = model, .bytes = bytes};
    begin_counting(job.experiment);
    count_traffic(made);
    options_.answer(made);
}

Result<Bytes> JobRunner::read_named_model(const std::string& name) const {
    const auto known = options_.models.find(name);
    if (known == options_.models.end()) {
        return fail(ErrorKind::not_found, "unknown_model", "no such --model was given");
    }
    return read_file(known->second, largest_start_model);
}

void JobRunner::write_first_model(const MakeModel& job, const Result<Bytes>& file) {
    const auto written = file ? write_snapshot(*file, sha256(*file)) : Result<Digest>(tl::unexpected(file.error()));
    if (!written) {
        return answer_failed(job.experiment, 0, "make_model", written.error());
    }
    publish(*written, *file);
    answer_made(job, *written, file->size());
}

/// Damaged or gone, the first one is made again. Any other can only be put back: the experiment waits for it.
Result<Bytes> JobRunner::start_model(const ExperimentSetup& setup, const OpenRound& job) {
    auto read = snapshots_.read(job.start_model, largest_start_model);
    if (read) {
        return read;
    }
    const auto file = make_first_model(setup, [this](const std::string& name) { return read_named_model(name); });
    if (file && sha256(*file) == job.start_model) {
        log_warn("coordinator", read.error().message + "; it is a first model, and has been made again from the seed");
        snapshots_.set_aside(job.start_model);
        TRY(write_snapshot(*file, job.start_model));
        return *file;
    }
    return fail(snapshot_lost(read.error(), "that its open round starts from"));
}

}  // namespace causeway
