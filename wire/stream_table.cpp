// Routes: getting a connection, keeping it, losing it.
#include "wire/stream_table.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {
namespace {

constexpr const char* idle_words = "nothing moves";
constexpr Duration settle_pause = std::chrono::milliseconds(100);
constexpr Duration ahead_pause = std::chrono::seconds(5);  // between attempts that nothing waits for
// Who sends while the other side closes for idleness has sent into nothing; the other side has seen 30 s of silence.
constexpr Duration direct_again = std::chrono::minutes(1);  // after the relay was needed
constexpr Duration crossing = std::chrono::seconds(10);

bool is_idle_end(const Error& why) {
    return why.code == "bye" && why.message == idle_words;
}

}  // namespace

// ---------------------------------------------------------------- the owner's words

void StreamTable::roster(const Roster& roster, Instant now) {
    std::map<Key, Line> fresh;
    std::vector<StreamPeer> allowed;
    for (const auto& entry : roster.entries) {
        const auto role = role_from(entry.role);
        if (!role) {
            log_warn("streams", "the roster has " + entry.node + " as a \"" + entry.role + "\": left out");
            continue;
        }
        Line line{
            {entry.node, *role, entry.fingerprint, entry.experiment, now + std::chrono::milliseconds(entry.expires_ms)},
            {}};
        for (const auto& text : entry.addresses) {
            if (auto address = parse_address(text)) {
                line.addresses.push_back(std::move(*address));
            }
        }
        allowed.push_back(line.peer);
        fresh.insert_or_assign({entry.node, entry.experiment}, std::move(line));
    }
    roster_ = std::move(fresh);
    sink_.allow(std::move(allowed));
    for (auto& [key, route] : routes_) {
        const bool pending = !route.waiting.empty() && route.current == 0;
        if (pending && !roster_.contains(key)) {
            give_up(key, route, {ErrorKind::refused, "not_on_roster", key.node + " is not on the roster any more"});
        }
    }
    for (const auto& [key, line] : roster_) {
        open_ahead(key, line, now);
    }
}

/// Before there is anything to send: a turn that finds its stream open is spared seven round trips. Only by the side
/// that has an address or whom nobody can reach; a side that listens waits.
void StreamTable::open_ahead(const Key& key, const Line& line, Instant now) {
    auto& route = routes_[key];
    const bool ours = !line.addresses.empty() || !sink_.listens;
    const bool tries = route.dialling != 0 || route.wake_at != never || route.wants_relay;
    if (ours && route.current == 0 && !tries && now >= route.ahead_at && now < line.peer.expires) {
        route.ahead_at = now + ahead_pause;
        begin(key, route, now);
    }
}

void StreamTable::send(const std::string& node, StreamData message, Instant now) {
    const Key key{node, message.lease.experiment};
    const auto line = roster_.find(key);
    auto& route = routes_[key];
    if (line == roster_.end() || now >= line->second.peer.expires) {
        give_up(key, route,
                {ErrorKind::refused, line == roster_.end() ? "not_on_roster" : "roster_expired",
                 "the coordinator does not say that this node may talk to " + node + " now"});
        return;
    }
    route.began = route.waiting.empty() ? now : route.began;  // an attempt made ahead has its whole time from here on
    route.waiting_bytes += message.payload.size();
    route.waiting.push_back(std::move(message));
    if (route.waiting_bytes > limits_.waiting) {
        const Error why{
            ErrorKind::overloaded, "stream_overflow",
            node + " does not take what is sent to it: " + std::to_string(route.waiting_bytes) + " bytes wait"};
        if (route.current != 0) {
            close_connection(route.current, why);
        }
        give_up(key, route, why);
        return;
    }
    if (route.current != 0) {
        pump(route, now);
    } else if (route.dialling == 0 && route.wake_at == never && !route.wants_relay) {
        begin(key, route, now);
    }
}

void StreamTable::cut_off(const std::string& node, const Error& why) {
    std::vector<ConnectionId> theirs;
    for (const auto& [id, connection] : connections_) {
        if (connection.key.node == node) {
            theirs.push_back(id);
        }
    }
    for (const auto id : theirs) {
        sink_.close(id, why);  // PeerClosed ends it
    }
}

