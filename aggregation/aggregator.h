// Aggregators: the rules that turn a round's updates into the next values. Start here.
//
// A rule is one file with one AggregatorEntry and one line in the table of aggregator.cpp. Its name and arguments are
// parsed, and its demands on the cohort checked, when the experiment is submitted. Two kinds of rules differ in memory:
// those that keep a running sum take each update once and forget it; those that need all updates at once (median, Krum)
// read them back from disk, block by block. State that a rule keeps between rounds at the server (outer moments,
// control variates) goes in and comes out by name, and lies in the snapshot beside the model.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compression/update_format.h"

namespace causeway {

/// What is known of the members when an experiment is submitted: a rule refuses a cohort it cannot work with.
struct CohortFacts {
    std::uint32_t cohort = 1;  // members drawn per round
    std::uint32_t quorum = 1;  // fewest updates with which a round may close
};

enum class AggregatorNeeds { running_sum, all_updates };

using ServerState = std::map<std::string, std::vector<float>>;

/// The round as the rule sees it.
struct AggregationSetup {
    ArenaRanges expected;                    // what each update holds
    ArenaValues start;                       // f32[arena] each; must outlive the aggregation
    Fidelity fidelity = Fidelity::lossless;  // lossless: updates are theta_local; lossy: model deltas
    ServerState state;                       // as the last round left it
};

struct AggregationResult {
    /// By ArenaKind, the whole arena; empty where nothing of it was expected.
    std::array<std::vector<float>, 3> arenas;
    ServerState state;
};

/// All updates of a round, spooled on disk, for rules that need them at once.
///
/// threads  owned by the worker that finishes the round
class UpdateSource {
public:
    virtual ~UpdateSource() = default;
    [[nodiscard]] virtual std::size_t count() const = 0;
    [[nodiscard]] virtual std::uint32_t weight(std::size_t update) const = 0;
    /// Reads one block of one update. shapes: values f32[block.size()]. errors: io, corrupt
    [[nodiscard]] virtual Status read(std::size_t update, ArenaKind arena, Range block, std::span<float> values) = 0;
};

/// One rule at work on one round.
///
/// threads  owned by one worker at a time
class Aggregation {
public:
    virtual ~Aggregation() = default;
    /// Takes an update that the firewall let in. Rules that need all updates ignore the values.
    virtual void add(const Update& update, std::uint32_t weight) = 0;
    /// The next values. Called once. `spooled` is given to rules that need all updates, nullptr to others.
    ///
    /// errors   invalid `zero_total_weight`: nothing of weight came, the model stays as it is; io: the spool failed
    [[nodiscard]] virtual Result<AggregationResult> finish(UpdateSource* spooled) = 0;
};

/// A rule with its arguments.
struct Aggregator {
    std::string text;  // canonical spelling
    AggregatorNeeds needs = AggregatorNeeds::running_sum;
    std::function<std::unique_ptr<Aggregation>(AggregationSetup setup)> begin;
};

struct AggregatorEntry {
    std::string_view name;
    std::string_view summary;
    AggregatorNeeds needs;
    /// errors  invalid: arguments the rule does not take, or a cohort it cannot work with (the message says the reason)
    Result<Aggregator> (*parse)(std::string_view arguments, const CohortFacts& facts);
};

/// All aggregators of this build, in the order of the documentation.
std::span<const AggregatorEntry> aggregator_entries();

/// errors  invalid `unknown_aggregator` (the message gives the nearest name), or the rule's own reasons
Result<Aggregator> parse_aggregator(std::string_view text, const CohortFacts& facts);

}  // namespace causeway
