// Pairs: asked for, joined, forwarded, ended.
#include "wire/relay_table.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {
namespace {

constexpr Duration join_time = std::chrono::seconds(5);  // for the asked node to open its relay connection
constexpr std::size_t remembered_ends = 64;

Error ended(const char* code, std::string message) {
    return {ErrorKind::refused, code, std::move(message)};
}

}  // namespace

RelayTable::Key RelayTable::key_of(const std::string& a, const std::string& b, std::uint64_t experiment) {
    return a < b ? Key{a, b, experiment} : Key{b, a, experiment};
}

void RelayTable::allow(std::vector<RelayPair> pairs, Instant now) {
    std::map<Key, Permit> fresh;
    for (const auto& pair : pairs) {
        const auto key = key_of(pair.first, pair.second, pair.experiment);
        const auto before = permits_.find(key);
        fresh[key] = {pair.expires, pair.quota, before == permits_.end() ? 0 : before->second.bytes};
    }
    permits_ = std::move(fresh);
    tick(now);
}

// What others have asked of the node before it had this connection goes to it now.
void RelayTable::opened(ConnectionId carrier, const std::string& node) {
    carriers_[carrier].node = node;
    newest_[node] = carrier;
    for (auto& [id, relay] : relays_) {
        if (relay.ends[1].carrier == 0 && relay.ends[1].node == node) {
            join(relay, id, carrier);
        }
    }
}

void RelayTable::closed(ConnectionId carrier) {
    const auto found = carriers_.find(carrier);
    if (found == carriers_.end()) {
        return;
    }
    const auto node = found->second.node;
    std::vector<std::pair<std::uint64_t, std::size_t>> theirs;
    for (const auto& [number, place] : found->second.pairs) {
        theirs.push_back(place);
    }
    for (const auto& [id, side] : theirs) {
        end(id, {ErrorKind::disconnected, "peer_gone", node + " is not connected to the relay any more"}, side);
    }
    carriers_.erase(carrier);
    if (const auto newest = newest_.find(node); newest != newest_.end() && newest->second == carrier) {
        newest_.erase(newest);
    }
}

// ---------------------------------------------------------------- what nodes say

Status RelayTable::handle(ConnectionId from, Message&& message, Instant now) {
    const auto carrier = carriers_.find(from);
    if (carrier == carriers_.end()) {
        return {};
    }
    if (const auto* asked = std::get_if<RelayOpen>(&message)) {
        return open(from, *asked, now);
    }
    auto* data = std::get_if<RelayFrame>(&message);
    const auto* granted = std::get_if<RelayCredit>(&message);
    const auto* over = std::get_if<RelayEnd>(&message);
    if (!data && !granted && !over) {
        return fail(ErrorKind::invalid, "wrong_connection",
                    std::string(message_name(message)) + " does not belong on a relay connection");
    }
    const auto number = data ? data->pair : granted ? granted->pair : over->pair;
    const auto place = carrier->second.pairs.find(number);
    if (place == carrier->second.pairs.end()) {
        return std::ranges::count(carrier->second.ended, number) > 0
                   ? Status()
                   : Status(fail(ErrorKind::invalid, "unknown_pair", "no pair of this connection has that number"));
    }
    const auto [id, side] = place->second;
    auto& relay = relays_.at(id);
    if (data) {
        return frame(relay, id, side, std::move(*data));
    }
    if (granted) {
        return credit(relay, id, side, *granted);
    }
    end(id, ended(over->code.empty() ? "ended" : over->code.c_str(), over->message), side);
    return {};
}

Status RelayTable::open(ConnectionId from, const RelayOpen& asked, Instant now) {
    auto& carrier = carriers_.at(from);
    if ((asked.pair & relay_number_bit) != 0 || asked.pair == 0 || carrier.pairs.contains(asked.pair)) {
        return fail(ErrorKind::invalid, "bad_pair", "a new pair needs a number that is not in use, below 2^63");
    }
    const auto refuse = [&](Error why) {
        log_debug("relay", carrier.node + " to " + asked.node + ": " + why.code);
        sink_.send(from, RelayEnd{asked.pair, why.code, why.message});
        return Status();
    };
    const auto key = key_of(carrier.node, asked.node, asked.experiment);
    const auto permit = permits_.find(key);
    if (permit == permits_.end() || now >= permit->second.expires || carrier.node == asked.node) {
        return refuse(ended("not_on_roster", "the coordinator has not said that these two nodes may talk"));
    }
    if (carrier.pairs.size() >= relay_pairs_per_node) {
        return refuse({ErrorKind::overloaded, "too_many_pairs", "this relay connection has enough pairs"});
    }
    const auto id = next_++;
    const auto other = newest_.find(asked.node);
    if (other == newest_.end() && !sink_.ask(asked.node, {id, carrier.node, asked.experiment})) {
        return refuse({ErrorKind::disconnected, "peer_gone", asked.node + " is not connected to the coordinator"});
    }
    auto& relay = relays_[id];
    relay = {key, {End{carrier.node, from, asked.pair, 0}, End{asked.node, 0, id, 0}}, now};
    carrier.pairs[asked.pair] = {id, 0};
    if (other != newest_.end()) {
        join(relay, id, other->second);
    }
    return {};
}

