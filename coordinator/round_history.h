// The committed rounds of one experiment, as far as its machine needs them at once: the first, the last few, those
// whose evaluation is still to come, the best, and what they all come to.
//
// Its size does not depend on how many rounds there were. Whatever else is asked about a round comes from the store
// (ReadRounds in coordinator/effects.h). A restart makes it anew by adding all of them in their order. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "coordinator/round_record.h"

namespace causeway {

class RoundHistory {
public:
    /// Over all rounds, added in their order, so that a restart comes to the same digits.
    struct Totals {
        std::uint64_t bytes_up = 0;
        std::uint64_t bytes_down = 0;
        std::uint64_t stream_bytes_up = 0;
        std::uint64_t stream_bytes_down = 0;
        double seconds = 0;
    };

    /// The next round. cost: O(1)
    void add(RoundRecord record);
    /// It is evaluated later: it stays here until settle().
    void await_evaluation(std::uint32_t round) { awaited_.try_emplace(round); }
    /// A round that is here, with all that is going to be known of it. It may be the best.
    void settle(RoundRecord record);
    /// Another experiment's round that counts among the best: its parent's.
    void consider(const RoundRecord& record);
    /// By which figure the best is chosen from here on; until then by each.
    void judge_by(const std::string& metric);
    /// Nothing is asked at once any more: only the first, the last and the best stay.
    void close();

    [[nodiscard]] bool empty() const { return last_.empty(); }
    /// The first of all and the last of all. Not empty.
    [[nodiscard]] const RoundRecord& front() const { return *first_; }
    [[nodiscard]] const RoundRecord& back() const { return last_.back(); }
    [[nodiscard]] bool committed(std::uint32_t round) const;
    /// nullptr: not committed, or only in the store.
    [[nodiscard]] const RoundRecord* find(std::uint32_t round) const;
    /// The evaluated round with the best figure, the earliest of equal ones; nullptr: none is evaluated.
    [[nodiscard]] const RoundRecord* best(const std::string& metric) const;
    [[nodiscard]] const Totals& totals() const { return totals_; }
    /// Rounds are missing between those that were added.
    [[nodiscard]] bool has_gaps() const { return gaps_; }
    /// How many records are here, for tests.
    [[nodiscard]] std::size_t kept() const { return last_.size() + awaited_.size() + best_.size() + 1; }

private:
    std::optional<RoundRecord> first_;
    std::deque<RoundRecord> last_;
    std::map<std::uint32_t, std::optional<RoundRecord>> awaited_;  // once they are no longer among the last
    std::map<std::string, RoundRecord, std::less<>> best_;         // by metric
    std::string metric_;                                           // empty: every one
    Totals totals_;
    bool gaps_ = false;
};

/// The figure of that name; NaN: not measured.
[[nodiscard]] double figure_of(const ModelEvaluated& evaluation, std::string_view metric);

}  // namespace causeway
