// A federation of modelled work (modelled_work.h), built in one call: for scale questions, benchmarks, and to know how
// long a run takes when nothing fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulation/modelled_work.h"
#include "simulation/world.h"

namespace causeway::simulation {

/// One entry per client in each list.
struct ModelledSetup {
    std::uint64_t parameters = 100'000;
    std::uint64_t examples = 600;  // of each client
    std::vector<std::string> names;
    std::vector<LinkOptions> links;
    std::vector<Duration> per_example;
    SharedLine line;
    DatasetDeclaration dataset;  // what each declares to hold
};

/// Enough for so many clients, and operators beside them.
[[nodiscard]] std::size_t sessions_for(std::size_t clients);

struct ModelledWorld {
    explicit ModelledWorld(const ModelledSetup& setup, WorldOptions options = {});

    ModelledCoordinatorWork coordinator;
    std::vector<ModelledClientWork> clients;
    std::unique_ptr<World> world;
};

/// Starts the world and waits for all clients. errors: timed_out `no_sessions`: a bug
Status start_and_wait(World& world);

}  // namespace causeway::simulation
