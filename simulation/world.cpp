// See world.h.
#include "simulation/world.h"

#include "configs/reader.h"

namespace causeway::simulation {

World::World(WorldOptions options) : transcript_(queue_, options.keep) {
    std::vector<LinkOptions> links;
    std::vector<std::string> names;
    for (const auto& client : options.clients) {
        links.push_back(client.link);
        names.push_back(client.name);
    }
    network_ = std::make_unique<Network>(queue_, std::move(links), sinks());
    auto* work = options.work;
    coordinator_ = std::make_unique<CoordinatorHost>(
        CoordinatorHost::Surroundings{
            queue_, *network_, invariants_, transcript_,
            [this](std::size_t link, const Digest& update) { return clients_[link]->work().read_update(update); },
            std::move(names)},
        std::move(options.coordinator), *work);
    for (std::size_t i = 0; i < options.clients.size(); ++i) {
        auto& client = options.clients[i];
        node::SessionOptions session;
        session.node = client.name;
        session.software = "causeway simulated";
        session.datasets = std::move(client.datasets);
        session.policy = std::move(client.policy);
        clients_.push_back(std::make_unique<ClientHost>(
            ClientHost::Surroundings{queue_, *network_, invariants_, transcript_,
                                     [work](const Digest& model) { return work->read_model(model); }},
            i, std::move(session), *client.work));
    }
}

Network::Sinks World::sinks() {
    return {
        .listening = [this] { return coordinator_->up(); },
        .connected = [this](std::size_t link) { clients_[link]->event(node::Connected{}); },
        .disconnected = [this](std::size_t link, const Error& why) { clients_[link]->event(node::Disconnected{why}); },
        .to_client = [this](std::size_t link,
                            const Message& message) { clients_[link]->event(node::MessageReceived{message}); },
        .to_coordinator = [this](std::size_t link, ConnectionId connection,
                                 const Message& message) { coordinator_->heard(link, connection, message); },
        .closed =
            [this](ConnectionId connection, const std::string& why) {
                coordinator_->event(SessionClosed{connection, why});
            },
        .silent = [this](ConnectionId connection) { coordinator_->event(SessionSilent{connection}); },
        .heard = [this](ConnectionId connection) { coordinator_->event(SessionHeard{connection}); },
    };
}

void World::start() {
    coordinator_->start();
    for (auto& client : clients_) {
        client->start();
    }
}

void World::run_for(Duration time) {
    const auto until = now() + time;
    while (queue_.run_next(until)) {
    }
}

bool World::run_until(const std::function<bool()>& holds, Duration bound) {
    const auto until = now() + bound;
    while (!holds()) {
        if (!queue_.run_next(until)) {
            return holds();
        }
    }
    return true;
}

void World::request(const std::string& verb, const Json& body) {
    coordinator_->request(verb, body);
}

void World::submit(const std::string& file) {
    if (const auto experiment = read_experiment(file, "experiment.toml")) {
        invariants_.set_quorum(++submitted_, experiment->sync.quorum);
    }
    request("experiment.submit", Json::object().set("file", file).set("file_name", "experiment.toml"));
}

std::vector<Json> World::events() const {
    std::vector<Json> all;
    for (const auto& reply : replies()) {
        auto body = Json::parse(reply.body);
        if (body && body->has("event")) {
            all.push_back(*std::move(body));
        }
    }
    return all;
}

// ---------------------------------------------------------------- failures

void World::start_coordinator_in(Duration wait) {
    queue_.after(wait, [this] {
        if (!coordinator_->up()) {
            coordinator_->start();
        }
    });
}

void World::start_client_in(std::size_t client, Duration wait) {
    queue_.after(wait, [this, client] {
        if (!clients_[client]->up()) {
            clients_[client]->start();
        }
    });
}

void World::crash_coordinator(Duration down) {
    if (coordinator_->up()) {
        coordinator_->crash();
        start_coordinator_in(down);
    }
}

void World::crash_coordinator_after(std::uint32_t effects, Duration down) {
    coordinator_->crash_after(effects, [this, down] { start_coordinator_in(down); });
}

void World::crash_client(std::size_t client, Duration down) {
    if (clients_[client]->up()) {
        clients_[client]->crash();
        start_client_in(client, down);
    }
}

void World::crash_client_after(std::size_t client, std::uint32_t effects, Duration down) {
    clients_[client]->crash_after(effects, [this, client, down] { start_client_in(client, down); });
}

// ---------------------------------------------------------------- what is durable

std::string World::state(ExperimentId id) const {
    const auto* found = coordinator_->store().find(id);
    return found != nullptr ? found->saved.state : "";
}

std::string World::reason(ExperimentId id) const {
    const auto* found = coordinator_->store().find(id);
    return found != nullptr ? found->saved.reason : "";
}

Digest World::last_model(ExperimentId id) const {
    const auto* found = coordinator_->store().find(id);
    return found != nullptr && !found->rounds.empty() ? found->rounds.back().model : Digest{};
}

std::uint32_t World::rounds(ExperimentId id) const {
    const auto* found = coordinator_->store().find(id);
    return found != nullptr && !found->rounds.empty() ? found->rounds.back().round : 0;
}

bool World::over(ExperimentId id) const {
    const auto now = state(id);
    return now == "succeeded" || now == "failed" || now == "cancelled";
}

}  // namespace causeway::simulation
