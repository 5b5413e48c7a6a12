// See points.h.
#include "points.h"

#include <catch2/catch.hpp>

#include "common/random.h"

namespace causeway::simulation {

Dataset points(std::size_t count, std::uint64_t layer) {
    RandomStream random({.seed = 5, .purpose = "points", .layer = layer});
    Dataset dataset;
    dataset.name = "points";
    dataset.shape = {5};
    dataset.classes = 3;
    for (std::size_t i = 0; i < count; ++i) {
        const auto label = static_cast<std::uint32_t>(random.below(3));
        for (int j = 0; j < 5; ++j) {
            dataset.features.push_back(static_cast<float>(random.normal() + (j == static_cast<int>(label) ? 2 : 0)));
        }
        dataset.labels.push_back(label);
    }
    return dataset;
}

std::shared_ptr<Trainer> make_trainer() {
    static const auto shared = [] {
        auto device = Device::open("auto");
        REQUIRE(device.has_value());
        return std::make_shared<Trainer>(*std::move(device));
    }();
    return shared;
}

std::string points_experiment(std::uint32_t rounds, const std::string& train, const std::string& sync,
                              const std::string& regime) {
    const std::string middle = regime.find("cut") == std::string::npos ? "" : "\"dense 6\", \"gelu\", ";
    return "[experiment]\nname = \"points\"\nseed = 11\nrounds = " + std::to_string(rounds) +
           "\n[data]\ndataset = \"points\"\nlabel = \"last\"\nshape = [5]\n"
           "[model]\nlayers = [\"dense 8\", \"gelu\", " +
           middle + "\"dense 3\"]\n[train]\n" +
           train + "\n[regime]\n" + regime + "\n[sync]\n" + sync + "\n";
}

RealCast::RealCast(std::size_t count, std::optional<Dataset> held_out, std::size_t host_count)
    : coordinator(nullptr, std::nullopt) {
    const auto trainer = make_trainer();
    coordinator = RealCoordinatorWork(trainer, std::move(held_out));
    for (std::size_t i = 0; i < count; ++i) {
        clients.push_back(
            std::make_unique<RealClientWork>(trainer, "client-" + std::to_string(i), points(10 + 7 * i, i + 1)));
    }
    for (std::size_t i = 0; i < host_count; ++i) {
        hosts.push_back(std::make_unique<RealClientWork>(trainer, "host-" + std::to_string(i), Dataset{}));
    }
}

WorldOptions RealCast::world() {
    WorldOptions options;
    options.work = &coordinator;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        options.clients.push_back(
            {.name = "client-" + std::to_string(i), .datasets = {clients[i]->declaration()}, .work = clients[i].get()});
        options.clients.back().splits = !hosts.empty();
    }
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        options.clients.push_back({.name = "host-" + std::to_string(i), .work = hosts[i].get()});
        options.clients.back().role = "host";
        options.clients.back().splits = true;
    }
    return options;
}

Result<ClientWork*> RealCast::find(const std::string& node) const {
    for (std::size_t i = 0; i < clients.size(); ++i) {
        if (node == "client-" + std::to_string(i)) {
            return clients[i].get();
        }
    }
    return fail(ErrorKind::not_found, "unknown_node", "no work of " + node + " is here");
}

}  // namespace causeway::simulation
