// See federated_round.h. Every branch ends in a state from which the round still closes: by a report, a drop or a
// deadline.
#include "coordinator/federated_round.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/text.h"
#include "coordinator/decisions.h"
#include "coordinator/limits.h"

namespace causeway {

FederatedRound::FederatedRound(RoundPlan plan, Instant now)
    : Round(std::move(plan)),
      closes_at_(plan_.straggler_deadline > Duration::zero() ? now + plan_.straggler_deadline : never) {
    for (const auto& node : plan_.cohort) {
        const auto place = members_.emplace(node, Place{.lease = MemberLease(plan_.rejoin, plan_.first_wait, now),
                                                        .tried = plan_.tried.contains(node)});
        account(place.first->second);
    }
}

void FederatedRound::restore(const SaveDecision& decision) {
    auto* place = find(decision.detail["node"].text());
    if (place == nullptr) {
        return;
    }
    if (decision.kind == decisions::dropped && place->lease.drop()) {
        place->drop_code = decision.detail["code"].text();
        place->drop_message = decision.detail["message"].text();
    }
    if (decision.kind == decisions::refused && place->lease.settle()) {
        const auto& detail = decision.detail;
        place->refusal = Refused{.update = digest_from_hex(detail["update"].text()).value_or(Digest{}),
                                 .code = detail["code"].text(),
                                 .message = detail["message"].text(),
                                 .tensor = detail["tensor"].text(),
                                 .index = static_cast<std::uint64_t>(detail["index"].integer())};
    }
    account(*place);
}

/// A settled or dropped member hears its fate again: the first telling may have been lost with its session.
void FederatedRound::ready(Instant now, const std::string& node, SessionId session, const Digest& held,
                  CoordinatorEffects& effects) {
    auto* place = find(node);
    if (place == nullptr) {
        return;
    }
    place->session = session;
    if (place->lease.over()) {
        answer_over(*place, held, effects);
        return;
    }
    if (!place->drop_code.empty()) {
        return;  // the answer of CancelAbsorb decides, and is told then
    }
    place->lease.resync();
    // An offer was made under the lease before; the member makes it again, at once when it holds the update.
    place->offer.reset();
    place->machine_fault.clear();
    place->retry_at = never;
    place->progress_at = never;
    place->assigned_at = now;
    account(*place);
    if (place->lease.attempt() > 1) {
        log(decisions::next_attempt, decisions::attempt_detail(node, place->lease.attempt()), effects);
    }
    auto assignment = plan_.assignment;
    assignment.lease = lease_of(*place);
    assignment.cohort = static_cast<std::uint32_t>(members_.size());
    if (closes_at_ != never) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(closes_at_ - now).count();
        assignment.deadline_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 0xffffffff));
    }
    send(*place, std::move(assignment), effects);
}

/// What is being pulled goes on being pulled: if it ends well it counts, whoever is silent by then.
void FederatedRound::lost(Instant now, const std::string& node, bool session_gone, Duration grace,
                          CoordinatorEffects& effects) {
    auto* place = find(node);
    if (place == nullptr) {
        return;
    }
    if (session_gone) {
        place->session = 0;
    }
    place->offer.reset();
    place->machine_fault.clear();
    place->retry_at = never;
    const bool suspected = place->lease.suspect(now, grace);
    account(*place);
    if (suspected) {
        tick(now, effects);  // with rejoin = 0 suspicion drops at once
    }
}

void FederatedRound::expel(const std::string& node, const std::string& code, const std::string& message,
                  CoordinatorEffects& effects) {
    if (auto* place = find(node); place != nullptr && !place->lease.over()) {
        place->session = 0;
        place->offer.reset();
        place->retry_at = never;
        drop(node, *place, code, message, effects);
    }
}

void FederatedRound::on_offer(const std::string& node, SessionId session, const Offer& offer,
                              CoordinatorEffects& effects) {
    auto* place = find(node);
    if (place == nullptr) {
        effects.send.push_back({session, Refused{offer.lease, offer.update.digest, "stale_lease",
                                                 "this node is not in the cohort of that round", "", 0}});
        return;
    }
    if (place->lease.over()) {
        answer_over(*place, offer.update.digest, effects);
        return;
    }
    if (!place->drop_code.empty()) {
        return;  // as in ready()
    }
    // A stale lease says nothing about the update. Other objections are verdicts: the member has reported, and the
    // verdict is durable so that a restart does not ask for the same update again.
    if (auto refusal = objection(*place, offer)) {
        const bool judged = refusal->code != "stale_lease" && !place->absorbing;
        send(*place, *refusal, effects);
        if (judged) {
            place->lease.settle();
            log(decisions::refused, decisions::refused_detail(node, *refusal), effects);
            place->refusal = std::move(refusal);
            account(*place);
        }
        return;
    }
    place->offer = offer.update;
    place->retry_at = never;
    place->progress_at = never;  // it is done: the rest is the transfer's
    if (!place->absorbing) {
        absorb(node, *place, effects);
    }
    account(*place);
}

