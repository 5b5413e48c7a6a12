// A link with its queues, and waiting for events by deadline (never by sleeping).
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "common/log.h"
#include "tests/wire/fixtures.h"
#include "wire/link.h"

namespace causeway {

constexpr Duration test_deadline = std::chrono::seconds(10);

struct TestLink {
    std::shared_ptr<LinkEvents> control = std::make_shared<LinkEvents>(4096);
    std::shared_ptr<LinkEvents> bulk = std::make_shared<LinkEvents>(4096);
    std::unique_ptr<Link> link;

    explicit TestLink(std::optional<Credentials> credentials, std::optional<Address> listen = {},
                      LinkLimits limits = {}) {
        static const bool quiet = (start_log(LogLevel::error, LogFormat::human), true);
        REQUIRE(quiet);
        LinkOptions options{std::move(credentials), std::move(listen), limits, [] { return test_now_s; }};
        link = std::move(*Link::start(std::move(options), {control, bulk}));
    }
    [[nodiscard]] Address address() const { return {"127.0.0.1", link->port()}; }

    /// The next event of the kind on a queue, others left out; nothing when the deadline passes first.
    template <class T>
    static std::optional<T> wait_for(LinkEvents& queue, Duration deadline = test_deadline) {
        const auto end = real_now() + deadline;
        while (real_now() < end) {
            auto event = queue.pop_for(end - real_now());
            if (event && std::holds_alternative<T>(*event)) {
                return std::move(std::get<T>(*event));
            }
        }
        return std::nullopt;
    }
    template <class T>
    std::optional<T> wait(Duration deadline = test_deadline) {
        return wait_for<T>(*control, deadline);
    }
    /// The next message of the kind.
    template <class M>
    std::optional<M> wait_message(Duration deadline = test_deadline) {
        const auto end = real_now() + deadline;
        while (real_now() < end) {
            auto event = wait<PeerMessage>(end - real_now());
            if (event && std::holds_alternative<M>(event->message)) {
                return std::move(std::get<M>(event->message));
            }
        }
        return std::nullopt;
    }
};

/// A connected pair: server with a session of `node`.
struct Session {
    ConnectionId at_client = 0;
    ConnectionId at_server = 0;  // the session number
};

inline Session open_session(TestLink& client, TestLink& server) {
    Session session;
    session.at_client = client.link->connect({.to = server.address()});
    REQUIRE(client.wait<PeerOpened>().has_value());
    client.link->send(session.at_client, Hello{});
    const auto opened = server.wait<PeerOpened>();
    REQUIRE(opened.has_value());
    session.at_server = opened->connection;
    return session;
}

}  // namespace causeway
