// STATE of a coordinator: its authority, its own certificate, the first operator's, made at the first start.
//
//   STATE/lock            held for life
//   STATE/ca/             ca.key (0600), ca.crt
//   STATE/coordinator/    node.key (0600), node.crt, ca.crt
//   STATE/operator/       the same for the operator, and `address`: where commands reach the daemon
//   STATE/coordinator.db  the store       STATE/snapshots/  models      STATE/spool/  updates on their way into a sum
// Thread: any, before the daemon's threads start.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/file.h"
#include "wire/address.h"
#include "wire/identity.h"

namespace causeway {

struct StateFiles {
    FolderLock lock;
    Authority authority;
    Credentials coordinator;
    Credentials first_operator;
};

/// Opens the folder, or makes it with a new authority for `federation`.
///
/// errors   refused `state_in_use`, `wide_mode`; invalid: the folder belongs to another federation; io; corrupt
Result<StateFiles> open_state(const std::filesystem::path& state, const std::string& federation, std::int64_t now_s);

/// Writes where commands of this machine find the daemon.
Status write_operator_address(const std::filesystem::path& state, const Address& listen, std::uint16_t port);

/// What a join token carries: the advertised addresses, else every global address of this machine, else loopback.
///
/// errors  invalid `bad_address`
Result<std::vector<Address>> token_addresses(const std::vector<std::string>& advertise, const Address& listen,
                                             std::uint16_t port);

}  // namespace causeway
