// See client_host.h.
#include "simulation/client_host.h"

#include "simulation/describe.h"
#include "simulation/lies.h"

namespace causeway::simulation {

void ClientHost::start() {
    around_.transcript.add(options_.node, "start");
    auto options = options_;
    options.held = work_.held();
    session_.emplace(std::move(options));
    begin_life();
    take(session_->start(now()));
}

/// The folder stays: the next start reads from it what is held.
void ClientHost::die(Crash how) {
    around_.transcript.add(options_.node, how == Crash::power ? "power cut" : "crash");
    session_.reset();
    received_.clear();
    pending_.clear();
    work_.crash(how);
    if (how == Crash::power) {
        around_.invariants.lost_power(options_.node);
    }
    around_.network.vanish(link_, Side::client);
    around_.turns.lose(options_.node);
    end_life();
}

void ClientHost::event(const node::Event& event) {
    if (!session_) {
        return;
    }
    if (queue_.now() < life_.stopped_until) {
        queue_.at(life_.stopped_until, life_, [this, event] { this->event(event); });
        return;
    }
    if (const auto* heard = std::get_if<node::MessageReceived>(&event)) {
        remember(heard->message);
    }
    (void)begin_turn();
    take(session_->step(now(), event));
}

/// Steps are released in order; one that has to persist waits until the disk takes it.
void ClientHost::take(node::Effects effects) {
    wake_at(effects.wake_at);
    pending_.push_back(std::move(effects));
    if (pending_.size() == 1) {
        release_pending();
    }
}

void ClientHost::release_pending() {
    while (!pending_.empty()) {
        if (!pending_.front().persist.empty() && disk_full()) {
            queue_.at(disk_full_until(), life_, [this] { release_pending(); });
            return;
        }
        const auto life = life_.number;
        const auto effects = std::move(pending_.front());
        release(effects);
        if (life != life_.number) {
            return;
        }
        pending_.pop_front();
    }
}

/// Persist, then send, then jobs; a crash can come before any of them.
void ClientHost::release(const node::Effects& effects) {
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
        around_.transcript.add(options_.node, [&] { return "-> coordinator " + describe(message); });
        remember(message);
        around_.invariants.offers(options_.node, message);
        around_.network.send(Side::client, link_, message);
    }
    for (const auto& job : effects.jobs) {
        if (!survives_next_effect()) {
            return;
        }
        around_.transcript.add(options_.node, [&] { return "job " + describe(job); });
        run(job);
    }
}

void ClientHost::remember(const Message& message) {
    if (const auto* assign = std::get_if<Assign>(&message)) {
        last_lease_ = assign->lease;
    } else if (const auto* offer = std::get_if<Offer>(&message)) {
        last_offer_ = offer->update;
    }
}

void ClientHost::lie(RandomStream& random) {
    const auto lie = forge(random, last_lease_.value_or(Lease{1, 1, 1, 1}), last_offer_.value_or(HeldUpdate{}));
    around_.transcript.add(options_.node, "lies: " + describe(lie));
    around_.invariants.distrust(options_.node);
    around_.network.send(Side::client, link_, lie);
}

void ClientHost::persist(const node::Persist& persist) {
    around_.transcript.add(options_.node, [&] { return "persist " + describe(persist); });
    if (const auto* resolve = std::get_if<node::ResolvePending>(&persist)) {
        around_.invariants.resolved(options_.node, *resolve);
        work_.resolve(*resolve);
    } else {
        work_.forget(std::get<node::ForgetExperiment>(persist));
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
    } else if (const auto* turn = std::get_if<node::RunTurn>(&job)) {
        run_turn(*turn);
    } else if (const auto* stop = std::get_if<node::StopTurn>(&job)) {
        around_.turns.stop(options_.node, stop->lease);
    } else if (const auto* segment = std::get_if<node::LetGo>(&job)) {
        work_.let_go(segment->segment);
    } else if (trainings_ % 2 == 0) {
        ++trainings_;  // stopped at the next instruction; every second one had just ended, and its Trained still comes
    }
}

/// Its end comes when both sides have begun and the client's time is over; not in another life.
void ClientHost::run_turn(const node::RunTurn& job) {
    around_.turns.begin({.node = options_.node,
                         .link = link_,
                         .assign = job.assign,
                         .work = &work_,
                         .slowness = slowness_,
                         .done = [this, lease = job.assign.lease](node::TurnEnd end) {
                             if (!up()) {
                                 return;
                             }
                             if (end.output) {
                                 work_.keep_segment(*end.output);
                                 event(node::TurnDone{lease, end.output->held, std::nullopt});
                             } else {
                                 event(node::TurnDone{lease, {}, end.output.error(), end.peer});
                             }
                         }});
}

/// From the cache at once; else over the link, from the chunk where the last try ended.
void ClientHost::fetch(const node::FetchModel& job) {
    if (work_.has_model(job.model)) {
        queue_.after(Duration::zero(), life_, [this, job] { event(node::ModelFetched{job.model, {}}); });
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
        link_, Side::coordinator, bytes, at, life_, [this, model, done = std::move(done)](const Status& status) {
            const auto file = status ? around_.read_model(model) : Result<Bytes>(fail(status.error()));
            if (file) {
                work_.keep_model(model, *file);
                received_.erase(model);
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
        queue_.after(Duration::zero(), life_, [answer] { answer({}); });
    } else {
        pull_model(job.assign.model, job.assign.model_bytes, answer);
    }
}

/// The work is done at the instant the training ends, so a crash or stop before leaves nothing behind.
void ClientHost::train(const node::Train& job) {
    around_.invariants.trains(options_.node, job.assign);
    const auto run = ++trainings_;
    const auto time = from_seconds(seconds(work_.time_to_train(job.assign)) * slowness_);
    queue_.after(time / 2, life_, [this, run, lease = job.assign.lease] {
        if (trainings_ == run) {
            event(node::TrainingProgress{lease, 1, 2, 1.0});
        }
    });
    queue_.after(time, life_, [this, run, assign = job.assign] { end_training(run, assign); });
}

/// The update is written before it is spoken of: on a full disk both wait.
void ClientHost::end_training(std::uint64_t run, const Assign& assign) {
    if (trainings_ != run) {
        return;
    }
    if (disk_full()) {
        queue_.at(disk_full_until(), life_, [this, run, assign] { end_training(run, assign); });
    } else {
        event(work_.train(assign));
    }
}

}  // namespace causeway::simulation
