// See relay_round.h. Every branch ends in a state from which the round closes: by a hand-over, a skip or a deadline.
#include "coordinator/relay_round.h"

#include <algorithm>
#include <limits>

#include "coordinator/decisions.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

/// Who it is about, so that a person finds it in the log by name.
Json detail_of(const RelayDecision& decision) {
    return Json::object().set("group", decision.group).set("node", decision.node);
}

}  // namespace

RelayRound::RelayRound(RelayRoundPlan plan, Instant now)
    : Round(plan.round),
      of_relays_(std::move(plan)),
      relay_([&] {
          auto relay = of_relays_.relay;
          relay.lost_client = RelayPlan::LostClient::wait;  // who waits for whom, and how long, is decided here
          return relay;
      }()),
      host_of_group_(of_relays_.relay.hosts),
      closes_at_(plan_.straggler_deadline > Duration::zero() ? now + plan_.straggler_deadline : never),
      first_wait_(plan_.first_wait >= never - now ? never : now + plan_.first_wait),
      now_(now) {
    for (const auto& client : plan_.cohort) {
        clients_[client] = {.gone_until = first_wait_};
        relay_.lost(client);
    }
    for (const auto& host : of_relays_.relay.hosts) {
        hosts_[host] = {.gone_until = first_wait_};
        relay_.lost(host);
    }
}

void RelayRound::restore(const SaveDecision& decision) {
    const auto& detail = decision.detail;
    RelayDecision made{.group = static_cast<std::uint32_t>(detail["group"].integer()), .node = detail["node"].text()};
    if (decision.kind == to_string(RelayDecision::Kind::handover)) {
        made.kind = RelayDecision::Kind::handover;
        made.segments = {digest_from_hex(detail["client_segment"].text()).value_or(Digest{}),
                         digest_from_hex(detail["server_segment"].text()).value_or(Digest{})};
        made.examples = static_cast<std::uint64_t>(detail["examples"].integer());
        sizes_[made.segments.client_segment] = static_cast<std::uint64_t>(detail["client_bytes"].integer());
        sizes_[made.segments.server_segment] = static_cast<std::uint64_t>(detail["server_bytes"].integer());
        if (detail["server_copied"].boolean(true)) {
            copied_.insert(made.segments.server_segment);
        }
        const double unknown = std::numeric_limits<double>::quiet_NaN();
        counted_[made.node] = {made.segments.client_segment, detail["loss"].number(unknown), made.examples,
                               static_cast<std::uint64_t>(detail["stream_bytes_up"].integer()),
                               static_cast<std::uint64_t>(detail["stream_bytes_down"].integer())};
        last_group_ = made.group;
    } else if (decision.kind == to_string(RelayDecision::Kind::skipped)) {
        made.kind = RelayDecision::Kind::skipped;
    } else if (decision.kind == to_string(RelayDecision::Kind::restarted)) {
        made.kind = RelayDecision::Kind::restarted;
    } else if (decision.kind == to_string(RelayDecision::Kind::moved)) {
        made.kind = RelayDecision::Kind::moved;
        if (hosts_.try_emplace(made.node, Node{.gone_until = first_wait_}).second) {
            relay_.lost(made.node);
        }
    } else if (decision.kind == decisions::dropped) {
        if (auto* node = node_of(made.node)) {
            node->drop_code = detail["code"].text();
            node->drop_message = detail["message"].text();
        }
        return;
    } else {
        return;
    }
    if (made.group < host_of_group_.size()) {
        note(made);
        relay_.restore(made);
    }
}

// ---------------------------------------------------------------- turns

void RelayRound::opened(Instant now, const RoundOpened& opened, CoordinatorEffects& effects) {
    if (opened.round != number() || opened.segments.size() < start_.size()) {
        return;
    }
    std::copy_n(opened.segments.begin(), start_.size(), start_.begin());
    opened_ = true;
    // What an earlier process had taken may be lost or damaged, or this is a copy of its folder, which has none.
    const std::map<Digest, std::uint64_t> here(opened.segments.begin(), opened.segments.end());
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        const auto& last = relay_.last(group);
        const bool whole =
            here.contains(last.client_segment) && (uncopied(group) || here.contains(last.server_segment));
        if (last != Handover{} && !whole) {
            std::erase_if(turns_, [&](const auto& entry) { return entry.second.turn.group == group; });
            relay_.restart(group);
        }
    }
    go_on(now, effects);
}

