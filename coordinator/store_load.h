// Reading the store back: at a start (Store::load) one query a table, each row into the experiment it belongs to; later
// a page of rounds for who asks about them.
#pragma once

#include "coordinator/database.h"
#include "coordinator/recovered.h"

namespace causeway {

/// Everything but the epoch. Rounds whose snapshot was removed since are part of it: their history is.
Result<Recovered> load_recovered(Database& database);
/// As Store::rounds.
Result<std::vector<StoredRound>> read_rounds(Database& database, ExperimentId experiment, std::uint32_t from,
                                             std::uint32_t count);

}  // namespace causeway
