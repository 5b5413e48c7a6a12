// Text forms of the options, one printer and one parser each.
//
// The text arrives from a coordinator, so parsing is total: bounded in length, no exceptions, every mistake reported.
// A label is a column's name and may hold anything; escaping it keeps the words separable by spaces.
#include "data/data_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/text.h"
#include "data/names.h"
#include "data/number.h"

namespace causeway {
namespace {

constexpr std::size_t longest_text = 64 * 1024;  // of the options as they travel
constexpr std::size_t longest_label = 256;       // of a column's name
constexpr std::size_t highest_example_rank = 8;
constexpr std::int64_t most_values = std::int64_t{1} << 31;  // of one example
constexpr double largest_holdout = 0.9;
constexpr std::size_t most_categories = 1024;
constexpr std::size_t most_words = 4096;  // of one column
constexpr std::size_t most_augments = 4;  // data/augment.cpp draws eight numbers for an example
const std::array<std::string, 13> option_names{"label",      "shape",   "scale",   "target", "holdout",
                                               "categories", "missing", "augment", "header", "separator",
                                               "encoding",   "decimal", "quote"};

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.()").find(c) != std::string_view::npos;
}

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        result += is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return result;
}

// Only what `escaped` writes is taken, so that a text has one meaning and a meaning one text.
std::optional<std::string> unescaped(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            unsigned value = 0;
            const auto digits = text.substr(i + 1, 2);
            const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
            if (digits.size() != 2 || parsed.ec != std::errc() || parsed.ptr != digits.data() + 2) {
                return std::nullopt;
            }
            result += static_cast<char>(value);
            i += 2;
        } else if (is_plain(text[i])) {
            result += text[i];
        } else {
            return std::nullopt;
        }
    }
    return result;
}

// Cut at ".." before numbers are read: a number parser would take the first dot of "0..16" for its own.
Result<Interval> parse_interval(std::string_view text) {
    const auto dots = text.find("..");
    if (dots != std::string_view::npos) {
        const auto low = parse_number(text.substr(0, dots));
        const auto high = parse_number(text.substr(dots + 2));
        if (low && high) {
            return Interval{*low, *high};
        }
    }
    return fail(ErrorKind::invalid, "scale", "expected two numbers with '..' between them");
}

std::vector<Error> check_scale(const Scale& scale) {
    const std::array ends{scale.from.low, scale.from.high, scale.to.low, scale.to.high};
    if (!std::ranges::all_of(ends, [](double end) { return std::isfinite(end); })) {
        return {Error{ErrorKind::invalid, "scale", "scale: every end must be a finite number"}};
    }
    std::vector<Error> errors;
    if (!(scale.from.low < scale.from.high)) {
        errors.push_back({ErrorKind::invalid, "scale", "scale: the first interval must ascend, as in 0..255 -> 0..1"});
    }
    if (scale.to.low == scale.to.high) {
        errors.push_back(
            {ErrorKind::invalid, "scale", "scale: the second interval is empty: every value would be equal"});
    }
    return errors;
}

// Every size is bounded before it is multiplied, so the product never overflows.
std::vector<Error> check_shape(const std::vector<std::int64_t>& shape) {
    if (shape.size() > highest_example_rank) {
        return {Error{ErrorKind::invalid, "shape", fmt::format("shape: at most {} sizes", highest_example_rank)}};
    }
    std::int64_t product = 1;
    for (const auto extent : shape) {
        if (extent < 1 || extent > most_values) {
            return {Error{ErrorKind::invalid, "shape", fmt::format("shape: {} is not a size", extent)}};
        }
        product *= extent;  // below 2^62: both factors are at most 2^31
        if (product > most_values) {
            return {Error{ErrorKind::invalid, "shape", fmt::format("shape: more than {} values", most_values)}};
        }
    }
    return {};
}

std::string joined(const std::vector<Error>& errors) {
    std::vector<std::string> messages;
    for (const auto& error : errors) {
        messages.push_back(error.message);
    }
    return join(messages, "; ");
}

template <class T>
void take(Result<T> parsed, T& target, std::vector<Error>& errors) {
    if (parsed) {
        target = *std::move(parsed);
    } else {
        errors.push_back(std::move(parsed).error());
    }
}

