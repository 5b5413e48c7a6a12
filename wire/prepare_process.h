// What a process with links does first, before it has threads.
#pragma once

#include "common/need.h"

namespace causeway {

/// Judges the machine, takes as many descriptors as it allows, and sets allocator thresholds that make 1 MiB chunks 1.4
/// times faster. What is short is logged.
///
/// errors  io: can_start's; at exhaustion of descriptors ZeroMQ's thread spins
Result<Capacity> prepare_process_for_links(const Need& need, const Machine& machine);

}  // namespace causeway
