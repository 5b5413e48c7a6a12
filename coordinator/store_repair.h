// `causeway doctor --repair`: what can be had back of a store that is damaged, and what has to be given up by name.
//
// A store that is older than its head gets the head's transactions again, row by row: nothing is lost. Where some of
// them are missing, the epochs and revocations that the head knows are applied, experiments that it knows and the store
// does not are kept as failed, so that their numbers are not given again, and those whose members keep state between
// rounds fail. Damaged rows are taken from the head where it has them; else what nodes say again goes, and an
// experiment with damaged rows fails. A line of the audit log says all of it. What was there is copied to STATE/damaged
// first. Nothing is guessed: identities that are damaged need a backup.
// Thread: main, with the folder's lock, while no daemon runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/head_file.h"

namespace causeway {

/// What was done, a line for each; none: there was nothing to mend.
///
/// errors   corrupt `store_damaged`: rows are damaged that only a backup has; `database_corrupt`, `store_lost`;
///          unsupported `newer_format`; io
Result<std::vector<std::string>> repair_store(const std::filesystem::path& state, std::int64_t now_unix_s);

/// Every revoked certificate that the head knows is revoked, also where this store has not even seen it. Inside a
/// transaction.
Status apply_revocations(Database& database, const HeadContents& head);

}  // namespace causeway
