// See network.h.
#include "simulation/network.h"

#include <algorithm>

namespace causeway::simulation {
namespace {

// A sealed control message of ordinary length; the world charges time and counts bytes with it.
constexpr std::uint64_t message_bytes = 300;

Error connection_error(const std::string& why) {
    return {ErrorKind::disconnected, "disconnected", why};
}

}  // namespace

Network::Network(EventQueue& queue, std::vector<LinkOptions> links, Sinks sinks)
    : queue_(queue), sinks_(std::move(sinks)) {
    for (const auto& options : links) {
        links_.push_back(Link{.options = options});
    }
}

/// A TLS handshake takes two round trips.
void Network::connect(std::size_t link) {
    const auto when = std::max(queue_.now() + 4 * links_[link].options.delay, links_[link].stalled_until);
    queue_.at(when, [this, link, attempt = ++links_[link].tries] {
        if (links_[link].tries != attempt) {
            return;
        }
        if (!sinks_.listening()) {
            sinks_.disconnected(link, connection_error("nobody listens there"));
            return;
        }
        end(link, "a newer connection", false, true);
        links_[link].connection = ++last_connection_;
        sinks_.connected(link);
    });
}

void Network::send(Side from, std::size_t link, Message message) {
    auto& there = links_[link];
    if (there.connection == 0) {
        return;  // lost, as on a real link that has just died
    }
    count(from, message_bytes);
    auto& way = from == Side::client ? there.to_coordinator : there.to_client;
    const auto on_the_wire = from_seconds(static_cast<double>(message_bytes) / there.options.rate);
    way.last_arrival = std::max(way.last_arrival, queue_.now() + there.options.delay + on_the_wire);
    way.under_way.push_back(std::move(message));
    queue_.at(way.last_arrival, [this, link, from, c = there.connection] { deliver(link, from, c); });
}

/// The head of the queue, whichever message asked for this instant: order holds through stalls.
void Network::deliver(std::size_t link, Side from, ConnectionId connection) {
    auto& there = links_[link];
    if (there.connection != connection) {
        return;
    }
    if (queue_.now() < there.stalled_until) {
        queue_.at(there.stalled_until, [this, link, from, connection] { deliver(link, from, connection); });
        return;
    }
    auto& way = from == Side::client ? there.to_coordinator : there.to_client;
    const auto message = std::move(way.under_way.front());
    way.under_way.pop_front();
    if (from == Side::client) {
        sinks_.to_coordinator(link, connection, message);
    } else {
        sinks_.to_client(link, message);
    }
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

/// What was under way is lost. A side that is told learns it one delay later.
void Network::end(std::size_t link, const std::string& why, bool tell_client, bool tell_coordinator) {
    auto& there = links_[link];
    const auto connection = std::exchange(there.connection, 0);
    there.to_client = {};
    there.to_coordinator = {};
    there.told_silent = false;
    if (connection == 0) {
        return;
    }
    if (tell_client) {
        queue_.after(there.options.delay, [this, link, why, tries = there.tries] {
            if (links_[link].tries == tries) {
                sinks_.disconnected(link, connection_error(why));
            }
        });
    }
    if (tell_coordinator) {
        queue_.after(there.options.delay, [this, connection, why] { sinks_.closed(connection, why); });
    }
}

/// Silence is noticed as the link thread would: suspected after one bound, given up after another.
void Network::stall(std::size_t link, Duration how_long) {
    auto& there = links_[link];
    const auto until = queue_.now() + how_long;
    if (until <= there.stalled_until) {
        return;
    }
    there.stalled_until = until;
    const auto connection = there.connection;
    const auto still = [this, link, connection, until] {
        return connection != 0 && links_[link].connection == connection && links_[link].stalled_until == until;
    };
    queue_.after(silence_bound, [this, link, connection, until, still] {
        if (still() && queue_.now() < until && !links_[link].told_silent) {
            links_[link].told_silent = true;
            sinks_.silent(connection);
        }
    });
    queue_.after(give_up_bound, [this, link, until, still] {
        if (still() && queue_.now() < until) {
            end(link, "silent for too long", true, true);
        }
    });
    queue_.at(until, [this, link, connection, still] {
        if (still() && std::exchange(links_[link].told_silent, false)) {
            sinks_.heard(connection);
        }
    });
}

void Network::transfer(std::size_t link, Side from, std::uint64_t total, std::shared_ptr<std::uint64_t> at,
                       std::function<void(const Status&)> done) {
    const auto connection = links_[link].connection;
    queue_.after(2 * links_[link].options.delay,
                 [=, this, done = std::move(done)] { next_chunk(link, from, connection, total, at, done); });
}

/// One chunk at a time: what has arrived is kept when the connection dies.
void Network::next_chunk(std::size_t link, Side from, ConnectionId connection, std::uint64_t total,
                         std::shared_ptr<std::uint64_t> at, std::function<void(const Status&)> done) {
    auto& there = links_[link];
    if (connection == 0 || there.connection != connection) {
        done(fail(connection_error("the transfer's connection was lost")));
        return;
    }
    if (queue_.now() < there.stalled_until) {
        queue_.at(there.stalled_until, [=, this] { next_chunk(link, from, connection, total, at, done); });
        return;
    }
    if (*at >= total) {
        done({});
        return;
    }
    const auto size = std::min(simulated_chunk, total - *at);
    queue_.after(from_seconds(static_cast<double>(size) / there.options.rate), [=, this] {
        if (links_[link].connection == connection) {
            *at += size;
            count(from, size);
        }
        next_chunk(link, from, connection, total, at, done);
    });
}

}  // namespace causeway::simulation
