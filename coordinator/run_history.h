// `experiment.log`: all that the store has of one experiment, a page at a time, for replays and explanations.
//
// A page is lines in the order in which things were decided: the experiment itself, then round by round its decisions,
// its commit, and whose updates it holds. Long lists are cut into several lines, so that a page has a bound whatever
// the size of a cohort. Each page is a few indexed queries, so that the store's other work is never held up for long.
// Thread: the store thread.
#pragma once

#include "common/json.h"
#include "coordinator/database.h"

namespace causeway {

/// {experiment, from: round, part} -> {id, lines, next: {from, part}, null at the end}; without `from`: the beginning.
///
/// docs/protocol.md has the lines. errors: invalid `missing_argument`; not_found `unknown_experiment`
Result<Json> history_page(Database& database, const Json& body);

}  // namespace causeway
