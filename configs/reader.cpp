// Reading: parse the text, lay --set over it, then walk the tree against the field table.
//
// Order of values: initial values of Experiment, then the preset's tree, then the file's. Both trees take the same
// walk, so a preset cannot set what a file could not. Checks that see several values come last and leave out what is
// already known to be wrong, so that each mistake is reported once.
#include "configs/reader.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "common/text.h"
#include "configs/checks.h"
#include "configs/fields.h"
#include "configs/presets.h"
#include "configs/split_checks.h"
#include "configs/toml_text.h"
#include "configs/values.h"
#include "model/loss.h"

namespace causeway {

namespace {

using ReaderKind = TomlNode::Kind;

constexpr double adam_learning_rate = 0.001;  // PyTorch's; that of sgd would make Adam diverge

/// "a|b" as `"a" or "b"`.
std::string quoted_alternatives(std::string_view values) {
    std::vector<std::string> words;
    for (const auto& word : split_text(values, '|')) {
        words.push_back(toml_quoted(word));
    }
    return join(words, " or ");
}

/// Names directly under a table: {"experiment", "data", ...} for "", {"kind", "alpha", ...} for "data.partition".
std::vector<std::string> names_under(const std::string& table) {
    const auto prefix = table.empty() ? table : table + ".";
    std::vector<std::string> names;
    for (const auto& field : all_fields()) {
        if (!field.path.starts_with(prefix)) {
            continue;
        }
        auto name = field.path.substr(prefix.size(), field.path.find('.', prefix.size()) - prefix.size());
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(std::move(name));
        }
    }
    return names;
}

/// The table that has a key of this name, when the file put it into another one.
std::optional<std::string> home_of(std::string_view name) {
    for (const auto& field : all_fields()) {
        const auto dot = field.path.rfind('.');
        if (field.path.substr(dot + 1) == name) {
            return field.path.substr(0, dot);
        }
    }
    return std::nullopt;
}

std::string unknown_key(const std::string& table, const std::string& name) {
    const auto shown = name.substr(0, 80);
    const auto valid = names_under(table);
    const auto what = table.empty() ? fmt::format("unknown table or key \"{}\"", shown)
                                    : fmt::format("unknown key \"{}\" in [{}]", shown, table);
    if (const auto nearest = nearest_name(name, valid)) {
        return fmt::format("{}; did you mean \"{}\"?", what, *nearest);
    }
    if (const auto home = home_of(name)) {
        return fmt::format("{}; it belongs in [{}]", what, *home);
    }
    return fmt::format("{}; known here: {}", what, join(valid, ", "));
}

/// One reading. A path is `broken` once its value was refused: later checks then stay silent about it.
class ExperimentReader {
public:
    ExperimentReader(TomlText parsed, std::string_view file_name) : tree_(std::move(parsed)) {
        file_ = {Place::Origin::file, std::string(file_name), 1, 1};
    }

    ExperimentResult read(std::span<const std::string> overrides) {
        const bool whole = tree_.errors.empty();
        errors_ = std::move(tree_.errors);
        lay_over(overrides);
        apply_preset();
        walk("", tree_.root);
        if (whole) {
            require();
            check_applicability();
        }
        check_together(whole);
        if (!errors_.empty()) {
            return tl::unexpected(in_order(std::move(errors_)));
        }
        complete();
        return std::move(experiment_);
    }

private:
    void lay_over(std::span<const std::string> overrides) {
        for (const auto& argument : overrides.first(std::min(overrides.size(), max_overrides))) {
            if (auto error = apply_override(tree_.root, argument)) {
                errors_.push_back(std::move(*error));
            }
        }
        if (overrides.size() > max_overrides) {
            errors_.push_back(
                {{Place::Origin::command_line, "", 0, 0}, fmt::format("at most {} values may be set", max_overrides)});
        }
    }

