// Reading and printing by type, chosen by std::visit over the kind of member.
//
// Shares are kept to a millionth of a percent and durations to a millisecond, so that the printed form is short and
// re-reads to the same value. Texts refuse control characters: they end up in logs, tables and terminals.
#include "configs/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/text.h"
#include "configs/checks.h"

namespace causeway {

namespace {

using ValueKind = TomlNode::Kind;
using Millis = std::chrono::milliseconds;

/// One value being read: what is wrong is said once, with the field's own description of what is right.
struct Reading {
    const Field& field;
    const TomlNode& node;
    std::vector<ConfigError>& errors;

    void wrong(std::string message) const { errors.push_back({node.place, std::move(message)}); }
    void wrong_type() const {
        wrong(fmt::format("{} must be {}, not {}", field.path, describe_values(field), describe(node.kind)));
    }
    void out_of_range(std::string_view value) const {
        wrong(fmt::format("{} is {}; it must be {}", field.path, value, describe_values(field)));
    }
    [[nodiscard]] bool is_number() const { return node.kind == ValueKind::integer || node.kind == ValueKind::number; }
    [[nodiscard]] bool within(double value) const { return value >= field.least && value <= field.most; }
};

std::string format_share(double share) {
    return fmt::format("{}%", std::round(share * 1e8) / 1e6);
}

std::string quoted_list(const std::vector<std::string>& texts) {
    std::vector<std::string> quoted;
    for (const auto& text : texts) {
        quoted.push_back(toml_quoted(text));
    }
    return join(quoted, ", ");
}

/// Bytes that a person cannot see would make two values that look alike differ.
bool is_plain(std::string_view text, std::size_t longest) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            return false;
        }
    }
    return !text.empty() && text.size() <= longest;
}

/// Makes the text canonical where its owner has a canonical spelling. False when it was refused.
bool check_text(const Reading& reading, std::string& text) {
    if (!is_plain(text, reading.field.longest)) {
        reading.wrong(fmt::format("{} must be a text of 1 to {} printable characters", reading.field.path,
                                  reading.field.longest));
        return false;
    }
    if (reading.field.check != nullptr) {
        auto canonical = reading.field.check(text);
        if (!canonical) {
            reading.wrong(fmt::format("{}: {}", reading.field.path, canonical.error().message));
            return false;
        }
        text = *canonical;
        return true;
    }
    const auto& choices = reading.field.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
        reading.wrong(unknown_name(reading.field.path, text, choices));
        return false;
    }
    return true;
}

// ---- reading, one function per type of member; the member is set only when nothing is wrong
void read_as(const Reading& reading, std::string& target) {
    const bool number = reading.field.takes_number && reading.node.kind == ValueKind::integer;
    if (reading.node.kind != ValueKind::text && !number) {
        return reading.wrong_type();
    }
    std::string text = number ? std::to_string(reading.node.integer) : reading.node.text;
    if (check_text(reading, text)) {
        target = text;
    }
}

/// Files of before this type say 0 and 1; stored experiments are such files.
void read_as(const Reading& reading, bool& target) {
    const bool number =
        reading.node.kind == ValueKind::integer && (reading.node.integer == 0 || reading.node.integer == 1);
    if (reading.node.kind != ValueKind::boolean && !number) {
        return reading.wrong_type();
    }
    target = number ? reading.node.integer == 1 : reading.node.boolean;
}

/// 3.0 is refused like 3.5: a count is a whole number, and a typing slip should not be rounded.
template <class Count>
void read_count(const Reading& reading, Count& target) {
    if (!reading.field.word.empty() && reading.node.kind == ValueKind::text &&
        reading.node.text == reading.field.word) {
        target = 0;
        return;
    }
    if (reading.node.kind != ValueKind::integer) {
        return reading.wrong_type();
    }
    if (!reading.within(reading.node.number)) {
        return reading.out_of_range(std::to_string(reading.node.integer));
    }
    target = static_cast<Count>(reading.node.integer);
}