/// After everything that can change whose turn it is. What was decided is persisted in the step that acts on it.
void RelayRound::go_on(Instant now, CoordinatorEffects& effects) {
    now_ = now;
    move_groups();
    log_decisions(effects);
    if (!opened_ || outcome() != Outcome::open) {
        return;
    }
    collect(effects);
    if (now >= closes_at_) {
        return;  // nobody begins what can no longer count
    }
    for (auto& turn : relay_.take_turns()) {
        std::erase_if(turns_, [&](const auto& entry) { return entry.second.turn.group == turn.group; });
        const auto number_of_turn = next_number_++;
        auto& begun = turns_[number_of_turn] = {.turn = std::move(turn), .moved_at = now};
        assign(number_of_turn, begun, now, effects);
    }
}

void RelayRound::log_decisions(CoordinatorEffects& effects) {
    for (const auto& decision : relay_.take_decisions()) {
        auto detail = detail_of(decision);
        if (decision.kind == RelayDecision::Kind::handover) {
            detail.set("client_segment", decision.segments.client_segment.hex())
                .set("server_segment", decision.segments.server_segment.hex())
                .set("client_bytes", sizes_[decision.segments.client_segment])
                .set("server_bytes", sizes_[decision.segments.server_segment])
                .set("examples", decision.examples)
                .set("server_copied", copied_.contains(decision.segments.server_segment))
                .set("loss", counted_[decision.node].loss)
                .set("stream_bytes_up", counted_[decision.node].stream_up)
                .set("stream_bytes_down", counted_[decision.node].stream_down);
        }
        note(decision);
        log(std::string(to_string(decision.kind)).c_str(), std::move(detail), effects);
    }
}

/// What this machine keeps of a decision, made now or by an earlier process.
void RelayRound::note(const RelayDecision& decision) {
    if (decision.kind == RelayDecision::Kind::moved) {
        host_of_group_[decision.group] = decision.node;
    } else if (decision.kind == RelayDecision::Kind::restarted) {
        for (const auto& client : of_relays_.relay.groups[decision.group]) {
            counted_.erase(client);
            auto& node = clients_.at(client);
            if (node.away && node.drop_code.empty()) {  // it had counted, and now has to come back
                node.gone_until = std::min(node.gone_until, until_gone(client));
            }
        }
    }
}

void RelayRound::assign(std::uint32_t number_of_turn, Turn& turn, Instant now, CoordinatorEffects& effects) {
    for (const auto side : {Side::host, Side::client}) {
        auto assignment = assign_for(number_of_turn, turn, side);
        if (closes_at_ != never) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(closes_at_ - now).count();
            assignment.deadline_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 0xffffffff));
        }
        send(side == Side::client ? turn.turn.client : turn.turn.host, std::move(assignment), effects);
    }
}

Assign RelayRound::assign_for(std::uint32_t number_of_turn, const Turn& turn, Side side) const {
    const bool client = side == Side::client;
    const auto& own = client ? of_relays_.client : of_relays_.host;
    const auto& other = client ? of_relays_.host : of_relays_.client;
    const auto& handed = client ? turn.turn.start.client_segment : turn.turn.start.server_segment;
    auto assignment = plan_.assignment;
    assignment.lease = lease_of(number_of_turn);
    assignment.cohort = static_cast<std::uint32_t>(plan_.cohort.size());
    assignment.segment = own.segment;
    assignment.program = own.program;
    assignment.cell = own.cell;
    assignment.group = turn.turn.group;
    assignment.peers = {{other.cell, client ? turn.turn.host : turn.turn.client}};
    assignment.data_node = turn.turn.client;
    const auto examples = of_relays_.examples.find(turn.turn.client);
    assignment.examples = examples == of_relays_.examples.end() ? 0 : examples->second;
    assignment.model = handed.empty() ? start_[client ? 0 : 1].first : handed;
    assignment.model_bytes = handed.empty() ? start_[client ? 0 : 1].second : sizes_.at(handed);
    return assignment;
}

Lease RelayRound::lease_of(std::uint32_t number_of_turn) const {
    auto lease = plan_.assignment.lease;
    lease.epoch = plan_.epoch;
    lease.attempt = number_of_turn;
    return lease;
}

/// Under the lease of a turn that is under way.
RelayRound::Turn* RelayRound::find(const Lease& lease) {
    const auto found = turns_.find(lease.attempt);
    return found != turns_.end() && lease == lease_of(lease.attempt) ? &found->second : nullptr;
}

// ---------------------------------------------------------------- what nodes do

