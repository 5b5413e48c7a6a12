// Small real work for virtual worlds: a few dozen labelled points a client and a network of two layers, so that one
// training takes microseconds and hundreds of whole runs fit into a test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/real_work.h"
#include "simulation/world.h"

namespace causeway::simulation {

/// `count` points of 5 features in 3 classes; `layer` chooses other ones.
Dataset points(std::size_t count, std::uint64_t layer);
/// One for all: opening a device costs more than a test's trainings.
std::shared_ptr<Trainer> make_trainer();
/// An experiment on points; `train`, `sync` and `regime` are lines of those tables. Regimes that cut the model have a
/// deeper one, so that each part has something to learn.
std::string points_experiment(std::uint32_t rounds, const std::string& train, const std::string& sync,
                              const std::string& regime = "preset = \"fedavg\"");

/// A coordinator's and its clients' real work: client-0, client-1, ... of uneven sizes.
struct RealCast {
    explicit RealCast(std::size_t clients, std::optional<Dataset> held_out = std::nullopt, std::size_t hosts = 0);
    RealCoordinatorWork coordinator;
    std::vector<std::unique_ptr<RealClientWork>> clients;
    std::vector<std::unique_ptr<RealClientWork>> hosts;  // host-0, ...

    [[nodiscard]] WorldOptions world();
    [[nodiscard]] Result<ClientWork*> find(const std::string& node) const;
};

}  // namespace causeway::simulation