void read_as(const Reading& reading, std::uint32_t& target) {
    read_count(reading, target);
}
void read_as(const Reading& reading, std::uint64_t& target) {
    read_count(reading, target);
}

void read_share(const Reading& reading, double& target) {
    const auto share = reading.node.kind == ValueKind::text ? parse_share(reading.node.text) : std::nullopt;
    if (!share) {
        return reading.wrong_type();
    }
    if (!reading.within(*share)) {
        return reading.out_of_range(format_share(*share));
    }
    target = *share;
}

void read_as(const Reading& reading, double& target) {
    if (reading.field.style == NumberStyle::share) {
        return read_share(reading, target);
    }
    if (!reading.is_number()) {
        return reading.wrong_type();
    }
    if (!reading.within(reading.node.number)) {  // false for NaN
        return reading.out_of_range(fmt::format("{}", reading.node.number));
    }
    target = reading.node.number == 0 ? 0 : reading.node.number;  // not -0.0
}

void read_as(const Reading& reading, Duration& target) {
    if (reading.node.kind != ValueKind::text) {
        return reading.wrong_type();
    }
    const auto duration = parse_duration(trim(reading.node.text));
    if (!duration) {
        return reading.wrong(fmt::format("{} must be {}: {}", reading.field.path, describe_values(reading.field),
                                         duration.error().message));
    }
    if (!reading.within(seconds(*duration))) {
        return reading.out_of_range(toml_quoted(reading.node.text));
    }
    target = std::chrono::duration_cast<Millis>(*duration);
}

/// A share of members is above 0: nobody at all is never meant. `within` bounds the count.
void read_as(const Reading& reading, CountOrShare& target) {
    if (reading.node.kind == ValueKind::integer) {
        if (!reading.within(reading.node.number)) {
            return reading.out_of_range(std::to_string(reading.node.integer));
        }
        target = {CountOrShare::Kind::count, static_cast<std::uint32_t>(reading.node.integer), 0};
        return;
    }
    const bool all = reading.node.kind == ValueKind::text && trim(reading.node.text) == "all";
    const auto share = all ? 1.0 : reading.node.kind == ValueKind::text ? parse_share(reading.node.text) : std::nullopt;
    if (!share) {
        return reading.wrong_type();
    }
    if (!(*share > 0 && *share <= 1)) {
        return reading.out_of_range(format_share(*share));
    }
    target = {CountOrShare::Kind::share, 0, *share};
}

/// True when the node is a list of a length within the bounds.
bool is_list(const Reading& reading) {
    if (reading.node.kind != ValueKind::array) {
        reading.wrong_type();
        return false;
    }
    if (!reading.within(static_cast<double>(reading.node.items.size()))) {
        reading.wrong(fmt::format("{} has {} elements; it must be {}", reading.field.path, reading.node.items.size(),
                                  describe_values(reading.field)));
        return false;
    }
    return true;
}

/// A cut may be an index: 6 is "6".
TomlNode as_text(TomlNode node) {
    if (node.kind == ValueKind::integer) {
        node.kind = ValueKind::text;
        node.text = std::to_string(node.integer);
    }
    return node;
}

/// `cut = "relu"` and `cut = 6` for lists of which one element may stand alone; their numbers are texts.
TomlNode listed(const TomlNode& node) {
    TomlNode list = node;
    if (node.kind == ValueKind::text || node.kind == ValueKind::integer) {
        list.kind = ValueKind::array;
        list.items = {node};
    }
    std::ranges::transform(list.items, list.items.begin(), as_text);
    return list;
}

