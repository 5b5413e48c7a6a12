// What has been measured of each node since this coordinator's start: its line, and how fast it computes.
//
// A round trip is that of a heartbeat's answer, the smallest of late, since waiting adds to it and nothing takes away.
// A rate is that of whole transfers, without their round trip; each counts less than the one after it. Computing is
// what a node says of its last piece of work, with what that was, so that whoever asks can compare it with its own
// machine. Nothing is decided by it: plans are made from it (`node.measurements`). Thread: loop. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "common/json.h"
#include "common/time.h"

namespace causeway {

/// One observation; what is zero was not observed.
struct LinkMeasured {
    std::string node;
    Duration round_trip{};
    std::uint64_t bytes_up = 0;  // from the node, in `up`
    Duration up{};
    std::uint64_t bytes_down = 0;
    Duration down{};
};

/// A piece of work as it was assigned, and what the node says that it took.
struct WorkMeasured {
    std::uint64_t experiment = 0;
    std::string layers;  // "[0, 3)"; empty: all
    std::uint64_t examples = 0;
    double seconds = 0;
};

class Measurements {
public:
    void note(const LinkMeasured& seen);
    void note(const std::string& node, const WorkMeasured& work);
    void forget(const std::string& node) { nodes_.erase(node); }
    /// Experiments that somebody's work is of.
    [[nodiscard]] std::map<std::uint64_t, std::uint32_t> experiments() const;
    /// {NODE: {"round_trip_seconds", "uplink", "downlink": bytes a second, "work": {"experiment", "layers", "examples",
    /// "seconds"}}}; what was never measured is null.
    [[nodiscard]] Json json() const;

private:
    /// Bytes and their seconds, older ones fading.
    struct Rate {
        double bytes = 0;
        double seconds = 0;
        void add(std::uint64_t more, Duration took, Duration round_trip);
        [[nodiscard]] Json json() const;
    };
    struct Node {
        std::deque<Duration> round_trips;  // the latest
        Rate up;
        Rate down;
        WorkMeasured work;
        [[nodiscard]] Duration round_trip() const;
    };
    std::map<std::string, Node> nodes_;
};

}  // namespace causeway