void read_label(std::string_view value, DataOptions& options, std::vector<Error>& errors) {
    const auto label = unescaped(value);
    if (label && !label->empty()) {
        options.label = *label;
    } else {
        errors.push_back({ErrorKind::invalid, "label", "label: expected a column, special characters as %XX"});
    }
}

/// "sex:f,m;ward:a,b", each word escaped.
Result<std::vector<Category>> read_categories(std::string_view text) {
    const auto wrong = fail(ErrorKind::invalid, "category", "categories: expected COLUMN:WORD,WORD;..., escaped");
    std::vector<Category> categories;
    for (const auto& part : split_text(text, ';')) {
        const auto colon = part.find(':');
        const auto column = unescaped(std::string_view(part).substr(0, colon));
        if (colon == std::string::npos || !column || categories.size() >= most_categories) {
            return wrong;
        }
        Category category{*column, {}};
        for (const auto& word : split_text(std::string_view(part).substr(colon + 1), ',')) {
            const auto value = unescaped(word);
            if (!value || category.values.size() >= most_words) {
                return wrong;
            }
            category.values.push_back(*value);
        }
        categories.push_back(std::move(category));
    }
    return categories;
}

std::string categories_text(const std::vector<Category>& categories) {
    std::vector<std::string> parts;
    for (const Category& category : categories) {
        std::vector<std::string> words;
        for (const auto& value : category.values) {
            words.push_back(escaped(value));
        }
        parts.push_back(escaped(category.column) + ":" + join(words, ","));
    }
    return join(parts, ";");
}

/// "crop%204,flip": commas inside a step are escaped too.
Result<std::vector<AugmentStep>> read_augment(std::string_view text) {
    std::vector<AugmentStep> steps;
    for (const auto& part : split_text(text, ',')) {
        const auto step = unescaped(part);
        if (!step || steps.size() >= most_augments) {
            return fail(ErrorKind::invalid, "augment", "augment: expected at most 4 steps, escaped");
        }
        TRY_ASSIGN(auto parsed, parse_augment(*step));
        steps.push_back(std::move(parsed));
    }
    return steps;
}

std::string augment_text(const std::vector<AugmentStep>& steps) {
    std::vector<std::string> parts;
    for (const AugmentStep& step : steps) {
        parts.push_back(escaped(to_text(step)));
    }
    return join(parts, ",");
}

void check_categories(const std::vector<Category>& categories, std::vector<Error>& errors) {
    const auto fault = [&](std::string message) {
        errors.push_back({ErrorKind::invalid, "category", "categories: " + std::move(message)});
    };
    if (categories.size() > most_categories) {
        fault(fmt::format("at most {} columns", most_categories));
    }
    std::vector<std::string_view> columns;
    for (const Category& category : categories) {
        if (category.column.empty() || category.column.size() > longest_label) {
            fault(fmt::format("a column has 1 to {} bytes", longest_label));
        } else if (std::ranges::find(columns, category.column) != columns.end()) {
            fault(fmt::format("\"{}\" stands here twice", category.column));
        }
        columns.push_back(category.column);
        if (category.values.empty() || category.values.size() > most_words) {
            fault(fmt::format("\"{}\" needs 1 to {} words", category.column, most_words));
        }
        std::vector<std::string> sorted = category.values;
        std::ranges::sort(sorted);
        const auto twice = std::ranges::adjacent_find(sorted);
        if (twice != sorted.end()) {
            fault(fmt::format("\"{}\" has the word \"{}\" twice", category.column, *twice));
        } else if (std::ranges::any_of(sorted, [](const auto& word) { return word.size() > longest_label; })) {
            fault(fmt::format("a word has at most {} bytes", longest_label));
        }
    }
}

Result<Target> parse_target(std::string_view text) {
    if (text != "number") {  // `class` is the default, and has no text
        return fail(ErrorKind::invalid, "data_options", "target: expected number");
    }
    return Target::number;
}

Result<double> parse_holdout(std::string_view text) {
    const auto share = parse_number(text);
    if (!share || !(*share > 0 && *share <= largest_holdout)) {
        return fail(ErrorKind::invalid, "holdout", "holdout: expected a share above 0, at most 0.9");
    }
    return *share;
}

