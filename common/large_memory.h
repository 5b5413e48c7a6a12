// Memory of large values: models, updates and sums are arrays of 10 MB to some GB that come and go with every round.
//
// In pages of 4 KB the first touch of such an array costs ten times a pass over it (0.38 s a GB, not 0.04), up to 0.6
// where the machine is a guest whose free pages go to its host. So operator new asks for pages of 2 MiB (0.08), and
// what is given back lies here for the next round, which asks for the same sizes again. What lies here never adds
// to the peak: memory is taken anew only after as much of it has gone. Not in sanitizer builds, which have their own.
//
// threads  any; no locks
#pragma once

#include <cstddef>

#include "common/time.h"

namespace causeway {

/// Gives back to the system what nobody has wanted for so long.
void give_back_spare_memory(Duration unused_for);

/// What lies here at the moment, in bytes: as good as free.
[[nodiscard]] std::size_t spare_memory();

}  // namespace causeway
