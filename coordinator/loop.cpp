// One turn: take an event, give it to the machine, hand its effects on. Time stands still within a turn.
#include "coordinator/loop.h"

#include "common/log.h"
#include "common/overloaded.h"
#include "coordinator/daemon_log.h"

namespace causeway {

Loop::Loop(Coordinator machine, LoopPartners partners, std::shared_ptr<LoopQueue> queue)
    : machine_(std::move(machine)), partners_(std::move(partners)), queue_(std::move(queue)) {
    find_parts();
}

Status Loop::run() {
    real_now_ = real_now();
    clock_ = ListeningClock(real_now_);
    now_ = clock_.now();
    take(machine_.start(now_));
    while (true) {
        // Until wake_at; once the link is asked to hear everybody out, until its answer.
        const auto due = listens_ ? never : next_.empty() ? clock_.real_at(wake_at_) : real_now_;
        const auto event = queue_->pop_for(
            std::clamp<Duration>(due - real_now_, Duration::zero(), ListeningClock::longest_wait));
        keep_time();
        if (partners_.alive) {
            partners_.alive(real_now_);
        }
        if (event) {
            if (const auto* stop = std::get_if<StopLoop>(&*event)) {
                return stop->why ? Status(fail(*stop->why)) : Status();
            }
            std::visit([this](const auto& e) { on(e); }, *event);
        }
        while (!next_.empty()) {
            const auto own = std::move(next_.front());
            next_.pop_front();
            step(own);
        }
        if (clock_.now() >= wake_at_ && !listens_) {
            listens_ = true;
            partners_.link.listen();
        }
    }
}

/// While this process stood still nobody was late: the machine hears of that before all that has come meanwhile.
void Loop::keep_time() {
    real_now_ = real_now();
    const auto stood_still = clock_.turn(real_now_);
    if (stood_still > Duration::zero()) {
        log_info("coordinator", "this process stood still for " + format_duration(stood_still) +
                                    " (stopped, suspended or without a processor): no deadline counts that time");
        step(StoodStill{});
    }
}

/// What came before the deadline, and all that waited until now, has been handled: now it counts.
void Loop::be_woken() {
    listens_ = false;
    now_ = std::max(now_, clock_.now());
    take(machine_.step(now_, Tick{}));
}

/// Until the machine is woken its time stays before the instant that it waits for.
void Loop::step(const CoordinatorEvent& event) {
    now_ = std::max(now_, clock_.before(wake_at_));
    take(machine_.step(now_, event));
}

void Loop::take(CoordinatorEffects effects) {
    wake_at_ = effects.wake_at;
    for (const auto& line : effects.say) {
        log_warn("coordinator", line);
    }
    auto persists = std::exchange(effects.persist, {});
    auto facts = note(persists);
    const auto number = effects_.push(std::move(effects), !persists.empty());
    if (!facts.empty()) {
        facts_.emplace(number, std::move(facts));
    }
    if (!persists.empty()) {
        partners_.store.execute(number, std::move(persists));
    }
    release();
}

/// What else hangs on a step's persists: the log, the job runner's set-ups, and what happens when they are stored.
std::vector<Loop::Fact> Loop::note(const std::vector<Persist>& persists) {
    std::vector<Fact> facts;
    for (const auto& persist : persists) {
        log_persist(persist);
        if (const auto* experiment = std::get_if<SaveExperiment>(&persist)) {
            partners_.jobs.know(*experiment);
        } else if (const auto* evaluation = std::get_if<SaveEvaluation>(&persist)) {
            facts.emplace_back(*evaluation);
        } else if (const auto* commit = std::get_if<SaveCommit>(&persist)) {
            facts.emplace_back(CommitStored{commit->experiment, commit->round});
        }
    }
    return facts;
}

void Loop::release() {
    while (auto effects = effects_.pop()) {
        send(std::move(effects->send));
        for (const auto& close : effects->close) {
            partners_.link.close(close.session, {close.kind, close.code, close.message});
        }
        for (const auto& job : effects->jobs) {
            start(job);
        }
    }
}

/// Nodes that cannot reach each other stream through here: those that a client's roster pairs, and no others.
void Loop::allow_relays(ConnectionId session, const Roster& roster) {
    const auto known = sessions_.find(session);
    if (known == sessions_.end() || known->second.peer.identity.role != Role::client) {
        return;  // the client's side of a pair is enough
    }
    const auto& client = known->second.peer.identity.node;
    auto& pairs = relays_[client];
    pairs.clear();
    for (const auto& entry : roster.entries) {
        pairs.push_back({.first = client,
                         .second = entry.node,
                         .experiment = entry.experiment,
                         .expires = real_now_ + std::chrono::milliseconds(entry.expires_ms)});
    }
    if (pairs.empty()) {
        relays_.erase(client);
    }
    std::vector<RelayPair> all;
    for (const auto& [node, of_node] : relays_) {
        all.insert(all.end(), of_node.begin(), of_node.end());
    }
    partners_.link.allow_relays(std::move(all));
}

/// A step's messages go together: the link seals what one peer gets into one frame, and is woken once.
void Loop::send(std::vector<Send> sends) {
    std::vector<AddressedMessage> messages;
    for (auto& send : sends) {
        keep_pace(send.session, send.message);
        if (const auto* roster = std::get_if<Roster>(&send.message)) {
            allow_relays(send.session, *roster);
        }
        if (auto* committed = std::get_if<Committed>(&send.message)) {
            // By what is durable: the machines know nothing of the log.
            committed->audit_head = partners_.store.audit_head();
        }
        messages.push_back({send.session, std::move(send.message)});
    }
    if (!messages.empty()) {
        partners_.link.send(std::move(messages));
    }
}

/// A member at work is watched closely; at rest a beat every 2 s is enough.
void Loop::keep_pace(ConnectionId connection, const Message& message) {
    const bool begins = std::holds_alternative<Assign>(message);
    const auto session = sessions_.find(connection);
    if (session == sessions_.end() || (!begins && !std::holds_alternative<Ended>(message))) {
        return;
    }
    const auto wanted = begins ? Pace::leased : Pace::idle;
    if (session->second.pace != wanted) {
        session->second.pace = wanted;
        partners_.link.set_pace(connection, wanted);
    }
}

void Loop::start(const Job& job) {
    std::visit(Overloaded{[this](const MakeModel& j) { partners_.jobs.make_model(j); },
                          [this](const OpenRound& j) { partners_.jobs.open_round(j); },
                          [this](const AbsorbUpdate& j) { fetch(j); }, [this](const CancelAbsorb& j) { cancel(j); },
                          [this](const FinishRound& j) { partners_.jobs.finish_round(j); },
                          [this](const EvaluateModel& j) { partners_.jobs.evaluate(j); },
                          [this](const ReleaseExperiment& j) {
                              partners_.jobs.release(j);
                              forget_parts();
                          },
                          [this](const ReadRounds& j) { read(j); }},
               job);
}

/// Behind every step that was stored before.
void Loop::read(const ReadRounds& job) {
    partners_.store.run([queue = queue_, job](Store& store) {
        RoundsRead read{.experiment = job.experiment, .from = job.from, .rounds = {}, .error = {}};
        if (auto rounds = store.rounds(job.experiment, job.from, job.count)) {
            read.rounds = *std::move(rounds);
        } else {
            read.error = rounds.error();
        }
        queue->push(CoordinatorEvent(std::move(read)));
    });
}

/// What the machines have decided waits, and goes on by itself; an operator who asks hears why (loop_peers.cpp).
void Loop::on(const StoreStuck& event) {
    stuck_ = event.why;
    log_warn("coordinator", "nothing is decided until the store has room: " + event.why.message);
}

void Loop::on(const StepStored& event) {
    if (stuck_) {
        log_info("coordinator", "the store stores again, and what waited for it goes on");
    }
    stuck_.reset();
    effects_.stored(event.step);
    release();
    const auto facts = facts_.extract(event.step);
    for (const auto& fact : facts ? facts.mapped() : std::vector<Fact>()) {
        if (const auto* evaluation = std::get_if<SaveEvaluation>(&fact)) {
            partners_.jobs.evaluation_stored(evaluation->experiment, evaluation->round);
        } else {
            forget_parts();
            step(std::get<CommitStored>(fact));
        }
    }
}

/// A refusal is also the end of the connection: of an enrolment, the only kind that is refused here.
void Loop::on(const SendLater& event) {
    if (const auto* refusal = std::get_if<ErrorNotice>(&event.message)) {
        partners_.link.close(event.connection, {refusal->kind, refusal->code, refusal->message});
    } else {
        partners_.link.send(event.connection, event.message);
    }
}

}  // namespace causeway
