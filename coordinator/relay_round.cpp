// See relay_round.h. Every branch ends in a state from which the round closes: by a hand-over, a skip or a deadline.
#include "coordinator/relay_round.h"

#include <algorithm>
#include <limits>

#include "common/text.h"
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
            std::erase_if(turns_, [&](const auto& entry) { return in_group(entry.second, group); });
            relay_.restart(group);
        }
    }
    relay_.mend();
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
    auto turns = relay_.take_turns();
    if (together() && !turns.empty()) {
        return begin(std::move(turns), now, effects);
    }
    for (auto& turn : turns) {
        begin({std::move(turn)}, now, effects);
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
                node.gone_until = std::min(node.gone_until, until_gone(client, Duration::zero()));
            }
        }
    }
}

/// Turns that are together are one, in the order in which the host takes the clients' batches.
void RelayRound::begin(std::vector<RelayTurn> turns, Instant now, CoordinatorEffects& effects) {
    std::ranges::sort(turns, {}, &RelayTurn::client);
    const auto number_of_turn = next_number_++;
    Turn turn{.moved_at = now};
    for (auto& one : turns) {
        std::erase_if(turns_, [&](const auto& entry) { return in_group(entry.second, one.group); });
        turn.seats.push_back({.turn = std::move(one)});
    }
    const auto& begun = turns_[number_of_turn] = std::move(turn);
    std::vector<std::string> nodes{host_of(begun)};
    for (const auto& seat : begun.seats) {
        nodes.push_back(seat.turn.client);
    }
    for (const auto& node : nodes) {
        auto assignment = assign_for(number_of_turn, begun, node);
        if (closes_at_ != never) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(closes_at_ - now).count();
            assignment.deadline_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 0xffffffff));
        }
        send(node, std::move(assignment), effects);
    }
}

std::uint64_t RelayRound::examples_of(const std::string& client) const {
    const auto found = of_relays_.examples.find(client);
    return found == of_relays_.examples.end() ? 0 : found->second;
}

