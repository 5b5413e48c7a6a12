// See simulate_cast.h.
#include "cli/simulate_cast.h"

#include "common/file.h"
#include "configs/dataset_file.h"
#include "configs/workload.h"

namespace causeway::cli {
namespace {

using namespace simulation;

constexpr std::uint64_t largest_cast_model = std::uint64_t{16} << 30;

}  // namespace

Result<NamedModels> name_models(const DataPaths& paths, RealCoordinatorWork& work) {
    NamedModels models;
    for (const auto& [name, path] : paths) {
        TRY_ASSIGN(auto file, read_file(path, largest_cast_model));
        auto described = describe_named_model(file);
        if (!described) {
            return fail(with_context(described.error(), path.string()));
        }
        models.emplace(name, *std::move(described));
        work.add_model(name, std::move(file));
    }
    return models;
}

Result<ClientWork*> Cast::find(const std::string& node) const {
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
        if (node == demo_client_name(i)) {
            return clients[i].get();
        }
    }
    return fail(ErrorKind::not_found, "unknown_node", "no virtual client is called " + node);
}

Result<DemoParts> demo_parts(const Experiment& experiment, const DataPaths& data, std::uint32_t clients) {
    TRY(refuse_other_datasets(experiment, data));
    TRY_ASSIGN(const auto path, find_dataset(experiment.data.dataset, data));
    TRY_ASSIGN(auto file, read_dataset_file(path, data_options_of(experiment)));
    TRY_ASSIGN(auto raw, std::move(file).whole());
    raw.name = experiment.data.dataset;
    TRY_ASSIGN(const auto division,
               divide(raw, experiment.data.holdout, partition_of(experiment), clients, experiment.experiment.seed));
    DemoParts parts;
    if (!division.held_out.empty()) {
        parts.held_out = subset(raw, division.held_out);
    }
    for (const auto& part : division.parts) {
        parts.of_clients.push_back(subset(raw, part));
    }
    return parts;
}

Result<Cast> make_cast(const Experiment& experiment, const DataPaths& data, const DataPaths& models,
                       std::uint32_t clients) {
    TRY_ASSIGN(auto parts, demo_parts(experiment, data, clients));
    TRY_ASSIGN(auto device, Device::open("auto"));
    const auto trainer = std::make_shared<Trainer>(std::move(device));
    Cast cast;
    if (!experiment.evaluation.at_coordinator()) {
        parts.held_out.reset();
    } else if (parts.held_out) {
        TRY(apply_options(*parts.held_out, data_options_of(experiment)));
    }
    cast.coordinator = std::make_unique<RealCoordinatorWork>(trainer, std::move(parts.held_out));
    for (std::uint32_t i = 0; i < clients; ++i) {
        cast.clients.push_back(
            std::make_unique<RealClientWork>(trainer, demo_client_name(i), std::move(parts.of_clients[i])));
    }
    if (experiment.mesh.stages > 1) {
        cast.hosts.push_back(std::make_unique<RealClientWork>(trainer, demo_host_name(0), Dataset{}));
    }
    TRY_ASSIGN(cast.models, name_models(models, *cast.coordinator));
    return cast;
}

}  // namespace causeway::cli
