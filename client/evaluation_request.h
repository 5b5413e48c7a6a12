// The coordinator's request "evaluate" and its answer: read as an assignment, which is what policies and trainers know
// how to judge.
//
// A peer's JSON: every field is checked for type and size, and the texts have parsers of their own. Pure, any thread.
#pragma once

#include "configs/figures.h"
#include "wire/message.h"

namespace causeway::node {

/// errors   unsupported `unknown_verb`; corrupt: not JSON; invalid `missing_argument`: a field is missing
[[nodiscard]] Result<Assign> read_evaluation_request(const Request& request);

/// What the node measured, or why it could not.
[[nodiscard]] Reply evaluation_reply(std::uint64_t request, const Result<Figures>& figures);

}  // namespace causeway::node
