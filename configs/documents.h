// Texts for people that are made from the field table: docs/configuration.md and the file of `experiment init`.
#pragma once

#include <cstdint>
#include <string>

#include "configs/experiment.h"

namespace causeway {

/// docs/configuration.md, whole. A test compares: `causeway experiment fields > docs/configuration.md` renews it.
[[nodiscard]] std::string configuration_markdown();

struct InitOptions {
    std::string name = "my-experiment";
    std::string dataset = "digits";
};
/// A commented experiment file that is valid as it stands: required keys with examples, the others commented out with
/// their defaults.
[[nodiscard]] std::string init_template(const InitOptions& options);
/// The same with this experiment's values: those that --set gave stand there uncommented.
[[nodiscard]] std::string init_template(const Experiment& chosen);

}  // namespace causeway