/// Every wrong element is reported, at its own place.
void read_as(const Reading& given, std::vector<std::string>& target) {
    const bool one = given.field.list == ListStyle::one_or_list;
    const TomlNode node = one ? listed(given.node) : given.node;
    const Reading reading{given.field, node, given.errors};
    if (!is_list(reading)) {
        return;
    }
    std::vector<std::string> texts;
    for (const auto& item : reading.node.items) {
        const Reading element{reading.field, item, reading.errors};
        std::string text = item.text;
        if (item.kind != ValueKind::text) {
            element.wrong(
                fmt::format("an element of {} must be a text, not {}", reading.field.path, describe(item.kind)));
        } else if (check_text(element, text)) {
            texts.push_back(text);
        }
    }
    if (texts.size() == reading.node.items.size()) {
        target = std::move(texts);
    }
}

/// Lists of names, none of them empty.
void read_as(const Reading& reading, std::vector<std::vector<std::string>>& target) {
    if (!is_list(reading)) {
        return;
    }
    const auto before = reading.errors.size();
    std::vector<std::vector<std::string>> lists;
    for (const auto& item : reading.node.items) {
        const Reading inner{reading.field, item, reading.errors};
        if (item.kind != ValueKind::array || item.items.empty()) {
            inner.wrong(fmt::format("an element of {} must be a list of names, such as [\"ann\", \"bob\"]",
                                    reading.field.path));
            continue;
        }
        auto& names = lists.emplace_back();
        for (const auto& name : item.items) {
            const auto checked = check_name(name.text);
            if (name.kind != ValueKind::text || !checked) {
                const Reading element{reading.field, name, reading.errors};
                element.wrong(fmt::format("{}: {}", reading.field.path,
                                          checked ? "a node is called by a text" : checked.error().message));
            } else {
                names.push_back(*checked);
            }
        }
    }
    if (reading.errors.size() == before) {
        target = std::move(lists);
    }
}

/// The product is checked before it is formed, so it cannot overflow.
void read_as(const Reading& reading, Shape& target) {
    constexpr std::int64_t largest = std::int64_t{1} << 28;  // elements of one example
    if (!is_list(reading)) {
        return;
    }
    Shape shape;
    std::int64_t elements = 1;
    for (const auto& item : reading.node.items) {
        if (item.kind != ValueKind::integer || item.integer < 1 || item.integer > largest / elements) {
            const Reading element{reading.field, item, reading.errors};
            element.wrong(fmt::format("a size in {} must be a whole number of at least 1, and their product at most {}",
                                      reading.field.path, largest));
            return;
        }
        elements *= item.integer;
        shape.push_back(item.integer);
    }
    target = std::move(shape);
}

