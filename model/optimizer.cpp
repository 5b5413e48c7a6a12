// The optimizers that exist, one line each, and the reading and writing of their texts.
#include "model/optimizer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "common/text.h"

// One line per optimizer; X is applied to the name of its file.
#define CAUSEWAY_OPTIMIZERS(X) \
    X(sgd)                     \
    X(adam)                    \
    X(adamw)                   \
    X(nadamw)

namespace causeway {

#define CAUSEWAY_DECLARE(name) extern const OptimizerKind name##_optimizer;
CAUSEWAY_OPTIMIZERS(CAUSEWAY_DECLARE)
#undef CAUSEWAY_DECLARE

std::span<const OptimizerKind* const> optimizer_kinds() {
#define CAUSEWAY_ENTRY(name) &name##_optimizer,
    static const std::array kinds = {CAUSEWAY_OPTIMIZERS(CAUSEWAY_ENTRY)};
#undef CAUSEWAY_ENTRY
    return kinds;
}

namespace {

constexpr std::size_t max_optimizer_text = 1024;

tl::unexpected<Error> bad_optimizer(std::string message) {
    return fail(ErrorKind::invalid, "bad_optimizer", std::move(message));
}

Result<const OptimizerKind*> find_kind(std::string_view name) {
    std::vector<std::string> names;
    for (const OptimizerKind* kind : optimizer_kinds()) {
        if (kind->name == name) {
            return kind;
        }
        names.emplace_back(kind->name);
    }
    return bad_optimizer(fmt::format("there is no optimizer \"{}\"; {}", name.substr(0, 40), name_hint(name, names)));
}

std::optional<std::size_t> find_field(const OptimizerKind& kind, std::string_view name) {
    for (std::size_t i = 0; i < kind.fields.size(); ++i) {
        if (kind.fields[i].name == name) {
            return i;
        }
    }
    return std::nullopt;
}

std::string unknown_field(const OptimizerKind& kind, std::string_view name) {
    std::vector<std::string> names;
    for (const OptimizerField& field : kind.fields) {
        names.emplace_back(field.name);
    }
    return fmt::format("{} has no \"{}\"; {}", kind.name, name.substr(0, 40), name_hint(name, names));
}

bool in_bounds(const OptimizerField& field, double value) {
    return field.ends == OptimizerField::Ends::closed ? value >= field.least && value <= field.most
                                                      : value > field.least && value < field.most;
}

/// A number of the rule, with its bounds.
struct RuleField {
    std::string_view name;
    double least, most;
    double StepRule::*of_rule;
    double Schedule::*of_schedule;
};
constexpr std::array rule_fields = {RuleField{"clip_norm", 0, 1e12, &StepRule::clip_norm, nullptr},
                                    RuleField{"warmup", 0, 1e6, nullptr, &Schedule::warmup},
                                    RuleField{"rounds", 0, 1e6, nullptr, &Schedule::rounds},
                                    RuleField{"every", 1e-3, 1e6, nullptr, &Schedule::every},
                                    RuleField{"at", 0, 1e6, nullptr, &Schedule::at},
                                    RuleField{"factor", 0, 1e3, nullptr, &Schedule::factor}};

template <class Rule>
auto& member(Rule& rule, const RuleField& field) {
    return field.of_rule != nullptr ? rule.*field.of_rule : rule.schedule.*field.of_schedule;
}

/// False when the name is none of the rule's. What is wrong is added to `wrong`.
bool read_rule(StepRule& rule, std::string_view name, double value, std::vector<std::string>& wrong) {
    const auto field = std::ranges::find(rule_fields, name, &RuleField::name);
    if (field == rule_fields.end()) {
        return false;
    }
    if (!(value >= field->least && value <= field->most)) {  // also refuses NaN
        wrong.push_back(fmt::format("{} = {} is not from {} up to {}", name, value, field->least, field->most));
    }
    member(rule, *field) = value + 0.0;
    return true;
}

/// A word of the rule that is no number; false when it is none.
bool read_rule_word(StepRule& rule, std::string_view word, std::vector<std::string>& wrong) {
    if (word.starts_with("schedule=")) {
        const auto kind = parse_schedule_kind(word.substr(9));
        rule.schedule.kind = kind.value_or(ScheduleKind::constant);
        kind ? void() : wrong.push_back(kind.error().message);
        return true;
    }
    if (word.starts_with("compute=")) {
        const auto compute = parse_compute(word.substr(8));
        rule.compute = compute.value_or(Compute::f32);
        compute ? void() : wrong.push_back(compute.error().message);
        return true;
    }
    return false;
}

std::string rule_text(const StepRule& rule) {
    std::string text;
    if (rule.compute != Compute::f32) {
        text += fmt::format(" compute={}", to_string(rule.compute));
    }
    if (rule.schedule.kind != ScheduleKind::constant) {
        text += fmt::format(" schedule={}", to_string(rule.schedule.kind));
    }
    const StepRule defaults;
    for (const RuleField& field : rule_fields) {
        if (member(rule, field) != member(defaults, field)) {
            text += fmt::format(" {}={}", field.name, member(rule, field));
        }
    }
    return text;
}

std::optional<double> parse_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

double OptimizerSpec::operator[](std::string_view field) const {
    const auto index = find_field(*kind, field);
    ASSERT(index && *index < values.size());
    return values[*index];
}

Result<OptimizerSpec> make_optimizer(std::string_view kind_name,
                                     std::span<const std::pair<std::string, double>> values) {
    TRY_ASSIGN(const OptimizerKind* kind, find_kind(kind_name));
    OptimizerSpec spec{kind, {}, {}};
    for (const OptimizerField& field : kind->fields) {
        spec.values.push_back(field.initial);
    }
    std::vector<std::string> wrong;
    std::vector<std::size_t> seen;
    for (const auto& [name, value] : values) {
        const auto index = find_field(*kind, name);
        if (!index) {
            wrong.push_back(unknown_field(*kind, name));
            continue;
        }
        const OptimizerField& field = kind->fields[*index];
        if (!in_bounds(field, value)) {  // also refuses NaN
            wrong.push_back(fmt::format("{} = {} is not {} {} and {} {}", name, value,
                                        field.ends == OptimizerField::Ends::closed ? "from" : "above", field.least,
                                        field.ends == OptimizerField::Ends::closed ? "up to" : "below", field.most));
        }
        if (std::ranges::find(seen, *index) != seen.end()) {
            wrong.push_back(fmt::format("{} is given twice", name));
        }
        seen.push_back(*index);
        spec.values[*index] = value + 0.0;  // -0 becomes 0, so that equal specs have equal texts
    }
    if (!wrong.empty()) {
        return bad_optimizer("optimizer: " + join(wrong, "; "));
    }
    return spec;
}

Result<OptimizerSpec> parse_optimizer(std::string_view text) {
    if (text.size() > max_optimizer_text) {
        return bad_optimizer(fmt::format("optimizer: the text is longer than {} bytes", max_optimizer_text));
    }
    const auto words = split_text(trim(text), ' ');
    std::vector<std::pair<std::string, double>> values;
    std::vector<std::string> wrong;
    StepRule rule;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        if (read_rule_word(rule, words[i], wrong)) {
            continue;
        }
        const auto number =
            equals == std::string::npos ? std::nullopt : parse_number(std::string_view(words[i]).substr(equals + 1));
        if (number && read_rule(rule, std::string_view(words[i]).substr(0, equals), *number, wrong)) {
            continue;
        }
        if (number) {
            values.emplace_back(words[i].substr(0, equals), *number);
        } else if (!words[i].empty()) {
            wrong.push_back(fmt::format("\"{}\" is not FIELD=NUMBER", words[i].substr(0, 40)));
        }
    }
    auto spec = make_optimizer(words.empty() ? std::string_view{} : std::string_view(words.front()), values);
    if (wrong.empty()) {
        if (spec) {
            spec->rule = rule;
        }
        return spec;
    }
    return bad_optimizer((spec ? "optimizer" : spec.error().message) + ": " + join(wrong, "; "));
}

std::string to_text(const OptimizerSpec& spec) {
    std::string text(spec.kind->name);
    for (std::size_t i = 0; i < spec.values.size(); ++i) {
        text += fmt::format(" {}={}", spec.kind->fields[i].name, spec.values[i]);  // shortest text of that double
    }
    return text + rule_text(spec.rule);
}

Result<Compute> parse_compute(std::string_view text) {
    for (const Compute compute : all_computes) {
        if (text == to_string(compute)) {
            return compute;
        }
    }
    return bad_optimizer(fmt::format("compute is f32, bf16 or winograd, not \"{}\"", text.substr(0, 40)));
}

double OptimizerStep::rate(const OptimizerSpec& spec) const {
    return spec["learning_rate"] * share;
}

}  // namespace causeway
