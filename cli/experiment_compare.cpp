// `experiment compare`: two experiments side by side, the settings in which they differ and what came of them.
//
// Settings are those of the canonical files, one line a setting, so that what a preset expands to counts and how a file
// was written does not. A table fits 100 columns; --json has every value whole. Main thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_choice.h"
#include "cli/metric_text.h"
#include "cli/run_history.h"
#include "common/text.h"
#include "coordinator/round_history.h"

namespace causeway::cli {
namespace {

constexpr std::size_t widest_cell = 33;  // three columns and two gaps make 100

using Settings = std::map<std::string, std::string>;

/// Of canonical text: every setting is one line below its table's.
Settings settings_of(const std::string& toml) {
    Settings settings;
    std::string table;
    for (const auto& raw : split_text(toml, '\n')) {
        const auto line = std::string(trim(raw));
        const auto equals = line.find(" = ");
        if (line.starts_with('[') && line.ends_with(']')) {
            table = line.substr(1, line.size() - 2);
        } else if (equals != std::string::npos) {
            settings[table + "." + line.substr(0, equals)] = line.substr(equals + 3);
        }
    }
    return settings;
}

struct Difference {
    std::string setting;
    std::array<std::optional<std::string>, 2> values;  // none: it does not apply there
};

std::vector<Difference> differences(const Settings& one, const Settings& other) {
    const auto value_in = [](const Settings& settings, const std::string& key) {
        const auto known = settings.find(key);
        return known == settings.end() ? std::nullopt : std::optional(known->second);
    };
    auto keys = one;
    keys.insert(other.begin(), other.end());
    std::vector<Difference> all;
    for (const auto& [key, value] : keys) {
        Difference difference{key, {value_in(one, key), value_in(other, key)}};
        if (difference.values[0] != difference.values[1]) {
            all.push_back(std::move(difference));
        }
    }
    return all;
}

/// What came of an experiment; figures of the last evaluated round, and NaN where there is none.
struct Outcome {
    SaveExperiment saved;
    std::uint32_t rounds = 0;
    double accuracy = std::numeric_limits<double>::quiet_NaN();
    std::string metric = "accuracy";                          // evaluation.metric
    double value = std::numeric_limits<double>::quiet_NaN();  // of that metric
    double loss = std::numeric_limits<double>::quiet_NaN();
    double train_loss = std::numeric_limits<double>::quiet_NaN();
    double bytes_up = 0;
    double bytes_down = 0;
    double time = 0;
};

/// Totals are those of the event `done`: of every commit, so with the columns that round 0 may have summed.
Outcome outcome_of(const RunHistory& history, const Settings& settings) {
    Outcome outcome{.saved = history.log.saved};
    if (const auto metric = settings.find("evaluation.metric"); metric != settings.end() && metric->second.size() > 2) {
        outcome.metric = metric->second.substr(1, metric->second.size() - 2);  // without its quotes
    }
    for (const auto& commit : own_rounds(history)) {
        outcome.rounds = commit.round;
        outcome.train_loss = commit.summary["loss"].number(outcome.train_loss);
    }
    for (const auto& commit : history.log.commits) {
        outcome.bytes_up += commit.summary["bytes_up"].number();
        outcome.bytes_down += commit.summary["bytes_down"].number();
        outcome.time += commit.summary["seconds"].number();
    }
    if (!history.evaluations.empty()) {
        const auto& e = history.evaluations.rbegin()->second;
        outcome.value = figure_of({e.experiment, e.round, e.loss, e.accuracy, e.examples, e.detail}, outcome.metric);
        outcome.accuracy = e.accuracy;
        outcome.loss = e.loss;
    }
    return outcome;
}

Json json_of(const Outcome& outcome) {
    return Json::object()
        .set("experiment", outcome.saved.experiment)
        .set("name", outcome.saved.name)
        .set("state", outcome.saved.state)
        .set("rounds", outcome.rounds)
        .set("accuracy", outcome.accuracy)
        .set("metric", outcome.metric)
        .set("metric_value", outcome.value)
        .set("evaluation_loss", outcome.loss)
        .set("loss", outcome.train_loss)
        .set("bytes_up", outcome.bytes_up)
        .set("bytes_down", outcome.bytes_down)
        .set("seconds", outcome.time);
}

/// A long value keeps its beginning.
std::string cell(const std::string& text) {
    return text.size() <= widest_cell - 2 ? text : text.substr(0, widest_cell - 3) + "~";
}

/// Two long values from shortly before where they differ, so that the difference is seen.
std::array<std::string, 2> cells(std::string one, std::string other) {
    constexpr std::size_t shown_before = 8;
    const auto [at, end] = std::ranges::mismatch(one, other);
    const auto same = static_cast<std::size_t>(at - one.begin());
    if (std::max(one.size(), other.size()) > widest_cell - 2 && same > 2 * shown_before) {
        one = "~" + one.substr(same - shown_before);
        other = "~" + other.substr(same - shown_before);
    }
    return {cell(one), cell(other)};
}

std::string compared_number(double value) {
    return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

std::vector<std::string> figures(const std::string& name, const std::array<Outcome, 2>& both,
                                 const std::function<std::string(const Outcome&)>& text) {
    return {name, cell(text(both[0])), cell(text(both[1]))};
}

std::vector<std::vector<std::string>> figure_rows(const std::array<Outcome, 2>& both) {
    const auto bytes = [](double value) { return format_bytes(static_cast<std::uint64_t>(std::max(value, 0.0))); };
    return {figures("state", both, [](const Outcome& o) { return o.saved.state; }),
            figures("rounds", both, [](const Outcome& o) { return std::to_string(o.rounds); }),
            figures("judged by", both,
                    [](const Outcome& o) {
                        return metric_title(o.metric) + " " +
                               metric_text(o.metric, std::isfinite(o.value) ? Json(o.value) : Json());
                    }),
            figures("evaluation loss", both, [](const Outcome& o) { return compared_number(o.loss); }),
            figures("training loss", both, [](const Outcome& o) { return compared_number(o.train_loss); }),
            figures("bytes up", both, [&](const Outcome& o) { return bytes(o.bytes_up); }),
            figures("bytes down", both, [&](const Outcome& o) { return bytes(o.bytes_down); }),
            figures("time", both, [](const Outcome& o) { return format_duration(from_seconds(o.time)); })};
}

Json json_of(const std::vector<Difference>& differing) {
    auto all = Json::array();
    for (const auto& each : differing) {
        auto values = Json::array();
        for (const auto& value : each.values) {
            values.push(value ? Json(*value) : Json());
        }
        all.push(Json::object().set("setting", each.setting).set("values", std::move(values)));
    }
    return all;
}

void show_comparison(const std::vector<Difference>& differing, const std::array<Outcome, 2>& both, Output output) {
    output.object(Json::object()
                      .set("event", "comparison")
                      .set("settings", json_of(differing))
                      .set("experiments", Json::array().push(json_of(both[0])).push(json_of(both[1]))));
    const auto title = [](const Outcome& o) { return cell(fmt::format("{} {}", o.saved.experiment, o.saved.name)); };
    std::vector<std::vector<std::string>> rows;
    for (const auto& each : differing) {
        const auto [one, other] = cells(each.values[0].value_or("-"), each.values[1].value_or("-"));
        rows.push_back({cell(each.setting), one, other});
    }
    if (rows.empty()) {
        output.line("all settings are the same");
    }
    std::ranges::move(figure_rows(both), std::back_inserter(rows));
    output.line(table({"", title(both[0]), title(both[1])}, rows));
}

Result<int> compare(const CompareOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    std::array<Outcome, 2> both;
    std::array<Settings, 2> settings;
    for (std::size_t i = 0; i < 2; ++i) {
        const auto& wanted = i == 0 ? options.first : options.second;
        TRY_ASSIGN(const auto id, choose_experiment_id(*session, wanted, options.state, output));
        TRY_ASSIGN(const auto history, fetch_history(*session, id));
        settings[i] = settings_of(history.log.saved.file);
        both[i] = outcome_of(history, settings[i]);
    }
    show_comparison(differences(settings[0], settings[1]), both, output);
    return exit_done;
}

}  // namespace

int run_experiment_compare(const CompareOptions& options, Output output) {
    const auto code = compare(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
