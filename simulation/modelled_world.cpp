// See modelled_world.h.
#include "simulation/modelled_world.h"

#include "coordinator/limits.h"

namespace causeway::simulation {

/// Operators have sessions too: one per request here.
std::size_t sessions_for(std::size_t clients) {
    return limits::sessions + clients;
}

ModelledWorld::ModelledWorld(const ModelledSetup& setup, WorldOptions options) : coordinator(setup.parameters) {
    clients.reserve(setup.names.size());
    for (std::size_t i = 0; i < setup.names.size(); ++i) {
        clients.emplace_back(setup.names[i],
                             ModelledClientWork::Costs{setup.parameters, setup.examples, setup.per_example[i]});
        options.clients.push_back({.name = setup.names[i],
                                   .datasets = {setup.dataset},
                                   .work = &clients.back(),
                                   .link = setup.links[i],
                                   .policy = {}});
    }
    options.work = &coordinator;
    options.line = setup.line;
    options.coordinator.federation = "simulated";
    options.coordinator.max_sessions = sessions_for(setup.names.size());
    world = std::make_unique<World>(std::move(options));
}

Status start_and_wait(World& world) {
    world.start();
    const auto all_online = [&world] {
        return world.coordinator().machine()->members().members().size() == world.client_count();
    };
    if (!world.run_until(all_online, std::chrono::hours(1))) {
        return fail(ErrorKind::timed_out, "no_sessions", "the simulated clients did not connect; this is a bug");
    }
    return {};
}

}  // namespace causeway::simulation
