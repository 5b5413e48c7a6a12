// Who works in `causeway simulate`: the real work over a dataset that is divided exactly as the demo divides it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/experiment_file.h"
#include "configs/initial_model.h"
#include "simulation/real_work.h"

namespace causeway::cli {

struct Cast {
    std::unique_ptr<simulation::RealCoordinatorWork> coordinator;
    std::vector<std::unique_ptr<simulation::RealClientWork>> clients;  // client-1, client-2, ...
    std::vector<std::unique_ptr<simulation::RealClientWork>> hosts;    // host-1, ...: of a model that is cut
    NamedModels models;                                                // what the machine checks submissions with

    /// For replays. errors: not_found `unknown_node`
    [[nodiscard]] Result<simulation::ClientWork*> find(const std::string& node) const;
};

/// A dataset as the demo divides it: raw parts.
struct DemoParts {
    std::vector<Dataset> of_clients;
    std::optional<Dataset> held_out;
};
/// errors   of the dataset's reader
Result<DemoParts> demo_parts(const Experiment& experiment, const DataPaths& data, std::uint32_t clients);
/// Each file to both who need it: the machine, which checks, and the work, which starts from it.
Result<NamedModels> name_models(const DataPaths& paths, simulation::RealCoordinatorWork& work);

/// Same seed, same partition, same names as the demo; the models also go to the coordinator's work.
///
/// errors   of the dataset's reader and of the models' files
Result<Cast> make_cast(const Experiment& experiment, const DataPaths& data, const DataPaths& models,
                       std::uint32_t clients);

}  // namespace causeway::cli