void RelayRound::ready(Instant now, const std::string& name, SessionId session, const Digest&,
                       CoordinatorEffects& effects) {
    const auto found = clients_.find(name);
    if (found == clients_.end()) {
        return;
    }
    auto& node = found->second;
    node.session = session;
    node.away = false;
    if (!node.drop_code.empty()) {
        return send(name, Dropped{lease_of(0), node.drop_code, node.drop_message}, effects);
    }
    mark_lost(name);  // of an older session: its turn begins anew under the next number
    node.gone_until = never;
    relay_.present(name);
    go_on(now, effects);
}

void RelayRound::host_ready(Instant now, const std::string& name, SessionId session, CoordinatorEffects& effects) {
    auto& node = hosts_[name];
    node.session = session;
    node.away = false;
    mark_lost(name);
    node.gone_until = never;
    given_up_.erase(name);
    relay_.present(name);
    go_on(now, effects);
}

void RelayRound::lost(Instant now, const std::string& name, bool session_gone, CoordinatorEffects& effects) {
    auto* node = node_of(name);
    if (node == nullptr) {
        return;
    }
    if (session_gone) {
        node->session = 0;
    }
    now_ = now;
    node->away = true;
    mark_lost(name);
    node->gone_until = std::min(node->gone_until, until_gone(name));
    tick(now, effects);
}

/// How long its group waits for it, from now.
Instant RelayRound::until_gone(const std::string& name) const {
    const bool waits = !clients_.contains(name) || of_relays_.relay.lost_client == RelayPlan::LostClient::wait;
    const auto wait = waits ? plan_.rejoin : Duration::zero();
    return wait >= never - now_ ? never : now_ + wait;
}

/// Its turns are void; the relay gives them again when both sides are there.
void RelayRound::mark_lost(const std::string& name) {
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        if (host_of_group_[group] == name && relay_.over(group) && uncopied(group)) {
            relay_.restart(group);  // nobody else holds what it came to
            std::erase_if(collections_, [&](const auto& entry) { return entry.second.group == group; });
        }
    }
    relay_.lost(name);
    std::erase_if(turns_, [&](const auto& entry) {
        return entry.second.turn.client == name || entry.second.turn.host == name;
    });
}

void RelayRound::expel(const std::string& name, const std::string& code, const std::string& message,
                       CoordinatorEffects& effects) {
    if (clients_.contains(name)) {
        leave(name, code, message, effects);
    } else if (hosts_.contains(name)) {
        mark_lost(name);
        given_up_.insert(name);
    }
    go_on(now_, effects);
}

void RelayRound::on_offer(const std::string& name, SessionId session, const Offer& offer, CoordinatorEffects& effects) {
    auto* turn = find(offer.lease);
    const auto refuse = [&](const char* code, std::string message) {
        effects.send.push_back({session, Refused{offer.lease, offer.update.digest, code, std::move(message), "", 0}});
    };
    if (turn == nullptr || (turn->turn.client != name && turn->turn.host != name)) {
        return refuse("stale_lease", "no turn of this node has the number " + std::to_string(offer.lease.attempt));
    }
    const auto side = turn->turn.client == name ? Side::client : Side::host;
    const auto& update = offer.update;
    const bool fits = update.experiment == offer.lease.experiment && update.round == offer.lease.round &&
                      update.start_model == assign_for(offer.lease.attempt, *turn, side).model;
    if (!fits || update.weight < 0 || update.weight >= limits::weight_bound) {
        const std::string why = fits ? "its weight is not in 0.." + std::to_string(limits::weight_bound - 1)
                                     : "the segment was trained in another round, or from another segment";
        const char* code = fits ? "bad_weight" : "wrong_start_model";
        if (side == Side::client) {
            leave(name, code, why, effects);
        } else {
            break_off(offer.lease.attempt, code, why, effects);
        }
        return go_on(now_, effects);
    }
    auto& part = part_of(*turn, side);
    turn->moved_at = now_;
    if (!part.offer) {
        part.offer = update;
        part.session = session;
        if (side == Side::host && !copies(turn->turn.group)) {
            part.here = true;  // where it was made is enough, for now
            if (turn->client.here) {
                hand_over(offer.lease.attempt, effects);
                go_on(now_, effects);
            }
        } else {
            absorb(offer.lease.attempt, *turn, side, effects);
        }
    }
}

void RelayRound::absorb(std::uint32_t number_of_turn, Turn& turn, Side side, CoordinatorEffects& effects) {
    auto& part = part_of(turn, side);
    part.retry_at = never;
    effects.jobs.push_back(AbsorbUpdate{plan_.assignment.lease.experiment, number(), number_of_turn,
                                        side == Side::client ? turn.turn.client : turn.turn.host, part.session,
                                        *part.offer,
                                        side == Side::client ? of_relays_.client.segment : of_relays_.host.segment});
}

