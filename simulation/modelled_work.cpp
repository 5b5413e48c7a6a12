// See modelled_work.h.
#include "simulation/modelled_work.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr double absorb_rate = 1e9;  // bytes a second
constexpr double finish_rate = 0.5e9;
constexpr Duration commit_time = 1500us;

Duration time_at(std::uint64_t bytes, double rate) {
    return from_seconds(static_cast<double>(bytes) / rate);
}

std::uint64_t first_word(const Digest& digest) {
    std::uint64_t word = 0;
    std::memcpy(&word, digest.bytes.data(), sizeof(word));
    return word;
}

}  // namespace

Duration time_to_add(std::uint64_t bytes) {
    return time_at(bytes, absorb_rate);
}

Duration time_to_commit(std::uint64_t bytes) {
    return time_at(bytes, finish_rate) + commit_time;
}

Duration ModelledCoordinatorWork::time_of(const Job& job) {
    const auto* update = std::get_if<AbsorbUpdate>(&job);
    return update != nullptr ? time_to_add(update->update.bytes) : time_to_commit(bytes_);
}

CoordinatorEvent ModelledCoordinatorWork::make_model(const MakeModel& job, const SaveExperiment& experiment) {
    return ModelMade{job.experiment, sha256("model of " + experiment.file), bytes_};
}

UpdateAbsorbed ModelledCoordinatorWork::absorb(const AbsorbUpdate& job, ByteView) {
    added_ ^= first_word(job.update.digest);
    return {job.experiment, job.round, job.attempt, job.node, job.update.digest, {}, {}};
}

CoordinatorEvent ModelledCoordinatorWork::finish_round(const FinishRound& job) {
    const auto digest = sha256(fmt::format("round {} from {} of {:x}", job.round, sum_, std::exchange(added_, 0)));
    SnapshotWritten written{job.experiment, job.round, digest, bytes_, 0, 0, 0};
    written.normalise = job.round == 0 ? "0 1" : "";
    return written;
}

CoordinatorEvent ModelledCoordinatorWork::evaluate(const EvaluateModel& job) {
    return JobFailed{job.experiment,
                     job.round,
                     "evaluate",
                     {ErrorKind::unsupported, "not_computed", "nothing is trained, so there is nothing to evaluate"}};
}

Duration ModelledClientWork::time_to_train(const Assign& assign) {
    return costs_.per_example * static_cast<std::int64_t>(costs_.examples * std::max(1u, assign.local_epochs));
}

node::Trained ModelledClientWork::train(const Assign& assign) {
    const auto digest = sha256(fmt::format("{} {} {}", name_, assign.lease.round, first_word(assign.model)));
    pending_ = HeldUpdate{.experiment = assign.lease.experiment,
                          .round = assign.lease.round,
                          .digest = digest,
                          .bytes = 4 * costs_.parameters + 512,
                          .weight = static_cast<std::int64_t>(costs_.examples),
                          .metrics = {},
                          .start_model = assign.model};
    return {assign.lease, *pending_, {}};
}

Result<Bytes> ModelledClientWork::read_update(const Digest& update) {
    if (pending_ && pending_->digest == update) {
        return Bytes{};
    }
    return fail(ErrorKind::not_found, "not_found", "no update " + update.short_hex());
}

void ModelledClientWork::resolve(const node::ResolvePending& what) {
    if (pending_ && pending_->digest == what.update.digest) {
        pending_.reset();
    }
}

void ModelledClientWork::forget(const node::ForgetExperiment& what) {
    if (pending_ && pending_->experiment == what.experiment) {
        pending_.reset();
    }
}

std::vector<HeldUpdate> ModelledClientWork::held() {
    return pending_ ? std::vector{*pending_} : std::vector<HeldUpdate>{};
}

}  // namespace causeway::simulation
