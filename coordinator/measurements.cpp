// See measurements.h.
#include "coordinator/measurements.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::size_t kept_round_trips = 8;
constexpr double fading = 0.7;                   // of what is known, with each transfer: some five of them count
constexpr std::uint64_t least_bytes = 4 * 1024;  // less says nothing of a rate
constexpr double least_seconds = 1e-4;           // clocks and threads say nothing finer

}  // namespace

void Measurements::Rate::add(std::uint64_t more, Duration took, Duration round_trip) {
    if (more >= least_bytes) {
        bytes = fading * bytes + static_cast<double>(more);
        seconds = fading * seconds + std::max(causeway::seconds(took - round_trip), least_seconds);
    }
}

Json Measurements::Rate::json() const {
    return seconds > 0 ? Json(bytes / seconds) : Json();
}

Duration Measurements::Node::round_trip() const {
    return round_trips.empty() ? Duration{} : *std::ranges::min_element(round_trips);
}

void Measurements::note(const LinkMeasured& seen) {
    auto& node = nodes_[seen.node];
    if (seen.round_trip > Duration::zero()) {
        node.round_trips.push_back(seen.round_trip);
        if (node.round_trips.size() > kept_round_trips) {
            node.round_trips.pop_front();
        }
    }
    node.up.add(seen.bytes_up, seen.up, node.round_trip());
    node.down.add(seen.bytes_down, seen.down, node.round_trip());
}

/// A node that does not say how long it computed, or did nothing, has not been measured.
void Measurements::note(const std::string& node, const WorkMeasured& work) {
    if (work.seconds > 0 && work.examples > 0) {
        nodes_[node].work = work;
    }
}

std::map<std::uint64_t, std::uint32_t> Measurements::experiments() const {
    std::map<std::uint64_t, std::uint32_t> all;
    for (const auto& [name, node] : nodes_) {
        if (node.work.examples > 0) {
            ++all[node.work.experiment];
        }
    }
    return all;
}

Json Measurements::json() const {
    auto all = Json::object();
    for (const auto& [name, node] : nodes_) {
        const auto& work = node.work;
        all.set(name, Json::object()
                          .set("round_trip_seconds",
                               node.round_trips.empty() ? Json() : Json(seconds(node.round_trip())))
                          .set("uplink", node.up.json())
                          .set("downlink", node.down.json())
                          .set("work", work.examples == 0 ? Json()
                                                          : Json::object()
                                                                .set("experiment", work.experiment)
                                                                .set("layers", work.layers)
                                                                .set("examples", work.examples)
                                                                .set("seconds", work.seconds)));
    }
    return all;
}

}  // namespace causeway
