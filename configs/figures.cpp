// The table of metrics, and sums over clients in double, in the order of names.
#include "configs/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::array<MetricInfo, 6> metric_table{{{"loss", Better::less, true, true},
                                                  {"accuracy", Better::more, true, false},
                                                  {"macro_f1", Better::more, true, false},
                                                  {"auc", Better::more, true, false},
                                                  {"mae", Better::less, false, true},
                                                  {"rmse", Better::less, false, true}}};

constexpr double most_examples = 0x1p48;
constexpr double no_figure = std::numeric_limits<double>::quiet_NaN();

/// Shares lie in [0, 1]; losses and errors are not below 0. A loss that is not a number may be said: it diverged.
bool plausible(const MetricInfo& metric, const Json& value) {
    if (value.is_null()) {
        return metric.name == "loss";
    }
    const double number = value.number(-1);
    return value.is_number() && number >= 0 && (metric.better == Better::less || number <= 1);
}

/// Over clients that have it, by their examples. For rmse the mean is that of the squares.
double weighted(std::string_view metric, const std::map<std::string, Figures>& by_node) {
    const bool squares = metric == "rmse";
    double sum = 0;
    double weight = 0;
    for (const auto& [node, figures] : by_node) {
        if (const auto found = figures.values.find(metric); found != figures.values.end()) {
            const auto examples = static_cast<double>(figures.examples);
            sum += examples * (squares ? found->second * found->second : found->second);
            weight += examples;
        }
    }
    return squares ? std::sqrt(sum / weight) : sum / weight;
}

Spread spread_of(const MetricInfo& metric, std::vector<double> values) {
    Spread spread;
    for (const double value : values) {
        spread.mean += value;
    }
    spread.mean /= static_cast<double>(values.size());
    std::ranges::sort(values, {}, [&](double value) { return worth_of(metric.name, value); });
    const std::size_t worst = (values.size() + 9) / 10;
    for (std::size_t i = 0; i < worst; ++i) {
        spread.worst_decile += values[i];
    }
    spread.worst_decile /= static_cast<double>(worst);
    return spread;
}

}  // namespace

std::span<const MetricInfo> all_metrics() {
    return metric_table;
}

const MetricInfo* find_metric(std::string_view name) {
    const auto found = std::ranges::find(metric_table, name, &MetricInfo::name);
    return found == metric_table.end() ? nullptr : &*found;
}

std::vector<std::string> metric_names() {
    std::vector<std::string> names;
    for (const auto& metric : metric_table) {
        names.emplace_back(metric.name);
    }
    return names;
}

double worth_of(std::string_view metric, double value) {
    const auto* known = find_metric(metric);
    if (std::isnan(value) || known == nullptr) {
        return -std::numeric_limits<double>::infinity();
    }
    return known->better == Better::more ? value : -value;
}

double Figures::value(std::string_view metric) const {
    const auto found = values.find(metric);
    return found == values.end() ? no_figure : found->second;
}

Json to_json(const Figures& figures) {
    auto object = Json::object().set("examples", figures.examples);
    for (const auto& metric : metric_table) {
        if (const auto found = figures.values.find(metric.name); found != figures.values.end()) {
            object.set(std::string(metric.name), found->second);
        }
    }
    return object;
}

Result<Figures> parse_figures(const Json& json) {
    const double examples = json["examples"].number(0);
    if (!(examples >= 1 && examples <= most_examples)) {
        return fail(ErrorKind::invalid, "bad_figures", "an evaluation must be of at least one example");
    }
    Figures figures{static_cast<std::uint64_t>(examples), {}};
    for (const auto& [name, value] : json.fields()) {
        const auto* metric = find_metric(name);
        if (metric == nullptr) {
            continue;  // what a later version measures
        }
        if (!plausible(*metric, value)) {
            return fail(ErrorKind::invalid, "bad_figures", fmt::format("{} has no possible value", name));
        }
        figures.values[name] = value.number(no_figure);
    }
    if (!figures.values.contains("loss")) {
        figures.values["loss"] = no_figure;  // a number that is none travels as null, and null as nothing
    }
    return figures;
}

ClientFigures combine(const std::map<std::string, Figures>& by_node) {
    ClientFigures all;
    for (const auto& [node, figures] : by_node) {
        all.together.examples += figures.examples;
    }
    for (const auto& metric : metric_table) {
        std::vector<double> values;
        for (const auto& [node, figures] : by_node) {
            if (const auto found = figures.values.find(metric.name); found != figures.values.end()) {
                values.push_back(found->second);
            }
        }
        if (!values.empty()) {
            all.together.values[std::string(metric.name)] = weighted(metric.name, by_node);
            all.spread[std::string(metric.name)] = spread_of(metric, std::move(values));
        }
    }
    return all;
}

Json describe_clients(const std::map<std::string, Figures>& by_node,
                      const std::map<std::string, std::string>& left_out) {
    const auto all = combine(by_node);
    auto spread = Json::object();
    for (const auto& [metric, one] : all.spread) {
        spread.set(metric, Json::object().set("mean", one.mean).set("worst_decile", one.worst_decile));
    }
    auto nodes = Json::array();
    for (const auto& [node, figures] : by_node) {
        if (nodes.items().size() < most_nodes_shown) {
            auto row = Json::object().set("node", node);
            const auto own = to_json(figures);
            for (const auto& [key, value] : own.fields()) {
                row.set(key, value);
            }
            nodes.push(std::move(row));
        }
    }
    auto missing = Json::array();
    for (const auto& [node, why] : left_out) {
        if (missing.items().size() < most_nodes_shown) {
            missing.push(Json::object().set("node", node).set("why", why));
        }
    }
    return to_json(all.together)
        .set("count", static_cast<std::uint64_t>(by_node.size()))
        .set("spread", std::move(spread))
        .set("nodes", std::move(nodes))
        .set("left_out", std::move(missing));
}

}  // namespace causeway