    /// Before the file's own values. A preset of that name that does not exist is reported with the field, later.
    void apply_preset() {
        const auto* regime = tree_.root.find("regime");
        const auto* named = regime == nullptr ? nullptr : regime->find("preset");
        const bool has_name = named != nullptr && named->kind == ReaderKind::text;
        const auto* preset = find_preset(has_name ? named->text : experiment_.regime.preset);
        if (preset != nullptr && !preset->toml.empty()) {
            walk("", parse_preset_toml(preset->toml, preset->name));
        }
    }

    /// Each key is a field, a table of fields, or a mistake. Depth: that of the field table.
    void walk(const std::string& table, const TomlNode& node) {
        for (const auto& member : node.members) {
            const auto path = table.empty() ? member.name : table + "." + member.name;
            if (const auto* field = find_field(path)) {
                read_field(*field, member.value);
            } else if (!names_under(path).empty()) {
                walk_inner(path, member);
            } else {
                errors_.push_back({member.place, unknown_key(table, member.name)});
            }
        }
    }

    /// A scalar where a table belongs makes all of its fields unknown.
    void walk_inner(const std::string& path, const TomlMember& member) {
        if (member.value.kind == ReaderKind::table) {
            return walk(path, member.value);
        }
        errors_.push_back(
            {member.value.place, fmt::format("{} must be a table with the keys {}, not {}", path,
                                             join(names_under(path), ", "), describe(member.value.kind))});
        for (const auto& field : all_fields()) {
            if (field.path.starts_with(path + ".")) {
                broken_.insert(field.path);
            }
        }
    }

    void read_field(const Field& field, const TomlNode& node) {
        const auto before = errors_.size();
        read_value(field, node, experiment_, errors_);
        if (errors_.size() != before) {
            broken_.insert(field.path);
        }
        experiment_.places[field.path] = node.place;
    }

    /// At the table that lacks the key, or at the file's start when the table is missing as well.
    void require() {
        for (const auto& field : all_fields()) {
            if (field.presence == Presence::required && applies(field, experiment_) &&
                !experiment_.places.contains(field.path) && !broken_.contains(field.path)) {
                broken_.insert(field.path);
                const auto dot = field.path.find('.');
                const auto* table = tree_.root.find(field.path.substr(0, dot));
                errors_.push_back({table == nullptr ? file_ : table->place,
                                   fmt::format("[{}] lacks {}; for example {} = {}", field.path.substr(0, dot),
                                               field.path.substr(dot + 1), field.path.substr(dot + 1), field.example)});
            }
        }
    }

    /// A key without effect is a misunderstanding. Only a --set that changes the kind silently drops the file's keys
    /// of the old one, for the user did not write both.
    void check_applicability() {
        for (const auto& field : all_fields()) {
            const auto place = experiment_.places.find(field.path);
            if (place == experiment_.places.end() || applies(field, experiment_)) {
                continue;
            }
            const auto equals = field.only_with.find('=');
            const auto governing = chooser_of(field.only_with.substr(0, equals));
            const auto chosen = experiment_.places[governing].origin;
            const bool replaced = chosen == Place::Origin::command_line || forgotten_.contains(governing);
            if (replaced && place->second.origin == Place::Origin::file) {
                forget(field);
            } else if (!broken_.contains(governing)) {
                const auto values = quoted_alternatives(field.only_with.substr(equals + 1));
                const auto hint = field.hint.empty() ? "" : "; " + field.hint;
                errors_.push_back({place->second, fmt::format("{} applies only with {} = {}{}", field.path,
                                                              field.only_with.substr(0, equals), values, hint)});
            }
        }
    }

    /// Whoever chose the preset chose the values that it fills in.
    [[nodiscard]] std::string chooser_of(const std::string& governing) const {
        const auto place = experiment_.places.find(governing);
        const bool by_preset = place == experiment_.places.end() || place->second.origin == Place::Origin::preset;
        const bool filled_in = governing.starts_with("flow.") || governing.starts_with("mesh.");
        return by_preset && filled_in ? "regime.preset" : governing;
    }

