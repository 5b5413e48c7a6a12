// One round's evaluation on the clients' own held-out parts: who was asked, who has answered, who is left out and why.
//
// It follows the commit and holds up nothing: who is gone, refuses, or is late is left out with its name said. What
// comes is summed in the order of names, so the figures depend on who answered and not on when. Thread: loop. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/time.h"
#include "configs/figures.h"
#include "coordinator/effects.h"

namespace causeway {

class ClientEvaluation {
public:
    ClientEvaluation(Instant until, std::set<std::string> asked) : until_(until), waiting_(std::move(asked)) {}

    /// What a client says; a second word of it changes nothing.
    void answer(const std::string& node, const Reply& reply);
    void leave_out(const std::string& node, const std::string& why);
    /// At `until` nobody is waited for any longer.
    void tick(Instant now);

    [[nodiscard]] bool waits_for(const std::string& node) const { return waiting_.contains(node); }
    [[nodiscard]] bool settled() const { return waiting_.empty(); }
    [[nodiscard]] Instant deadline() const { return settled() ? never : until_; }
    [[nodiscard]] bool any() const { return !figures_.empty(); }
    /// Each client counts by its examples.
    [[nodiscard]] Figures together() const { return combine(figures_).together; }
    [[nodiscard]] Json describe() const { return describe_clients(figures_, left_out_); }
    /// "client-2 (silent), client-3 (late)"; empty: everybody has answered.
    [[nodiscard]] std::string missing() const;

private:
    Instant until_;
    std::set<std::string> waiting_;
    std::map<std::string, Figures> figures_;
    std::map<std::string, std::string> left_out_;  // why
};

/// Requests to clients are numbered by experiment and round; their replies come back under the number.
[[nodiscard]] inline std::uint64_t evaluation_request(ExperimentId experiment, std::uint32_t round) {
    return experiment << 32 | round;
}
[[nodiscard]] inline ExperimentId experiment_of_request(std::uint64_t request) {
    return request >> 32;
}

/// The request "evaluate": the assignment's words that a node needs to judge and to do it, as JSON.
[[nodiscard]] Request evaluate_request(const Assign& assignment);

}  // namespace causeway