// ---- printing: the spelling that read_as takes
std::string print_as(const Field&, const std::string& value) {
    return toml_quoted(value);
}
std::string print_as(const Field&, const bool& value) {
    return value ? "true" : "false";
}
std::string print_as(const Field& field, const std::uint32_t& value) {
    return value == 0 && !field.word.empty() ? toml_quoted(field.word) : std::to_string(value);
}
std::string print_as(const Field&, const std::uint64_t& value) {
    return std::to_string(value);
}
std::string print_as(const Field& field, const double& value) {
    return field.style == NumberStyle::share ? toml_quoted(format_share(value)) : fmt::format("{}", value);
}
std::string print_as(const Field&, const Duration& value) {
    const auto ms = std::chrono::duration_cast<Millis>(value).count();
    struct Unit {
        std::int64_t ms;
        std::string_view name;
    };
    for (const auto& unit : {Unit{3'600'000, "h"}, Unit{60'000, "m"}, Unit{1000, "s"}}) {
        // "90s" rather than "1.5m": only whole numbers are printed.
        if (ms % unit.ms == 0 && (ms > 0 || unit.ms == 1000)) {
            return fmt::format("\"{}{}\"", ms / unit.ms, unit.name);
        }
    }
    return fmt::format("\"{}ms\"", ms);
}
std::string print_as(const Field&, const CountOrShare& value) {
    if (value.kind == CountOrShare::Kind::count) {
        return std::to_string(value.count);
    }
    return toml_quoted(value.share == 1 ? "all" : format_share(value.share));
}
std::string print_as(const Field& field, const std::vector<std::string>& value) {
    const bool alone = field.list == ListStyle::one_or_list && value.size() == 1;
    return alone ? toml_quoted(value.front()) : "[" + quoted_list(value) + "]";
}
std::string print_as(const Field&, const std::vector<std::vector<std::string>>& value) {
    std::vector<std::string> lists;
    for (const auto& names : value) {
        lists.push_back("[" + quoted_list(names) + "]");
    }
    return "[" + join(lists, ", ") + "]";
}
std::string print_as(const Field&, const Shape& value) {
    return to_string(value);
}

/// 1000000 rather than 1e+06.
std::string bound_text(double bound) {
    return bound == std::floor(bound) ? std::to_string(static_cast<std::int64_t>(bound)) : fmt::format("{}", bound);
}

std::string range_text(const Field& field) {
    return fmt::format(" from {} to {}", bound_text(field.least), bound_text(field.most));
}

// ---- what may stand there, for messages and documentation
std::string describe_as(const Field& field, const std::string&) {
    return field.choices.empty() ? "a text" : "one of " + quoted_list(field.choices);
}
std::string describe_as(const Field&, const bool&) {
    return "true or false";
}
std::string describe_as(const Field& field, const std::uint32_t&) {
    const auto word = field.word.empty() ? std::string() : ", or " + toml_quoted(field.word);
    return "a whole number" + range_text(field) + word;
}
std::string describe_as(const Field& field, const std::uint64_t&) {
    return "a whole number" + range_text(field);
}
std::string describe_as(const Field& field, const double&) {
    if (field.style == NumberStyle::share) {
        return fmt::format("a share from \"{}\" to \"{}\"", format_share(field.least), format_share(field.most));
    }
    return "a number" + range_text(field);
}
std::string describe_as(const Field& field, const Duration&) {
    return fmt::format("a time with a unit (ms, s, m, h, d) from \"{}s\" to \"{}d\"", field.least, field.most / 86400);
}
std::string describe_as(const Field& field, const CountOrShare&) {
    return "a count" + range_text(field) + ", a share up to \"100%\", or \"all\"";
}
std::string describe_as(const Field& field, const std::vector<std::vector<std::string>>&) {
    return fmt::format("a list of {} to {} lists of names", field.least, field.most);
}
std::string describe_as(const Field& field, const std::vector<std::string>&) {
    if (field.list == ListStyle::one_or_list) {
        return fmt::format("a text, or a list of up to {}", field.most);
    }
    return fmt::format("a list of {} to {} texts", field.least, field.most);
}
std::string describe_as(const Field& field, const Shape&) {
    return fmt::format("a list of {} to {} sizes", field.least, field.most);
}

}  // namespace

std::optional<double> parse_share(std::string_view text) {
    text = trim(text);
    if (text.empty() || text.back() != '%') {
        return std::nullopt;
    }
    text = trim(text.substr(0, text.size() - 1));
    double percent = 0;
    const auto end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, percent);
    if (problem != std::errc() || stop != end || !(std::abs(percent) < 1e6)) {
        return std::nullopt;
    }
    return std::round(percent * 1e6) / 1e8;
}

void read_value(const Field& field, const TomlNode& node, Experiment& experiment, std::vector<ConfigError>& errors) {
    const Reading reading{field, node, errors};
    std::visit([&](auto access) { read_as(reading, access(experiment)); }, field.access);
}

std::string print_value(const Field& field, const Experiment& experiment) {
    auto& values = const_cast<Experiment&>(experiment);  // the accessor only forms a reference
    return std::visit([&](auto access) { return print_as(field, access(values)); }, field.access);
}

std::string describe_values(const Field& field) {
    Experiment any;  // only its types are looked at
    return std::visit([&](auto access) { return describe_as(field, access(any)); }, field.access);
}

std::string toml_quoted(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
        }
        quoted += c;
    }
    return quoted + '"';
}

}  // namespace causeway
