// Many sessions in one thread: the load tool of `causeway bench sessions`.
//
// On the wire each is what a node's session is: TCP, ZeroMQ's framing, TLS with a certificate of its own, our messages.
// What a node is besides (threads, files, training) is left out: models are counted and not kept, updates are one
// made-up update with another last value each. Thread: one owner.
#pragma once

#include <functional>
#include <memory>

#include "wire/address.h"
#include "wire/link.h"
#include "wire/secure_channel.h"

namespace causeway::cli {

/// The update that all sessions offer; each puts its number into the last value.
struct SwarmUpdate {
    Bytes bytes;
    Digest start_model;
};

class Swarm {
public:
    Swarm() = default;  // for make() only
    /// Makes the identities; connects nothing yet.
    static Result<std::unique_ptr<Swarm>> make(const Authority& authority, std::size_t sessions,
                                               DatasetDeclaration dataset);
    ~Swarm();
    Swarm(const Swarm&) = delete;
    Swarm& operator=(const Swarm&) = delete;

    /// All sessions connect, and again whenever they lose their connection, with a node's pauses.
    void connect(const Address& to);
    /// All sessions open their bulk connection.
    void attach();
    /// Makes each session's update: what nodes do on machines of their own.
    void prepare(SwarmUpdate update);
    /// All sessions that have a model offer their update.
    void offer();
    /// Serves until `over` or the deadline. False: the deadline.
    bool run(Duration bound, const std::function<bool()>& over);

    [[nodiscard]] std::size_t welcomed() const { return welcomed_; }
    [[nodiscard]] std::size_t attached() const { return attached_; }
    [[nodiscard]] std::size_t assigned() const { return assigned_; }
    [[nodiscard]] std::size_t models() const { return models_; }
    [[nodiscard]] std::size_t committed() const { return committed_; }
    [[nodiscard]] const Assign& assignment() const { return assignment_; }
    /// Why some session could not do what it was to; empty: all well.
    [[nodiscard]] const std::string& complaint() const { return complaint_; }

private:
    struct Connection;
    struct Session;

    Status open(Connection& connection);
    void lose(Connection& connection, const std::string& why);
    void read(Connection& connection);
    static bool gather(Connection& connection, std::size_t size, ByteView& come);
    bool take(Connection& connection, ByteView& come);
    static bool take_head(Connection& connection, ByteView& come);
    void command(Connection& connection, const Bytes& body);
    void receive(Connection& connection, ByteView sealed);
    void greet(Connection& connection);
    void handle(Connection& connection, Message&& message);
    void fetch(Session& session);
    void serve(Session& session, const Pull& pull);
    void send(Connection& connection, const Message& message);
    void frame(Connection& connection, ByteView body, std::uint8_t flags);
    void write(Connection& connection);
    void beat(Session& session, Instant now);

    Address to_;
    DatasetDeclaration dataset_;
    int poll_ = -1;
    Bytes buffer_ = Bytes(256 << 10);  // what one read takes
    std::vector<std::unique_ptr<Session>> sessions_;
    SwarmUpdate update_;
    Assign assignment_;
    std::string complaint_;
    std::size_t welcomed_ = 0;
    std::size_t attached_ = 0;
    std::size_t assigned_ = 0;
    std::size_t models_ = 0;
    std::size_t committed_ = 0;
};

}  // namespace causeway::cli
