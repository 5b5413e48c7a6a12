// How the metric that an experiment is judged by is shown: its name for people, and its value in its own form.
//
// Events and lists carry `metric` and `metric_value` (docs/json.md); a value that was not measured is null. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/json.h"

namespace causeway::cli {

/// "accuracy", "macro-F1", "AUC", "MAE", "RMSE", and "eval loss" for the loss of the evaluation.
[[nodiscard]] std::string metric_title(std::string_view metric);
/// A share as "97.49 %", anything else with four digits behind the point; "-" for null.
[[nodiscard]] std::string metric_text(std::string_view metric, const Json& value);
/// Of an event, a line of a list or a status: "RMSE 0.3512". Events of a coordinator that does not say its metric have
/// the accuracy.
[[nodiscard]] std::string named_metric(const Json& event);
/// The name alone, as in `evaluation.metric`.
[[nodiscard]] std::string metric_of_event(const Json& event);
[[nodiscard]] const Json& metric_value_of_event(const Json& event);

}  // namespace causeway::cli
