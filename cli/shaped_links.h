// Slow links between processes of this machine, without root: a proxy that hands bytes on as late as a line of that
// rate, delay and jitter would. For demos and tests; the bytes themselves stay what they are.
//
// A line belongs to one client and is shared by all of its connections, each way with its own rate. A direction takes
// in no more than the line carries in a few milliseconds, so that connections share it evenly and the sender feels it,
// as behind a short buffer of a router. Nothing is lost on the way: loss is the business of the TCP below.
//
// One thread owns all sockets; start() and the destructor are the owner's, and port() is any thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/random.h"
#include "common/result.h"
#include "common/time.h"
#include "simulation/mix.h"
#include "wire/address.h"

namespace causeway::cli {

/// One direction of a line as arithmetic: when bytes that are taken in now come out.
class ShapedLine {
public:
    ShapedLine(const simulation::Way& way, Duration jitter, const RandomKey& key)
        : way_(way), jitter_(jitter), random_(key) {}

    /// Not before then is there room for more.
    [[nodiscard]] Instant room_at() const { return free_ - queue_time; }
    /// In order: never before what went in earlier.
    Instant take(Instant now, std::size_t bytes);
    /// What one read may be, so that nobody holds the line for long.
    [[nodiscard]] std::size_t piece() const;

    static constexpr Duration queue_time = std::chrono::milliseconds(20);  // of the buffer before the line

private:
    simulation::Way way_;
    Duration jitter_;
    RandomStream random_;
    Instant free_{};
    Instant last_{};
};

/// Who dials this is connected to `to` over a line.
struct ShapedRoute {
    std::size_t line = 0;  // index of `lines`
    Address to;            // a numeric address
};

class ShapedLinks {
public:
    /// errors   io `cannot_listen`; invalid `bad_address`: a target that is not numeric
    static Result<std::unique_ptr<ShapedLinks>> start(const std::vector<simulation::ShapedLink>& lines,
                                                      const std::vector<ShapedRoute>& routes, std::uint64_t seed);
    struct State;
    explicit ShapedLinks(std::unique_ptr<State> state);
    /// Ends every connection and waits for the thread.
    ~ShapedLinks();
    ShapedLinks(const ShapedLinks&) = delete;
    ShapedLinks& operator=(const ShapedLinks&) = delete;

    /// From now on nothing comes through that line, either way, and nobody is told: a cable that is cut far away.
    void silence(std::size_t line);
    /// Where a route listens on 127.0.0.1.
    [[nodiscard]] std::uint16_t port(std::size_t route) const;

private:
    std::unique_ptr<State> state_;
};

}  // namespace causeway::cli
