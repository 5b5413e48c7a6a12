// Where experiment files and datasets come from: a path, an example's name, or a set that lies beside the binary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "configs/experiment.h"
#include "data/data_options.h"

namespace causeway::cli {

/// A file's text with the name that messages use.
struct ExperimentText {
    std::string text;
    std::string file_name;
};

/// errors  not_found: neither a file nor an example, with the nearest example's name
[[nodiscard]] Result<ExperimentText> load_experiment_text(const std::string& file_or_example);
/// Reads and checks; the error's message has one line per mistake.
[[nodiscard]] Result<Experiment> load_experiment(const std::string& file_or_example,
                                                 const std::vector<std::string>& set);

/// What --state names before anything is written there. errors: invalid `not_a_folder`: it is a file
[[nodiscard]] Status check_state_argument(const std::string& state);
/// A duration that an option names. errors: invalid, with the option
[[nodiscard]] Result<Duration> parse_duration_option(std::string_view option, const std::string& text);

using DataPaths = std::map<std::string, std::filesystem::path>;  // dataset name -> file or folder

/// NAME=PATH arguments. errors: invalid: no `=`, a name twice, a bad name; not_found: no such path
[[nodiscard]] Result<DataPaths> parse_data_arguments(const std::vector<std::string>& arguments);
/// The same for --model.
[[nodiscard]] Result<DataPaths> parse_model_arguments(const std::vector<std::string>& arguments);
/// The path of a dataset by name: from the arguments, else one that lies with the installation (`digits`).
[[nodiscard]] Result<std::filesystem::path> find_dataset(const std::string& name, const DataPaths& given);
/// For commands that hand out one experiment's data: a name that it does not use is a slip.
///
/// errors  invalid `bad_data_argument`, with the name that is meant
[[nodiscard]] Status refuse_other_datasets(const Experiment& experiment, const DataPaths& given);
// demo and simulate give the same nodes the same names and parts, so that they reach the same digest.

/// "client-1" for 0.
[[nodiscard]] std::string demo_client_name(std::uint32_t index);
[[nodiscard]] std::string demo_host_name(std::uint32_t index);
/// Every client must be there before a round is drawn.
[[nodiscard]] Status require_all(Experiment& experiment, std::uint32_t clients);

/// This executable's own path.
[[nodiscard]] std::filesystem::path own_path();

}  // namespace causeway::cli
