// The table of aggregation rules and the lookup by name. Parsing is total: any text gives a rule or says which
// exist. Thread: any; the table never changes.
#include "aggregation/aggregator.h"

#include "aggregation/mean.h"
#include "common/text.h"

namespace causeway {
namespace {

tl::unexpected<Error> unknown_aggregator(std::string_view name) {
    std::vector<std::string> names;
    for (const auto& entry : aggregator_entries()) {
        names.emplace_back(entry.name);
    }
    std::string message = "no aggregator is called '" + std::string(name) + "'; known: " + join(names, ", ");
    if (const auto nearest = nearest_name(name, names)) {
        message += "; did you mean '" + *nearest + "'?";
    }
    return fail(ErrorKind::invalid, "unknown_aggregator", std::move(message));
}

}  // namespace

std::span<const AggregatorEntry> aggregator_entries() {
    // One line per rule.
    static const std::vector<AggregatorEntry> entries{
        mean_aggregator(),
    };
    return entries;
}

Result<Aggregator> parse_aggregator(std::string_view text, const CohortFacts& facts) {
    const auto words = trim(text);
    const auto name = words.substr(0, words.find(' '));
    for (const auto& entry : aggregator_entries()) {
        if (entry.name == name) {
            return entry.parse(trim(words.substr(name.size())), facts);
        }
    }
    return unknown_aggregator(name);
}

}  // namespace causeway
