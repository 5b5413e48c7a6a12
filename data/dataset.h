// A dataset in memory: the one form in which examples reach training, whatever file they came from.
//
// Features are f32, contiguous, one example after another; labels are classes, or for regression numbers. A dataset is
// a plain value: a reader makes it, a partitioner says which examples go where, `subset` takes them out. Nothing here
// reads a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/result.h"
#include "data/data_options.h"

namespace causeway {

using Indices = std::vector<std::uint32_t>;  // examples of a dataset, ascending where nothing else is said

/// Class numbers are below this: a histogram of the labels of a hostile file stays at 8 MiB.
constexpr std::uint32_t max_classes = 1 << 20;

/// How a row of the source looked, so that a part of the dataset can be written for the same options to read.
struct RowLayout {
    std::vector<std::string> columns;  // header names, the label's included; empty: no header
    std::size_t label_column = 0;      // where the label stood; meaningless without labels
    bool expanded = false;             // columns of words are one column per word already
    bool operator==(const RowLayout&) const = default;
};

/// N examples. Invariants: every size of `shape` is positive, features are finite, labels are below `classes`.
struct Dataset {
    std::string name;
    std::string reader;                 // the registry's name of the format it came from: "csv"
    std::vector<std::int64_t> shape;    // of one example
    std::vector<float> features;        // f32[N, shape...]
    std::vector<std::uint32_t> labels;  // u32[N]; empty: the set has no labels
    std::uint32_t classes = 0;          // 0: no labels. A part keeps the count of the whole
    RowLayout layout;
    std::vector<float> targets{};            // f32[N]; of a regression set, which has no labels; else empty
    std::vector<std::string> class_names{};  // of class 0, 1, ...; empty: they have numbers only
    std::uint64_t skipped = 0;               // entries of its folder that are no examples
    std::vector<std::string> notes{};        // sentences for people: how the file was read, what was left out

    [[nodiscard]] std::size_t example_size() const;  // product of `shape`
    [[nodiscard]] std::size_t size() const;          // N
    [[nodiscard]] bool labelled() const { return classes > 0; }
    [[nodiscard]] bool regression() const { return !targets.empty(); }
};

/// SHA-256 of the canonical form: `causeway-dataset 1`, shape, N, whether labelled, then features and labels as
/// little-endian bytes; for regression a line `targets` and these. The name, the file's format, the notes and the
/// classes' count and names are not part of it.
///
/// cost  2 GB/s on one core
[[nodiscard]] Digest dataset_digest(const Dataset& dataset);

/// Whether two sets can be parts of one.
///
/// errors  corrupt `parts_differ`: other columns, shape or kind of label
[[nodiscard]] Status require_same_kind(const Dataset& whole, const Dataset& part);

/// The examples of both, in this order, named as the first. errors: as require_same_kind
[[nodiscard]] Status append(Dataset& whole, const Dataset& part);

/// The name of a class, or "2" where it has none. For people.
[[nodiscard]] std::string class_text(const std::vector<std::string>& names, std::size_t label);

/// The examples with these indices, in this order. Indices are below size().
[[nodiscard]] Dataset subset(const Dataset& dataset, std::span<const std::uint32_t> indices);

/// Gives the examples another shape of equal size. errors: invalid `shape_mismatch`
[[nodiscard]] Status reshape(Dataset& dataset, const std::vector<std::int64_t>& shape);

/// Maps every feature linearly, in double, rounded once to f32; values outside `scale.from` are not clipped.
///
/// errors  invalid `scale_overflow`: a scaled value is not finite
[[nodiscard]] Status apply_scale(Dataset& dataset, const Scale& scale);

/// Whether a model with this many outputs can learn from the dataset.
///
/// errors  invalid `no_labels`, `label_out_of_range` (names the example): the remedy is in the message
[[nodiscard]] Status require_labels_below(const Dataset& dataset, std::uint32_t outputs);

/// Examples per class, of the whole dataset or of those with these indices. shapes: [classes]
[[nodiscard]] std::vector<std::uint64_t> label_histogram(const Dataset& dataset);
[[nodiscard]] std::vector<std::uint64_t> label_histogram(const Dataset& dataset,
                                                         std::span<const std::uint32_t> indices);

}  // namespace causeway
