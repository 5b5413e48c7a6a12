// Enrolment over the network: the node's side as one call for the command line.
#pragma once

#include <functional>

#include "common/time.h"
#include "wire/enrolment.h"
#include "wire/link.h"

namespace causeway {

/// What has happened, for whom a failure leaves with a key.
struct JoinTrace {
    bool asked = false;  // a coordinator has seen the request: it may have signed it, whatever came back
};

/// Tries each of the token's addresses in order until one answers; the error names each failure.
///
/// `say` gets a line per failed address. A refusal by the right coordinator ends the search: the next address is the
/// same coordinator.
/// errors   the coordinator's refusal (unknown_token, token_expired, token_used, ...); disconnected `unreachable`: none
///          of the addresses answered
/// cost     up to 10 s per address
/// threads  blocks; runs a link of its own meanwhile
Result<Credentials> join_federation(const JoinToken& token, const KeyPair& key,
                                    const std::function<void(std::string_view)>& say,
                                    const std::function<std::int64_t()>& unix_now = wall_clock_unix_s,
                                    JoinTrace* trace = nullptr);

}  // namespace causeway
