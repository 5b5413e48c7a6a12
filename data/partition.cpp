// The registry of partitioners, the checks on what a configuration asks of them, and the partition itself.
#include "data/partition.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/text.h"
#include "data/number.h"

namespace causeway {

// A partitioner is one file and one line here (and its name in this declaration).
extern const Partitioner iid_partitioner, dirichlet_partitioner, shards_partitioner, quantity_partitioner;

namespace {

constexpr std::array<const Partitioner*, 4> all_partitioners{
    &iid_partitioner,
    &dirichlet_partitioner,
    &shards_partitioner,
    &quantity_partitioner,
};

const Partitioner* find_partitioner(std::string_view kind) {
    const auto* const* found = std::ranges::find_if(all_partitioners, [&](const auto* p) { return p->kind == kind; });
    return found == all_partitioners.end() ? nullptr : *found;
}

const PartitionParameter* find_parameter(const Partitioner& partitioner, std::string_view name) {
    const auto found = std::ranges::find(partitioner.parameters, name, &PartitionParameter::name);
    return found == partitioner.parameters.end() ? nullptr : &*found;
}

Error wrong(std::string message) {
    return Error{ErrorKind::invalid, "partition", "partition: " + std::move(message)};
}

std::string did_you_mean(std::string_view name, std::span<const std::string> valid) {
    const auto nearest = nearest_name(name, valid);
    return nearest ? fmt::format("; did you mean '{}'?", *nearest)
                   : fmt::format("; known: {}", valid.empty() ? "none" : join(valid, ", "));
}

Error unknown_kind(std::string_view kind) {
    std::vector<std::string> kinds;
    for (const auto* partitioner : all_partitioners) {
        kinds.emplace_back(partitioner->kind);
    }
    return wrong(fmt::format("no kind is called '{}'{}", kind, did_you_mean(kind, kinds)));
}

Error unknown_parameter(const Partitioner& partitioner, std::string_view name) {
    std::vector<std::string> names;
    for (const auto& parameter : partitioner.parameters) {
        names.emplace_back(parameter.name);
    }
    return wrong(fmt::format("'{}' has no parameter '{}'{}", partitioner.kind, name, did_you_mean(name, names)));
}

std::optional<Error> check_value(const PartitionParameter& parameter, double value) {
    if (!(value >= parameter.least && value <= parameter.most)) {
        return wrong(
            fmt::format("{} is {}, but must be from {} to {}", parameter.name, value, parameter.least, parameter.most));
    }
    if (parameter.kind == NumberKind::whole && value != std::floor(value)) {
        return wrong(fmt::format("{} is {}, but must be a whole number", parameter.name, value));
    }
    return std::nullopt;
}

Error all_of(const std::vector<Error>& errors) {
    std::vector<std::string> messages;
    for (const auto& error : errors) {
        messages.push_back(error.message);
    }
    return Error{ErrorKind::invalid, "partition", join(messages, "; ")};
}

// The specification is valid.
std::map<std::string, double> complete(const Partitioner& partitioner, const PartitionSpec& spec) {
    auto parameters = spec.parameters;
    for (const auto& parameter : partitioner.parameters) {
        parameters.emplace(parameter.name, parameter.fallback);
    }
    return parameters;
}

// What no partitioner has to check again.
Status check_dataset(const Dataset& dataset, const Partitioner& partitioner, std::size_t parts) {
    if (parts == 0) {
        return fail(wrong("the number of parts is 0: at least one is needed"));
    }
    if (parts > dataset.size()) {
        return fail(wrong(fmt::format("{} parts, but '{}' has only {} examples: each part needs one", parts,
                                      dataset.name, dataset.size())));
    }
    if (partitioner.labels == LabelUse::required && !dataset.labelled()) {
        return fail(
            wrong(fmt::format("'{}' divides by label, but '{}' has no labels: name the label column (label = "
                              "\"last\")",
                              partitioner.kind, dataset.name)));
    }
    return {};
}

}  // namespace

std::span<const Partitioner* const> partitioners() {
    return all_partitioners;
}

std::vector<Error> check_partition(const PartitionSpec& spec) {
    const auto* partitioner = find_partitioner(spec.kind);
    if (partitioner == nullptr) {
        return {unknown_kind(spec.kind)};
    }
    std::vector<Error> errors;
    for (const auto& [name, value] : spec.parameters) {
        const auto* parameter = find_parameter(*partitioner, name);
        if (parameter == nullptr) {
            errors.push_back(unknown_parameter(*partitioner, name));
        } else if (auto error = check_value(*parameter, value)) {
            errors.push_back(*std::move(error));
        }
    }
    return errors;
}

Result<PartitionSpec> parse_partition(std::string_view text) {
    PartitionSpec spec{"", {}};
    std::vector<Error> errors;
    for (const auto& word : split_text(trim(text), ' ')) {
        const auto equals = std::min(word.find('='), word.size());
        const auto value = parse_number(std::string_view(word).substr(std::min(equals + 1, word.size())));
        if (word.empty()) {
            continue;
        }
        if (spec.kind.empty()) {
            spec.kind = word;
        } else if (!value || !spec.parameters.emplace(word.substr(0, equals), *value).second) {
            errors.push_back(wrong(fmt::format("'{}' is not NAME=NUMBER, or is given twice", word)));
        }
    }
    std::ranges::move(check_partition(spec), std::back_inserter(errors));
    if (!errors.empty()) {
        return fail(all_of(errors));
    }
    spec.parameters = complete(*find_partitioner(spec.kind), spec);
    return spec;
}

std::string to_text(const PartitionSpec& spec) {
    std::string text = spec.kind;
    for (const auto& [name, value] : spec.parameters) {
        text += fmt::format(" {}={}", name, value);
    }
    return text;
}

Result<Parts> partition(const Dataset& dataset, const PartitionSpec& spec, std::size_t parts, std::uint64_t seed) {
    if (const auto errors = check_partition(spec); !errors.empty()) {
        return fail(all_of(errors));
    }
    const auto& partitioner = *find_partitioner(spec.kind);
    TRY(check_dataset(dataset, partitioner, parts));
    const auto parameters = complete(partitioner, spec);
    TRY_ASSIGN(Parts result,
               partitioner.split({dataset.labels, dataset.classes, dataset.size(), parameters, parts, seed}));
    // Ascending, so that a part is the same dataset however its partitioner came to it.
    for (auto& part : result) {
        std::ranges::sort(part);
    }
    return result;
}

}  // namespace causeway
