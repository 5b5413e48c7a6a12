// The lines of the decision log, with their details: what time or arrival decided, and what a restart reads back.
//
//   cohort   {"members": [names]}                       drawn apart from a commit, after waiting for members
//   selection {"rule", "there", "drawn", "left_out": {node: why}}   why of those there some do not take part; at most
//            128 names. not_drawn, busy, away (dropped before, and not back), other_build
//            late (Latecomers: it rests)
//   late     {"nodes": {node: {"misses", "again", "tried"}}}   members that were too late: from which round each is
//            tried again, and for whom this round is a try, in which it is not waited for (coordinator/latecomers.h)
//   compute  {"node", "software", "signature"}          drawn for the first time, or with another signature than before
//   dropped  {"node", "attempt", "code", "message"}     straggler_deadline, not_waited_for, gone, silent,
//            declined, transfer_failed, no_progress, revoked
//   refused  {"node", "update", "code", "message", "tensor", "index"}   by the firewall; it is not asked again
//   attempt  {"node", "attempt"}                        a member came back and works under a new lease
//   groups   {"groups": [[names]], "hosts": [name per group], "examples": {name: declared},
//            "seconds": {name: measured}, "grouping"}   of a round of
//            relays: who trains after whom, on which host, and the turns' times that this rests on; of the grouping
//            `labels` also {"labels": {name: how often each}, "without_labels": [names that share none]}
//   handover {"group", "node", "client_segment", "server_segment", "client_bytes", "server_bytes", "examples", "loss",
//            "stream_bytes_up", "stream_bytes_down"}
//            the client's turn counts: both segments are here as well as where they were made
//   skipped  {"group", "node"}       restarted {"group", "node"}       moved {"group", "node": the new host}
//   early_stop {"metric", "best_round", "best", "patience"}   no better model for so long: the round is not opened
//   redo     {"model", "why"}   it was committed with this model, which was damaged on the disk: it is done again, and
//            has to come to the same
//   statistics {"examples", "columns", "sha256"}   what round 0 has come to: the digest of the numbers' text, which
//            the experiment's stored file has from here on (configs/statistics.h)
#pragma once

#include <string>
#include <vector>

#include "common/json_lists.h"
#include "coordinator/effects.h"

namespace causeway::decisions {

inline constexpr const char* cohort = "cohort";
inline constexpr const char* selection = "selection";
inline constexpr const char* late = "late";
inline constexpr const char* compute = "compute";
inline constexpr const char* dropped = "dropped";
inline constexpr const char* refused = "refused";
inline constexpr const char* next_attempt = "attempt";
inline constexpr const char* early_stop = "early_stop";
inline constexpr const char* groups = "groups";
inline constexpr const char* statistics = "statistics";
inline constexpr const char* redo = "redo";

inline Json cohort_detail(const std::vector<std::string>& members) {
    return Json::object().set("members", json_of(members));
}

inline Json late_detail(Json nodes) {
    return Json::object().set("nodes", std::move(nodes));
}
/// Codes of `dropped` that mean: there, and not done in time.
inline bool is_late(const std::string& code) {
    return code == "straggler_deadline" || code == "not_waited_for";
}

inline Json selection_detail(const std::string& rule, std::size_t there, std::size_t drawn, Json left_out) {
    return Json::object()
        .set("rule", rule)
        .set("there", std::uint64_t{there})
        .set("drawn", std::uint64_t{drawn})
        .set("left_out", std::move(left_out));
}

inline Json compute_detail(const std::string& node, const std::string& software, const std::string& signature) {
    return Json::object().set("node", node).set("software", software).set("signature", signature);
}

inline Json dropped_detail(const std::string& node, std::uint32_t attempt, const std::string& code,
                           const std::string& message) {
    return Json::object().set("node", node).set("attempt", attempt).set("code", code).set("message", message);
}

inline Json refused_detail(const std::string& node, const Refused& refusal) {
    return Json::object()
        .set("node", node)
        .set("update", refusal.update.hex())
        .set("code", refusal.code)
        .set("message", refusal.message)
        .set("tensor", refusal.tensor)
        .set("index", refusal.index);
}

inline Json attempt_detail(const std::string& node, std::uint32_t attempt) {
    return Json::object().set("node", node).set("attempt", attempt);
}

inline Json statistics_detail(std::uint64_t examples, std::int64_t columns, const std::string& numbers) {
    return Json::object().set("examples", examples).set("columns", columns).set("sha256", sha256(numbers).hex());
}

inline Json early_stop_detail(const std::string& metric, std::uint32_t best_round, double best,
                              std::uint32_t patience) {
    return Json::object()
        .set("metric", metric)
        .set("best_round", best_round)
        .set("best", best)
        .set("patience", patience);
}

}  // namespace causeway::decisions
