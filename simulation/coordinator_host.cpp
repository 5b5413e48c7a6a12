// See coordinator_host.h.
#include "simulation/coordinator_host.h"

#include <algorithm>

#include "simulation/describe.h"

namespace causeway::simulation {
namespace {

Error no_room() {
    return {ErrorKind::io, "disk_full", "no room on the coordinator's disk"};
}

}  // namespace

void CoordinatorHost::start() {
    auto recovered = store_.recover();
    epoch_ = recovered.epoch;
    around_.invariants.started(recovered.epoch);
    around_.transcript.add("coordinator", "start epoch " + std::to_string(recovered.epoch));
    machine_.emplace(options_, std::move(recovered));
    stored_until_ = queue_.now();
    begin_life();
    take(machine_->start(now()));
}

/// Sessions, sums and everything not persisted are gone; the store stays.
void CoordinatorHost::die(std::size_t durable) {
    around_.transcript.add("coordinator", durable == 0 ? "crash" : "power cut");
    for (const auto& step : std::exchange(pending_, {})) {
        if (durable > 0 && !step.effects.persist.empty()) {
            store(step.effects.persist);
            --durable;
        }
    }
    machine_.reset();
    sessions_.clear();
    fetching_.clear();
    received_.clear();
    work_.crash();
    for (std::size_t link = 0; link < around_.nodes.size(); ++link) {
        around_.network.vanish(link, Side::coordinator);
    }
    end_life();
}

void CoordinatorHost::event(const CoordinatorEvent& event) {
    if (!machine_) {
        return;
    }
    if (queue_.now() < life_.stopped_until) {
        queue_.at(life_.stopped_until, life_, [this, event] { this->event(event); });
    } else {
        if (const auto* heard = std::get_if<causeway::MessageReceived>(&event)) {
            const auto session = sessions_.find(heard->session);
            if (session != sessions_.end()) {
                around_.invariants.heard(around_.nodes[session->second], heard->message);
            }
        }
        if (begin_turn() > Duration::zero()) {
            around_.transcript.add("coordinator", "goes on after standing still");
            take(machine_->step(now(), StoodStill{}));
        }
        take(machine_->step(now(), event));
    }
}

/// Steps are released in order, each when its persists are done.
void CoordinatorHost::take(CoordinatorEffects effects) {
    wake_at(effects.wake_at);
    for (const auto& line : effects.say) {
        around_.transcript.add("coordinator", "log " + line);
    }
    stored_until_ = std::max(stored_until_, queue_.now()) + (effects.persist.empty() ? Duration::zero() : store_time_);
    pending_.push_back({stored_until_, std::move(effects)});
    if (stored_until_ > queue_.now()) {
        queue_.at(stored_until_, life_, [this] { release_pending(); });
    } else if (pending_.size() == 1) {
        release_pending();
    }
}

void CoordinatorHost::release_pending() {
    while (!pending_.empty() && pending_.front().due <= queue_.now()) {
        if (!pending_.front().effects.persist.empty() && disk_full()) {
            queue_.at(disk_full_until(), life_, [this] { release_pending(); });
            return;
        }
        const auto life = life_.number;
        const auto effects = std::move(pending_.front().effects);
        pending_.pop_front();
        release(effects);
        if (life != life_.number) {
            return;
        }
    }
}

void CoordinatorHost::store(const std::vector<Persist>& persists) {
    for (const auto& persist : persists) {
        around_.transcript.add("coordinator", [&] { return "persist " + describe(persist); });
        around_.invariants.persisted(persist);
    }
    store_.apply(persists);
}

/// A transaction is one effect, each send and each job is one: a crash can come before any of them.
void CoordinatorHost::release(const CoordinatorEffects& effects) {
    if (!effects.persist.empty()) {
        if (!survives_next_effect()) {
            return;
        }
        store(effects.persist);
        tell_commits(effects.persist);
    }
    for (const auto& one : effects.send) {
        if (!survives_next_effect()) {
            return;
        }
        send(one);
    }
    for (const auto& one : effects.close) {
        close(one);
    }
    for (const auto& job : effects.jobs) {
        if (!survives_next_effect()) {
            return;
        }
        around_.transcript.add("coordinator", [&] { return "job " + describe(job); });
        run(job);
    }
}

/// As the daemon's loop does, after what follows from the commit has been sent.
void CoordinatorHost::tell_commits(const std::vector<Persist>& persists) {
    for (const auto& persist : persists) {
        if (const auto* commit = std::get_if<SaveCommit>(&persist)) {
            const CommitStored stored{commit->experiment, commit->round};
            queue_.after(Duration::zero(), life_, [this, stored] { event(stored); });
        }
    }
}

void CoordinatorHost::send(const Send& send) {
    if (send.session >= first_operator_session) {
        around_.transcript.add("coordinator", [&] { return "-> operator " + describe(send.message); });
        around_.invariants.told_operator(send.message);
        if (const auto* reply = std::get_if<Reply>(&send.message)) {
            replies_.push_back(*reply);
        }
        return;
    }
    const auto found = sessions_.find(send.session);
    if (found == sessions_.end() || around_.network.connection(found->second) != send.session) {
        return;
    }
    const auto& node = around_.nodes[found->second];
    around_.transcript.add("coordinator", [&] { return "-> " + node + " " + describe(send.message); });
    around_.invariants.sent(node, send.message);
    around_.network.send(Side::coordinator, found->second, send.message);
}

void CoordinatorHost::close(const CloseSession& close) {
    const auto found = sessions_.find(close.session);
    if (found != sessions_.end() && around_.network.connection(found->second) == close.session) {
        around_.network.cut(found->second, close.message);
    }
}

/// As in the daemon, the first hello makes a connection a session.
void CoordinatorHost::heard(std::size_t link, ConnectionId connection, const Message& message) {
    if (const auto* hello = std::get_if<Hello>(&message); hello != nullptr && !sessions_.contains(connection)) {
        sessions_[connection] = link;
        event(SessionOpened{connection, around_.nodes[link], around_.roles[link], *hello});
    } else {
        event(causeway::MessageReceived{connection, message});
    }
}

void CoordinatorHost::request(const std::string& verb, const Json& body) {
    const auto session = next_operator_++;
    event(SessionOpened{session, "admin", "operator", Hello{}});
    event(causeway::MessageReceived{session, Request{next_request_++, verb, body.dump()}});
}

// ---------------------------------------------------------------- jobs

void CoordinatorHost::run_later(const Job& job, std::function<CoordinatorEvent()> work) {
    queue_.after(work_.time_of(job), life_, [this, work = std::move(work)] { event(work()); });
}

void CoordinatorHost::run(const Job& job) {
    if (const auto* make = std::get_if<MakeModel>(&job)) {
        run_later(job, [this, make = *make]() -> CoordinatorEvent {
            if (disk_full()) {
                return JobFailed{make.experiment, 0, "make_model", no_room()};
            }
            auto made = work_.make_model(make, machine_->experiments().at(make.experiment).saved());
            if (auto* model = std::get_if<ModelMade>(&made)) {
                count_traffic(*model);
            }
            return made;
        });
    } else if (const auto* open = std::get_if<OpenRound>(&job)) {
        if (open->round == 0) {
            work_.know(machine_->experiments().at(open->experiment).saved());
        }
        work_.open_round(*open);
        if (open->round == 0) {
            RoundOpened opened{.experiment = open->experiment, .round = 0, .segments = {}};
            count_traffic(opened);
            run_later(job, [opened]() -> CoordinatorEvent { return opened; });
        } else if (auto opened = work_.opened(*open)) {
            around_.invariants.opened(*opened);
            run_later(job, [opened = *std::move(opened)]() -> CoordinatorEvent { return opened; });
        }
    } else if (const auto* update = std::get_if<AbsorbUpdate>(&job)) {
        absorb(*update);
    } else if (const auto* cancel = std::get_if<CancelAbsorb>(&job)) {
        if (const auto found = fetching_.find({cancel->experiment, cancel->round, cancel->node});
            found != fetching_.end()) {
            found->second = false;
        }
    } else if (const auto* finish = std::get_if<FinishRound>(&job)) {
        run_later(job, [this, finish = *finish]() -> CoordinatorEvent {
            if (disk_full()) {
                return JobFailed{finish.experiment, finish.round, "finish_round", no_room()};
            }
            auto done = work_.finish_round(finish);
            if (auto* snapshot = std::get_if<SnapshotWritten>(&done)) {
                count_traffic(*snapshot);
            }
            return done;
        });
    } else if (const auto* evaluate = std::get_if<EvaluateModel>(&job)) {
        run_later(job, [this, evaluate = *evaluate] { return work_.evaluate(evaluate); });
    } else if (const auto* release = std::get_if<ReleaseExperiment>(&job)) {
        work_.release(*release);
    } else if (const auto* read = std::get_if<ReadRounds>(&job)) {
        queue_.after(store_time_, life_, [this, read = *read] {
            event(RoundsRead{read.experiment, read.from, store_.rounds(read.experiment, read.from, read.count), {}});
        });
    }
}

/// Pulls what is missing of the update, then hands it to the work; chunks that came stay for the next try.
void CoordinatorHost::absorb(const AbsorbUpdate& job) {
    const auto found = sessions_.find(job.session);
    if (found == sessions_.end() || around_.network.connection(found->second) != job.session) {
        absorbed(job, Error{ErrorKind::disconnected, "disconnected", "the session is gone"});
        return;
    }
    auto& at = received_[job.update.digest];
    if (!at) {
        at = std::make_shared<std::uint64_t>(0);
    }
    fetching_[{job.experiment, job.round, job.node}] = true;
    around_.network.transfer(
        found->second, Side::client, job.update.bytes, at, life_,
        [this, job](const Status& status) { absorbed(job, status ? std::nullopt : std::optional(status.error())); });
}

/// Given up in time, nothing of it enters the sum; later it is too late, and it counts (CancelAbsorb).
void CoordinatorHost::absorbed(const AbsorbUpdate& job, std::optional<Error> error) {
    const FetchKey key{job.experiment, job.round, job.node};
    const auto wanted = fetching_.find(key);
    if (wanted != fetching_.end() && !wanted->second) {
        error = Error{ErrorKind::refused, "cancelled", "given up"};
    }
    fetching_.erase(key);
    if (!error && disk_full()) {
        error = no_room();
    }
    UpdateAbsorbed answer{job.experiment, job.round, job.attempt, job.node, job.update.digest, {}, std::move(error)};
    if (!answer.fetch_error) {
        const auto bytes = around_.read_update(sessions_.at(job.session), job.update.digest);
        if (bytes) {
            answer = work_.absorb(job, *bytes);
        } else {
            answer.fetch_error = bytes.error();
        }
    }
    if (!answer.fetch_error) {
        received_.erase(job.update.digest);
    }
    answer.aggregate = answer.fetch_error ? Duration::zero() : work_.time_of(job);
    around_.invariants.absorbed(job, answer);
    queue_.after(answer.fetch_error ? Duration::zero() : work_.time_of(job), life_, [this, answer] { event(answer); });
}

}  // namespace causeway::simulation
