// A round of relays from the outside: who is out of it, what is due, and what it has come to. Part of RelayRound
// (relay_round.h), whose turns are in relay_round.cpp. Thread: loop. Pure.
#include <algorithm>
#include <cmath>
#include <limits>

#include "coordinator/decisions.h"
#include "coordinator/limits.h"
#include "coordinator/relay_round.h"

namespace causeway {

// ---------------------------------------------------------------- who is out

/// Out of the round for good, unless it has counted.
void RelayRound::leave(const std::string& client, const std::string& code, const std::string& message,
                       CoordinatorEffects& effects) {
    auto& node = clients_.at(client);
    if (!node.drop_code.empty() || counted_.contains(client)) {
        return;
    }
    node.drop_code = code;
    node.drop_message = message;
    node.gone_until = never;
    std::uint32_t last = 0;
    for (const auto& [number_of_turn, turn] : turns_) {
        last = seat_of(turn, client) != nullptr ? number_of_turn : last;
    }
    turns_.erase(last);
    relay_.skip(client);
    note_dropped(client, code);
    log(decisions::dropped, decisions::dropped_detail(client, last, code, message), effects);
    send(client, Dropped{lease_of(last), code, message}, effects);
}

void RelayRound::break_off(std::uint32_t number_of_turn, const std::string& about, const std::string& code,
                           const std::string& message, CoordinatorEffects& effects) {
    const auto& turn = turns_.at(number_of_turn);
    const auto host = host_of(turn);
    const auto first = turn.seats.front().turn.client;
    const bool of_host = turn.seats.size() > 1 && seat_of(turn, about) == nullptr;
    const auto client = turn.seats.size() == 1 ? first : about;
    if (of_host && ++hosts_[host].broken >= limits::turn_attempts) {
        return give_up_host(host, code + ": " + message);
    }
    if (!of_host && ++clients_.at(client).broken >= limits::turn_attempts) {
        return leave(client, code, message, effects);
    }
    const auto& again = of_host ? first : client;  // that one's loss voids the turn
    mark_lost(again);
    relay_.present(again);
}

/// A host that does not take the work is no host of this round.
void RelayRound::give_up_host(const std::string& host, const std::string& why) {
    mark_lost(host);
    given_up_.insert(host);
    host_refusal_ = host + ": " + why;
}

// ---------------------------------------------------------------- the sides of a turn

const RelayRound::Seat* RelayRound::seat_of(const Turn& turn, const std::string& name) {
    const auto found = std::ranges::find(turn.seats, name, [](const Seat& seat) { return seat.turn.client; });
    return found == turn.seats.end() ? nullptr : &*found;
}

RelayRound::Seat* RelayRound::seat_of(Turn& turn, const std::string& name) {
    return const_cast<Seat*>(seat_of(std::as_const(turn), name));
}

bool RelayRound::involves(const Turn& turn, const std::string& name) {
    return host_of(turn) == name || seat_of(turn, name) != nullptr;
}

bool RelayRound::in_group(const Turn& turn, std::uint32_t group) {
    return std::ranges::any_of(turn.seats, [&](const Seat& seat) { return seat.turn.group == group; });
}

RelayRound::Part* RelayRound::part_of(Turn& turn, const std::string& name) {
    auto* seat = seat_of(turn, name);
    return seat != nullptr ? &seat->part : host_of(turn) == name ? &turn.host : nullptr;
}

bool RelayRound::all(const Turn& turn, bool (*holds)(const Part& part)) {
    return holds(turn.host) && std::ranges::all_of(turn.seats, [&](const Seat& seat) { return holds(seat.part); });
}

/// Groups whose host will not come back go on at the host that has the fewest.
void RelayRound::move_groups() {
    bool waits = false;
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        const auto host = host_of_group_[group];
        if (relay_.over(group) || !given_up_.contains(host)) {
            continue;
        }
        const std::string* next = nullptr;
        std::ptrdiff_t fewest = 0;
        for (const auto& [name, node] : hosts_) {
            const auto groups = std::ranges::count(host_of_group_, name);
            if (node.session != 0 && node.gone_until == never && !given_up_.contains(name) &&
                (next == nullptr || groups < fewest)) {
                next = &name;
                fewest = groups;
            }
        }
        if (next == nullptr) {
            waits = true;
        } else {
            relay_.replace_host(host, *next);
            for (std::uint32_t other = group; other < host_of_group_.size(); ++other) {
                if (host_of_group_[other] == host && !relay_.over(other)) {  // who served one to its end is told so
                    host_of_group_[other] = *next;
                }
            }
        }
    }
    hostless_since_ = waits ? std::optional(hostless_since_.value_or(now_)) : std::nullopt;
}

