// One line per field that applies, tables in the table's order, nested tables as dotted keys. Made from the field table
// alone, so a new row appears here without a change.
#include "configs/canonical.h"

#include <algorithm>

#include <fmt/format.h>

#include "configs/fields.h"
#include "configs/values.h"

namespace causeway {

namespace {

enum class Comments { none, places };

constexpr std::size_t comment_column = 52;  // beyond most values, within 120 columns for most comments

std::string line_of(const Field& field, const Experiment& experiment, Comments comments) {
    const auto key = field.path.substr(field.path.find('.') + 1);
    auto line = fmt::format("{} = {}", key, print_value(field, experiment));
    if (comments == Comments::places) {
        const auto place = experiment.places.find(field.path);
        line.resize(std::max(line.size() + 2, comment_column), ' ');
        line += "# " + (place == experiment.places.end() ? Place{} : place->second).text();
    }
    return line + "\n";
}

std::string to_toml(const Experiment& experiment, Comments comments) {
    std::string text;
    std::string table;
    for (const auto& field : all_fields()) {
        if (!applies(field, experiment)) {
            continue;
        }
        const auto own_table = field.path.substr(0, field.path.find('.'));
        if (own_table != table) {
            text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", own_table);
            table = own_table;
        }
        text += line_of(field, experiment, comments);
    }
    return text;
}

}  // namespace

std::string canonical_toml(const Experiment& experiment) {
    return to_toml(experiment, Comments::none);
}

std::string show_toml(const Experiment& experiment) {
    return to_toml(experiment, Comments::places);
}

}  // namespace causeway
