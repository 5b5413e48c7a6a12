// The table of keys, then reading, printing and judging by it.
#include "client/policy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/file.h"
#include "common/json_lists.h"
#include "common/text.h"
#include "configs/checks.h"
#include "configs/presets.h"
#include "configs/toml_text.h"
#include "configs/values.h"

namespace causeway::node {
namespace {

using RuleKind = TomlNode::Kind;
using Errors = std::vector<ConfigError>;

constexpr std::int64_t largest_cohort = 1'000'000;

// ---------------------------------------------------------------- reading one value

/// A word of a list: its canonical spelling, or what is wrong with it.
using CheckItem = Result<std::string> (*)(const std::string& text);

Result<std::string> check_regime(const std::string& text) {
    std::vector<std::string> known;
    for (const auto& preset : all_presets()) {
        known.push_back(preset.name);
    }
    if (find_preset(text) == nullptr) {
        return fail(ErrorKind::invalid, "bad_policy", unknown_name("regime", text, known));
    }
    return text;
}

Result<std::string> check_hours(const std::string& text) {
    TRY(parse_time_window(text));
    return text;
}

void read_list(const TomlNode& node, std::string_view key, CheckItem check, std::vector<std::string>& list,
               Errors& errors) {
    if (node.kind != RuleKind::array) {
        errors.push_back(
            {node.place, fmt::format("{}: a list of texts is needed, this is {}", key, describe(node.kind))});
        return;
    }
    if (node.items.empty()) {
        errors.push_back({node.place, fmt::format("{}: an empty list would refuse everything; leave the key out to "
                                                  "allow all",
                                                  key)});
    }
    if (node.items.size() > max_policy_items) {
        errors.push_back({node.place, fmt::format("{}: at most {} items", key, max_policy_items)});
        return;
    }
    for (const auto& item : node.items) {
        const auto checked =
            item.kind == RuleKind::text
                ? check(item.text)
                : Result<std::string>(fail(ErrorKind::invalid, "bad_policy",
                                           fmt::format("a text is needed, this is {}", describe(item.kind))));
        if (!checked) {
            errors.push_back({item.place, fmt::format("{}: {}", key, checked.error().message)});
        } else if (std::ranges::find(list, *checked) != list.end()) {
            errors.push_back({item.place, fmt::format("{}: \"{}\" stands here twice", key, *checked)});
        } else {
            list.push_back(*checked);
        }
    }
}

void read_switch(const TomlNode& node, std::string_view key, bool& value, Errors& errors) {
    if (node.kind != RuleKind::boolean) {
        errors.push_back(
            {node.place, fmt::format("{}: true or false is needed, this is {}", key, describe(node.kind))});
        return;
    }
    value = node.boolean;
}

void read_cohort(const TomlNode& node, Policy& policy, Errors& errors) {
    if (node.kind != RuleKind::integer || node.integer < 1 || node.integer > largest_cohort) {
        errors.push_back({node.place, fmt::format("min_cohort: a whole number from 1 to {} is needed{}", largest_cohort,
                                                  node.kind == RuleKind::integer
                                                      ? fmt::format(", this is {}", node.integer)
                                                      : fmt::format(", this is {}", describe(node.kind)))});
        return;
    }
    policy.min_cohort = static_cast<std::uint32_t>(node.integer);
}

// ---------------------------------------------------------------- printing one value

std::string print_list(const std::vector<std::string>& list, std::string_view when_empty) {
    std::vector<std::string> quoted;
    for (const auto& item : list) {
        quoted.push_back(toml_quoted(item));
    }
    return list.empty() ? std::string(when_empty) : "[" + join(quoted, ", ") + "]";
}

/// null where nothing bounds it.
Json json_list(const std::vector<std::string>& list) {
    return list.empty() ? Json() : json_of(list);
}

// ---------------------------------------------------------------- the table

struct PolicyField {
    std::string_view key;
    void (*read)(const TomlNode& node, Policy& policy, Errors& errors);
    std::string (*print)(const Policy& policy);
    Json (*json)(const Policy& policy);
};

const std::array<PolicyField, 11>& fields() {
    static const std::array<PolicyField, 11> table = {{
        {"datasets", [](const auto& n, auto& p, auto& e) { read_list(n, "datasets", check_name, p.datasets, e); },
         [](const auto& p) { return print_list(p.datasets, "any"); },
         [](const auto& p) { return json_list(p.datasets); }},
        {"regimes", [](const auto& n, auto& p, auto& e) { read_list(n, "regimes", check_regime, p.regimes, e); },
         [](const auto& p) { return print_list(p.regimes, "any"); },
         [](const auto& p) { return json_list(p.regimes); }},
        {"operators", [](const auto& n, auto& p, auto& e) { read_list(n, "operators", check_name, p.operators, e); },
         [](const auto& p) { return print_list(p.operators, "any"); },
         [](const auto& p) { return json_list(p.operators); }},
        {"hours", [](const auto& n, auto& p, auto& e) { read_list(n, "hours", check_hours, p.hours, e); },
         [](const auto& p) { return print_list(p.hours, "always"); }, [](const auto& p) { return json_list(p.hours); }},
        {"min_cohort", read_cohort, [](const auto& p) { return std::to_string(p.min_cohort); },
         [](const auto& p) { return Json(p.min_cohort); }},
        {"allow_split", [](const auto& n, auto& p, auto& e) { read_switch(n, "allow_split", p.allow_split, e); },
         [](const auto& p) { return std::string(p.allow_split ? "true" : "false"); },
         [](const auto& p) { return Json(p.allow_split); }},
        {"share_labels", [](const auto& n, auto& p, auto& e) { read_switch(n, "share_labels", p.share_labels, e); },
         [](const auto& p) { return std::string(p.share_labels ? "true" : "false"); },
         [](const auto& p) { return Json(p.share_labels); }},
        {"keep_labels", [](const auto& n, auto& p, auto& e) { read_switch(n, "keep_labels", p.keep_labels, e); },
         [](const auto& p) { return std::string(p.keep_labels ? "true" : "false"); },
         [](const auto& p) { return Json(p.keep_labels); }},
        {"share_log", [](const auto& n, auto& p, auto& e) { read_switch(n, "share_log", p.share_log, e); },
         [](const auto& p) { return std::string(p.share_log ? "true" : "false"); },
         [](const auto& p) { return Json(p.share_log); }},
        {"share_statistics",
         [](const auto& n, auto& p, auto& e) { read_switch(n, "share_statistics", p.share_statistics, e); },
         [](const auto& p) { return std::string(p.share_statistics ? "true" : "false"); },
         [](const auto& p) { return Json(p.share_statistics); }},
        {"share_figures", [](const auto& n, auto& p, auto& e) { read_switch(n, "share_figures", p.share_figures, e); },
         [](const auto& p) { return std::string(p.share_figures ? "true" : "false"); },
         [](const auto& p) { return Json(p.share_figures); }},
    }};
    return table;
}

std::string unknown_key(const std::string& name) {
    std::vector<std::string> known;
    for (const auto& field : fields()) {
        known.emplace_back(field.key);
    }
    return unknown_name("key", name.substr(0, 80), known);
}

/// Nothing that a key may be is a secret, but the folders of the machine are: only the file's name leaves it.
Objection object(const Policy& policy, std::string_view key, std::string_view code, std::string_view why) {
    return {std::string(code), fmt::format("{}: {}: {}", policy.where(key), key, why)};
}

/// Options of `join` stand as they are typed.
std::string place_text(const Place& place) {
    return place.origin == Place::Origin::command_line ? place.name : place.text();
}

bool allowed(const std::vector<std::string>& list, const std::string& name) {
    return list.empty() || std::ranges::find(list, name) != list.end();
}

std::string not_listed(std::string_view what, const std::string& name, const std::vector<std::string>& list) {
    return fmt::format("{} is not allowed here; allowed: {}",
                       name.empty() ? fmt::format("an assignment that does not name its {}", what)
                                    : fmt::format("the {} \"{}\"", what, name),
                       join(list, ", "));
}

}  // namespace

std::string Policy::where(std::string_view key) const {
    const auto place = places.find(key);
    if (place == places.end()) {
        return "default policy";
    }
    auto shown = place->second;
    shown.name = std::filesystem::path(shown.name).filename().string();
    return place_text(shown);
}

void Policy::allow(std::string_view key, std::string_view option) {
    (key == "allow_split" ? allow_split : key == "share_statistics" ? share_statistics : share_labels) = true;
    places[std::string(key)] = {Place::Origin::command_line, std::string(option), 0, 0};
}

tl::expected<Policy, std::vector<ConfigError>> parse_policy(std::string_view text, std::string_view file_name) {
    if (text.size() > max_policy_bytes) {
        const Place place{Place::Origin::file, std::string(file_name), 1, 1};
        return tl::unexpected(Errors{{place, fmt::format("longer than {} bytes", max_policy_bytes)}});
    }
    auto parsed = parse_toml(text, file_name);
    auto errors = std::move(parsed.errors);
    Policy policy;
    for (const auto& member : parsed.root.members) {
        const auto field = std::ranges::find(fields(), member.name, &PolicyField::key);
        if (field == fields().end()) {
            errors.push_back({member.place, unknown_key(member.name)});
            continue;
        }
        field->read(member.value, policy, errors);
        policy.places[member.name] = member.place;
    }
    if (!errors.empty()) {
        return tl::unexpected(in_order(std::move(errors)));
    }
    for (const auto& hours : policy.hours) {
        policy.windows.push_back(*parse_time_window(hours));
    }
    return policy;
}

Result<Policy> load_policy(const std::filesystem::path& state, const std::filesystem::path& named) {
    const auto file = named.empty() ? state / "policy.toml" : named;
    const auto bytes = read_file(file, max_policy_bytes);
    if (!bytes && bytes.error().kind == ErrorKind::not_found && named.empty()) {
        return Policy{};
    }
    if (!bytes) {
        return fail(bytes.error());
    }
    auto policy = parse_policy(as_text(*bytes), file.string());
    if (!policy) {
        return fail(ErrorKind::invalid, "bad_policy", to_text(policy.error()));
    }
    return *std::move(policy);
}

namespace {

/// The name against the program, then both against the rule. A name permits nothing: of regimes whose programs exchange
/// the same it picks one, and each other name refuses.
std::optional<Objection> judge_regime(const Policy& policy, const Assign& assign, const Leaves& leaves) {
    const auto has_program = leaves.has(Leaving::parameters, Receiver::coordinator);
    const auto like = leaves.regimes.empty() ? "one of no regime that this node knows" : join(leaves.regimes, " or ");
    if (has_program && !flow_of_preset(assign.regime).empty() &&
        std::ranges::find(leaves.regimes, assign.regime) == leaves.regimes.end()) {
        return Objection{"regime_mismatch", fmt::format("the coordinator calls it \"{}\", and its program is {}, which "
                                                        "sends {}",
                                                        assign.regime, like, leaves.text())};
    }
    if (!allowed(policy.regimes, assign.regime)) {
        return object(policy, "regimes", "policy_regime", not_listed("regime", assign.regime, policy.regimes));
    }
    const auto listed = [&](const std::string& regime) { return allowed(policy.regimes, regime); };
    if (has_program && !policy.regimes.empty() && std::ranges::none_of(leaves.regimes, listed)) {
        return object(policy, "regimes", "policy_regime",
                      fmt::format("the program is {}; allowed: {}", like, join(policy.regimes, ", ")));
    }
    return std::nullopt;
}

/// What leaves, kind by kind.
std::optional<Objection> judge_leaves(const Policy& policy, const Assign& assign, const Leaves& leaves) {
    if (!policy.allow_split && leaves.to_nodes()) {
        return object(policy, "allow_split", "policy_split",
                      fmt::format("it sends {}; allow_split = true permits activations, gradients and labels to "
                                  "other nodes",
                                  leaves.text()));
    }
    if (leaves.has(Leaving::parameters, Receiver::node)) {
        return Objection{"policy_parameters", "it sends parameters to another node; no rule of a policy permits that"};
    }
    if (leaves.raw_inputs) {
        return Objection{"raw_inputs",
                         "it sends activations that no layer with parameters has made, which are the "
                         "examples themselves; no rule of a policy permits that"};
    }
    if (policy.keep_labels && leaves.has(Leaving::labels, Receiver::node)) {
        return object(policy, "keep_labels", "policy_labels",
                      fmt::format("it sends {}; with keep_labels the labels stay here", leaves.text()));
    }
    if (!policy.share_statistics && leaves.has(Leaving::statistics, Receiver::coordinator)) {
        return object(policy, "share_statistics", "policy_statistics",
                      fmt::format("it asks for the sums of the columns of \"{}\"; share_statistics = true permits it",
                                  assign.dataset));
    }
    if (!policy.share_figures && leaves.has(Leaving::figures, Receiver::coordinator)) {
        return object(policy, "share_figures", "policy_figures",
                      fmt::format("it asks how good a model is on what is held out of \"{}\"; share_figures = true "
                                  "permits it",
                                  assign.dataset));
    }
    return std::nullopt;
}

}  // namespace

std::optional<Objection> judge(const Policy& policy, const Assign& assign, Asked asked, const LocalTime& now) {
    const auto leaves = what_leaves(assign, asked);
    if (!leaves) {
        return Objection{leaves.error().code, leaves.error().message};
    }
    return judge(policy, assign, *leaves, now);
}

/// In the order of the table: the first rule that objects is named.
std::optional<Objection> judge(const Policy& policy, const Assign& assign, const Leaves& leaves, const LocalTime& now) {
    if (!allowed(policy.datasets, assign.dataset)) {
        return object(policy, "datasets", "policy_dataset", not_listed("dataset", assign.dataset, policy.datasets));
    }
    if (auto objection = judge_regime(policy, assign, leaves)) {
        return objection;
    }
    if (!allowed(policy.operators, assign.submitted_by)) {
        return object(policy, "operators", "policy_operator",
                      not_listed("operator", assign.submitted_by, policy.operators));
    }
    const auto open = [&](const TimeWindow& window) { return window.contains(now); };
    if (!policy.windows.empty() && std::ranges::none_of(policy.windows, open)) {
        return object(policy, "hours", "policy_hours",
                      fmt::format("it is {} here, and this node works {}", now.text(), join(policy.hours, ", ")));
    }
    if (assign.cohort < policy.min_cohort) {
        return object(
            policy, "min_cohort", "policy_cohort",
            fmt::format("the round has {} members, and this node needs at least {}", assign.cohort, policy.min_cohort));
    }
    return judge_leaves(policy, assign, leaves);
}

std::optional<Objection> judge_log_request(const Policy& policy, const std::string& by) {
    if (!policy.share_log) {
        return object(policy, "share_log", "policy_log",
                      "this node does not give its log away; share_log = true in its policy.toml permits it");
    }
    if (!allowed(policy.operators, by)) {
        return object(policy, "operators", "policy_log", not_listed("operator", by, policy.operators));
    }
    return std::nullopt;
}

std::vector<PolicyLine> describe(const Policy& policy) {
    std::vector<PolicyLine> lines;
    for (const auto& field : fields()) {
        const auto set = policy.places.find(field.key);
        lines.push_back({std::string(field.key), field.print(policy),
                         set == policy.places.end() ? "default" : place_text(set->second)});
    }
    return lines;
}

Json to_json(const Policy& policy) {
    auto object = Json::object().set("event", "policy");
    for (const auto& field : fields()) {
        object.set(std::string(field.key), field.json(policy));
    }
    return object;
}

}  // namespace causeway::node
