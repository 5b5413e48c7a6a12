// What other folders know about the texts of an experiment: codecs, aggregators, flows, layers, optimizers, data.
//
// configs/ declares where a text stands and what it means to a user; whether "topk 1%" is a codec only compression/
// knows. All such questions are asked here, so that the rest of configs/ depends on none of those headers. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "configs/experiment.h"

namespace causeway {

// Each gives the canonical spelling, or an error whose message names the known ones.
[[nodiscard]] Result<std::string> check_name(const std::string& text);
[[nodiscard]] Result<std::string> check_preset(const std::string& text);
[[nodiscard]] Result<std::string> check_optimizer_state(const std::string& text);
[[nodiscard]] Result<std::string> check_scale(const std::string& text);
[[nodiscard]] Result<std::string> check_category(const std::string& text);
[[nodiscard]] Result<std::string> check_separator(const std::string& text);
[[nodiscard]] Result<std::string> check_missing(const std::string& text);
[[nodiscard]] Result<std::string> check_augment(const std::string& text);
[[nodiscard]] Result<std::string> check_normalise(const std::string& text);
[[nodiscard]] Result<std::string> check_aggregator(const std::string& text);
[[nodiscard]] Result<std::string> check_codec(const std::string& text);
[[nodiscard]] Result<std::string> check_loss(const std::string& text);
[[nodiscard]] Result<std::string> check_init_from(const std::string& text);
[[nodiscard]] Result<std::string> check_snapshot_every(const std::string& text);

// Names that the registries of other folders have, in their order.
[[nodiscard]] std::vector<std::string> known_aggregators();
[[nodiscard]] std::vector<std::string> known_codecs();
[[nodiscard]] std::vector<std::string> known_flows();
[[nodiscard]] std::vector<std::string> known_groupings();
[[nodiscard]] std::vector<std::string> known_optimizers();
[[nodiscard]] std::vector<std::string> known_partitions();

/// `unknown KIND "WRONG"; did you mean "NEAREST"?` or `...; known: A, B`
[[nodiscard]] std::string unknown_name(std::string_view kind, std::string_view wrong,
                                       const std::vector<std::string>& known);

/// Something wrong with values that are right one by one. `item` is the element of a list, where it is about one.
struct Inconsistency {
    std::string path;  // the field to point at
    std::optional<std::size_t> item;
    std::string message;
};

/// True when the value of a field cannot be relied on (it was refused, or is missing).
using IsBroken = std::function<bool(std::string_view path)>;

/// Everything that only shows when several values are seen together: layers against the shape, optimizer, partition,
/// members against the cohort. A check whose inputs are broken is left out, for it would report the same mistake twice.
[[nodiscard]] std::vector<Inconsistency> find_inconsistencies(const Experiment& experiment, const IsBroken& is_broken);

}  // namespace causeway