void RelayRound::tick(Instant now, CoordinatorEffects& effects) {
    for (auto& [name, node] : clients_) {
        if (now >= closes_at_ && node.away) {
            leave(name, absence(node.session), "it did not come back before the round closed", effects);
        } else if (now >= closes_at_) {
            leave(name, "straggler_deadline", "the round closed before its turn was over", effects);
        } else if (now >= node.gone_until) {
            leave(name, absence(node.session), away_too_long, effects);
            node.gone_until = never;
        }
    }
    for (auto& [name, node] : hosts_) {
        if (now >= node.gone_until) {
            node.gone_until = never;
            given_up_.insert(name);
        }
    }
    for (auto& [number_of_collection, collection] : collections_) {
        if (now >= collection.retry_at) {
            ask_for(number_of_collection, collection, effects);
        }
    }
    const auto turns = turns_;  // what is done about one may end others
    for (const auto& [number_of_turn, turn] : turns) {
        if (!turns_.contains(number_of_turn)) {
            continue;
        }
        auto& live = turns_.at(number_of_turn);
        if (now >= hangs_at(live)) {
            hangs(number_of_turn, now, effects);
            continue;
        }
        if (now >= live.host.retry_at) {
            absorb(number_of_turn, live, host_of(live), effects);
        }
        for (const auto& seat : turn.seats) {
            if (now >= seat_of(live, seat.turn.client)->part.retry_at) {
                absorb(number_of_turn, live, seat.turn.client, effects);
            }
        }
    }
    go_on(now, effects);
    const auto wait = of_relays_.host_wait;
    no_host_ = no_host_ || (hostless_since_ && wait > Duration::zero() && now - *hostless_since_ >= wait);
}

/// When both have offered it waits for this machine, not for its nodes; before anything has moved, for segments on
/// their way, which only the transfers can judge.
Instant RelayRound::hangs_at(const Turn& turn) const {
    const bool none = turn.step == 0 && all(turn, [](const Part& part) { return !part.offer; });
    if (none || all(turn, [](const Part& part) { return part.offer.has_value(); })) {
        return never;
    }
    return turn.moved_at + std::max(limits::no_progress, limits::no_progress_pauses * turn.longest_pause);
}

/// The one that the others wait for: the client that has done the least, or the host where every client is done.
void RelayRound::hangs(std::uint32_t number_of_turn, Instant now, CoordinatorEffects& effects) {
    const auto& turn = turns_.at(number_of_turn);
    const auto host = host_of(turn);
    const auto why = "its turn has not moved for " + std::to_string(static_cast<long>(seconds(now - turn.moved_at))) +
                     " s, at the client or at " + host;
    const Seat* last = turn.seats.size() == 1 ? &turn.seats.front() : nullptr;
    for (const auto& seat : turn.seats) {
        const bool less = last == nullptr || seat.progress.step < last->progress.step;
        last = !seat.part.offer && less ? &seat : last;
    }
    if (last == nullptr) {
        return give_up_host(host, "no_progress: " + why);
    }
    leave(std::string(last->turn.client), "no_progress", why, effects);
}

// ---------------------------------------------------------------- hosts' segments that only they hold

/// Whether the host's segment of the turn at work comes here before the turn counts: always, or only that of the
/// tour's last.
bool RelayRound::copies(std::uint32_t group) const {
    return of_relays_.relay.handover_copy == RelayPlan::Copy::coordinator || relay_.left(group) <= 1;
}

bool RelayRound::uncopied(std::uint32_t group) const {
    const auto& segment = relay_.last(group).server_segment;
    return !segment.empty() && !copied_.contains(segment);
}