void StreamTable::attach(ConnectionId control, Address coordinator, std::uint64_t) {
    control_ = control;
    coordinator_ = std::move(coordinator);
}
void StreamTable::detach(ConnectionId control) {
    if (control_ != control) {
        return;
    }
    control_ = 0;
    if (carrier_ == 0) {
        return;
    }
    // For us it is over at once, with its streams: saying so to a peer that does not read takes the link two seconds,
    // and the next session's streams must not go the way of this one's.
    const Error why = bye("the session has ended");
    const auto old = carrier_;
    sink_.close(old, why);
    carrier_closed(why);
    std::vector<ConnectionId> carried;
    for (const auto& [id, connection] : connections_) {
        if (connection.carrier == old) {
            carried.push_back(id);
        }
    }
    for (const auto id : carried) {
        const auto key = connections_.at(id).key;
        close_connection(id, why);
        give_up(key, routes_[key], why);
    }
}

// ---------------------------------------------------------------- the link's words

/// Events of one connection come in order; PeerOpened is the first and PeerClosed the last.
void StreamTable::handle(LinkEvent&& event, Instant now) {
    if (const auto* up = std::get_if<PeerOpened>(&event)) {
        opened(*up, now);
    } else if (const auto* down = std::get_if<PeerClosed>(&event)) {
        closed(*down, now);
    } else if (const auto* moved = std::get_if<PeerSent>(&event)) {
        sent(*moved, now);
    } else if (const auto* measured = std::get_if<PeerMeasured>(&event)) {
        if (const auto found = connections_.find(measured->connection); found != connections_.end()) {
            found->second.piece = paced(found->second.piece, measured->round_trip, max_chunk_bytes);
        }
    } else if (auto* said = std::get_if<PeerMessage>(&event)) {
        if (auto* piece = std::get_if<StreamData>(&said->message)) {
            data(said->connection, std::move(*piece));
        } else if (std::holds_alternative<RelayOpen>(said->message)) {
            open_carrier(now);  // another node asks for us
        }
    }
}

/// A peer that connects again has lost what it had: its earlier connection is closed here too, even where our machine
/// has not noticed. One that we dialled stays beside it, for both sides may have dialled at once; each side sends on
/// the first it has, so that order is kept.
void StreamTable::opened(const PeerOpened& event, Instant now) {
    if (event.kind == ConnectionKind::relay && event.connection == carrier_) {
        carrier_opened(now);
    }
    if (event.kind != ConnectionKind::stream || !event.peer) {
        return;
    }
    const auto attempt = dialled_.find(event.connection);
    const bool accepted = attempt == dialled_.end();
    const Key key{event.peer->identity.node, event.experiment};
    auto& route = routes_[key];
    if (!accepted) {
        dialled_.erase(attempt);
        route.dialling = 0;
        route.relaying = false;
    } else if (route.current != 0 && connections_.at(route.current).accepted) {
        const auto old = route.current;
        close_connection(old, {ErrorKind::disconnected, "replaced", "a newer stream of this node takes its place"});
        give_up(key, route, {ErrorKind::disconnected, "replaced", key.node + " has connected anew"});
    }
    connections_.emplace(
        event.connection,
        Connection{
            key, event.address, accepted, event.carrier, false, StreamAssembly(limits_.largest), {}, 0, {}});
    if (route.current == 0) {
        route.current = event.connection;
        route.wake_at = never;
        pump(route, now);
    }
}

void StreamTable::closed(const PeerClosed& event, Instant now) {
    if (event.connection == carrier_) {
        carrier_closed(event.why);
        return;
    }
    if (const auto attempt = dialled_.find(event.connection); attempt != dialled_.end()) {
        const auto key = attempt->second;
        dialled_.erase(attempt);
        attempt_failed(key, routes_[key], event, now);
        return;
    }
    const auto found = connections_.find(event.connection);
    if (found == connections_.end()) {
        return;  // closed by us
    }
    const Connection gone = std::move(found->second);
    connections_.erase(found);
    auto& route = routes_[gone.key];
    const bool current = route.current == event.connection;
    if (current) {
        route.current = 0;
    }
    const bool cut = gone.assembly.unfinished() || (gone.sent_at != Instant{} && now - gone.sent_at < crossing);
    const bool over = !roster_.contains(gone.key) && route.waiting.empty() && !gone.assembly.unfinished();
    const bool planned = (is_idle_end(event.why) && !cut) || over;
    if (!planned && (current || gone.heard)) {
        give_up(gone.key, route, event.why);
    } else if (current && !route.waiting.empty()) {
        begin(gone.key, route, now);
    }
}

