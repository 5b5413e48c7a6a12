// The connections of `--http`: a fixed few, each for one request, on one thread with poll(2).
//
// Whoever can connect may hold as many connections, say as little and read as slowly as it likes, and costs at most
// `most_connections` descriptors and as many small buffers: a request and its answer have deadlines, and where all
// places are taken a new connection takes that of the oldest. One that has its request ready is answered in the turn in
// which it is accepted, so who asks for health is not held up by who asks for nothing.
// source   poll(2), accept(2); RFC 9112 9.6 for how a connection is closed so that its answer arrives
// threads  run() on one; stop() from any
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <list>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"
#include "coordinator/http_request.h"
#include "wire/address.h"

namespace causeway {

struct HttpResponse {
    int status = 200;
    std::string body;
    std::string type = "text/plain";
    std::string more = {};  // further fields, each "Name: value\r\n"
};

class HttpConnections {
public:
    static constexpr std::size_t most_connections = 64;
    /// Those, the listening socket and what wakes the thread.
    static constexpr std::size_t descriptors = most_connections + 2;

    /// An answer for each request, in their order: of all that came in one turn at once, so that what they cost is paid
    /// once. Called on run()'s thread.
    using Answer = std::function<std::vector<HttpResponse>(const std::vector<HttpRequest>&)>;

    /// Port 0: any. errors: io `port_in_use`, `too_few_descriptors`
    static Result<std::unique_ptr<HttpConnections>> open(const Address& listen, Answer answer);

    HttpConnections(int listening, int wake, std::uint16_t port, Answer answer);
    ~HttpConnections();
    HttpConnections(const HttpConnections&) = delete;
    HttpConnections& operator=(const HttpConnections&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// Serves until stop().
    void run();
    void stop() const;

private:
    enum class Phase { reading, answering, leaving };
    struct Connection {
        int descriptor = -1;
        Instant since{};  // accepted, or the phase began
        Instant accepted{};
        Phase phase = Phase::reading;
        HttpRequestReader reader = {};
        std::string output = {};
        std::size_t sent = 0;
        std::size_t thrown_away = 0;
    };

    enum class Turn { go_on, end };
    Turn turn();
    [[nodiscard]] Instant next_deadline() const;
    void accept_some(Instant now);
    bool make_place(Instant now);
    void receive(Connection& connection);
    void answer_whole(Instant now);
    void put(Connection& connection, const HttpResponse& response, Instant now);
    void send_rest(Connection& connection, Instant now);
    void leave(Connection& connection, Instant now);
    void end_late(Instant now);
    void close(Connection& connection);
    void sweep();

    int listening_;
    int wake_;
    std::uint16_t port_;
    Answer answer_;
    Instant accept_again_{};
    std::list<Connection> connections_;  // the oldest first
};

}  // namespace causeway
