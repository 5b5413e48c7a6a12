// Work whose results are texts: a model's bytes name the model before it and every update in it, so the last digest of
// a run is a function of who counted in each round and of nothing else.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/world.h"

namespace causeway::simulation {

constexpr std::uint64_t scripted_bytes = 400'000;  // of a model and of an update, as the network is charged

class ScriptedCoordinatorWork : public CoordinatorWork {
public:
    std::function<std::optional<Refused>(const AbsorbUpdate&)> firewall;
    std::map<std::string, int> failures;  // by job: how many times it fails first ("finish_round": 2)
    std::function<double(std::uint32_t round)> accuracy = [](std::uint32_t round) { return 1 - 0.5 / round; };
    Duration evaluation_time = std::chrono::milliseconds(50);
    std::vector<std::string> mistakes;  // of the machine: an update added twice, to no sum, a sum of another round

    void open_round(const OpenRound& job) override { sums_[job.experiment] = {job.round, job.start_model, {}}; }
    void release(const ReleaseExperiment& job) override { sums_.erase(job.experiment); }
    Duration time_of(const Job& job) override;
    CoordinatorEvent make_model(const MakeModel& job, const SaveExperiment& experiment) override;
    UpdateAbsorbed absorb(const AbsorbUpdate& job, ByteView update) override;
    CoordinatorEvent finish_round(const FinishRound& job) override;
    CoordinatorEvent evaluate(const EvaluateModel& job) override;
    Result<Bytes> read_model(const Digest& model) override;
    void crash() override { sums_.clear(); }

private:
    struct Sum {
        std::uint32_t round = 0;
        Digest start;
        std::map<std::string, Digest> updates;
    };
    bool fails(const std::string& job) { return failures[job]-- > 0; }
    Digest keep(const std::string& text);

    std::map<Digest, Bytes> models_;  // files: a crash leaves them
    std::map<ExperimentId, Sum> sums_;
};

class ScriptedClientWork : public ClientWork {
public:
    explicit ScriptedClientWork(std::string name) : name_(std::move(name)) {}
    std::function<Duration(const Assign&)> training_time = [](const Assign&) { return std::chrono::seconds(1); };
    std::function<std::int64_t(const Assign&)> weight = [](const Assign&) { return 10; };
    /// Rounds that the client's base state has in it, by experiment.
    std::map<std::uint64_t, std::vector<std::uint32_t>> base;
    std::uint32_t trainings = 0;

    bool has_model(const Digest& model) override { return models_.contains(model); }
    void keep_model(const Digest& model, ByteView) override { models_.insert(model); }
    Duration time_to_train(const Assign& assign) override { return training_time(assign); }
    node::Trained train(const Assign& assign) override;
    Result<Bytes> read_update(const Digest& update) override;
    void resolve(const node::ResolvePending& what) override;
    void forget(const node::ForgetExperiment& what) override;
    std::vector<HeldUpdate> held() override;
    void crash(Crash) override {}

private:
    std::string name_;
    std::set<Digest> models_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, HeldUpdate> pending_;  // durable, as is the rest
};

/// An experiment file; `sync` lines are put into its [sync] table.
std::string experiment_text(std::uint32_t rounds, const std::string& sync);

/// A world of clients a, b, c, ... that hold "digits".
struct ScriptedWorld {
    explicit ScriptedWorld(std::size_t clients, Transcript::Keep keep = Transcript::Keep::nothing,
                           LinkOptions link = {});
    ScriptedCoordinatorWork work;
    std::vector<std::unique_ptr<ScriptedClientWork>> clients;
    std::unique_ptr<World> world;

    /// Starts, waits until all have joined, submits.
    void submit(const std::string& file);
    bool ends_within(Duration bound);
};

}  // namespace causeway::simulation
