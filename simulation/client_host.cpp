// See client_host.h.
#include "simulation/client_host.h"

#include "simulation/describe.h"

namespace causeway::simulation {

std::function<void()> ClientHost::while_alive(std::function<void()> action) {
    return [this, life = life_, action = std::move(action)] {
        if (life_ == life && session_) {
            action();
        }
    };
}

void ClientHost::start() {
    around_.transcript.add(options_.node, "start");
    auto options = options_;
    options.held = work_.held();
    session_.emplace(std::move(options));
    take(session_->start(around_.queue.now()));
}

/// The folder stays: the next start reads from it what is held.
void ClientHost::crash() {
    around_.transcript.add(options_.node, "crash");
    ++life_;
    session_.reset();
    received_.clear();
    effects_left_.reset();
    work_.crash();
    around_.network.vanish(link_, Side::client);
    if (const auto crashed = std::exchange(crashed_, {})) {
        crashed();
    }
}

void ClientHost::crash_after(std::uint32_t effects, std::function<void()> crashed) {
    effects_left_ = effects;
    crashed_ = std::move(crashed);
}

bool ClientHost::survives_next_effect() {
    if (effects_left_ && (*effects_left_)-- == 0) {
        crash();
        return false;
    }
    return true;
}

void ClientHost::event(const node::Event& event) {
    if (session_) {
        take(session_->step(around_.queue.now(), event));
    }
}

/// Persist, then send, then jobs; a crash can come before any of them.
void ClientHost::take(const node::Effects& effects) {
    wake(effects.wake_at);
    for (const auto& one : effects.persist) {
        if (!survives_next_effect()) {
            return;
        }
        persist(one);
    }
    for (const auto& message : effects.send) {
        if (!survives_next_effect()) {
            return;
        }
        around_.transcript.add(options_.node, "-> coordinator " + describe(message));
        around_.network.send(Side::client, link_, message);
    }
    for (const auto& job : effects.jobs) {
        if (!survives_next_effect()) {
            return;
        }
        around_.transcript.add(options_.node, "job " + describe(job));
        run(job);
    }
}

void ClientHost::persist(const node::Persist& persist) {
    around_.transcript.add(options_.node, "persist " + describe(persist));
    if (const auto* resolve = std::get_if<node::ResolvePending>(&persist)) {
        around_.invariants.resolved(options_.node, *resolve);
        work_.resolve(*resolve);
    } else {
        work_.forget(std::get<node::ForgetExperiment>(persist));
    }
}

void ClientHost::wake(Instant when) {
    ++wakes_;
    if (when != never) {
        around_.queue.at(when, while_alive([this, wake = wakes_] {
                             if (wake == wakes_) {
                                 event(node::Tick{});
                             }
                         }));
    }
}

void ClientHost::run(const node::Job& job) {
    if (std::holds_alternative<node::Connect>(job)) {
        around_.network.connect(link_);
    } else if (std::holds_alternative<node::Disconnect>(job)) {
        around_.network.vanish(link_, Side::client);
    } else if (const auto* model = std::get_if<node::FetchModel>(&job)) {
        fetch(*model);
    } else if (const auto* assignment = std::get_if<node::Train>(&job)) {
        train(*assignment);
    } else if (const auto* evaluation = std::get_if<node::Evaluate>(&job)) {
        evaluate(*evaluation);
    } else if (trainings_ % 2 == 0) {
        ++trainings_;  // stopped at the next instruction; every second one had just ended, and its Trained still comes
    }
}

/// From the cache at once; else over the link, from the chunk where the last try ended.
void ClientHost::fetch(const node::FetchModel& job) {
    if (work_.has_model(job.model)) {
        around_.queue.after(Duration::zero(), while_alive([this, job] { event(node::ModelFetched{job.model, {}}); }));
        return;
    }
    pull_model(job.model, job.bytes, [this, job](const Status& status) {
        node::ModelFetched fetched{job.model, {}};
        if (!status) {
            fetched.error = status.error();
        }
        event(fetched);
    });
}

/// `done` is not called in another life than this one.
void ClientHost::pull_model(const Digest& model, std::uint64_t bytes, std::function<void(const Status&)> done) {
    auto& at = received_[model];
    if (!at) {
        at = std::make_shared<std::uint64_t>(0);
    }
    around_.network.transfer(
        link_, Side::coordinator, bytes, at, [this, model, done = std::move(done), life = life_](const Status& status) {
            if (life_ != life || !session_) {
                return;
            }
            const auto file = status ? around_.read_model(model) : Result<Bytes>(fail(status.error()));
            if (file) {
                work_.keep_model(model, *file);
            }
            done(file ? Status() : Status(fail(file.error())));
        });
}

void ClientHost::evaluate(const node::Evaluate& job) {
    const auto answer = [this, job](const Status& status) {
        auto reply =
            status ? work_.evaluate(job)
                   : Reply{.id = job.request,
                           .error = ErrorNotice{status.error().kind, status.error().code, status.error().message}};
        event(node::Evaluated{std::move(reply)});
    };
    if (work_.has_model(job.assign.model)) {
        around_.queue.after(Duration::zero(), while_alive([answer] { answer({}); }));
    } else {
        pull_model(job.assign.model, job.assign.model_bytes, answer);
    }
}

/// The work is done at the instant the training ends, so a crash or stop before leaves nothing behind.
void ClientHost::train(const node::Train& job) {
    const auto run = ++trainings_;
    const auto time = work_.time_to_train(job.assign);
    around_.queue.after(time / 2, while_alive([this, run, lease = job.assign.lease] {
                            if (trainings_ == run) {
                                event(node::TrainingProgress{lease, 1, 2, 1.0});
                            }
                        }));
    around_.queue.after(time, while_alive([this, run, assign = job.assign] {
                            if (trainings_ == run) {
                                event(work_.train(assign));
                            }
                        }));
}

}  // namespace causeway::simulation
