// See network.h.
#include "simulation/network.h"

#include <algorithm>

namespace causeway::simulation {
namespace {

// A sealed control message of ordinary length; the world charges time and counts bytes with it.
constexpr std::uint64_t message_bytes = 300;
constexpr std::uint64_t longest_chunk = 1024 * 1024;

Error connection_error(const std::string& why) {
    return {ErrorKind::disconnected, "disconnected", why};
}

}  // namespace

Network::Network(EventQueue& queue, std::vector<LinkOptions> links, SharedLine line, Sinks sinks)
    : queue_(queue), line_(line), sinks_(std::move(sinks)) {
    links_.resize(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
        links_[i].up.options = links[i].up;
        links_[i].down.options = links[i].down;
    }
}

// ---------------------------------------------------------------- connections

/// A TLS handshake takes two round trips.
void Network::connect(std::size_t link) {
    const auto begun = queue_.now();
    const auto handshake = 2 * (delay(link, Side::client) + delay(link, Side::coordinator));
    const auto open = std::max(links_[link].up.blocked_until, links_[link].down.blocked_until);
    const auto when = std::min(std::max(begun + handshake, open), begun + std::max(connect_bound, handshake));
    queue_.at(when, [this, link, begun, attempt = ++links_[link].tries] { answer_connect(link, attempt, begun); });
}

void Network::answer_connect(std::size_t link, std::uint64_t attempt, Instant begun) {
    auto& there = links_[link];
    if (there.tries != attempt) {
        return;
    }
    const auto open = std::max(there.up.blocked_until, there.down.blocked_until);
    if (queue_.now() < open) {
        const auto patience = begun + connect_bound;
        if (queue_.now() >= patience) {
            sinks_.disconnected(link, connection_error("no answer"));
        } else {
            queue_.at(std::min(open, patience), [=, this] { answer_connect(link, attempt, begun); });
        }
        return;
    }
    if (!sinks_.listening()) {
        sinks_.disconnected(link, connection_error("nobody listens there"));
        return;
    }
    if (std::exchange(there.up.corrupt_next, false) || std::exchange(there.down.corrupt_next, false)) {
        sinks_.disconnected(link, connection_error("the handshake was damaged on the way"));
        return;
    }
    end(link, "a newer connection", false, true);
    there.connection = ++last_connection_;
    sinks_.connected(link);
}

void Network::cut(std::size_t link, const std::string& why) {
    end(link, why, true, true);
}

void Network::vanish(std::size_t link, Side gone) {
    if (gone == Side::client) {
        ++links_[link].tries;  // nobody is left to hear of an attempt under way
    }
    end(link, "the other side went away", gone != Side::client, gone != Side::coordinator);
}

/// What was under way is lost. A side is told one delay later; one that nothing can reach gives up by itself.
void Network::end(std::size_t link, const std::string& why, bool tell_client, bool tell_coordinator) {
    auto& there = links_[link];
    const auto connection = std::exchange(there.connection, 0);
    there.up.under_way.clear();
    there.down.under_way.clear();
    there.up.last_arrival = {};
    there.down.last_arrival = {};
    there.told_silent = false;
    if (connection == 0) {
        return;
    }
    const auto told_at = [&](Side from) {
        const auto reached = std::max(way(link, from).blocked_until, queue_.now());
        return std::min(reached, queue_.now() + give_up_bound) + delay(link, from);
    };
    if (tell_client) {
        queue_.at(told_at(Side::coordinator), [this, link, why, tries = there.tries] {
            if (links_[link].tries == tries) {
                sinks_.disconnected(link, connection_error(why));
            }
        });
    }
    if (tell_coordinator) {
        queue_.at(told_at(Side::client), [this, connection, why] { sinks_.closed(connection, why); });
    }
}

// ---------------------------------------------------------------- messages

Duration Network::delay(std::size_t link, Side from) {
    const auto& there = links_[link];
    const auto plain = way(link, from).options.delay;
    return queue_.now() < there.slow_until ? from_seconds(seconds(plain) * there.slowness) : plain;
}

Duration Network::time_on_the_wire(std::size_t link, Side from, std::uint64_t bytes) {
    const auto& there = links_[link];
    const auto plain = static_cast<double>(bytes) / way(link, from).options.rate;
    return from_seconds(queue_.now() < there.slow_until ? plain * there.slowness : plain);
}

Instant Network::through_line(std::size_t link, Side from, std::uint64_t bytes) {
    auto& free = way(link, from).line_free;
    return free = std::max(free, queue_.now()) + time_on_the_wire(link, from, bytes);
}

/// First come, first served, chunk by chunk: those who send at the same time get equal shares.
Instant Network::through_shared_line(Side from, std::uint64_t bytes) {
    const auto rate = from == Side::client ? line_.rate_in : line_.rate_out;
    auto& free = from == Side::client ? line_in_free_ : line_out_free_;
    if (rate <= 0) {
        return queue_.now();
    }
    return free = std::max(free, queue_.now()) + from_seconds(static_cast<double>(bytes) / rate);
}

void Network::send(Side from, std::size_t link, Message message) {
    auto& there = links_[link];
    if (there.connection == 0) {
        return;  // lost, as on a real link that has just died
    }
    count(from, message_bytes);
    auto& direction = way(link, from);
    const auto arrival =
        std::max(queue_.now() + time_on_the_wire(link, from, message_bytes), through_shared_line(from, message_bytes)) +
        delay(link, from);
    direction.last_arrival = std::max(direction.last_arrival, arrival);
    direction.under_way.push_back(std::move(message));
    queue_.at(direction.last_arrival, [this, link, from, c = there.connection] { deliver(link, from, c); });
}

/// The head of the queue, whichever message asked for this instant: order holds through stalls.
void Network::deliver(std::size_t link, Side from, ConnectionId connection) {
    auto& there = links_[link];
    if (there.connection != connection) {
        return;
    }
    auto& direction = way(link, from);
    if (queue_.now() < direction.blocked_until) {
        queue_.at(direction.blocked_until, [this, link, from, connection] { deliver(link, from, connection); });
        return;
    }
    if (std::exchange(direction.corrupt_next, false)) {
        end(link, "a record was damaged on the way: bad_record", true, true);
        return;
    }
    const auto message = std::move(direction.under_way.front());
    direction.under_way.pop_front();
    if (from == Side::client) {
        sinks_.to_coordinator(link, connection, message);
    } else {
        sinks_.to_client(link, message);
    }
}

// ---------------------------------------------------------------- failures

void Network::block(std::size_t link, Side from, Duration how_long) {
    const auto until = queue_.now() + how_long;
    if (until > way(link, from).blocked_until) {
        way(link, from).blocked_until = until;
        notice_silence(link, from, until);
    }
}

void Network::stall(std::size_t link, Duration how_long) {
    block(link, Side::client, how_long);
    block(link, Side::coordinator, how_long);
}

/// As the link threads would: the coordinator suspects after one bound, and either side gives up after another.
void Network::notice_silence(std::size_t link, Side from, Instant until) {
    const auto connection = links_[link].connection;
    const auto still = [this, link, from, connection, until] {
        return connection != 0 && links_[link].connection == connection && way(link, from).blocked_until == until;
    };
    queue_.after(give_up_bound, [this, link, until, still] {
        if (still() && queue_.now() < until) {
            end(link, "silent for too long", true, true);
        }
    });
    if (from == Side::coordinator) {
        return;  // a client does not act on suspicion
    }
    queue_.after(silence_bound, [this, link, connection, until, still] {
        if (still() && queue_.now() < until && !links_[link].told_silent) {
            links_[link].told_silent = true;
            sinks_.silent(connection);
        }
    });
    queue_.at(until, [this, link, connection, still] {
        if (still() && std::exchange(links_[link].told_silent, false)) {
            sinks_.heard(connection);
        }
    });
}

void Network::slow_down(std::size_t link, double factor, Duration how_long) {
    links_[link].slowness = factor;
    links_[link].slow_until = queue_.now() + how_long;
}

// ---------------------------------------------------------------- transfers

void Network::transfer(std::size_t link, Side from, std::uint64_t total, std::shared_ptr<std::uint64_t> at,
                       const Life& receiver, std::function<void(const Status&)> done) {
    auto asked = std::make_shared<Transfer>(Transfer{link, from, links_[link].connection, links_[link].bulk, total,
                                                     std::move(at), &receiver, receiver.number, std::move(done)});
    queue_.after(delay(link, Side::client) + delay(link, Side::coordinator),
                 [this, asked = std::move(asked)]() mutable { next_chunk(std::move(asked)); });
}

/// In the receiver's life, and not while it is stopped.
void Network::finish(const std::shared_ptr<Transfer>& transfer, const Status& status) {
    if (transfer->receiver->number != transfer->life) {
        return;
    }
    if (queue_.now() < transfer->receiver->stopped_until) {
        queue_.at(transfer->receiver->stopped_until, *transfer->receiver,
                  [transfer, status] { transfer->done(status); });
    } else {
        transfer->done(status);
    }
}

/// One chunk at a time: what has arrived is kept when the connection dies.
void Network::next_chunk(std::shared_ptr<Transfer> transfer) {
    auto& there = links_[transfer->link];
    const auto alive = [&] {
        return transfer->connection != 0 && there.connection == transfer->connection && there.bulk == transfer->bulk;
    };
    if (!alive()) {
        return finish(transfer, fail(connection_error("the transfer's connection was lost")));
    }
    auto& direction = way(transfer->link, transfer->from);
    if (queue_.now() < direction.blocked_until) {
        queue_.at(direction.blocked_until, [this, transfer]() mutable { next_chunk(std::move(transfer)); });
        return;
    }
    if (*transfer->at >= transfer->total) {
        return finish(transfer, {});
    }
    const auto chunk = std::clamp(transfer->total / 16, simulated_chunk, longest_chunk);
    const auto size = std::min(chunk, transfer->total - *transfer->at);
    const auto arrival = std::max(through_line(transfer->link, transfer->from, size),
                                  through_shared_line(transfer->from, size));
    queue_.at(arrival, [this, size, transfer]() mutable {
        auto& link = links_[transfer->link];
        if (std::exchange(way(transfer->link, transfer->from).corrupt_next, false)) {
            return finish(transfer, fail(ErrorKind::corrupt, "bad_record", "a chunk was damaged on the way"));
        }
        if (link.connection == transfer->connection && link.bulk == transfer->bulk) {
            *transfer->at += size;
            count(transfer->from, size);
        }
        next_chunk(std::move(transfer));
    });
}

}  // namespace causeway::simulation
