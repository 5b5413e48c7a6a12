// See world.h.
#include "simulation/world.h"

#include <fmt/format.h>

namespace causeway::simulation {

World::World(WorldOptions options)
    : forge_(std::move(options.forge)), transcript_(queue_, options.keep, options.tell) {
    std::vector<LinkOptions> links;
    std::vector<std::string> names;
    std::vector<std::string> roles;
    for (const auto& client : options.clients) {
        links.push_back(client.link);
        names.push_back(client.name);
        roles.push_back(client.role);
    }
    network_ = std::make_unique<Network>(queue_, std::move(links), options.line, sinks());
    turns_ = std::make_unique<TurnExchange>(queue_, *network_);
    auto* work = options.work;
    coordinator_ = std::make_unique<CoordinatorHost>(
        CoordinatorHost::Surroundings{
            queue_, *network_, invariants_, transcript_,
            [this](std::size_t link, const Digest& update) { return clients_[link]->work().read_update(update); },
            std::move(names), std::move(roles)},
        std::move(options.coordinator), *work);
    for (std::size_t i = 0; i < options.clients.size(); ++i) {
        auto& client = options.clients[i];
        node::SessionOptions session;
        session.node = client.name;
        session.software = "causeway simulated";
        session.datasets = std::move(client.datasets);
        session.policy = std::move(client.policy);
        session.splits = client.splits;
        clients_.push_back(std::make_unique<ClientHost>(
            ClientHost::Surroundings{queue_, *network_, invariants_, transcript_, *turns_,
                                     [work](const Digest& model) { return work->read_model(model); }},
            i, std::move(session), *client.work));
        clients_.back()->set_slowness(client.slowness);
        slowness_.push_back(client.slowness);
    }
}

Network::Sinks World::sinks() {
    return {
        .listening = [this] { return coordinator_->up(); },
        .connected = [this](std::size_t link) { clients_[link]->event(node::Connected{}); },
        .disconnected = [this](std::size_t link, const Error& why) { clients_[link]->event(node::Disconnected{why}); },
        .to_client = [this](std::size_t link,
                            const Message& message) {
            auto heard = message;
            if (forge_) {
                forge_(heard);
            }
            clients_[link]->event(node::MessageReceived{std::move(heard)});
        },
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

/// Between two effects of whatever it does; its transactions under way may or may not be durable.
void World::cut_coordinator_power(RandomStream& random, Duration down) {
    if (coordinator_->up()) {
        coordinator_->cut_power(random.below(coordinator_->transactions_under_way() + 1));
        start_coordinator_in(down);
    }
}

void World::cut_client_power(std::size_t client, Duration down) {
    if (clients_[client]->up()) {
        clients_[client]->cut_power();
        start_client_in(client, down);
    }
}

void World::cut(std::size_t client) {
    note(client, "its connection is lost");
    network_->cut(client, "the link was cut");
}

void World::break_transfers(std::size_t client) {
    note(client, "its transfers lose their connection");
    network_->break_transfers(client);
}

void World::corrupt(std::size_t client, Side from) {
    note(client, from == Side::client ? "its next record arrives damaged" : "the next record to it arrives damaged");
    network_->corrupt(client, from);
}

void World::stall(std::size_t client, Duration how_long) {
    note(client, "is cut off for " + format_duration(how_long));
    network_->stall(client, how_long);
}

void World::block(std::size_t client, Side from, Duration how_long) {
    note(client, (from == Side::client ? "nothing from it arrives for " : "nothing reaches it for ") +
                     format_duration(how_long));
    network_->block(client, from, how_long);
}

void World::slow_link(std::size_t client, double factor, Duration how_long) {
    note(client, fmt::format("its link is {:.0f} times slower for {}", factor, format_duration(how_long)));
    network_->slow_down(client, factor, how_long);
}

void World::slow_client(std::size_t client, double factor, Duration how_long) {
    note(client, fmt::format("it trains {:.0f} times slower for {}", factor, format_duration(how_long)));
    clients_[client]->set_slowness(factor * slowness_[client]);
    queue_.after(how_long, [this, client] { clients_[client]->set_slowness(slowness_[client]); });
}

void World::slow_store(Duration transaction, Duration how_long) {
    note(coordinator_process,
         fmt::format("a transaction takes {} for {}", format_duration(transaction), format_duration(how_long)));
    coordinator_->set_store_time(transaction);
    queue_.after(how_long, [this] { coordinator_->set_store_time(store_time); });
}

/// A stopped process sends nothing, not even the heartbeats by which others know that it lives.
void World::stop_process(std::size_t who, Duration how_long) {
    note(who, "is stopped for " + format_duration(how_long));
    process(who).stop(how_long);
    if (who != coordinator_process) {
        network_->stall(who, how_long);
        return;
    }
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        network_->block(i, Side::coordinator, how_long);
    }
}

void World::set_clock_rate(std::size_t who, double rate) {
    note(who, fmt::format("its clock runs at {:.3f}", rate));
    process(who).set_clock_rate(rate);
}

void World::jump_clock(std::size_t who, Duration ahead) {
    note(who, "its clock jumps ahead by " + format_duration(ahead));
    process(who).jump_clock(ahead);
}

void World::fill_disk(std::size_t who, Duration how_long) {
    note(who, "its disk is full for " + format_duration(how_long));
    process(who).fill_disk(how_long);
}

void World::lie(std::size_t client, RandomStream& random) {
    if (clients_[client]->up()) {
        clients_[client]->lie(random);
    }
}

std::string World::name(std::size_t who) const {
    return who == coordinator_process ? "coordinator" : clients_[who]->name();
}

Process& World::process(std::size_t who) {
    return who == coordinator_process ? static_cast<Process&>(*coordinator_) : *clients_[who];
}

void World::note(std::size_t who, const std::string& what) {
    transcript_.add(name(who), [&] { return "FAULT: " + what; });
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
    const auto& rounds = coordinator_->store().rounds(id);
    return rounds.empty() ? Digest{} : rounds.back().model;
}

std::uint32_t World::rounds(ExperimentId id) const {
    const auto& rounds = coordinator_->store().rounds(id);
    return rounds.empty() ? 0 : rounds.back().round;
}

bool World::over(ExperimentId id) const {
    const auto now = state(id);
    return now == "succeeded" || now == "failed" || now == "cancelled";
}

}  // namespace causeway::simulation