bool is_form_key(std::string_view name) {
    return std::ranges::find(table_form_keys(), name) != table_form_keys().end();
}

void read_form(std::string_view name, std::string_view value, TableForm& form, std::vector<Error>& errors) {
    const auto word = unescaped(value);
    const auto set = set_table_form(form, name, word.value_or(""));
    if (!set) {
        errors.push_back(set.error());
    } else if (table_form_word(form, name) == "look" || escaped(table_form_word(form, name)) != value) {
        errors.push_back({ErrorKind::invalid, "table_form", fmt::format("{}: left out where nothing is said", name)});
    }
}

void read_option(std::string_view name, std::string_view value, DataOptions& options, std::vector<Error>& errors) {
    if (name == "label") {
        read_label(value, options, errors);
    } else if (name == "shape") {
        take(parse_shape(value), options.shape, errors);
    } else if (name == "scale") {
        take(parse_scale(value).map([](Scale scale) { return std::optional(scale); }), options.scale, errors);
    } else if (name == "target") {
        take(parse_target(value), options.target, errors);
    } else if (name == "holdout") {
        take(parse_holdout(value), options.holdout, errors);
    } else if (name == "categories") {
        take(read_categories(value), options.categories, errors);
    } else if (name == "missing") {
        take(parse_missing(value), options.missing, errors);
    } else if (name == "augment") {
        take(read_augment(value), options.augment, errors);
    } else if (is_form_key(name)) {
        read_form(name, value, options.form, errors);
    } else {
        const auto nearest = nearest_name(name, option_names);
        errors.push_back({ErrorKind::invalid, "data_options",
                          fmt::format("no data option is called '{}'{}", escaped(name.substr(0, 64)),
                                      nearest ? fmt::format("; did you mean {}?", *nearest)
                                              : "; known: " + join(option_names, ", "))});
    }
}

}  // namespace

std::vector<Error> check_data_options(const DataOptions& options) {
    std::vector<Error> errors;
    if (options.label.size() > longest_label) {
        errors.push_back({ErrorKind::invalid, "label", fmt::format("label: at most {} bytes", longest_label)});
    }
    std::ranges::move(check_shape(options.shape), std::back_inserter(errors));
    if (!(options.holdout >= 0 && options.holdout <= largest_holdout)) {
        errors.push_back({ErrorKind::invalid, "holdout", "holdout: a share from 0 to 0.9"});
    }
    if (options.scale) {
        std::ranges::move(check_scale(*options.scale), std::back_inserter(errors));
    }
    check_categories(options.categories, errors);
    if (!std::isfinite(options.missing.number)) {
        errors.push_back({ErrorKind::invalid, "missing", "missing: the number must be finite"});
    }
    if (options.augment.size() > most_augments) {
        errors.push_back({ErrorKind::invalid, "augment", fmt::format("augment: at most {} steps", most_augments)});
    }
    if (auto fault = augment_fault(options.augment, options.shape); !fault.empty() && !options.shape.empty()) {
        errors.push_back({ErrorKind::invalid, "augment", std::move(fault)});
    }
    if (auto fault = table_form_fault(options.form); !fault.empty()) {
        errors.push_back({ErrorKind::invalid, "table_form", std::move(fault)});
    }
    return errors;
}

std::string to_text(const DataOptions& options) {
    std::vector<std::string> words;
    if (!options.label.empty()) {
        words.push_back("label=" + escaped(options.label));
    }
    if (!options.shape.empty()) {
        words.push_back("shape=" + shape_text(options.shape));
    }
    if (options.scale) {
        words.push_back("scale=" + to_text(*options.scale));
    }
    if (options.target == Target::number) {
        words.emplace_back("target=number");
    }
    if (options.holdout > 0) {
        words.push_back(fmt::format("holdout={}", options.holdout));
    }
    if (!options.categories.empty()) {
        words.push_back("categories=" + categories_text(options.categories));
    }
    if (options.missing != MissingRule{}) {
        words.push_back("missing=" + to_text(options.missing));
    }
    if (!options.augment.empty()) {
        words.push_back("augment=" + augment_text(options.augment));
    }
    for (const auto& key : table_form_keys()) {
        if (const auto word = table_form_word(options.form, key); word != "look") {
            words.push_back(key + "=" + escaped(word));
        }
    }
    return join(words, " ");
}

