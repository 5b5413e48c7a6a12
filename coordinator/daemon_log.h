// What the daemon's log tells of its experiments: a line per change of state, per round, and per member that is lost.
//
// Told from the persists, which are all that ever happens; machines themselves know no log. Loop thread only.
#pragma once

#include "coordinator/effects.h"

namespace causeway {

void log_persist(const Persist& persist);

}  // namespace causeway
