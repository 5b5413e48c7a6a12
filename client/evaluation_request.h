// The coordinator's request "evaluate": read as an assignment, which is what policies and trainers know how to judge.
//
// A peer's JSON: every field is checked for type and size, and the texts have parsers of their own. Pure, any thread.
#pragma once

#include "wire/message.h"

namespace causeway::node {

/// errors   unsupported `unknown_verb`; corrupt: not JSON; invalid `missing_argument`: a field is missing
[[nodiscard]] Result<Assign> read_evaluation_request(const Request& request);

}  // namespace causeway::node
