// Who gets which examples: the partitions of the federated literature, and the held-out share.
//
// A partition is drawn once, by the one process that hands data out (demo, simulate, data split), from the random
// keys alone: equal dataset, specification, number of parts and seed give equal parts on every machine. Each kind is
// one file and one line in partition.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "data/dataset.h"

namespace causeway {

/// As in `partition = { kind = "dirichlet", alpha = 0.5 }`. Parameters left out have their default.
struct PartitionSpec {
    std::string kind = "iid";
    std::map<std::string, double> parameters;
    bool operator==(const PartitionSpec&) const = default;
};

enum class NumberKind { real, whole };

struct PartitionParameter {
    std::string_view name;
    double fallback;
    double least;
    double most;
    NumberKind kind;
    std::string_view meaning;
};

/// What a partitioner is given: its parameters are complete and within bounds, 1 <= parts <= examples.
struct PartitionInput {
    std::span<const std::uint32_t> labels;  // u32[N], or empty
    std::uint32_t classes;
    std::size_t examples;
    const std::map<std::string, double>& parameters;
    std::size_t parts;
    std::uint64_t seed;
};

using Parts = std::vector<Indices>;
enum class LabelUse { none, required };

struct Partitioner {
    std::string_view kind;
    std::string_view summary;  // one line, for docs and help
    std::span<const PartitionParameter> parameters;
    LabelUse labels;
    /// Every example in exactly one part. errors: invalid: the labels do not allow it
    Result<Parts> (*split)(const PartitionInput& input);
};

/// iid, dirichlet, shards, quantity.
[[nodiscard]] std::span<const Partitioner* const> partitioners();

/// Everything wrong with the specification (unknown kind or parameter with the nearest name, bounds).
[[nodiscard]] std::vector<Error> check_partition(const PartitionSpec& spec);
/// "dirichlet alpha=0.5", as `--partition` takes it; defaults are filled in. errors: invalid `partition`, all at once
[[nodiscard]] Result<PartitionSpec> parse_partition(std::string_view text);
[[nodiscard]] std::string to_text(const PartitionSpec& spec);

/// Every example in exactly one part, every part with at least one example, indices ascending.
///
/// errors   invalid: a wrong specification, no parts, fewer examples than parts, labels that are missing or too few
/// threads  reentrant
[[nodiscard]] Result<Parts> partition(const Dataset& dataset, const PartitionSpec& spec, std::size_t parts,
                                      std::uint64_t seed);

struct Holdout {
    Indices train;
    Indices held_out;  // empty for a share of 0
};

/// Holds out round(share x N) examples, stratified: each class gives its share to within one example (a set without
/// labels counts as one class).
///
/// units   share in [0, 1)
/// errors  invalid `holdout`: a share outside, or one that leaves either side empty
[[nodiscard]] Result<Holdout> split_holdout(const Dataset& dataset, double share, std::uint64_t seed);

/// What one process hands out: the held-out examples first, the rest divided among the parts.
struct Division {
    Parts parts;  // indices into the dataset that was divided
    Indices held_out;
};
[[nodiscard]] Result<Division> divide(const Dataset& dataset, double holdout_share, const PartitionSpec& spec,
                                      std::size_t parts, std::uint64_t seed);

}  // namespace causeway
