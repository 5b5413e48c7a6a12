// Every time limit and bound of the coordinator's machines, in one place, each with its reason.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "common/time.h"

namespace causeway::limits {

using namespace std::chrono_literals;

/// After a restart members need this long to notice, back off and connect again, whatever `rejoin` says: twice the
/// longest pause of a client (client/session.h) and a handshake.
constexpr Duration restart_grace = 30s;
/// A job that failed for a reason of this machine is retried after this, doubling up to the second.
constexpr Duration job_retry_first = 1s;
constexpr Duration job_retry_longest = 30s;
/// A broken transfer of an update is asked for again after this, doubling; after so many the member is dropped.
constexpr Duration transfer_retry_first = 500ms;
constexpr std::uint32_t transfer_attempts = 6;  // 15.5 s of trying
/// A relay's turn that breaks off for want of a connection between its nodes begins anew; after so many times its
/// client is left out of the round: a link that breaks as often is none.
constexpr std::uint32_t turn_attempts = 5;
/// So many clients of one experiment keep their streams to a host for the whole of it: each costs the host 57 KB and
/// two heartbeats a second. Of more, those have one that are at work or next.
constexpr std::size_t streams_held = 64;
/// Clients of one turn that are together: what the assignment of their host can name (wire/message.h).
constexpr std::uint32_t clients_together = 1024;
/// What this machine could not take (disk full) it tries again after this, as long as it lasts.
constexpr Duration machine_fault_retry = 1s;
/// Without a straggler deadline clients have this long to evaluate a model: an hour, as that deadline has by default.
constexpr Duration evaluation_time = 1h;
/// A member that trains and says so for steps, and then says nothing for this long, or for so many times its longest
/// pause between two steps, hangs: its heartbeats come from another thread. Before its first step it may be fetching a
/// model over a slow link, which only the transfer can judge (a stalled one ends there).
constexpr Duration no_progress = 60s;
constexpr int no_progress_pauses = 20;
/// What is offered may be so much larger than what its training started from: an update has other headers, a segment
/// that starts without its optimizer's state ends with some arrays of its size. More is refused before anything makes
/// room for it, or one member's number could have all others wait.
constexpr std::uint64_t larger_than_start = 4;
constexpr std::uint64_t offer_slack = 1 << 20;
/// Sums of columns start from no model: 64 bytes for each of a million columns.
constexpr std::uint64_t statistics_bytes = 64 << 20;
constexpr std::uint64_t largest_offer(std::uint64_t start_bytes) {
    return larger_than_start * start_bytes + offer_slack;
}
/// An exact sum holds integer weights below this (design: exact sums).
constexpr std::int64_t weight_bound = std::int64_t{1} << 29;

constexpr std::size_t sessions = 4096;
/// Beyond the sessions that a coordinator has room for: whoever is to look why nodes are refused gets in.
constexpr std::size_t sessions_for_operators = 16;
constexpr std::size_t datasets_per_node = 64;
constexpr std::size_t held_per_node = 64;
constexpr std::size_t experiments = 10'000;
constexpr std::size_t ancestors = 64;  // of a resumed experiment, told to clients
constexpr std::size_t queued_experiments = 100;
constexpr std::size_t names_in_selection = 128;  // of a decision: who is there and does not take part, and why
/// Of an experiment's committed rounds so many stay in memory, for who follows it; the others are in the store.
constexpr std::size_t rounds_kept = 32;
/// Rounds whose evaluation is still to come, and whose models are kept for it. The next is left out.
constexpr std::size_t evaluations_behind = 32;
constexpr std::size_t watches = 256;
constexpr std::size_t watches_per_session = 8;
/// Events given to one watcher in one step, and rounds read from the store at once for it; the rest follow in the next
/// ones, so that others are served between.
constexpr std::size_t events_per_step = 64;

}  // namespace causeway::limits