    /// Back to the initial value.
    void forget(const Field& field) {
        Experiment initial;
        std::visit([&](auto access) { access(experiment_) = access(initial); }, field.access);
        experiment_.places.erase(field.path);
        forgotten_.insert(field.path);
    }

    /// After a syntax error a default may stand for a value that the broken line held: it is not relied on either.
    void check_together(bool whole) {
        const auto is_broken = [&](std::string_view path) {
            const std::string key(path);
            return broken_.contains(key) || (!whole && !experiment_.places.contains(key));
        };
        for (const auto& found : find_inconsistencies(experiment_, is_broken)) {
            errors_.push_back({place_of(found), found.message});
        }
    }

    /// Where the value stands; the element where it is about one.
    [[nodiscard]] Place place_of(const Inconsistency& found) const {
        const TomlNode* node = &tree_.root;
        for (const auto& name : split_text(found.path, '.')) {
            node = node == nullptr ? nullptr : node->find(name);
        }
        if (node == nullptr) {
            return file_;
        }
        return found.item && *found.item < node->items.size() ? node->items[*found.item].place : node->place;
    }

    /// Some defaults follow another value; every key gets a place.
    void complete() {
        follow_groups(experiment_);
        auto& sync = experiment_.sync;
        if (!experiment_.places.contains("sync.min_clients") && sync.quorum.kind == CountOrShare::Kind::count) {
            sync.min_clients = std::max(sync.min_clients, sync.quorum.count);
        }
        if (!experiment_.places.contains("train.optimizer.learning_rate") &&
            experiment_.train.optimizer.kind != "sgd") {
            experiment_.train.optimizer.learning_rate = adam_learning_rate;
        }
        const auto loss = parse_loss(experiment_.model.loss);
        if (!experiment_.places.contains("evaluation.metric") && loss && !loss->counts_correct()) {
            experiment_.evaluation.metric = "loss";
        }
        if (!experiment_.places.contains("evaluation.dataset")) {
            experiment_.evaluation.dataset = experiment_.data.dataset;
        }
        for (const auto& field : all_fields()) {
            experiment_.places.try_emplace(field.path);
        }
    }

    TomlText tree_;
    Place file_;
    Experiment experiment_;
    std::vector<ConfigError> errors_;
    std::set<std::string> broken_;
    std::set<std::string> forgotten_;
};

}  // namespace

std::vector<ConfigError> in_order(std::vector<ConfigError> errors) {
    std::ranges::stable_sort(errors, {}, [](const ConfigError& error) {
        return std::tuple(error.place.origin == Place::Origin::command_line, error.place.line, error.place.column);
    });
    errors.resize(std::min(errors.size(), max_config_errors));
    return errors;
}

std::string to_text(std::span<const ConfigError> errors) {
    std::string text;
    for (const auto& error : errors) {
        text += (text.empty() ? "" : "\n") + error.text();
    }
    return text;
}

ExperimentResult read_experiment(std::string_view text, std::string_view file_name,
                                 std::span<const std::string> overrides) {
    if (text.size() > max_experiment_bytes) {
        return tl::unexpected(
            std::vector<ConfigError>{{{Place::Origin::file, std::string(file_name), 1, 1},
                                      fmt::format("an experiment file has at most {} bytes; this one has {}",
                                                  max_experiment_bytes, text.size())}});
    }
    return ExperimentReader(parse_toml(text, file_name), file_name).read(overrides);
}

Result<Experiment> read_experiment_or_fail(std::string_view text, std::string_view file_name) {
    auto read = read_experiment(text, file_name);
    if (!read) {
        return fail(ErrorKind::invalid, "bad_configuration", to_text(read.error()));
    }
    return std::move(*read);
}

}  // namespace causeway
