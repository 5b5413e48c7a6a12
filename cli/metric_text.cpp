// See metric_text.h.
#include "cli/metric_text.h"

#include <array>

#include <fmt/format.h>

namespace causeway::cli {
namespace {

struct MetricForm {
    std::string_view name;
    const char* title;
    bool share;  // shown in per cent
};
constexpr std::array metric_forms = {MetricForm{"loss", "eval loss", false},   MetricForm{"accuracy", "accuracy", true},
                                     MetricForm{"macro_f1", "macro-F1", true}, MetricForm{"auc", "AUC", false},
                                     MetricForm{"mae", "MAE", false},          MetricForm{"rmse", "RMSE", false}};

const MetricForm* metric_form_of(std::string_view metric) {
    for (const auto& form : metric_forms) {
        if (form.name == metric) {
            return &form;
        }
    }
    return nullptr;
}

}  // namespace

std::string metric_title(std::string_view metric) {
    const auto* form = metric_form_of(metric);
    return form == nullptr ? std::string(metric) : form->title;
}

std::string metric_text(std::string_view metric, const Json& value) {
    const auto* form = metric_form_of(metric);
    if (!value.is_number()) {
        return "-";
    }
    return form != nullptr && form->share ? fmt::format("{:.2f} %", 100 * value.number())
                                          : fmt::format("{:.4f}", value.number());
}

std::string metric_of_event(const Json& event) {
    return event["metric"].is_text() ? event["metric"].text() : "accuracy";
}

const Json& metric_value_of_event(const Json& event) {
    return event["metric"].is_text() ? event["metric_value"] : event["accuracy"];
}

std::string named_metric(const Json& event) {
    const auto metric = metric_of_event(event);
    return metric_title(metric) + " " + metric_text(metric, metric_value_of_event(event));
}

}  // namespace causeway::cli