void RelayTable::join(Relay& relay, std::uint64_t id, ConnectionId carrier) {
    auto& asked = relay.ends[1];
    asked.carrier = carrier;
    carriers_.at(carrier).pairs[asked.number] = {id, 1};
    sink_.send(carrier, RelayOpen{asked.number, relay.ends[0].node, relay.key.experiment});
    if (asked.may_send > 0) {  // granted before it was there
        sink_.send(carrier, RelayCredit{asked.number, asked.may_send});
    }
}

Status RelayTable::frame(Relay& relay, std::uint64_t id, std::size_t from, RelayFrame&& frame) {
    auto& sender = relay.ends[from];
    const auto& receiver = relay.ends[1 - from];
    const auto size = frame.payload.size();
    if (size > sender.may_send) {
        end(id, {ErrorKind::overloaded, "beyond_credit", sender.node + " sends more than it was granted"});
        return {};
    }
    auto& permit = permits_.at(relay.key);
    if (permit.bytes + size > permit.quota) {
        end(id, {ErrorKind::overloaded, "relay_quota",
                 "these two nodes have used up what the relay forwards for them: let them reach each other directly"});
        return {};
    }
    sender.may_send -= size;
    permit.bytes += size;
    sink_.send(receiver.carrier, RelayFrame{receiver.number, std::move(frame.payload)});
    return {};
}

Status RelayTable::credit(Relay& relay, std::uint64_t id, std::size_t from, const RelayCredit& credit) {
    auto& sender = relay.ends[1 - from];
    if (credit.bytes > relay_window - sender.may_send) {
        end(id, {ErrorKind::overloaded, "too_much_credit", relay.ends[from].node + " grants more than 4 MiB"});
        return {};
    }
    sender.may_send += credit.bytes;
    if (sender.carrier != 0) {
        sink_.send(sender.carrier, RelayCredit{sender.number, credit.bytes});
    }
    return {};
}

// ---------------------------------------------------------------- the end

void RelayTable::leave(const End& end) {
    if (const auto carrier = carriers_.find(end.carrier); carrier != carriers_.end()) {
        carrier->second.pairs.erase(end.number);
        carrier->second.ended.push_back(end.number);
        if (carrier->second.ended.size() > remembered_ends) {
            carrier->second.ended.pop_front();
        }
    }
}

void RelayTable::end(std::uint64_t id, const Error& why, std::optional<std::size_t> knows) {
    const auto relay = std::move(relays_.at(id));
    relays_.erase(id);
    for (std::size_t side = 0; side < 2; ++side) {
        const auto& end = relay.ends[side];
        leave(end);
        if (end.carrier != 0 && knows != side) {
            sink_.send(end.carrier, RelayEnd{end.number, why.code, why.message});
        }
    }
}

void RelayTable::tick(Instant now) {
    std::vector<std::pair<std::uint64_t, Error>> over;
    for (const auto& [id, relay] : relays_) {
        const auto permit = permits_.find(relay.key);
        if (permit == permits_.end() || now >= permit->second.expires) {
            over.emplace_back(id, ended("roster_expired", "the coordinator does not say any more that they may talk"));
        } else if (relay.ends[1].carrier == 0 && now - relay.began > join_time) {
            over.emplace_back(id, Error{ErrorKind::timed_out, "relay_timeout",
                                        relay.ends[1].node + " has not connected to the relay within 5 s"});
        }
    }
    for (const auto& [id, why] : over) {
        end(id, why);
    }
}

std::vector<RelayUse> RelayTable::use() const {
    std::vector<RelayUse> all;
    for (const auto& [key, permit] : permits_) {
        all.push_back({key.first, key.second, key.experiment, permit.bytes});
    }
    return all;
}

}  // namespace causeway