void StreamTable::attempt_failed(const Key& key, Route& route, const PeerClosed& event, Instant now) {
    route.dialling = 0;
    const bool relaying = std::exchange(route.relaying, false);
    const auto line = roster_.find(key);
    if (route.current != 0 || (route.waiting.empty() && line == roster_.end())) {
        return;  // the peer was faster, or nobody wants it any more
    }
    if (event.why.code == "not_on_roster" && now - route.began < limits_.settle) {
        route.wake_at = now + settle_pause;  // its roster is on the way
        return;
    }
    if (relaying) {
        route.failures +=
            (route.failures.empty() ? "" : "; ") + ("by relay: " + event.why.code) + ": " + event.why.message;
        no_way(key, route, {ErrorKind::disconnected, "no_route", key.node + " cannot be reached: " + route.failures});
        return;
    }
    const auto at = line != roster_.end() && route.next_address < line->second.addresses.size()
                        ? line->second.addresses[route.next_address].text()
                        : "?";
    route.failures += (route.failures.empty() ? "" : "; ") + at + ": " + event.why.code + ": " + event.why.message;
    ++route.next_address;
    advance(key, route, now);
}

void StreamTable::data(ConnectionId id, StreamData&& message) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    auto& connection = found->second;
    connection.heard = true;
    if (message.lease.experiment != connection.key.experiment) {
        sink_.close(id, {ErrorKind::refused, "wrong_experiment",
                         "this stream is of experiment " + std::to_string(connection.key.experiment) + ", not of " +
                             std::to_string(message.lease.experiment)});
        return;
    }
    auto whole = connection.assembly.add(std::move(message));
    if (!whole) {
        sink_.close(id, whole.error());
    } else if (*whole) {
        sink_.owner.deliver(connection.key.node, std::move(**whole));
    }
}

void StreamTable::sent(const PeerSent& event, Instant now) {
    const auto found = connections_.find(event.connection);
    if (found == connections_.end()) {
        return;
    }
    auto& connection = found->second;
    for (auto n = event.chunks; n > 0 && !connection.in_link.empty(); --n) {
        connection.in_link_bytes -= connection.in_link.front();
        connection.in_link.pop_front();
    }
    if (auto& route = routes_[connection.key]; route.current == event.connection) {
        pump(route, now);
    }
}

// ---------------------------------------------------------------- getting a connection

void StreamTable::begin(const Key& key, Route& route, Instant now) {
    const auto line = roster_.find(key);
    const bool skip = now < route.direct_at && control_ != 0 && line != roster_.end();
    route.next_address = skip ? line->second.addresses.size() : 0;
    route.failures.clear();
    route.began = now;
    advance(key, route, now);
}

void StreamTable::advance(const Key& key, Route& route, Instant now) {
    route.wake_at = never;
    const auto line = roster_.find(key);
    if (line == roster_.end()) {
        no_way(key, route, {ErrorKind::refused, "not_on_roster", key.node + " is not on the roster any more"});
        return;
    }
    const auto& addresses = line->second.addresses;
    if (route.next_address < addresses.size()) {
        route.dialling = sink_.connect({.to = addresses[route.next_address],
                                        .kind = ConnectionKind::stream,
                                        .peer = line->second.peer,
                                        .within = limits_.connect});
        dialled_[route.dialling] = key;
    } else if (addresses.empty() && sink_.listens && now - route.began < limits_.wait_for_peer) {
        route.wake_at = route.began + limits_.wait_for_peer;
    } else {
        go_by_relay(key, route, now);
    }
}

void StreamTable::go_by_relay(const Key& key, Route& route, Instant now) {
    if (control_ == 0) {
        no_way(key, route,
               {ErrorKind::disconnected, "no_route",
                key.node + " cannot be reached: " +
                    (route.failures.empty() ? "it did not connect, and no address of it is known" : route.failures) +
                    "; and there is no session whose coordinator could relay"});
        return;
    }
    route.direct_at = now + direct_again;
    route.wants_relay = true;
    open_carrier(now);
    if (carrier_open_) {
        dial_by_relay(key, route);
    }
}

