// A daemon, a node and a peer under the test's control, over real sockets in one process. Clocks of certificates are
// the test's where it gives them.
#pragma once

#include <fstream>
#include <thread>

#include <catch2/catch.hpp>

#include "client/node.h"
#include "common/json.h"
#include "coordinator/daemon.h"
#include "tests/temporary_folder.h"
#include "wire/join.h"
#include "wire/transfer_engine.h"

namespace causeway {

constexpr Duration deadline = std::chrono::seconds(30);
using UnixClock = std::function<std::int64_t()>;

class RunningDaemon {
public:
    explicit RunningDaemon(const std::filesystem::path& state, UnixClock unix_now = wall_clock_unix_s) {
        auto started =
            Daemon::start({.state = state, .listen = Address{"127.0.0.1", 0}, .unix_now = std::move(unix_now)});
        INFO((started ? "" : started.error().message));
        REQUIRE(started.has_value());
        daemon_ = *std::move(started);
        thread_ = std::thread([this] { (void)daemon_->run(); });
    }
    ~RunningDaemon() {
        daemon_->stop();
        thread_.join();
    }
    RunningDaemon(const RunningDaemon&) = delete;
    RunningDaemon& operator=(const RunningDaemon&) = delete;
    [[nodiscard]] Address address() const { return {"127.0.0.1", daemon_->port()}; }

private:
    std::unique_ptr<Daemon> daemon_;
    std::thread thread_;
};

class RunningNode {
public:
    RunningNode(const std::filesystem::path& state, const std::string& token, const std::filesystem::path& data,
                UnixClock unix_now = wall_clock_unix_s) {
        auto enrolment = node::Enrolment::open(state, token, [](std::string_view) {});
        REQUIRE(enrolment.has_value());
        auto started = node::Node::start(*std::move(enrolment), {.state = state,
                                                                 .datasets = {{"points", data}},
                                                                 .say = [](const std::string&) {},
                                                                 .unix_now = std::move(unix_now)});
        REQUIRE(started.has_value());
        node_ = *std::move(started);
        thread_ = std::thread([this] { (void)node_->run(); });
    }
    ~RunningNode() {
        node_->stop();
        thread_.join();
    }
    RunningNode(const RunningNode&) = delete;
    RunningNode& operator=(const RunningNode&) = delete;

private:
    std::unique_ptr<node::Node> node_;
    std::thread thread_;
};

/// A peer under the test's control: sends what it likes, and hands out what it hears.
class TestPeer {
public:
    TestPeer(Credentials credentials, const Address& address, std::vector<DatasetDeclaration> datasets,
             UnixClock unix_now = wall_clock_unix_s)
        : address_(address) {
        auto started = Link::start({.credentials = std::move(credentials), .unix_now = std::move(unix_now)}, queues_);
        REQUIRE(started.has_value());
        link_ = *std::move(started);
        connection_ = link_->connect({.to = address});
        const auto opened = queues_.control->pop_for(deadline);
        REQUIRE((opened && std::holds_alternative<PeerOpened>(*opened)));
        coordinator_ = std::get<PeerOpened>(*opened).peer->fingerprint;
        send(Hello{.software = "causeway " CAUSEWAY_VERSION, .datasets = std::move(datasets)});
        session_ = next<Welcome>().session;
    }
    /// Of the certificate that the coordinator showed.
    [[nodiscard]] const Digest& coordinator() const { return coordinator_; }
    void send(Message message) { link_->send(connection_, std::move(message)); }
    /// The next message of this kind; others are passed over.
    template <class Wanted>
    Wanted next() {
        const auto end = real_now() + deadline;
        while (auto event = queues_.control->pop_for(end - real_now())) {
            REQUIRE_FALSE(std::holds_alternative<PeerClosed>(*event));
            auto* message = std::get_if<PeerMessage>(&*event);
            if (auto* wanted = message ? std::get_if<Wanted>(&message->message) : nullptr) {
                return *wanted;
            }
        }
        FAIL("the coordinator did not send what was waited for");
        return {};
    }
    Json ask(const std::string& verb, const Json& body) {
        send(Request{.id = ++last_request_, .verb = verb, .body = body.dump()});
        const auto reply = next<Reply>();
        INFO((reply.error ? reply.error->message : ""));
        REQUIRE_FALSE(reply.error.has_value());
        return *Json::parse(reply.body);
    }
    /// Serves these bytes, whatever digest is asked for.
    void serve(Bytes bytes) {
        const auto blob = std::make_shared<const Bytes>(std::move(bytes));
        engine_ = std::make_unique<TransferEngine>(
            *link_, queues_.bulk, [blob](const Digest&, const PeerIdentity&) -> Result<Blob> { return Blob(blob); });
        engine_->attach(connection_, address_, session_);
        engine_->want(connection_);
    }

private:
    Address address_;
    Digest coordinator_;
    LinkQueues queues_{std::make_shared<LinkEvents>(1024), std::make_shared<LinkEvents>(1024)};
    std::unique_ptr<Link> link_;
    std::unique_ptr<TransferEngine> engine_;
    ConnectionId connection_ = 0;
    std::uint64_t session_ = 0;
    std::uint64_t last_request_ = 0;
};

inline std::string new_token(TestPeer& operator_peer, const std::string& name) {
    return operator_peer.ask("token.new", Json::object().set("name", name).set("expires_seconds", 600))["token"].text();
}

inline Credentials enrol(const std::string& token) {
    const auto joined = join_federation(*parse_token(token), make_key(), [](std::string_view) {});
    REQUIRE(joined.has_value());
    return *joined;
}

inline std::filesystem::path write_points(const std::filesystem::path& folder) {
    std::ofstream(folder / "points.csv") << "0.5,1.5,0\n-1,2,1\n3,0.25,1\n";
    return folder / "points.csv";
}

}  // namespace causeway
