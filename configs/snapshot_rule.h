// When a client keeps a round under way: `train.snapshot_every`, and the decision it stands for.
//
// A snapshot costs a write of model and moments. What it saves is the work since the last one, if the process dies. So
// the default asks two questions only: has enough time passed that losing it would hurt, and is the write small beside
// it. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"
#include "common/time.h"

namespace causeway {

struct SnapshotRule {
    enum class Kind { off, automatic, time, batches };
    Kind kind = Kind::off;
    Duration every{};           // time
    std::uint64_t batches = 0;  // batches

    bool operator==(const SnapshotRule&) const = default;
};

/// "off", "auto", "30s", "100 batches"; empty is off.
///
/// errors   invalid `bad_snapshot_rule`
Result<SnapshotRule> parse_snapshot_rule(std::string_view text);
/// The one spelling: parse_snapshot_rule(to_text(rule)) == rule.
std::string to_text(const SnapshotRule& rule);

/// What has happened since the last snapshot, or since the start.
struct SinceSnapshot {
    std::uint64_t batches = 0;
    Duration time{};
    Duration cost{};  // of the last one; 0: there was none
};
/// `automatic` waits a minute, and fifty times what the last one cost.
bool snapshot_due(const SnapshotRule& rule, const SinceSnapshot& since);

}  // namespace causeway
