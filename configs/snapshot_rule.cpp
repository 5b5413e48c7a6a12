// See snapshot_rule.h.
#include "configs/snapshot_rule.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::string_view batches_word = " batches";
constexpr std::uint64_t most_batches = 1'000'000'000;

// A minute of work is what a restart may cost without anybody minding; shorter rounds are simply trained again.
constexpr Duration automatic_least = std::chrono::minutes(1);
constexpr int automatic_share = 50;  // of the time that may go into snapshots: a fiftieth

/// In the largest unit that says it whole, so that it is read back as it was.
std::string exact(Duration duration) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    for (const auto& [unit, size] : {std::pair{"h", 3'600'000}, std::pair{"m", 60'000}, std::pair{"s", 1000}}) {
        if (ms % size == 0) {
            return fmt::format("{}{}", ms / size, unit);
        }
    }
    return fmt::format("{}ms", ms);
}

Error bad_rule(std::string_view text) {
    return {ErrorKind::invalid, "bad_snapshot_rule",
            fmt::format("\"{}\" is not how often a round is kept; write \"auto\", \"off\", a time as in \"30s\", or "
                        "\"100 batches\"",
                        text.substr(0, 40))};
}

}  // namespace

Result<SnapshotRule> parse_snapshot_rule(std::string_view text) {
    using Kind = SnapshotRule::Kind;
    if (text.empty() || text == "off") {
        return SnapshotRule{};
    }
    if (text == "auto") {
        return SnapshotRule{.kind = Kind::automatic};
    }
    if (text.ends_with(batches_word)) {
        const auto digits = text.substr(0, text.size() - batches_word.size());
        std::uint64_t count = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (error != std::errc{} || end != digits.data() + digits.size() || count == 0 || count > most_batches) {
            return fail(bad_rule(text));
        }
        return SnapshotRule{.kind = Kind::batches, .batches = count};
    }
    const auto time = parse_duration(text);
    if (!time || *time < std::chrono::milliseconds(1) || *time > std::chrono::days(30)) {
        return fail(bad_rule(text));
    }
    return SnapshotRule{.kind = Kind::time, .every = std::chrono::floor<std::chrono::milliseconds>(*time)};
}

std::string to_text(const SnapshotRule& rule) {
    switch (rule.kind) {
        case SnapshotRule::Kind::automatic:
            return "auto";
        case SnapshotRule::Kind::time:
            return exact(rule.every);
        case SnapshotRule::Kind::batches:
            return fmt::format("{}{}", rule.batches, batches_word);
        case SnapshotRule::Kind::off:
            break;
    }
    return "off";
}

bool snapshot_due(const SnapshotRule& rule, const SinceSnapshot& since) {
    switch (rule.kind) {
        case SnapshotRule::Kind::automatic:
            return since.time >= std::max(automatic_least, since.cost * automatic_share);
        case SnapshotRule::Kind::time:
            return since.time >= rule.every;
        case SnapshotRule::Kind::batches:
            return since.batches >= rule.batches;
        case SnapshotRule::Kind::off:
            break;
    }
    return false;
}

}  // namespace causeway
