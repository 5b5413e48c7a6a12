// See scripted_work.h.
#include "scripted_work.h"

namespace causeway::simulation {

using namespace std::chrono_literals;

Duration ScriptedCoordinatorWork::time_of(const Job& job) {
    return std::holds_alternative<EvaluateModel>(job) ? evaluation_time : 10ms;
}

Digest ScriptedCoordinatorWork::keep(const std::string& text) {
    const auto digest = sha256(text);
    models_[digest] = to_bytes(text);
    return digest;
}

CoordinatorEvent ScriptedCoordinatorWork::make_model(const MakeModel& job, const SaveExperiment&) {
    if (fails("make_model")) {
        return JobFailed{job.experiment, 0, "make_model", {ErrorKind::io, "disk_full", "no room"}};
    }
    return ModelMade{job.experiment, job.from.empty() ? keep("initial") : job.from, scripted_bytes};
}

UpdateAbsorbed ScriptedCoordinatorWork::absorb(const AbsorbUpdate& job, ByteView) {
    UpdateAbsorbed done{job.experiment, job.round, job.attempt, job.node, job.update.digest, {}, {}};
    if (fails("absorb")) {
        done.fetch_error = Error{ErrorKind::io, "disk_full", "no room"};
        return done;
    }
    const auto sum = sums_.find(job.experiment);
    if (sum == sums_.end() || sum->second.round != job.round) {
        done.fetch_error = Error{ErrorKind::refused, "cancelled", "the experiment is over"};
        return done;
    }
    if (firewall) {
        done.refusal = firewall(job);
    }
    if (!done.refusal && !sum->second.updates.emplace(job.node, job.update.digest).second) {
        mistakes.push_back(job.node + " was added twice");
    }
    return done;
}

CoordinatorEvent ScriptedCoordinatorWork::finish_round(const FinishRound& job) {
    if (fails("finish_round")) {
        return JobFailed{job.experiment, job.round, "finish_round", {ErrorKind::io, "disk_full", "no room"}};
    }
    const auto& sum = sums_[job.experiment];
    if (sum.round != job.round) {
        mistakes.push_back("a round was finished that was not opened");
    }
    auto text = "round " + std::to_string(job.round) + " from " + sum.start.hex();
    for (const auto& [node, update] : sum.updates) {
        text += " " + node + ":" + update.hex();
    }
    return SnapshotWritten{job.experiment, job.round, keep(text), scripted_bytes, 1.0, 0, 0};
}

CoordinatorEvent ScriptedCoordinatorWork::evaluate(const EvaluateModel& job) {
    if (fails("evaluate")) {
        return JobFailed{job.experiment, job.round, "evaluate", {ErrorKind::not_found, "no_holdout", "none"}};
    }
    return ModelEvaluated{job.experiment, job.round, 1.0 / job.round, accuracy(job.round), 100};
}

Result<Bytes> ScriptedCoordinatorWork::read_model(const Digest& model) {
    const auto found = models_.find(model);
    if (found == models_.end()) {
        return fail(ErrorKind::not_found, "not_found", "no such model");
    }
    return found->second;
}

node::Trained ScriptedClientWork::train(const Assign& assign) {
    ++trainings;
    const auto& lease = assign.lease;
    // The base state is part of what an update depends on: a client that lost count would give another digest.
    std::string text = "update of " + name_ + " from " + assign.model.hex() + " after";
    for (const auto before : assign.continues) {  // as the state folder does
        if (base[lease.experiment].empty()) {
            base[lease.experiment] = base[before];
        }
    }
    for (const auto round : base[lease.experiment]) {
        text += " " + std::to_string(round);
    }
    HeldUpdate update{lease.experiment, lease.round, sha256(text), scripted_bytes, weight(assign), {}, assign.model};
    update.metrics = {1.0 / (1 + lease.round), 100, 1.0};
    pending_[{lease.experiment, lease.round}] = update;
    return {lease, update, std::nullopt};
}

Result<Bytes> ScriptedClientWork::read_update(const Digest& update) {
    for (const auto& [key, held] : pending_) {
        if (held.digest == update) {
            return Bytes{};
        }
    }
    return fail(ErrorKind::not_found, "not_found", "no such update");
}

void ScriptedClientWork::resolve(const node::ResolvePending& what) {
    if (pending_.erase({what.update.experiment, what.update.round}) != 0 && what.counted) {
        base[what.update.experiment].push_back(what.update.round);
    }
}

void ScriptedClientWork::forget(const node::ForgetExperiment& what) {
    std::erase_if(pending_, [&](const auto& entry) { return entry.first.first == what.experiment; });
}

std::vector<HeldUpdate> ScriptedClientWork::held() {
    std::vector<HeldUpdate> all;
    for (const auto& [key, update] : pending_) {
        all.push_back(update);
    }
    return all;
}

std::string experiment_text(std::uint32_t rounds, const std::string& sync) {
    return "[experiment]\nname = \"test\"\nseed = 7\nrounds = " + std::to_string(rounds) +
           "\n[data]\ndataset = \"digits\"\nshape = [8, 8, 1]\n[model]\nlayers = [\"flatten\", \"dense 10\"]\n"
           "[regime]\npreset = \"fedavg\"\n[sync]\n" +
           sync + "\n";
}

ScriptedWorld::ScriptedWorld(std::size_t count, Transcript::Keep keep, LinkOptions link) {
    WorldOptions options;
    options.coordinator.federation = "test";
    options.work = &work;
    options.keep = keep;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name(1, static_cast<char>('a' + i));
        clients.push_back(std::make_unique<ScriptedClientWork>(name));
        DatasetDeclaration digits;
        digits.name = "digits";
        digits.examples = 100;
        digits.shape = {8, 8, 1};
        digits.classes = 10;
        options.clients.push_back({.name = name, .datasets = {digits}, .work = clients.back().get(), .link = link});
    }
    world = std::make_unique<World>(std::move(options));
}

void ScriptedWorld::submit(const std::string& file) {
    world->start();
    world->run_for(1s);
    world->submit(file);
}

bool ScriptedWorld::ends_within(Duration bound) {
    return world->run_until([&] { return world->over(1); }, bound);
}

}  // namespace causeway::simulation
