// See session.h.
#include "client/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/evaluation_request.h"
#include "common/random.h"
#include "configs/statistics.h"

namespace causeway::node {
namespace {

/// The same work, whatever lease it is done under: its update is the same.
bool same_work(const Assign& a, const Assign& b) {
    return a.lease.experiment == b.lease.experiment && a.lease.round == b.lease.round && a.model == b.model;
}

std::string round_text(const Assign& assign) {
    const auto round = assign.lease.round;
    const auto rounds = assign.rounds;
    if (assign.program == statistics_program) {
        return "sums of the columns of " + assign.dataset + ", before round 1";
    }
    return "round " + std::to_string(round) + (rounds != 0 ? " of " + std::to_string(rounds) : "");
}

}  // namespace

Session::Session(SessionOptions options) : options_(std::move(options)) {
    for (const auto& update : options_.held) {
        held_[{update.experiment, update.round}] = update;
    }
    options_.held.clear();
    kept_.insert(options_.experiments.begin(), options_.experiments.end());
}

Effects Session::start(Instant now) {
    link_deadline_ = now;
    return step(now, Tick{});
}

Effects Session::step(Instant now, const Event& event) {
    Effects effects;
    std::visit([&](const auto& e) { on(now, e, effects); }, event);
    effects.wake_at = deadline();
    return effects;
}

// ---------------------------------------------------------------- link

/// The greeting asks: every held update is named, and the coordinator says what became of each.
void Session::on(Instant now, const Connected&, Effects& effects) {
    if (link_ != Link::connecting) {
        return;
    }
    link_ = Link::greeting;
    link_deadline_ = now + greeting_limit;
    after_welcome_.reset();
    Hello hello;
    hello.software = options_.software;
    hello.compute_signature = options_.compute_signature;
    hello.datasets = options_.datasets;
    hello.addresses = options_.addresses;
    hello.memory = options_.memory;
    if (options_.splits) {
        hello.features.emplace_back(split_feature);
    }
    for (const auto& [key, update] : held_) {
        if (hello.held.size() < max_held_told) {
            hello.held.push_back(update);
        }
    }
    // The newest, should there be more: the older ones are told at a later greeting, when these are gone.
    auto kept = kept_;
    kept.insert(turns_.experiments().begin(), turns_.experiments().end());
    for (auto id = kept.rbegin(); id != kept.rend() && hello.experiments.size() < max_held_told; ++id) {
        hello.experiments.push_back(*id);
    }
    effects.send.emplace_back(std::move(hello));
}

void Session::on(Instant now, const Disconnected& event, Effects& effects) {
    if (link_ != Link::waiting) {
        lose_link(now, event.why.message, effects);
    }
}

/// The work goes on: training needs no link, and a fetch is asked for again once there is one.
void Session::lose_link(Instant now, const std::string& why, Effects& effects) {
    const auto pause = pause_before_attempt(attempts_);
    ++attempts_;
    link_ = Link::waiting;
    link_deadline_ = now + pause;
    turns_.lose_link(effects);
    while (evaluations_.size() > 1) {  // the one at work ends by itself
        evaluations_.pop_back();
    }
    effects.say.push_back("no connection to the coordinator (" + why + "); trying again in " + format_duration(pause));
}

/// Doubling from the first pause to the longest, minus up to half by a jitter keyed by node and attempt.
Duration Session::pause_before_attempt(std::uint32_t attempt) const {
    const auto whole =
        std::min(reconnect_first * (std::int64_t{1} << std::min<std::uint32_t>(attempt, 8)), reconnect_longest);
    RandomStream stream(
        {.seed = options_.jitter_seed, .purpose = "reconnect", .round = attempt, .node = node_key(options_.node)});
    const auto jitter = static_cast<std::int64_t>(static_cast<double>(whole.count() / 2) * stream.uniform());
    return whole - Duration(jitter);
}

void Session::on(Instant now, const Tick&, Effects& effects) {
    if (link_ == Link::waiting && now >= link_deadline_) {
        link_ = Link::connecting;
        link_deadline_ = never;
        effects.jobs.emplace_back(Connect{});
    } else if (link_ == Link::greeting && now >= link_deadline_) {
        effects.jobs.emplace_back(Disconnect{"no welcome"});
        lose_link(now, "the coordinator did not answer the greeting", effects);
    }
    // Without a link a fetch cannot succeed: it is due again with the next welcome.
    turns_.tick(now, effects);
    if (work_ && now >= work_->fetch_at && link_ == Link::online) {
        fetch(effects);
    }
}

void Session::on(Instant now, const MessageReceived& event, Effects& effects) {
    if (link_ != Link::greeting && link_ != Link::online) {
        return;  // of a session that is over
    }
    std::visit([&](const auto& message) { hear(now, message, effects); }, event.message);
}

void Session::hear(Instant now, const Welcome& message, Effects& effects) {
    if (link_ != Link::greeting) {
        return;
    }
    link_ = Link::online;
    link_deadline_ = never;
    attempts_ = 0;
    effects.say.push_back("joined " + message.federation + " as " + options_.node);
    if (after_welcome_) {  // an experiment that has ended meanwhile assigns nothing: only this makes it say so
        send(*std::exchange(after_welcome_, std::nullopt), effects);
    }
    if (work_ && !work_->training && !work_->fetching) {
        work_->fetch_at = now;
        on(now, Tick{}, effects);
    }
}

void Session::hear(Instant, const ErrorNotice& message, Effects& effects) {
    effects.say.push_back("the coordinator says: " + message.message + " (" + message.code + ")");
}

// ---------------------------------------------------------------- evaluations

/// All that a coordinator asks about an experiment: the policy judges it as it would an assignment.
void Session::hear(Instant, const Request& message, Effects& effects) {
    const auto refuse = [&](const Error& why) {
        send(Reply{message.id, true, "", ErrorNotice{why.kind, why.code, why.message}}, effects);
    };
    auto assign = read_evaluation_request(message);
    if (!assign) {
        return refuse(assign.error());
    }
    if (options_.policy) {
        if (const auto objection = options_.policy(*assign, Asked::figures)) {
            effects.say.push_back("does not evaluate " + assign->experiment_name + ": " + objection->message);
            return refuse({ErrorKind::refused, objection->code, objection->message});
        }
    }
    if (evaluations_.size() >= max_evaluations) {
        return refuse({ErrorKind::overloaded, "overloaded", "too many evaluations are waiting at this node"});
    }
    evaluations_.push_back({message.id, *std::move(assign)});
    if (evaluations_.size() == 1) {
        next_evaluation(effects);
    }
}

void Session::next_evaluation(Effects& effects) {
    if (!evaluations_.empty()) {
        effects.jobs.emplace_back(evaluations_.front());
    }
}

/// Without a link the answer is lost, and the coordinator has left this node out by then.
void Session::on(Instant, const Evaluated& event, Effects& effects) {
    if (evaluations_.empty() || evaluations_.front().request != event.reply.id) {
        return;
    }
    evaluations_.pop_front();
    send(event.reply, effects);
    next_evaluation(effects);
}

// ---------------------------------------------------------------- assignments

/// In this order: may we, are we at it, do we have it, or shall we begin.
void Session::hear(Instant now, const Assign& assign, Effects& effects) {
    if (options_.policy) {
        if (const auto objection = options_.policy(assign, Asked::work)) {
            effects.say.push_back("declined " + assign.experiment_name + ": " + objection->message);
            send(Decline{assign.lease, objection->code, objection->message}, effects);
            return;
        }
    }
    if (!assign.segment.empty()) {
        effects.say.push_back(assign.experiment_name + ": " + round_text(assign) +
                              ", layers " + assign.segment + " with " +
                              (assign.peers.empty() ? std::string("nobody") : assign.peers.front().node));
        turns_.begin(assign, effects);
        return;
    }
    if (work_ && same_work(work_->assign, assign)) {
        work_->assign = assign;  // goes on under the new lease
        send_progress(now, effects);
        return;
    }
    if (work_) {
        stop_work(effects);
    }
    // Done before, under another lease: the same start model gives the same update, so it is offered as it is.
    const auto held = held_.find({assign.lease.experiment, assign.lease.round});
    if (held != held_.end() && held->second.start_model == assign.model) {
        send(Offer{assign.lease, held->second}, effects);
        return;
    }
    drop_older(assign, effects);
    begin(assign, effects);
}

/// Of this experiment only one update can be pending: training starts from a base that the coordinator has confirmed.
/// It has said what became of earlier ones before it assigns, so what is left here was never counted.
void Session::drop_older(const Assign& assign, Effects& effects) {
    for (auto entry = held_.begin(); entry != held_.end();) {
        const auto current = entry++;
        if (current->first.first == assign.lease.experiment) {
            resolve(current, false, effects);
        }
    }
}

/// The first progress is the answer to the assignment: it is being worked on.
void Session::begin(const Assign& assign, Effects& effects) {
    work_ = Work{};
    work_->assign = assign;
    effects.say.push_back(assign.experiment_name + ": " + round_text(assign));
    send(Progress{assign.lease, 0, 0, 0}, effects);
    if (assign.model.empty()) {  // of a round that starts from none
        return train(effects);
    }
    fetch(effects);
}

/// From here on the lease may change under the work; the trainer's answers name the one it was started with.
void Session::train(Effects& effects) {
    work_->training = true;
    work_->trained_under = work_->assign.lease;
    effects.jobs.emplace_back(Train{work_->assign});
}

void Session::fetch(Effects& effects) {
    work_->fetching = true;
    work_->fetch_at = never;
    effects.jobs.emplace_back(FetchModel{work_->assign.model, work_->assign.model_bytes});
}

void Session::on(Instant now, const TurnDone& event, Effects& effects) {
    turns_.done(now, event, effects);
}

void Session::on(Instant now, const ModelFetched& event, Effects& effects) {
    if (turns_.fetched(now, event, effects)) {
        return;
    }
    if (!work_ || !work_->fetching || event.model != work_->assign.model) {
        return;
    }
    work_->fetching = false;
    if (event.error) {
        return fetch_later(now, "could not fetch the model: " + event.error->message, effects);
    }
    train(effects);
}

/// After a longer pause each time, for a disk that damages what it stores will do so again.
void Session::fetch_later(Instant now, const std::string& why, Effects& effects) {
    auto& pause = work_->fetch_pause;
    pause = pause == Duration::zero() ? fetch_retry_first : std::min(pause * 2, fetch_retry_longest);
    work_->fetch_at = now + pause;
    effects.say.push_back(why + "; trying again in " + format_duration(pause));
}

/// A power cut may take bytes of a cached model, which is never flushed: no fault of the work.
void Session::on(Instant now, const ModelLost& event, Effects& effects) {
    if (work_ && work_->training && event.lease == work_->trained_under) {
        work_->training = false;
        fetch_later(now, "the cached model is damaged: " + event.why.message, effects);
    }
}

/// Steps may come thousands a second; a person looks twice.
void Session::on(Instant now, const TrainingProgress& event, Effects& effects) {
    if (const auto progress = turns_.progress(now, event)) {
        return send(*progress, effects);
    }
    if (!work_ || !work_->training || event.lease != work_->trained_under) {
        return;
    }
    work_->progress = {event.lease, event.step, event.steps, event.loss};
    if (now >= work_->progress_at) {
        send_progress(now, effects);
    }
}

void Session::send_progress(Instant now, Effects& effects) {
    work_->progress_at = now + progress_interval;
    auto progress = work_->progress;
    progress.lease = work_->assign.lease;
    send(progress, effects);
}

/// The update and its pending state are durable: it is held from now on, whether it can be offered or not.
void Session::on(Instant, const Trained& event, Effects& effects) {
    if (!work_ || !work_->training || event.lease != work_->trained_under) {
        if (!event.error) {  // of work that was stopped: the coordinator will not ask for it
            effects.persist.emplace_back(ResolvePending{event.update, false});
        }
        return;
    }
    const auto assign = std::move(work_->assign);
    work_.reset();
    if (event.error) {
        effects.say.push_back("could not train: " + event.error->message);
        send(Decline{assign.lease, event.error->code, event.error->message}, effects);
        return;
    }
    held_[{event.update.experiment, event.update.round}] = event.update;
    const Offer offer{assign.lease, event.update};  // without a link, the next Hello and Assign bring it
    if (link_ == Link::greeting) {
        after_welcome_ = offer;
    }
    send(offer, effects);
}

void Session::stop_work(Effects& effects) {
    if (work_->training) {
        effects.jobs.emplace_back(StopTraining{});
    }
    work_.reset();
}

// ---------------------------------------------------------------- what became of it

/// A verdict on the update itself ends it; base state returns.
void Session::hear(Instant, const Refused& message, Effects& effects) {
    if (message.code == "stale_lease") {
        return;  // the update is kept: an Assign under the next lease asks for it, or a Committed ends it
    }
    for (auto held = held_.begin(); held != held_.end(); ++held) {
        if (held->second.digest == message.update && held->first.first == message.lease.experiment) {
            effects.say.push_back("update of round " + std::to_string(held->first.second) +
                                  " refused: " + message.message + " (" + message.code + ")");
            resolve(held, false, effects);
            return;
        }
    }
}

/// The only word that turns pending into base, and only for the very update it names.
void Session::hear(Instant, const Committed& message, Effects& effects) {
    turns_.over(message.experiment, message.round, effects);
    if (work_ && work_->assign.lease.experiment == message.experiment && work_->assign.lease.round == message.round) {
        stop_work(effects);  // the round went on without us
    }
    const auto held = held_.find({message.experiment, message.round});
    if (held != held_.end()) {
        const bool counted = message.counted && message.update == held->second.digest;
        effects.say.push_back("round " + std::to_string(message.round) + " committed " +
                              (counted ? "with this node's update" : "without this node's update"));
        resolve(held, counted, effects);
    }
}

void Session::resolve(std::map<HeldKey, HeldUpdate>::iterator held, bool counted, Effects& effects) {
    if (counted) {
        kept_.insert(held->second.experiment);
    }
    effects.persist.emplace_back(ResolvePending{held->second, counted});
    held_.erase(held);
}

/// The answer is what lets the coordinator draw this node again; a held update waits for its round's commit.
void Session::hear(Instant, const Dropped& message, Effects& effects) {
    const auto& lease = message.lease;
    const auto newer = [&](const Lease& own) {
        return std::pair(lease.epoch, lease.attempt) >= std::pair(own.epoch, own.attempt);
    };
    if (work_ && work_->assign.lease.experiment == lease.experiment && work_->assign.lease.round == lease.round) {
        if (!newer(work_->assign.lease)) {
            return;
        }
        stop_work(effects);
    }
    turns_.dropped(lease, effects);
    effects.say.push_back("left out of round " + std::to_string(lease.round) + ": " + message.message + " (" +
                          message.code + ")");
    send(Decline{lease, "dropped", message.code}, effects);
}

/// Terminal: nothing of the experiment is worth keeping.
void Session::hear(Instant, const Ended& message, Effects& effects) {
    if (work_ && work_->assign.lease.experiment == message.experiment) {
        stop_work(effects);
    }
    turns_.over(message.experiment, std::numeric_limits<std::uint32_t>::max(), effects);
    std::erase_if(held_, [&](const auto& entry) { return entry.first.first == message.experiment; });
    kept_.erase(message.experiment);
    effects.persist.emplace_back(ForgetExperiment{message.experiment});
    effects.say.push_back("experiment " + std::to_string(message.experiment) + " " + message.state +
                          (message.reason.empty() ? "" : ": " + message.reason));
}

// ---------------------------------------------------------------- helpers

/// Words for a link that is down are not kept: the next Hello says what matters of them.
void Session::send(Message message, Effects& effects) const {
    if (link_ == Link::online) {
        effects.send.push_back(std::move(message));
    }
}

Instant Session::deadline() const {
    const auto fetch_at = work_ && link_ == Link::online ? work_->fetch_at : never;
    return std::min({link_deadline_, fetch_at, turns_.deadline()});
}

/// By experiment and round.
std::vector<HeldUpdate> Session::held() const {
    std::vector<HeldUpdate> all;
    for (const auto& [key, update] : held_) {
        all.push_back(update);
    }
    return all;
}

}  // namespace causeway::node
