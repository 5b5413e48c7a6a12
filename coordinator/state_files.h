// STATE of a coordinator: its authority, its own certificate, the first operator's, made at the first start.
//
//   STATE/lock            held for life
//   STATE/format          "1", since the first start was through; a newer one is refused
//   STATE/coordinator.toml  the owner's settings, where there are any (cli/daemon_settings.h)
//   STATE/ca/             ca.key (0600), ca.crt; where the authority is elsewhere `external` instead of the key
//   STATE/coordinator/    node.key (0600), node.crt, ca.crt
//   STATE/operator/       the same for the operator, and `address`: where commands reach the daemon
//   STATE/coordinator.db  the store, and coordinator.head, what it has come to (head_file.h)
//   STATE/damaged/  what was there before a repair
//   STATE/snapshots/  models      STATE/spool/  updates on their way into a sum
//   STATE/requests/       for an authority elsewhere (external_authority.h)
//   STATE/backup/         what a backup has set aside (coordinator/backup.h)
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
    bool complete = false;  // a start has been through on this folder: its store has to be there
    Authority authority;
    Credentials coordinator;
    Credentials first_operator;
};

enum class AuthorityKind { own, external };

struct StateOptions {
    std::string federation;
    AuthorityKind authority = AuthorityKind::own;
    std::int64_t now_s = 0;
    std::int64_t certificate_lifetime_s = node_certificate_s;
};

/// Opens the folder, or makes it with a new authority for `federation`.
///
/// errors   refused `state_in_use`, `wide_mode`, `other_authority`; unsupported `newer_format`; io; corrupt
///          `authority_lost`; timed_out `awaiting_signature`: an authority elsewhere has not signed yet
Result<StateFiles> open_state(const std::filesystem::path& state, const StateOptions& options);
/// The store is there: from now on a folder without one is damaged, not new.
Status mark_complete(const std::filesystem::path& state);

/// Writes where commands of this machine find the daemon.
Status write_operator_address(const std::filesystem::path& state, const Address& listen, std::uint16_t port);

}  // namespace causeway
