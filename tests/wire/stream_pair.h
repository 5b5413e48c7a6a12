// Two link cores with a stream between them, frames passed by hand on a clock of the test's own.
//
// A half can be stopped: it then neither sees time pass nor reads, as a process that hangs or a machine that is gone.
#pragma once

#include <utility>

#include "tests/wire/core_fixtures.h"
#include "tests/wire/stream_message.h"

namespace causeway {

/// A client and a host, the client dialling; each with a roster of its own.
struct Pair {
    Federation federation;
    Credentials client_credentials = federation.node(Role::client, "site-a");
    Credentials host_credentials = federation.node(Role::host, "host-1");
    Node client{client_credentials};
    Node host{host_credentials};
    Instant now = std::chrono::seconds(1);
    bool host_stopped = false;
    Duration every{};  // frames arrive only at such moments; zero: at once

    static StreamPeer line(const Credentials& of, Instant expires, std::uint64_t in = experiment) {
        return {of.identity.node, of.identity.role, certificate_fingerprint(of.certificate), in, expires};
    }
    void allow(Instant expires = std::chrono::seconds(60)) {
        client.core.allow_streams({line(host_credentials, expires)});
        host.core.allow_streams({line(client_credentials, expires)});
    }
    void dial(ConnectionId id, const StreamPeer& whom) {
        REQUIRE(host.core.accept(id, "192.0.2.1:5000", now));
        client.core.dial(id, {.to = {"192.0.2.2", 7401}, .kind = ConnectionKind::stream, .peer = whom}, now,
                         test_now_s);
        run(std::chrono::milliseconds(0));
    }
    void dial(ConnectionId id = 1) { dial(id, line(host_credentials, now + std::chrono::seconds(60))); }
    void pass(Node& from, Node& to) {
        from.core.flush(now);
        for (auto& [id, frames] : from.network.sent) {
            for (auto& frame : std::exchange(frames, {})) {
                to.core.receive(id, frame, now, test_now_s);
            }
        }
    }
    void run(Duration length) {
        const auto end = now + length;
        do {
            now += std::chrono::milliseconds(10);
            client.core.tick(now);
            client.core.flush(now);
            if (!host_stopped) {
                host.core.tick(now);
                host.core.flush(now);
            }
            const bool arrives = every == Duration::zero() || now % every < std::chrono::milliseconds(10);
            for (int turn = 0; turn < 8 && !host_stopped && arrives; ++turn) {
                pass(client, host);
                pass(host, client);
            }
        } while (now < end);
    }
    static StreamData data(std::size_t size) {
        StreamData made{{1, experiment, 1, 1}, 1, 0, 0, 0, 0, 1, 0, size, Bytes(size, std::byte{7})};
        return made;
    }
};

inline std::string why_closed(Node& node) {
    const auto closed = node.take<PeerClosed>();
    return closed.empty() ? "" : closed.front().why.code;
}

}  // namespace causeway
