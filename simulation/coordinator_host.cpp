// See coordinator_host.h.
#include "simulation/coordinator_host.h"

#include <algorithm>

#include "simulation/describe.h"

namespace causeway::simulation {

/// What a process had planned dies with it.
std::function<void()> CoordinatorHost::while_alive(std::function<void()> action) {
    return [this, life = life_, action = std::move(action)] {
        if (life_ == life && machine_) {
            action();
        }
    };
}

void CoordinatorHost::start() {
    auto recovered = store_.recover();
    epoch_ = recovered.epoch;
    around_.transcript.add("coordinator", "start epoch " + std::to_string(epoch_));
    machine_.emplace(options_, std::move(recovered));
    released_until_ = around_.queue.now();
    take(machine_->start(around_.queue.now()));
}

/// Sessions, sums and everything not persisted are gone; the store stays.
void CoordinatorHost::crash() {
    around_.transcript.add("coordinator", "crash");
    ++life_;
    machine_.reset();
    sessions_.clear();
    fetching_.clear();
    received_.clear();
    effects_left_.reset();
    work_.crash();
    for (std::size_t link = 0; link < around_.nodes.size(); ++link) {
        around_.network.vanish(link, Side::coordinator);
    }
    if (const auto crashed = std::exchange(crashed_, {})) {
        crashed();
    }
}

void CoordinatorHost::crash_after(std::uint32_t effects, std::function<void()> crashed) {
    effects_left_ = effects;
    crashed_ = std::move(crashed);
}

bool CoordinatorHost::survives_next_effect() {
    if (effects_left_ && (*effects_left_)-- == 0) {
        crash();
        return false;
    }
    return true;
}

void CoordinatorHost::event(const CoordinatorEvent& event) {
    if (machine_) {
        take(machine_->step(around_.queue.now(), event));
    }
}

/// Steps are released in order, each when its persists are done.
void CoordinatorHost::take(CoordinatorEffects effects) {
    wake(effects.wake_at);
    released_until_ =
        std::max(released_until_, around_.queue.now()) + (effects.persist.empty() ? Duration::zero() : store_time);
    around_.queue.at(released_until_, while_alive([this, effects = std::move(effects)] { released(effects); }));
}

/// Only the latest wish counts: every step says anew when to wake.
void CoordinatorHost::wake(Instant when) {
    ++wakes_;
    if (when != never) {
        around_.queue.at(when, while_alive([this, wake = wakes_] {
                             if (wake == wakes_) {
                                 event(Tick{});
                             }
                         }));
    }
}

/// A transaction is one effect, each send and each job is one: a crash can come before any of them.
void CoordinatorHost::released(const CoordinatorEffects& effects) {
    if (!effects.persist.empty()) {
        if (!survives_next_effect()) {
            return;
        }
        for (const auto& persist : effects.persist) {
            around_.transcript.add("coordinator", "persist " + describe(persist));
            around_.invariants.persisted(persist);
        }
        store_.apply(effects.persist);
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
        around_.transcript.add("coordinator", "job " + describe(job));
        run(job);
    }
}

void CoordinatorHost::send(const Send& send) {
    if (send.session >= first_operator_session) {
        around_.transcript.add("coordinator", "-> operator " + describe(send.message));
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
    around_.transcript.add("coordinator", "-> " + node + " " + describe(send.message));
    around_.invariants.sent(node, send.message);
    around_.network.send(Side::coordinator, found->second, send.message);
}

void CoordinatorHost::close(const CloseSession& close) {
    const auto found = sessions_.find(close.session);
    if (found != sessions_.end() && around_.network.connection(found->second) == close.session) {
        around_.network.cut(found->second, close.message);
    }
}

/// As in the daemon, the hello makes a connection a session.
void CoordinatorHost::heard(std::size_t link, ConnectionId connection, const Message& message) {
    if (const auto* hello = std::get_if<Hello>(&message)) {
        sessions_[connection] = link;
        event(SessionOpened{connection, around_.nodes[link], "client", *hello});
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
    around_.queue.after(work_.time_of(job), while_alive([this, work = std::move(work)] { event(work()); }));
}

void CoordinatorHost::run(const Job& job) {
    if (const auto* make = std::get_if<MakeModel>(&job)) {
        run_later(job, [this, make = *make] {
            return work_.make_model(make, machine_->experiments().at(make.experiment).saved());
        });
    } else if (const auto* open = std::get_if<OpenRound>(&job)) {
        work_.open_round(*open);
    } else if (const auto* update = std::get_if<AbsorbUpdate>(&job)) {
        absorb(*update);
    } else if (const auto* cancel = std::get_if<CancelAbsorb>(&job)) {
        if (const auto found = fetching_.find({cancel->experiment, cancel->round, cancel->node});
            found != fetching_.end()) {
            found->second = false;
        }
    } else if (const auto* finish = std::get_if<FinishRound>(&job)) {
        run_later(job, [this, finish = *finish] {
            auto done = work_.finish_round(finish);
            if (auto* snapshot = std::get_if<SnapshotWritten>(&done)) {
                snapshot->bytes_up_total = around_.network.bytes_up();
                snapshot->bytes_down_total = around_.network.bytes_down();
            }
            return done;
        });
    } else if (const auto* evaluate = std::get_if<EvaluateModel>(&job)) {
        run_later(job, [this, evaluate = *evaluate] { return work_.evaluate(evaluate); });
    } else if (const auto* release = std::get_if<ReleaseExperiment>(&job)) {
        work_.release(*release);
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
    const auto life = life_;
    around_.network.transfer(found->second, Side::client, job.update.bytes, at,
                             [this, job, life](const Status& status) {
                                 if (life_ == life && machine_) {
                                     absorbed(job, status ? std::nullopt : std::optional(status.error()));
                                 }
                             });
}

/// Given up in time, nothing of it enters the sum; later it is too late, and it counts (CancelAbsorb).
void CoordinatorHost::absorbed(const AbsorbUpdate& job, std::optional<Error> error) {
    const FetchKey key{job.experiment, job.round, job.node};
    const auto wanted = fetching_.find(key);
    if (wanted != fetching_.end() && !wanted->second) {
        error = Error{ErrorKind::refused, "cancelled", "given up"};
    }
    fetching_.erase(key);
    UpdateAbsorbed answer{job.experiment, job.round, job.attempt, job.node, job.update.digest, {}, std::move(error)};
    if (!answer.fetch_error) {
        const auto bytes = around_.read_update(sessions_.at(job.session), job.update.digest);
        if (bytes) {
            answer = work_.absorb(job, *bytes);
        } else {
            answer.fetch_error = bytes.error();
        }
    }
    around_.invariants.absorbed(epoch_, answer);
    around_.queue.after(answer.fetch_error ? Duration::zero() : work_.time_of(job),
                        while_alive([this, answer] { event(answer); }));
}

}  // namespace causeway::simulation
