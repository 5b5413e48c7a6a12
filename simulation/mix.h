// Who has which link and speed, in words: "80% uplink=10mbit,delay=20ms; 20% uplink=2mbit,downlink=8mbit,delay=80ms".
//
// Shares add up to 100 %; one class without a share is everybody. Each class gets its exact share of the clients
// (rounded), and which client is in which class follows from the seed, so that names and parts of the data say nothing
// about links. "client-2: uplink=1mbit" goes over the classes for that one.
#pragma once

#include <string_view>
#include <vector>

#include "common/result.h"
#include "simulation/network.h"

namespace causeway::simulation {

/// "uplink=10mbit,downlink=50mbit,delay=20ms": rates in kbit, mbit or gbit a second; the downlink is as the uplink when
/// it is not given, and the delay is that of one way. errors: invalid `bad_mix`
Result<LinkOptions> parse_link(std::string_view text);

/// Per client. errors: invalid `bad_mix`: which class, and what is wrong with it
Result<std::vector<LinkOptions>> parse_links(std::string_view text, std::size_t clients, std::uint64_t seed);

/// A link between real processes, `jitter=2ms` too: at most so much on top of the delay. The virtual network has none.
struct ShapedLink {
    LinkOptions link;
    Duration jitter{};
};
/// As parse_links. errors: invalid `bad_mix`
Result<std::vector<ShapedLink>> parse_shaped_links(std::string_view text, std::size_t clients, std::uint64_t seed);

/// "80% 50us; 20% 2ms": the time that one example takes in training, per client; "10x" is ten times the usual one.
/// errors: invalid `bad_mix`
Result<std::vector<Duration>> parse_speeds(std::string_view text, std::size_t clients, std::uint64_t seed);
/// "10x": how many times as long computing takes, where it is made to: 1 to 10,000. errors: invalid `bad_mix`
Result<double> parse_slowness(std::string_view text);
/// The same per client. errors: invalid `bad_mix`
Result<std::vector<double>> parse_slownesses(std::string_view text, std::size_t clients, std::uint64_t seed);
/// "75% 1x; 25% 10x": how many times as long a client's computing takes. errors: invalid `bad_mix`
Result<std::vector<double>> parse_factors(std::string_view text, std::size_t clients, std::uint64_t seed);

}  // namespace causeway::simulation
