// How good a model is, in named figures: of one set of examples, and of many clients' sets together.
//
// Coordinator and clients compute figures (configs/evaluate.h), send them as JSON, and compare models by one of them.
// What a client sends is a peer's word: only known names and plausible values are taken. Pure, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.h"

namespace causeway {

enum class Better { less, more };

struct MetricInfo {
    std::string_view name;  // as in `evaluation.metric` and in JSON
    Better better;
    bool of_classes;  // for losses that compare classes
    bool of_numbers;  // for regression
};

/// loss, accuracy, macro_f1, auc, mae, rmse.
[[nodiscard]] std::span<const MetricInfo> all_metrics();
/// nullptr: there is none of that name.
[[nodiscard]] const MetricInfo* find_metric(std::string_view name);
[[nodiscard]] std::vector<std::string> metric_names();
/// Greater is better, whatever the metric; NaN (diverged, or not measured) is the worst there is.
[[nodiscard]] double worth_of(std::string_view metric, double value);

/// Of one model on one set of examples.
struct Figures {
    std::uint64_t examples = 0;
    std::map<std::string, double, std::less<>> values;  // by metric, those that the loss has

    [[nodiscard]] double value(std::string_view metric) const;  // NaN: not measured
    bool operator==(const Figures&) const = default;
};
/// {"examples":..,"loss":..,...}
[[nodiscard]] Json to_json(const Figures& figures);
/// Total; without a loss it is NaN, and figures of other names are left out.
///
/// errors   invalid `bad_figures`: no examples, a value out of its metric's range
[[nodiscard]] Result<Figures> parse_figures(const Json& json);

/// A metric over the clients, each counting once.
struct Spread {
    double mean = 0;
    double worst_decile = 0;  // mean over the worst tenth of the clients, at least one
};
struct ClientFigures {
    Figures together;  // each client counts by its examples; rmse as that of all examples
    std::map<std::string, Spread, std::less<>> spread;
};
/// Summed in the order of names, so that arrival does not show in the bits. AUC: over the clients that have one.
[[nodiscard]] ClientFigures combine(const std::map<std::string, Figures>& by_node);

/// The clients' part of an evaluation: {"examples","loss",..,"count","spread":{"loss":{"mean","worst_decile"}},
/// "nodes":[{"node","examples",..}],"left_out":[{"node","why"}]}. Of each list the first `most_nodes_shown`.
[[nodiscard]] Json describe_clients(const std::map<std::string, Figures>& by_node,
                                    const std::map<std::string, std::string>& left_out);
constexpr std::size_t most_nodes_shown = 64;

}  // namespace causeway