/// What can be judged from the offer alone; the firewall sees the rest once the bytes are here.
std::optional<Refused> FederatedRound::objection(const Place& place, const Offer& offer) const {
    const auto refuse = [&](const char* code, std::string message) {
        return Refused{offer.lease, offer.update.digest, code, std::move(message), "", 0};
    };
    auto expected = lease_of(place);
    if (offer.lease != expected || !place.lease.holds(offer.lease.attempt)) {
        return refuse("stale_lease", "the update was offered under attempt " + std::to_string(offer.lease.attempt) +
                                         ", the lease is at attempt " + std::to_string(expected.attempt));
    }
    const auto& update = offer.update;
    if (update.experiment != expected.experiment || update.round != expected.round) {
        return refuse("wrong_round", "the update is of another round than the lease it was offered under");
    }
    if (update.start_model != plan_.assignment.model) {
        return refuse("wrong_start_model", "trained from " + update.start_model.short_hex() +
                                               ", the round starts from " + plan_.assignment.model.short_hex());
    }
    if (update.weight < 0 || update.weight >= limits::weight_bound) {
        return refuse("bad_weight", "weight " + std::to_string(update.weight) + " is not in 0.." +
                                        std::to_string(limits::weight_bound - 1));
    }
    const auto largest =
        update.start_model.empty() ? limits::statistics_bytes : limits::largest_offer(plan_.assignment.model_bytes);
    if (update.bytes > largest) {
        return refuse("too_large", "an update of " + format_bytes(update.bytes) + ", and at most " +
                                       format_bytes(largest) + " can come of this round's model");
    }
    return std::nullopt;
}

/// At most one at a time per member, or one update could enter the sum twice.
void FederatedRound::absorb(const std::string& node, Place& place, CoordinatorEffects& effects) {
    place.absorbing = place.offer;
    effects.jobs.push_back(AbsorbUpdate{plan_.assignment.lease.experiment, number(), place.lease.attempt(), node,
                                        place.session, *place.offer});
}

/// Only further steps are progress: a hanging trainer's node repeats itself.
void FederatedRound::on_progress(Instant now, const std::string& node, const Progress& progress) {
    auto* place = find(node);
    if (place == nullptr || !place->lease.holds(progress.lease.attempt) || progress.lease != lease_of(*place)) {
        return;
    }
    if (progress.step != place->progress.step && progress.step > 0 && !place->offer) {
        // Before the first step it also fetched and read: as a measure of a step that errs on its side.
        const auto before = place->progress_at != never ? place->progress_at : place->assigned_at;
        place->longest_pause = std::max(place->longest_pause, now - before);
        place->progress_at = now;
    }
    place->progress = progress;
    account(*place);
}

Instant FederatedRound::Place::hangs_at() const {
    if (progress_at == never || lease.state() != MemberLease::State::active) {
        return never;
    }
    return progress_at + std::max(limits::no_progress, limits::no_progress_pauses * longest_pause);
}

void FederatedRound::on_decline(const std::string& node, const Decline& decline, CoordinatorEffects& effects) {
    auto* place = find(node);
    if (place != nullptr && place->lease.holds(decline.lease.attempt) && decline.lease == lease_of(*place)) {
        drop(node, *place, "declined", decline.code + ": " + decline.message, effects);
    }
}

void FederatedRound::on_absorbed(Instant now, const UpdateAbsorbed& absorbed, CoordinatorEffects& effects) {
    auto* place = find(absorbed.node);
    if (place == nullptr || !place->absorbing || place->absorbing->digest != absorbed.update) {
        return;
    }
    const auto asked = *std::exchange(place->absorbing, std::nullopt);
    place->machine_fault.clear();
    if (absorbed.fetch_error) {
        transfer_broke(now, absorbed.node, *place, *absorbed.fetch_error, effects);
    } else {
        settle(absorbed.node, *place, asked, absorbed.refusal, effects);
    }
    account(*place);
    keep_clock(now);
}

/// From every state: what is in the sum counts, also when its member was about to be dropped.
void FederatedRound::settle(const std::string& node, Place& place, const HeldUpdate& asked,
                   const std::optional<Refused>& refusal, CoordinatorEffects& effects) {
    place.lease.settle();
    place.drop_code.clear();  // it was about to be dropped, but its update was in the sum before
    place.drop_message.clear();
    if (refusal) {
        place.refusal = *refusal;
        place.refusal->update = asked.digest;
        log(decisions::refused, decisions::refused_detail(node, *place.refusal), effects);
    } else {
        place.in_sum = asked;
    }
    answer_over(place, place.offer ? place.offer->digest : asked.digest, effects);
}