Result<DataOptions> parse_data_options(std::string_view text) {
    if (text.size() > longest_text) {
        return fail(ErrorKind::invalid, "data_options", fmt::format("data options: at most {} bytes", longest_text));
    }
    DataOptions options;
    std::vector<Error> errors;
    std::vector<std::string> seen;
    for (const auto& word : split_text(text, ' ')) {
        if (word.empty()) {
            continue;
        }
        const auto equals = std::min(word.find('='), word.size());
        const auto name = word.substr(0, equals);
        if (std::ranges::find(seen, name) != seen.end()) {
            errors.push_back({ErrorKind::invalid, "data_options", fmt::format("{} is given twice", escaped(name))});
            continue;
        }
        seen.push_back(name);
        read_option(name, std::string_view(word).substr(std::min(equals + 1, word.size())), options, errors);
    }
    std::ranges::move(check_data_options(options), std::back_inserter(errors));
    if (!errors.empty()) {
        return fail(ErrorKind::invalid, "data_options", joined(errors));
    }
    return options;
}

Result<Category> parse_category(std::string_view text) {
    const auto colon = text.find(':');
    Category category{std::string(trim(text.substr(0, colon))), {}};
    if (colon != std::string_view::npos) {
        for (const auto& word : split_text(text.substr(colon + 1), ',')) {
            category.values.push_back(normal_name(word));
        }
    }
    std::vector<Error> errors;
    check_categories({category}, errors);
    if (colon == std::string_view::npos || !errors.empty()) {
        return fail(ErrorKind::invalid, "category",
                    fmt::format("expected a column and its words, as in \"sex: f, m\"{}",
                                errors.empty() ? "" : "; " + errors.front().message));
    }
    return category;
}

Result<MissingRule> parse_missing(std::string_view text) {
    if (text == "refuse") {
        return MissingRule{};
    }
    if (text == "drop") {
        return MissingRule{MissingRule::Kind::drop, 0};
    }
    const auto number = parse_number(text);
    if (!number || !std::isfinite(*number)) {
        return fail(ErrorKind::invalid, "missing", "missing: expected \"refuse\", \"drop\" or a number");
    }
    return MissingRule{MissingRule::Kind::number, *number + 0.0};  // -0 becomes 0
}

std::string to_text(const MissingRule& rule) {
    switch (rule.kind) {
        case MissingRule::Kind::drop:
            return "drop";
        case MissingRule::Kind::number:
            return fmt::format("{}", rule.number);
        case MissingRule::Kind::refuse:
            break;
    }
    return "refuse";
}

Result<Scale> parse_scale(std::string_view text) {
    const auto arrow = text.find("->");
    const auto from = parse_interval(text.substr(0, arrow));
    const auto to = arrow == std::string_view::npos ? from : parse_interval(text.substr(arrow + 2));
    if (arrow == std::string_view::npos || !from || !to) {
        return fail(ErrorKind::invalid, "scale", "scale: expected two intervals, as in \"0..16 -> 0..1\"");
    }
    const Scale scale{*from, *to};
    if (const auto errors = check_scale(scale); !errors.empty()) {
        return fail(ErrorKind::invalid, "scale", joined(errors));
    }
    return scale;
}

std::string to_text(const Scale& scale) {
    // fmt's shortest form reads back to the same double.
    return fmt::format("{}..{}->{}..{}", scale.from.low, scale.from.high, scale.to.low, scale.to.high);
}

Result<std::vector<std::int64_t>> parse_shape(std::string_view text) {
    std::vector<std::int64_t> shape;
    for (const auto& word : split_text(text.substr(0, longest_text), 'x')) {
        std::int64_t extent = 0;
        const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), extent);
        if (code != std::errc() || end != word.data() + word.size()) {
            return fail(ErrorKind::invalid, "shape", "shape: expected sizes with x between them, as in 8x8x1");
        }
        shape.push_back(extent);
    }
    if (const auto errors = check_shape(shape); !errors.empty()) {
        return fail(errors.front());
    }
    return shape;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace causeway