void StreamTable::dial_by_relay(const Key& key, Route& route) {
    route.wants_relay = false;
    const auto line = roster_.find(key);
    if (line == roster_.end() || route.current != 0) {
        return;
    }
    route.relaying = true;
    route.dialling = sink_.connect({.kind = ConnectionKind::stream, .via = carrier_, .peer = line->second.peer});
    dialled_[route.dialling] = key;
}

void StreamTable::open_carrier(Instant now) {
    carrier_used_ = now;
    if (carrier_ == 0 && control_ != 0) {
        carrier_ = sink_.connect(
            {.to = coordinator_, .kind = ConnectionKind::relay, .control = control_, .within = limits_.connect});
    }
}

void StreamTable::carrier_opened(Instant now) {
    carrier_open_ = true;
    carrier_used_ = now;
    for (auto& [key, route] : routes_) {
        if (route.wants_relay) {
            dial_by_relay(key, route);
        }
    }
}

/// The streams that went over it have closed by themselves.
void StreamTable::carrier_closed(const Error& why) {
    carrier_ = 0;
    carrier_open_ = false;
    for (auto& [key, route] : routes_) {
        if (std::exchange(route.wants_relay, false)) {
            no_way(key, route,
                   {ErrorKind::disconnected, "no_route",
                    key.node + " cannot be reached: " + (route.failures.empty() ? "" : route.failures + "; ") +
                        "the coordinator's relay: " + why.code + ": " + why.message});
        }
    }
}

/// As much as the link may have at a time; the rest waits here, where it can be counted.
void StreamTable::pump(Route& route, Instant now) {
    auto& connection = connections_.at(route.current);
    while (!route.waiting.empty() && connection.in_link_bytes < limits_.in_link) {
        auto& message = route.waiting.front();
        auto piece = cut_piece(message, connection.piece);
        const auto size = piece.payload.size();
        connection.in_link.push_back(size);
        connection.in_link_bytes += size;
        connection.sent_at = now;
        route.waiting_bytes -= size;
        sink_.send(route.current, std::move(piece));
        if (message.payload.empty()) {
            route.waiting.pop_front();
        }
    }
}

/// What waits is dropped and the owner told: it decides what to do, and the next message begins anew.
void StreamTable::give_up(const Key& key, Route& route, Error why) {
    route.waiting.clear();
    route.waiting_bytes = 0;
    route.wake_at = never;
    route.wants_relay = false;
    sink_.owner.lost(key.node, why);
}

/// An attempt has failed. One that was made ahead is nobody's loss: the first message tries anew, or a later tick.
void StreamTable::no_way(const Key& key, Route& route, Error why) {
    if (route.waiting.empty()) {
        route.wake_at = never;
        route.wants_relay = false;
        log_debug("streams", "not opened ahead: " + why.message);
        return;
    }
    give_up(key, route, std::move(why));
}

/// For us it is over at once; the link says so to the peer.
void StreamTable::close_connection(ConnectionId id, Error why) {
    const auto found = connections_.find(id);
    if (auto& route = routes_[found->second.key]; route.current == id) {
        route.current = 0;
    }
    connections_.erase(found);
    sink_.close(id, std::move(why));
}

void StreamTable::tick(Instant now) {
    const bool carries = std::ranges::any_of(connections_, [](const auto& c) { return c.second.carrier != 0; }) ||
                         std::ranges::any_of(routes_, [](const auto& r) { return r.second.dialling != 0; });
    carrier_used_ = carries ? now : carrier_used_;
    if (carrier_open_ && now - carrier_used_ > limits_.idle) {
        carrier_open_ = false;
        sink_.close(std::exchange(carrier_, 0), bye(idle_words));
    }
    for (auto& [key, route] : routes_) {
        if (now >= route.wake_at) {
            advance(key, route, now);
        }
    }
    for (const auto& [key, line] : roster_) {
        open_ahead(key, line, now);
    }
    std::erase_if(routes_, [&](const auto& entry) {
        const auto& route = entry.second;
        return !roster_.contains(entry.first) && route.current == 0 && route.dialling == 0 && route.waiting.empty();
    });
}

std::vector<std::string> StreamTable::routes() const {
    std::vector<std::string> lines;
    for (const auto& [key, route] : routes_) {
        if (route.current != 0) {
            const auto& connection = connections_.at(route.current);
            lines.push_back(key.node + (connection.carrier != 0 ? " relayed" : " direct " + connection.address));
        }
    }
    return lines;
}

}  // namespace causeway
