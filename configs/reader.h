// From the text of an experiment file to an Experiment, or to all of its mistakes at once.
//
// A mistake is reported where it stands (`digits.toml:3:9: error: ...`), in the order of the file, then those of --set.
// After a TOML syntax error the broken line is set aside and the rest is still read, so one run shows everything.
// Pure: no file is opened here. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "configs/experiment.h"

namespace causeway {

struct ConfigError {
    Place place;
    std::string message;

    bool operator==(const ConfigError&) const = default;
    /// "digits.toml:3:9: error: ..." or "--set train.batch: error: ..."
    [[nodiscard]] std::string text() const { return place.text() + ": error: " + message; }
};
/// As a person reads: the file from top to bottom, then the command line; at most max_config_errors.
[[nodiscard]] std::vector<ConfigError> in_order(std::vector<ConfigError> errors);
/// One line per mistake.
[[nodiscard]] std::string to_text(std::span<const ConfigError> errors);

using ExperimentResult = tl::expected<Experiment, std::vector<ConfigError>>;

constexpr std::size_t max_experiment_bytes = 64 * 1024;  // with its overrides it must fit wire's max_request_bytes
constexpr std::size_t max_overrides = 256;
constexpr std::size_t max_config_errors = 100;

/// `overrides` are the arguments of --set: "train.batch=64", "data.partition.kind=iid", "sync.quorum=70%". The value is
/// TOML, or a bare word taken as a text.
///
/// errors  at least one, at most max_config_errors, in the order of the file; never partial: any mistake refuses all
[[nodiscard]] ExperimentResult read_experiment(std::string_view text, std::string_view file_name,
                                               std::span<const std::string> overrides = {});

/// The same as a Result, for what cannot show a list: kind `invalid`, code `bad_configuration`, one line per mistake.
[[nodiscard]] Result<Experiment> read_experiment_or_fail(std::string_view text, std::string_view file_name);

}  // namespace causeway