/// Under a live lease the pull is asked for again, a few times; a bulk connection may break on its own.
void FederatedRound::transfer_broke(Instant now, const std::string& node, Place& place, const Error& error,
                           CoordinatorEffects& effects) {
    if (!place.drop_code.empty()) {
        drop(node, place, place.drop_code, place.drop_message, effects);
        return;
    }
    if (!place.offer) {
        return;  // the lease is under suspicion: a resync brings a new offer
    }
    // `io` is only ever this machine's own: the member has done its part and keeps its place, however long it takes.
    if (error.kind == ErrorKind::io) {
        place.machine_fault = error.code + ": " + error.message;
        place.retry_at = now + limits::machine_fault_retry;
        return;
    }
    if (++place.failed_transfers >= limits::transfer_attempts) {
        drop(node, place, "transfer_failed", error.message, effects);
        return;
    }
    place.retry_at = now + limits::transfer_retry_first * (1 << (place.failed_transfers - 1));
}

void FederatedRound::drop(const std::string& node, Place& place, std::string code, std::string message,
                 CoordinatorEffects& effects) {
    const bool first = place.drop_code.empty();
    place.drop_code = std::move(code);
    place.drop_message = std::move(message);
    if (place.absorbing) {
        if (first) {
            effects.jobs.push_back(CancelAbsorb{plan_.assignment.lease.experiment, number(), node});
        }
        account(place);
        return;
    }
    const bool dropped = place.lease.drop();
    account(place);
    if (dropped) {
        note_dropped(node, place.drop_code);
        log(decisions::dropped,
            decisions::dropped_detail(node, place.lease.attempt(), place.drop_code, place.drop_message), effects);
        answer_over(place, {}, effects);
    }
}

/// What became of the member, and of the update it speaks of. The one place where a fate is put into words.
void FederatedRound::answer_over(const Place& place, const Digest& offered, CoordinatorEffects& effects) const {
    const auto lease = lease_of(place);
    if (!place.drop_code.empty()) {
        send(place, Dropped{lease, place.drop_code, place.drop_message}, effects);
    } else if (place.refusal && !offered.empty()) {
        auto refusal = *place.refusal;
        refusal.lease = lease;
        refusal.update = offered;
        send(place, std::move(refusal), effects);
    } else if (offered.empty()) {
        return;
    } else if (place.in_sum && place.in_sum->digest == offered) {
        send(place, Counted{lease, offered}, effects);
    } else if (place.in_sum) {
        send(place, Refused{lease, offered, "duplicate", "another update of this node is already counted", "", 0},
             effects);
    }
}

/// Time in which this machine cannot take what members offer does not count against them.
void FederatedRound::keep_clock(Instant now) {
    const bool failing = !machine_fault().empty();
    if (failing && !stopped_at_) {
        stopped_at_ = now;
    } else if (!failing && stopped_at_) {
        const auto lost = now - *std::exchange(stopped_at_, std::nullopt);
        closes_at_ = closes_at_ < never - lost ? closes_at_ + lost : never;
    }
}

std::string FederatedRound::machine_fault() const {
    if (sums_.faulty == 0) {
        return "";
    }
    for (const auto& [node, place] : members_) {
        if (!place.lease.over() && !place.machine_fault.empty()) {
            return place.machine_fault;
        }
    }
    return "";
}

/// The straggler deadline comes first: it ends everything that is not settled.
void FederatedRound::tick(Instant now, CoordinatorEffects& effects) {
    keep_clock(now);
    const bool late = !stopped_at_ && now >= closes_at_ && sums_.live > 0;
    const bool all_in = sums_.tried > 0 && sums_.live == sums_.tried && sums_.faulty == 0;
    if (!late && !all_in && (dues_.empty() || *dues_.begin() > now)) {
        return;
    }
    for (auto& [node, place] : members_) {
        if (!place.live()) {
            continue;
        }
        if (all_in && place.tried) {
            drop(node, place, "not_waited_for", "the round closed without it, as all others were done", effects);
        } else if (late && place.lease.state() == MemberLease::State::suspected) {
            drop(node, place, absence(place.session), "it did not come back before the round closed", effects);
        } else if (late) {
            drop(node, place, "straggler_deadline",
                 "the round closed before the update came; it is tried again later, and not waited for", effects);
        } else if (place.lease.expired(now)) {
            drop(node, place, absence(place.session), away_too_long, effects);
        } else if (now >= place.hangs_at()) {
            drop(node, place, "no_progress",
                 "it is there, but its training has not moved for " +
                     std::to_string(static_cast<long>(seconds(now - place.progress_at))) + " s",
                 effects);
        } else if (now >= place.retry_at) {
            place.retry_at = never;
            absorb(node, place, effects);
            account(place);
        }
    }
}

