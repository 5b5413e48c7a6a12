// Work that costs time and bytes but computes nothing: for questions of scale, where ten thousand clients' trainings
// would take days and their models more memory than there is.
//
// The model, stated: a training takes examples x local epochs x the client's time per example; an update and a model
// are 4 bytes a parameter and 512 for names and shapes; the coordinator checks and adds an update at 1 GB/s, and makes
// and commits a model at 0.5 GB/s and 1.5 ms for the flushes (docs/performance.md has what real ones take). Digests are
// made of names and numbers, so who counted in which round still decides the last one. Thread: one.
#pragma once

#include <optional>
#include <string>

#include "simulation/work.h"

namespace causeway::simulation {

/// What the coordinator takes to check and add an update, and to make and commit a model, whoever trains.
Duration time_to_add(std::uint64_t bytes);
Duration time_to_commit(std::uint64_t bytes);

class ModelledCoordinatorWork : public CoordinatorWork {
public:
    explicit ModelledCoordinatorWork(std::uint64_t parameters) : bytes_(4 * parameters + 512) {}

    void open_round(const OpenRound& job) override { sum_ = job.start_model.hex(); }
    void release(const ReleaseExperiment&) override {}
    Duration time_of(const Job& job) override;
    CoordinatorEvent make_model(const MakeModel& job, const SaveExperiment& experiment) override;
    UpdateAbsorbed absorb(const AbsorbUpdate& job, ByteView update) override;
    CoordinatorEvent finish_round(const FinishRound& job) override;
    CoordinatorEvent evaluate(const EvaluateModel& job) override;
    Result<Bytes> read_model(const Digest&) override { return Bytes{}; }
    void crash() override { sum_.clear(); }

private:
    std::uint64_t bytes_;
    std::string sum_;
    std::uint64_t added_ = 0;  // order-free: the exclusive or of what was added
};

class ModelledClientWork : public ClientWork {
public:
    struct Costs {
        std::uint64_t parameters = 0;
        std::uint64_t examples = 0;
        Duration per_example{};
    };
    ModelledClientWork(std::string name, Costs costs) : name_(std::move(name)), costs_(costs) {}

    bool has_model(const Digest& model) override { return model_ == model; }
    void keep_model(const Digest& model, ByteView) override { model_ = model; }
    Duration time_to_train(const Assign& assign) override;
    node::Trained train(const Assign& assign) override;
    Result<Bytes> read_update(const Digest& update) override;
    void resolve(const node::ResolvePending& what) override;
    void forget(const node::ForgetExperiment& what) override;
    std::vector<HeldUpdate> held() override;
    void crash(Crash) override {}

private:
    std::string name_;
    Costs costs_;
    Digest model_;  // the last one: a cache of one is what it needs
    std::optional<HeldUpdate> pending_;
};

}  // namespace causeway::simulation