/// A tour whose last clients were skipped has ended with a segment that did not seem to be its last.
void RelayRound::collect(CoordinatorEffects& effects) {
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        const bool asked = std::ranges::any_of(
            collections_, [&](const auto& entry) { return entry.second.group == group; });
        if (!relay_.over(group) || !uncopied(group) || asked || hosts_[host_of_group_[group]].session == 0) {
            continue;
        }
        const auto& segment = relay_.last(group).server_segment;
        const auto number_of_collection = next_number_++;
        auto& collection = collections_[number_of_collection] = {
            .group = group,
            .segment = {.experiment = plan_.assignment.lease.experiment,
                        .round = number(),
                        .digest = segment,
                        .bytes = sizes_[segment]}};
        ask_for(number_of_collection, collection, effects);
    }
}

void RelayRound::ask_for(std::uint32_t number_of_collection, Collection& collection, CoordinatorEffects& effects) {
    collection.retry_at = never;
    const auto& host = host_of_group_[collection.group];
    effects.jobs.push_back(AbsorbUpdate{plan_.assignment.lease.experiment, number(), number_of_collection, host,
                                        hosts_[host].session, collection.segment, of_relays_.host.segment});
}

/// What cannot be had is made again, from the round's beginning.
void RelayRound::collected(std::uint32_t number_of_collection, const UpdateAbsorbed& absorbed) {
    auto& collection = collections_.at(number_of_collection);
    if (absorbed.fetch_error && absorbed.fetch_error->kind == ErrorKind::io) {
        machine_fault_ = absorbed.fetch_error->code + ": " + absorbed.fetch_error->message;
        collection.retry_at = now_ + limits::machine_fault_retry;
        return;
    }
    machine_fault_.clear();
    if (absorbed.refusal || absorbed.fetch_error) {
        relay_.restart(collection.group);
    } else {
        copied_.insert(absorbed.update);
    }
    collections_.erase(number_of_collection);
}

// ---------------------------------------------------------------- what it has come to

Round::Outcome RelayRound::outcome() const {
    if (possible() < quorum()) {
        return Outcome::quorum_lost;
    }
    if (no_host_) {
        return Outcome::no_host;
    }
    if (relay_.outcome() == Relay::Outcome::open || !opened_) {  // until then a segment may prove to be lost
        return Outcome::open;
    }
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        if (uncopied(group)) {
            return Outcome::open;
        }
    }
    std::uint64_t examples = 0;
    for (const auto& result : relay_.results()) {
        examples += result.examples;
    }
    return examples == 0 ? Outcome::zero_total_weight : Outcome::complete;
}

Instant RelayRound::deadline() const {
    Instant due = relay_.outcome() == Relay::Outcome::open ? closes_at_ : never;
    for (const auto* nodes : {&clients_, &hosts_}) {
        for (const auto& [name, node] : *nodes) {
            due = std::min(due, node.gone_until);
        }
    }
    for (const auto& [number_of_turn, turn] : turns_) {
        due = std::min({due, hangs_at(turn), turn.host.retry_at});
        for (const auto& seat : turn.seats) {
            due = std::min(due, seat.part.retry_at);
        }
    }
    for (const auto& [number_of_collection, collection] : collections_) {
        due = std::min(due, collection.retry_at);
    }
    if (hostless_since_ && of_relays_.host_wait > Duration::zero()) {
        due = std::min(due, *hostless_since_ + of_relays_.host_wait);
    }
    return due;
}

std::vector<std::pair<std::string, Digest>> RelayRound::participants() const {
    std::vector<std::pair<std::string, Digest>> all;
    for (const auto& [client, what] : counted_) {
        all.emplace_back(client, what.segment);
    }
    return all;
}

std::optional<Digest> RelayRound::counted(const std::string& node) const {
    const auto found = counted_.find(node);
    return found == counted_.end() ? std::nullopt : std::optional(found->second.segment);
}

/// In the order of names, so that the sum of doubles does not depend on arrival.
double RelayRound::train_loss() const {
    double sum = 0;
    double weight = 0;
    for (const auto& [client, what] : counted_) {
        if (std::isfinite(what.loss)) {
            sum += static_cast<double>(what.examples) * what.loss;
            weight += static_cast<double>(what.examples);
        }
    }
    return weight > 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
}

std::uint32_t RelayRound::possible() const {
    return static_cast<std::uint32_t>(relay_.possible());
}

std::string RelayRound::why_missing() const {
    if (no_host_) {
        return host_refusal_.empty() ? "" : "; " + host_refusal_;
    }
    for (const auto& [name, node] : clients_) {
        if (!node.drop_code.empty()) {
            return "; " + name + ": " + node.drop_code + ": " + node.drop_message;
        }
    }
    return "";
}

