// The arithmetic of one experiment's rounds: decode and check updates, add them, divide once, name the next model.
//
// Two halves, so that no lock is needed. RoundInput never changes: any number of workers decode and check updates
// against it at once. RoundWork owns the sum: one worker at a time adds what the others have checked. The result
// depends neither on the number of workers nor on the order in which updates come.
//
// Memory, with P exchanged elements: 16 P limbs + 4 P start + 4 P result, whatever the cohort, and one update per
// worker that checks. The file's bytes (4 P) come when the limbs are gone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregator.h"
#include "aggregation/column_sums.h"
#include "aggregation/firewall.h"
#include "common/digest.h"
#include "model/arena.h"
#include "model/chain.h"
#include "wire/message.h"

namespace causeway {

/// The three arenas of a model as aggregation sees them.
inline ArenaValues values_of(const ModelState& state) {
    return {state.trainable.values, state.buffers.values, state.frozen.values};
}

/// What an experiment's file says of its updates, parsed.
struct RoundRules {
    Codec codec;
    Aggregator aggregator;
    std::uint32_t cohort = 1;  // at least the members of any round: bounds each update's values
    std::optional<double> norm_bound;
};

/// What is expected of the members of a round of statistics (configs/statistics.h).
struct StatisticsRules {
    std::size_t columns = 0;
    std::uint64_t values = 1;    // of each column in one example
    std::uint32_t members = 1;
};

/// An update that may be added; its values are finite and in range.
struct CheckedUpdate {
    std::uint32_t round = 0;
    std::string node;
    Digest digest;
    std::uint32_t weight = 0;
    Update update;
    std::optional<ColumnSums> sums{};  // of a round of statistics, which has no update
};

/// What all members of a round start from, and the rules their updates must keep.
///
/// threads  immutable: shared by workers
class RoundInput {
public:
    /// cost  SHA-256 of the model, unless `start_digest` is given
    RoundInput(Chain chain, RoundRules rules, std::uint32_t round, ModelState start, Digest start_digest);
    /// Of round 0, which starts from no model.
    RoundInput(Chain chain, RoundRules rules, const StatisticsRules& statistics);

    /// Decodes and examines an update whose bytes have the digest that was offered.
    ///
    /// errors   a Refusal: the firewall's codes (aggregation/firewall.h), the decoder's (compression/update_format.h),
    ///          `wrong_round`, `wrong_model`: trained from another model than this round's
    /// cost     reads the bytes once; memory of one update where they do not lie so that their values can stay there
    /// threads  reentrant
    [[nodiscard]] tl::expected<CheckedUpdate, Refusal> check(const std::string& node, const HeldUpdate& offered,
                                                             const SharedBytes& bytes) const;

    [[nodiscard]] const Chain& chain() const { return chain_; }
    [[nodiscard]] const RoundRules& rules() const { return rules_; }
    [[nodiscard]] std::uint32_t round() const { return round_; }
    [[nodiscard]] const ModelState& start() const { return start_; }
    [[nodiscard]] const ArenaRanges& expected() const { return firewall_.expected; }
    [[nodiscard]] const std::optional<StatisticsRules>& statistics() const { return statistics_; }

private:
    [[nodiscard]] tl::expected<CheckedUpdate, Refusal> check_sums(const std::string& node, const HeldUpdate& offered,
                                                                  ByteView bytes) const;

    Chain chain_;
    RoundRules rules_;
    std::uint32_t round_;
    ModelState start_;
    Digest start_digest_;
    FirewallRules firewall_;
    DecodeLimits limits_;
    std::optional<StatisticsRules> statistics_{};
};

/// The model after a round, ready to be written.
struct FinishedRound {
    std::uint32_t round = 0;
    ModelState model;
    Bytes file;                                           // canonical safetensors
    Digest digest;                                        // SHA-256 of file
    double update_norm = 0;                               // L2 of the trainable arena's change
    std::vector<std::pair<std::string, Digest>> counted;  // node, update; sorted by node
    std::string normalise{};     // of round 0: what its statistics come to; `file` is then the first model
    std::uint64_t examples = 0;  // and of how many examples they are
};

/// The bytes of an experiment's first model.
using MakeFirstModel = std::function<Result<Bytes>()>;

/// threads  owned by one worker at a time
class RoundWork {
public:
    /// Starts a fresh sum; what an unfinished round held is forgotten.
    ///
    /// errors   unsupported: the aggregator needs all updates at once
    Status open_round(std::shared_ptr<const RoundInput> input);

    /// Adds what check() of this round's input let through. Adding the same update again changes nothing.
    ///
    /// errors   a Refusal: `duplicate`: another update of this node is in the sum; `wrong_round`
    [[nodiscard]] std::optional<Refusal> add(CheckedUpdate update);

    /// check and add in one call, for callers with one worker.
    [[nodiscard]] std::optional<Refusal> absorb(const std::string& node, const HeldUpdate& offered, ByteView bytes);

    /// Divides, once. A second call gives the same result: a commit that failed for want of disk space is retried.
    ///
    /// `first_model` is asked for at the end of round 0.
    ///
    /// errors   invalid `zero_total_weight`: the round fails, the model stays; not_found `no_round`: none is open; of
    ///          round 0 those of first_model, after which it can be asked again
    [[nodiscard]] Result<const FinishedRound*> finish(const MakeFirstModel& first_model = {});

    /// The input of the open round, for workers that check; nullptr when none is open.
    [[nodiscard]] std::shared_ptr<const RoundInput> input() const { return input_; }
    [[nodiscard]] std::size_t counted() const { return counted_.size(); }

private:
    [[nodiscard]] FinishedRound make_finished(AggregationResult result) const;
    [[nodiscard]] Result<const FinishedRound*> finish_statistics(const MakeFirstModel& first_model);

    std::shared_ptr<const RoundInput> input_;
    std::unique_ptr<Aggregation> sum_;
    std::optional<ColumnSums> columns_;  // instead, in a round of statistics
    std::uint64_t examples_ = 0;
    std::map<std::string, Digest> counted_;
    std::optional<FinishedRound> finished_;
};

}  // namespace causeway
