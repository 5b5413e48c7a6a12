// What a node will do, and what it will not: its admin's policy.toml.
//
// A node enforces its own file, whatever the coordinator asks: datasets, regimes, operators, hours, the smallest cohort
// in which it takes part, and what may leave. The last is judged by what the node's own reading of the program says
// leaves (leaves.h), never by the regime's name. A key that is left out bounds nothing, but split learning is off until
// it is allowed. Every refusal names the file and line of the rule, so that the admin who reads the coordinator's log
// knows which to change.
// The table in policy.cpp declares each key once; reading, the effective policy that `join` prints and the test of
// docs/policy.md follow from it. Pure; only load_policy reads a file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "client/leaves.h"
#include "client/session.h"
#include "client/time_window.h"
#include "common/json.h"
#include "configs/reader.h"

namespace causeway::node {

constexpr std::size_t max_policy_bytes = 64 * 1024;
constexpr std::size_t max_policy_items = 256;  // of one list

struct Policy {
    std::vector<std::string> datasets;   // empty: any
    std::vector<std::string> regimes;    // empty: any
    std::vector<std::string> operators;  // by node name; empty: any
    std::vector<std::string> hours;      // as written
    std::vector<TimeWindow> windows;     // the same, parsed; empty: always
    std::uint32_t min_cohort = 1;
    bool allow_split = false;
    bool share_labels = false;
    bool keep_labels = false;
    bool share_log = false;
    bool share_statistics = false;
    bool share_figures = true;
    std::map<std::string, Place, std::less<>> places;  // of the keys that were set

    /// "policy.toml:3:1", "--allow split", or "default policy".
    [[nodiscard]] std::string where(std::string_view key) const;
    /// Turns a switch on from the command line, over what the file says.
    void allow(std::string_view key, std::string_view option);
};

/// errors  every mistake of the file with its place, in its order; never partial
[[nodiscard]] tl::expected<Policy, std::vector<ConfigError>> parse_policy(std::string_view text,
                                                                          std::string_view file_name);

/// The file that was named; else `state`/policy.toml, where there is one; else the default.
///
/// errors   invalid `bad_policy`: one line per mistake; not_found: the file that was named; io
[[nodiscard]] Result<Policy> load_policy(const std::filesystem::path& state, const std::filesystem::path& named);

/// Why this node does not do what is asked; nothing when it does. Texts of the assignment that cannot be read are an
/// objection of their own, with the error's code: nobody knows what would leave.
[[nodiscard]] std::optional<Objection> judge(const Policy& policy, const Assign& assign, Asked asked,
                                             const LocalTime& now);
/// The same, of what is known to leave.
[[nodiscard]] std::optional<Objection> judge(const Policy& policy, const Assign& assign, const Leaves& leaves,
                                             const LocalTime& now);

/// Why this operator does not get lines of this node's log; nothing when it does.
[[nodiscard]] std::optional<Objection> judge_log_request(const Policy& policy, const std::string& by);

/// One key of the file, for people and for tests.
struct PolicyLine {
    std::string key;
    std::string value;  // as TOML, "any" or "always" where nothing bounds it
    std::string where;
};
/// In the order of the table.
[[nodiscard]] std::vector<PolicyLine> describe(const Policy& policy);
[[nodiscard]] Json to_json(const Policy& policy);

}  // namespace causeway::node