/// A lost quorum is known early: drops absorb, so it can never be reached again.
Round::Outcome FederatedRound::outcome() const {
    if (possible() < quorum()) {
        return Outcome::quorum_lost;
    }
    if (sums_.undecided > 0 || sums_.tried > 0) {  // who is only tried is let go by the next tick
        return Outcome::open;
    }
    return sums_.weight == 0 ? Outcome::zero_total_weight : Outcome::complete;
}

/// The first by name speaks for all: they are mostly alike, and each is in the decision log.
std::string FederatedRound::why_missing() const {
    for (const auto& [node, place] : members_) {
        if (place.refusal) {
            return "; " + node + ": " + place.refusal->code + ": " + place.refusal->message;
        }
        if (!place.drop_code.empty()) {
            return "; " + node + ": " + place.drop_code + ": " + place.drop_message;
        }
    }
    return "";
}

Instant FederatedRound::deadline() const {
    const auto closes = sums_.live > 0 && !stopped_at_ ? closes_at_ : never;
    return std::min(closes, dues_.empty() ? never : *dues_.begin());
}

std::vector<std::pair<std::string, Digest>> FederatedRound::participants() const {
    std::vector<std::pair<std::string, Digest>> all;
    for (const auto& [node, place] : members_) {
        if (place.in_sum) {
            all.emplace_back(node, place.in_sum->digest);
        }
    }
    return all;
}

std::optional<Digest> FederatedRound::counted(const std::string& node) const {
    const auto found = members_.find(node);
    if (found == members_.end() || !found->second.in_sum) {
        return std::nullopt;
    }
    return found->second.in_sum->digest;
}

/// In the order of names, so that the sum of doubles does not depend on arrival.
double FederatedRound::train_loss() const {
    double sum = 0;
    double weight = 0;
    for (const auto& [node, place] : members_) {
        if (place.in_sum && std::isfinite(place.in_sum->metrics.loss)) {
            sum += static_cast<double>(place.in_sum->weight) * place.in_sum->metrics.loss;
            weight += static_cast<double>(place.in_sum->weight);
        }
    }
    return weight > 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
}

std::uint32_t FederatedRound::possible() const {
    return sums_.possible;
}

/// One about to be dropped still may count while its absorption is unanswered.
void FederatedRound::account(Place& place) {
    const auto before = place.share;
    auto& now = place.share;
    now.live = place.live();
    now.undecided = (!place.lease.over() && !place.tried) || place.absorbing;
    now.tried = place.live() && place.tried;
    now.possible = place.in_sum || (!place.lease.over() && (place.drop_code.empty() || place.absorbing));
    now.faulty = !place.lease.over() && !place.machine_fault.empty();
    now.weight = place.in_sum ? place.in_sum->weight : 0;
    now.due = place.live() ? std::min({place.lease.deadline(), place.retry_at, place.hangs_at()}) : never;
    sums_.live += now.live - before.live;
    sums_.undecided += now.undecided - before.undecided;
    sums_.tried += now.tried - before.tried;
    sums_.possible += now.possible - before.possible;
    sums_.faulty += now.faulty - before.faulty;
    sums_.weight += now.weight - before.weight;
    if (now.due != before.due) {
        if (before.due != never) {
            dues_.erase(dues_.find(before.due));
        }
        if (now.due != never) {
            dues_.insert(now.due);
        }
    }
}

Json FederatedRound::status(Instant now) const {
    auto rows = Json::array();
    for (const auto& [node, place] : members_) {
        const char* state = place.in_sum                               ? "counted"
                            : place.refusal                            ? "refused"
                            : !place.drop_code.empty()                 ? "dropped"
                            : place.absorbing                          ? "uploading"
                            : place.lease.over()                       ? "over"
                            : place.lease.holds(place.lease.attempt()) ? "working"
                                                                       : "away";
        auto row = Json::object()
                       .set("node", node)
                       .set("state", state)
                       .set("attempt", place.lease.attempt())
                       .set("step", place.progress.step)
                       .set("steps", place.progress.steps)
                       .set("reason", place.drop_code.empty() ? Json() : Json(place.drop_code));
        if (place.live() && place.lease.state() == MemberLease::State::suspected) {
            add_wait(row, now, place.session, place.lease.deadline(), stopped_at_ ? never : closes_at_);
        }
        rows.push(std::move(row));
    }
    return rows;
}

Lease FederatedRound::lease_of(const Place& place) const {
    auto lease = plan_.assignment.lease;
    lease.epoch = plan_.epoch;
    lease.attempt = place.lease.attempt();
    return lease;
}

/// Without a session nothing is said; ready() says it.
void FederatedRound::send(const Place& place, Message message, CoordinatorEffects& effects) const {
    if (place.session != 0) {
        effects.send.push_back({place.session, std::move(message)});
    }
}

}  // namespace causeway