/// A host's of several clients names no data of one node: each peer has its own.
Assign RelayRound::assign_for(std::uint32_t number_of_turn, const Turn& turn, const std::string& node) const {
    const auto* seat = seat_of(turn, node);
    const bool client = seat != nullptr;
    const auto& own = client ? of_relays_.client : of_relays_.host;
    const auto& first = client ? seat->turn : turn.seats.front().turn;
    const auto& handed = client ? first.start.client_segment : first.start.server_segment;
    auto assignment = plan_.assignment;
    assignment.lease = lease_of(number_of_turn);
    assignment.cohort = static_cast<std::uint32_t>(plan_.cohort.size());
    assignment.segment = own.segment;
    assignment.program = own.program;
    assignment.cell = own.cell;
    assignment.group = client || !together() ? first.group : 0;
    assignment.data_node = client || !together() ? first.client : "";
    assignment.examples = client ? examples_of(first.client) : 0;
    for (std::size_t place = 0; place < turn.seats.size(); ++place) {
        const auto& other = turn.seats[place];
        const auto cell = of_relays_.client.cell + static_cast<std::uint32_t>(place);
        if (&other == seat) {
            assignment.cell = cell;
            assignment.peers = {{of_relays_.host.cell, first.host}};
        } else if (!client) {
            const auto examples = examples_of(other.turn.client);
            assignment.examples += examples;
            assignment.peers.push_back({cell, other.turn.client, together() ? examples : 0});
        }
    }
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

void RelayRound::lost(Instant now, const std::string& name, bool session_gone, Duration grace,
                      CoordinatorEffects& effects) {
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
    node->gone_until = std::min(node->gone_until, until_gone(name, grace));
    tick(now, effects);
}

/// How long its group waits for it, from now.
Instant RelayRound::until_gone(const std::string& name, Duration grace) const {
    const bool waits = !clients_.contains(name) || of_relays_.relay.lost_client == RelayPlan::LostClient::wait;
    const auto wait = std::max(waits ? plan_.rejoin : Duration::zero(), grace);
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
    std::erase_if(turns_, [&](const auto& entry) { return involves(entry.second, name); });
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
    auto* part = turn == nullptr ? nullptr : part_of(*turn, name);
    if (part == nullptr) {
        return refuse("stale_lease", "no turn of this node has the number " + std::to_string(offer.lease.attempt));
    }
    const bool client = clients_.contains(name);
    const auto& update = offer.update;
    const bool fits = update.experiment == offer.lease.experiment && update.round == offer.lease.round &&
                      update.start_model == assign_for(offer.lease.attempt, *turn, name).model;
    const auto largest = limits::largest_offer(start_[client ? 0 : 1].second);
    if (!fits || update.weight < 0 || update.weight >= limits::weight_bound || update.bytes > largest) {
        const bool weighs = update.weight >= 0 && update.weight < limits::weight_bound;
        const std::string why = !fits    ? "the segment was trained in another round, or from another segment"
                                : weighs ? "a segment of " + format_bytes(update.bytes) + ", and at most " +
                                               format_bytes(largest) + " can come of this one"
                                         : "its weight is not in 0.." + std::to_string(limits::weight_bound - 1);
        const char* code = !fits ? "wrong_start_model" : weighs ? "too_large" : "bad_weight";
        if (client) {
            leave(name, code, why, effects);
        } else {
            break_off(offer.lease.attempt, name, code, why, effects);
        }
        return go_on(now_, effects);
    }
    turn->moved_at = now_;
    if (!part->offer) {
        part->offer = update;
        part->session = session;
        if (!client && !copies(turn->seats.front().turn.group)) {
            part->here = true;  // where it was made is enough, for now
            if (all(*turn, [](const Part& of) { return of.here; })) {
                hand_over(offer.lease.attempt, effects);
                go_on(now_, effects);
            }
        } else {
            absorb(offer.lease.attempt, *turn, name, effects);
        }
    }
}

void RelayRound::absorb(std::uint32_t number_of_turn, Turn& turn, const std::string& node,
                        CoordinatorEffects& effects) {
    auto& part = *part_of(turn, node);
    part.retry_at = never;
    effects.jobs.push_back(AbsorbUpdate{
        plan_.assignment.lease.experiment, number(), number_of_turn, node, part.session, *part.offer,
        &part == &turn.host ? of_relays_.host.segment : of_relays_.client.segment});
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
    auto* part = part_of(turn, absorbed.node);
    if (part == nullptr || !part->offer || part->offer->digest != absorbed.update) {
        return;
    }
    machine_fault_.clear();
    if (absorbed.refusal && (part != &turn.host || turn.seats.size() == 1)) {
        // A host's values are as good as what the client sent it: without that client the group can go on.
        const auto client = part == &turn.host ? turn.seats.front().turn.client : absorbed.node;
        leave(client, absorbed.refusal->code, absorbed.node + ": " + absorbed.refusal->message, effects);
    } else if (absorbed.refusal) {
        break_off(absorbed.attempt, absorbed.node, absorbed.refusal->code, absorbed.refusal->message, effects);
    } else if (absorbed.fetch_error) {
        transfer_broke(now, absorbed.attempt, turn, absorbed.node, *absorbed.fetch_error, effects);
    } else {
        part->here = true;
        if (part == &turn.host) {
            copied_.insert(part->offer->digest);
        }
        const auto* seat = seat_of(turn, absorbed.node);
        if (seat != nullptr && turn.seats.size() > 1) {
            last_group_ = seat->turn.group;  // the others may have waited for it
        }
        if (all(turn, [](const Part& of) { return of.here; })) {
            hand_over(absorbed.attempt, effects);
        }
    }
    go_on(now, effects);
}

void RelayRound::transfer_broke(Instant now, std::uint32_t number_of_turn, Turn& turn, const std::string& node,
                                const Error& error, CoordinatorEffects& effects) {
    auto& part = *part_of(turn, node);
    if (error.kind == ErrorKind::io) {  // this machine's own: whoever offered has done its part
        machine_fault_ = error.code + ": " + error.message;
        part.retry_at = now + limits::machine_fault_retry;
    } else if (++turn.failed_transfers >= limits::transfer_attempts) {
        break_off(number_of_turn, node, "transfer_failed", error.message, effects);
    } else {
        part.retry_at = now + limits::transfer_retry_first * (1 << (turn.failed_transfers - 1));
    }
}

/// All segments are here and where they were made: the turn counts from now on.
void RelayRound::hand_over(std::uint32_t number_of_turn, CoordinatorEffects& effects) {
    const auto turn = std::move(turns_.extract(number_of_turn).mapped());
    const auto& host = *turn.host.offer;
    sizes_[host.digest] = host.bytes;
    for (const auto& seat : turn.seats) {
        const auto& client = *seat.part.offer;
        sizes_[client.digest] = client.bytes;
        const auto examples = static_cast<std::uint64_t>(client.weight);
        const auto& knows = of_relays_.loss == RelayTexts::Loss::at_client ? client : host;
        counted_[seat.turn.client] = {client.digest, knows.metrics.loss, examples, client.metrics.stream_sent,
                                      client.metrics.stream_received};
        last_group_ = turn.seats.size() == 1 ? seat.turn.group : last_group_;
        relay_.handed_over(seat.turn.group, seat.turn.attempt, {client.digest, host.digest}, examples);
        send(seat.turn.client, causeway::Counted{lease_of(number_of_turn), client.digest}, effects);
    }
    send(host_of(turn), causeway::Counted{lease_of(number_of_turn), host.digest}, effects);
}

/// Anybody's steps are the turn's.
void RelayRound::on_progress(Instant now, const std::string& name, const Progress& progress) {
    auto* turn = find(progress.lease);
    if (turn == nullptr || !involves(*turn, name)) {
        return;
    }
    auto* seat = seat_of(*turn, name);
    const bool new_to_seat = seat != nullptr && progress.step > seat->progress.step;
    if (new_to_seat) {
        seat->progress = progress;
    }
    if (turn->seats.size() == 1 && seat == nullptr && progress.step > turn->seats.front().progress.step) {
        turn->seats.front().progress = progress;  // of one client the host's steps are its own
    }
    if (progress.step > turn->step || (new_to_seat && turn->seats.size() > 1)) {
        turn->step = std::max(turn->step, progress.step);
        turn->longest_pause = std::max(turn->longest_pause, now - turn->moved_at);
        turn->moved_at = now;
    }
}

/// What a node says of a peer is about that one; else about itself, and of the only client's host about the client.
void RelayRound::on_decline(const std::string& name, const Decline& decline, CoordinatorEffects& effects) {
    const auto* turn = find(decline.lease);
    if (turn == nullptr || !involves(*turn, name)) {
        return;
    }
    const auto why = decline.code + ": " + decline.message;
    const bool host = host_of(*turn) == name;
    const auto group = turn->seats.front().turn.group;
    const bool named = host && seat_of(*turn, decline.peer) != nullptr;
    const auto about = named ? decline.peer : name;
    if (decline.code == "stream_lost" || decline.code == "segment_lost") {
        const bool only_there = decline.code == "segment_lost" && host && uncopied(group);
        break_off(decline.lease.attempt, about, decline.code, name + ": " + decline.message, effects);
        if (only_there) {
            relay_.restart(group);
        }
    } else if (!host) {
        leave(name, "declined", why, effects);
    } else if (named) {
        leave(about, decline.code, name + ": " + decline.message, effects);
    } else {
        give_up_host(name, why);
    }
    go_on(now_, effects);
}

}  // namespace causeway