void RelayRound::on_absorbed(Instant now, const UpdateAbsorbed& absorbed, CoordinatorEffects& effects) {
    if (collections_.contains(absorbed.attempt)) {
        collected(absorbed.attempt, absorbed);
        return go_on(now, effects);
    }
    const auto found = turns_.find(absorbed.attempt);
    if (found == turns_.end()) {
        return;  // of a turn that was void by then
    }
    auto& turn = found->second;
    auto& part = part_of(turn, turn.turn.client == absorbed.node ? Side::client : Side::host);
    if (!part.offer || part.offer->digest != absorbed.update) {
        return;
    }
    machine_fault_.clear();
    if (absorbed.refusal) {
        // A host's values are as good as what the client sent it: without that client the group can go on.
        const auto client = turn.turn.client;
        leave(client, absorbed.refusal->code, absorbed.node + ": " + absorbed.refusal->message, effects);
    } else if (absorbed.fetch_error) {
        transfer_broke(now, absorbed.attempt, turn, part, *absorbed.fetch_error, effects);
    } else {
        part.here = true;
        if (&part == &turn.host) {
            copied_.insert(part.offer->digest);
        }
        if (turn.client.here && turn.host.here) {
            hand_over(absorbed.attempt, effects);
        }
    }
    go_on(now, effects);
}

void RelayRound::transfer_broke(Instant now, std::uint32_t number_of_turn, Turn& turn, Part& part, const Error& error,
                                CoordinatorEffects& effects) {
    if (error.kind == ErrorKind::io) {  // this machine's own: whoever offered has done its part
        machine_fault_ = error.code + ": " + error.message;
        part.retry_at = now + limits::machine_fault_retry;
    } else if (++turn.failed_transfers >= limits::transfer_attempts) {
        break_off(number_of_turn, "transfer_failed", error.message, effects);
    } else {
        part.retry_at = now + limits::transfer_retry_first * (1 << (turn.failed_transfers - 1));
    }
}

/// Both segments are here and where they were made: the turn counts from now on.
void RelayRound::hand_over(std::uint32_t number_of_turn, CoordinatorEffects& effects) {
    const auto turn = std::move(turns_.extract(number_of_turn).mapped());
    const auto& client = *turn.client.offer;
    const auto& host = *turn.host.offer;
    sizes_[client.digest] = client.bytes;
    sizes_[host.digest] = host.bytes;
    const auto examples = static_cast<std::uint64_t>(client.weight);
    const auto& knows = of_relays_.loss == RelayTexts::Loss::at_client ? client : host;
    counted_[turn.turn.client] = {client.digest, knows.metrics.loss, examples, client.metrics.stream_sent,
                                  client.metrics.stream_received};
    last_group_ = turn.turn.group;
    relay_.handed_over(turn.turn.group, turn.turn.attempt, {client.digest, host.digest}, examples);
    send(turn.turn.client, causeway::Counted{lease_of(number_of_turn), client.digest}, effects);
    send(turn.turn.host, causeway::Counted{lease_of(number_of_turn), host.digest}, effects);
}

/// Either side's steps are the turn's.
void RelayRound::on_progress(Instant now, const std::string& name, const Progress& progress) {
    auto* turn = find(progress.lease);
    if (turn == nullptr || (turn->turn.client != name && turn->turn.host != name)) {
        return;
    }
    if (progress.step > turn->progress.step) {
        turn->longest_pause = std::max(turn->longest_pause, now - turn->moved_at);
        turn->moved_at = now;
        turn->progress = progress;
    }
}

void RelayRound::on_decline(const std::string& name, const Decline& decline, CoordinatorEffects& effects) {
    const auto* turn = find(decline.lease);
    if (turn == nullptr || (turn->turn.client != name && turn->turn.host != name)) {
        return;
    }
    const auto why = decline.code + ": " + decline.message;
    if (decline.code == "segment_lost" && turn->turn.host == name && uncopied(turn->turn.group)) {
        const auto group = turn->turn.group;
        break_off(decline.lease.attempt, decline.code, name + ": " + decline.message, effects);
        relay_.restart(group);
    } else if (decline.code == "stream_lost" || decline.code == "segment_lost") {
        break_off(decline.lease.attempt, decline.code, name + ": " + decline.message, effects);
    } else if (turn->turn.client == name) {
        leave(name, "declined", why, effects);
    } else if (turn->turn.host == name) {
        // A host that does not take the work is no host of this round.
        mark_lost(name);
        given_up_.insert(name);
        host_refusal_ = name + ": " + why;
    }
    go_on(now_, effects);
}

}  // namespace causeway
