// Under which addresses others find this process: what tokens carry, and what a host tells of itself.
#pragma once

#include <string>
#include <vector>

#include "wire/address.h"

namespace causeway {

/// "*", "0.0.0.0" or "::".
bool is_wildcard(const Address& address);

/// Those that are advertised by hand (`HOST` gets the port that is listened on), else the one that is listened on, else
/// every global address of this machine (of IPv4 alone where 0.0.0.0 is listened on), else loopback.
///
/// errors   invalid `bad_address`
Result<std::vector<Address>> own_addresses(const std::vector<std::string>& advertise, const Address& listen,
                                           std::uint16_t port);

}  // namespace causeway