/// Groups in their order, and in each the tour's.
Json RelayRound::status(Instant now) const {
    auto rows = Json::array();
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        const auto& turn = relay_.turn(group);
        for (const auto& client : of_relays_.relay.groups[group]) {
            const auto& node = clients_.at(client);
            const bool turns = turn && turn->client == client;
            const auto under_way = std::ranges::find_if(
                turns_, [&](const auto& entry) { return turns && in_group(entry.second, group); });
            const bool known = under_way != turns_.end();
            const auto* seat = known ? seat_of(under_way->second, client) : nullptr;
            const char* state = counted_.contains(client)   ? "counted"
                                : !node.drop_code.empty()   ? "dropped"
                                : seat != nullptr && seat->part.offer ? "uploading"
                                : turns                     ? "working"
                                : node.session == 0         ? "away"
                                                            : "waiting";
            auto row = Json::object()
                           .set("node", client)
                           .set("state", state)
                           .set("attempt", known ? under_way->first : 0)
                           .set("step", seat != nullptr ? seat->progress.step : 0)
                           .set("steps", seat != nullptr ? seat->progress.steps : 0)
                           .set("reason", node.drop_code.empty() ? Json() : Json(node.drop_code))
                           .set("group", together() ? Json() : Json(group))
                           .set("host", host_of_group_[group]);
            if (node.away && node.drop_code.empty() && !counted_.contains(client)) {
                add_wait(row, now, node.session, node.gone_until, closes_at_);
            }
            rows.push(std::move(row));
        }
    }
    return rows;
}

Json RelayRound::relays() const {
    std::uint64_t up = 0;
    std::uint64_t down = 0;
    for (const auto& [client, what] : counted_) {
        up += what.stream_up;
        down += what.stream_down;
    }
    auto relays = Json::object().set("stream_bytes_up", up).set("stream_bytes_down", down);
    if (together()) {  // whom a person calls a group is one client there
        return relays.set("critical_client", of_relays_.relay.groups[last_group_].front());
    }
    return relays.set("groups", static_cast<std::uint64_t>(host_of_group_.size()))
        .set("critical_group", last_group_ + 1);
}

FinishRound RelayRound::finish() const {
    auto job = Round::finish();
    for (const auto& result : relay_.results()) {
        job.groups.push_back(
            {{result.segments.client_segment, result.segments.server_segment}, result.examples});
    }
    return job;
}

/// Who may stream: streams are open before their turn comes, and stay for the next round's. Where that would be too
/// many for a host, those at work and the next of each group.
std::vector<StreamPair> RelayRound::streams() const {
    std::map<std::string, std::size_t> clients_of;
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        clients_of[host_of_group_[group]] += of_relays_.relay.groups[group].size();
    }
    const auto here = [](const Node& node) { return node.session != 0 && !node.away && node.drop_code.empty(); };
    std::vector<StreamPair> pairs;
    for (std::uint32_t group = 0; group < host_of_group_.size(); ++group) {
        const auto& host = host_of_group_[group];
        const auto found = hosts_.find(host);
        if (found == hosts_.end() || !here(found->second) || given_up_.contains(host)) {
            continue;
        }
        const bool all_of_them = clients_of[host] <= limits::streams_held;
        for (const auto& client : all_of_them ? of_relays_.relay.groups[group] : relay_.coming(group, 2)) {
            if (here(clients_.at(client))) {
                pairs.push_back({client, host});
            }
        }
    }
    return pairs;
}

std::vector<std::string> RelayRound::hosts() const {
    std::set<std::string> names(host_of_group_.begin(), host_of_group_.end());
    return {names.begin(), names.end()};
}

void RelayRound::send(const std::string& name, Message message, CoordinatorEffects& effects) const {
    const auto& nodes = clients_.contains(name) ? clients_ : hosts_;
    const auto found = nodes.find(name);
    if (found != nodes.end() && found->second.session != 0) {
        effects.send.push_back({found->second.session, std::move(message)});
    }
}

RelayRound::Node* RelayRound::node_of(const std::string& name) {
    if (const auto client = clients_.find(name); client != clients_.end()) {
        return &client->second;
    }
    const auto host = hosts_.find(name);
    return host == hosts_.end() ? nullptr : &host->second;
}

}  // namespace causeway
