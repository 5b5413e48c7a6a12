// How the values of a file become examples: which column is the label, the shape of an example, a linear scale.
//
// The options come from [data] of an experiment file and travel to the clients as text inside an assignment, so they
// have one canonical text form, and its parser takes any bytes. What a manifest says of its own file (`file`) never
// leaves its machine and is no part of that text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "data/augment.h"
#include "data/table_form.h"

namespace causeway {

/// [low, high]
struct Interval {
    double low = 0;
    double high = 0;
    bool operator==(const Interval&) const = default;
};

/// Maps from.low to to.low and from.high to to.high; `to` may descend ("0..255 -> 1..0" inverts).
struct Scale {
    Interval from;
    Interval to;
    bool operator==(const Scale&) const = default;
};

/// What a label is: a class, or a number to come close to (regression).
enum class Target { classes, number };

/// What only a node knows of a file: its manifest's words (configs/manifest.h).
struct FileChoice {
    std::string reader;                    // a reader's name; "": by name and content
    std::vector<std::string> features;     // columns in this order: names, indices from 0, ranges "a..b"; empty: all
    std::vector<std::string> class_names;  // of class 0, 1, ...; a label may be written as one; empty: numbers only
    bool operator==(const FileChoice&) const = default;
};

/// A column of words: each cell becomes one value per word of the list, 1 for the word that stands there, else 0.
struct Category {
    std::string column;  // a name or an index from 0 ("#3" is always an index)
    std::vector<std::string> values;
    bool operator==(const Category&) const = default;
};

/// What becomes of a cell that says nothing (empty, NA, N/A, NaN, null, ?).
struct MissingRule {
    enum class Kind { refuse, drop, number };  // an error with its place; the row is left out; this number stands there
    Kind kind = Kind::refuse;
    double number = 0;  // a missing word is none of the list: zeros
    bool operator==(const MissingRule&) const = default;
};

struct DataOptions {
    std::string label;                // "last", a column's name or its index from 0; "": the format's own labels
    std::vector<std::int64_t> shape;  // of one example; empty: as stored
    std::optional<Scale> scale;
    Target target = Target::classes;
    double holdout = 0;  // share that a node keeps from training, where its manifest splits nothing; 0..0.9
    std::vector<Category> categories{};  // of a table
    MissingRule missing{};               // of a table
    std::vector<AugmentStep> augment{};  // of images
    TableForm form{};                    // of a table: what is said of how it is written
    FileChoice file{};
    bool operator==(const DataOptions&) const = default;
};

/// Everything that is wrong with the options, empty when nothing is.
[[nodiscard]] std::vector<Error> check_data_options(const DataOptions& options);

/// "label=last shape=8x8x1 scale=0..16->0..1 target=number holdout=0.2 categories=sex:f,m;ward:a,b missing=drop
/// augment=crop%204,flip header=yes separator=%3B encoding=cp1252 decimal=%2C quote=none": absent where the option is;
/// bytes of names other than letters, digits and "_-.()" are written %XX. Options that pass the check come back from
/// parse_data_options unchanged.
[[nodiscard]] std::string to_text(const DataOptions& options);

/// Total: any text gives options or an error.
///
/// errors  invalid `data_options`: the message lists everything that is wrong
[[nodiscard]] Result<DataOptions> parse_data_options(std::string_view text);

/// "sex: f, m": a column and its words. errors: invalid `category`
[[nodiscard]] Result<Category> parse_category(std::string_view text);
/// "refuse", "drop" or a number. errors: invalid `missing`
[[nodiscard]] Result<MissingRule> parse_missing(std::string_view text);
[[nodiscard]] std::string to_text(const MissingRule& rule);

/// "0..16 -> 0..1"; spaces are free. errors: invalid `scale`
[[nodiscard]] Result<Scale> parse_scale(std::string_view text);
/// "0..16->0..1"
[[nodiscard]] std::string to_text(const Scale& scale);

/// "8x8x1". errors: invalid `shape`: not 1 to 8 positive sizes, or more than 2^31 values
[[nodiscard]] Result<std::vector<std::int64_t>> parse_shape(std::string_view text);
/// "8x8x1"; "" for an empty shape.
[[nodiscard]] std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace causeway
