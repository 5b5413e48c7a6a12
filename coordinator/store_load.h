// Reading the store back at a start (Store::load): one query a table, each row into the experiment it belongs to.
#pragma once

#include "coordinator/database.h"
#include "coordinator/recovered.h"

namespace causeway {

/// Everything but the epoch. Rounds whose snapshot was removed since are part of it: their history is.
Result<Recovered> load_recovered(Database& database);

}  // namespace causeway
