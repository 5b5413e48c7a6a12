// Who has which link and speed, in words: "80% uplink=10mbit,delay=20ms; 20% uplink=2mbit,downlink=8mbit,delay=80ms".
//
// Shares add up to 100 %. Each class gets its exact share of the clients (rounded), and which client is in which class
// follows from the seed, so that names and parts of the data say nothing about links.
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

/// "80% 50us; 20% 2ms": the time that one example takes in training, per client. errors: invalid `bad_mix`
Result<std::vector<Duration>> parse_speeds(std::string_view text, std::size_t clients, std::uint64_t seed);

}  // namespace causeway::simulation
