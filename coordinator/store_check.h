// Whether the store is what was written: its rows against their sums, and all of it against the head beside it.
//
// Looked at before anything is written, so a refusal leaves the folder as it was, evidence included.
// Thread: the store thread, or whoever holds the folder's lock while no daemon runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/head_file.h"
#include "coordinator/store_journal.h"

namespace causeway {

/// How a store and its head belong together.
struct StoreCheck {
    StoredHead head;                        // of the database, as its rows come to
    PartSums sums;                          // of all rows as they are
    std::vector<Part> damaged;              // parts whose rows are not what was written
    bool sums_damaged = false;              // the rows are whole, what is written about them is not
    bool behind = false;                    // of the head
    std::vector<const HeadRecord*> lost{};  // what the head has beyond it, in order
    bool exact = false;                     // `lost` are all transactions, without a gap, with their rows
};

/// head: must outlive the result. errors: corrupt `database_corrupt`; io. cost: reads the whole database
Result<StoreCheck> look_at_store(Database& database, const HeadContents& head);

/// What was done and is lost, one act a text: "rounds 11 to 22 of experiment 1", "the revocation of lab-a".
Result<std::vector<std::string>> lost_acts(Database& database, const StoreCheck& check);

/// The refusal, where there is one; what was mended of indexes and sums is said in the log.
///
/// errors   corrupt `store_damaged`: rows are not what was written; `store_behind`: the head has more;
///          `database_corrupt`
Status require_whole(Database& database, const std::filesystem::path& state, const StoreCheck& check);

/// "a, b and 3 more"
[[nodiscard]] std::string listed(const std::vector<std::string>& items);

}  // namespace causeway
