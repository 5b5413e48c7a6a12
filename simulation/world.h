// A whole federation in virtual time: the real Coordinator, the real Sessions, a network and their failures.
//
// Everything is a function of the options and of the calls made here: one seed, one history. Tests drive it with
// scripted work, `simulate` with the real trainer. Single thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulation/client_host.h"
#include "simulation/coordinator_host.h"

namespace causeway::simulation {

struct ClientSetup {
    std::string name;
    std::vector<DatasetDeclaration> datasets;
    ClientWork* work = nullptr;  // outlives the world
    LinkOptions link;
    double slowness = 1;  // of its training
    std::string role = "client";  // or host
    bool splits = false;           // takes cells of split models
    std::function<std::optional<node::Objection>(const Assign&, node::Asked)> policy;
};

struct WorldOptions {
    CoordinatorOptions coordinator;
    CoordinatorWork* work = nullptr;  // outlives the world
    std::vector<ClientSetup> clients;
    SharedLine line;  // the coordinator's
    Transcript::Keep keep = Transcript::Keep::nothing;
    Transcript::Tell tell{};  // instead of being kept
    /// A coordinator that lies: changes what reaches the clients. Empty: it is honest.
    std::function<void(Message&)> forge{};
};

class World {
public:
    explicit World(WorldOptions options);
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    /// Starts the coordinator and every client.
    void start();
    [[nodiscard]] Instant now() const { return queue_.now(); }
    void run_for(Duration time);
    /// Runs until it holds; false when it does not within `bound` of virtual time.
    bool run_until(const std::function<bool()>& holds, Duration bound);
    /// Does it when the world gets there.
    void at(Instant when, std::function<void()> action) { queue_.at(when, std::move(action)); }

    /// A request of an operator, in a session of its own; replies() collects what comes.
    void request(const std::string& verb, const Json& body);
    /// A submission of this file, in a session of its own.
    void submit(const std::string& file);
    [[nodiscard]] const std::vector<Reply>& replies() const { return coordinator_->replies(); }
    [[nodiscard]] std::vector<Json> events() const;

    // Failures. A process is a client's index, or coordinator_process.
    static constexpr std::size_t coordinator_process = static_cast<std::size_t>(-1);
    void crash_coordinator(Duration down);
    void crash_coordinator_after(std::uint32_t effects, Duration down);
    void crash_client(std::size_t client, Duration down);
    void crash_client_after(std::size_t client, std::uint32_t effects, Duration down);
    void cut_coordinator_power(RandomStream& random, Duration down);
    void cut_client_power(std::size_t client, Duration down);
    void cut(std::size_t client);
    void break_transfers(std::size_t client);
    void corrupt(std::size_t client, Side from);
    void stall(std::size_t client, Duration how_long);
    void block(std::size_t client, Side from, Duration how_long);
    void slow_link(std::size_t client, double factor, Duration how_long);
    void slow_client(std::size_t client, double factor, Duration how_long);
    void slow_store(Duration transaction, Duration how_long);
    void stop_process(std::size_t who, Duration how_long);
    void set_clock_rate(std::size_t who, double rate);
    void jump_clock(std::size_t who, Duration ahead);
    void fill_disk(std::size_t who, Duration how_long);
    void lie(std::size_t client, RandomStream& random);

    [[nodiscard]] const CoordinatorHost& coordinator() const { return *coordinator_; }
    [[nodiscard]] const ClientHost& client(std::size_t index) const { return *clients_[index]; }
    [[nodiscard]] std::size_t client_count() const { return clients_.size(); }
    /// As persisted.
    [[nodiscard]] std::string state(ExperimentId id) const;
    [[nodiscard]] std::string reason(ExperimentId id) const;
    [[nodiscard]] Digest last_model(ExperimentId id) const;
    [[nodiscard]] std::uint32_t rounds(ExperimentId id) const;
    [[nodiscard]] bool over(ExperimentId id) const;
    [[nodiscard]] const std::vector<std::string>& broken_rules() const { return invariants_.broken(); }
    [[nodiscard]] const Invariants& invariants() const { return invariants_; }
    [[nodiscard]] RunLog log(ExperimentId id) const { return coordinator_->store().log(id); }
    [[nodiscard]] const std::string& transcript() const { return transcript_.text(); }
    [[nodiscard]] const Network& network() const { return *network_; }

private:
    Network::Sinks sinks();
    [[nodiscard]] std::string name(std::size_t who) const;
    [[nodiscard]] Process& process(std::size_t who);
    void note(std::size_t who, const std::string& what);
    void start_coordinator_in(Duration wait);
    void start_client_in(std::size_t client, Duration wait);

    EventQueue queue_;
    std::function<void(Message&)> forge_;
    Transcript transcript_;
    Invariants invariants_;
    std::unique_ptr<Network> network_;
    std::unique_ptr<TurnExchange> turns_;
    std::unique_ptr<CoordinatorHost> coordinator_;
    std::vector<std::unique_ptr<ClientHost>> clients_;
    std::vector<double> slowness_;  // of the clients' training, when nothing fails
};

}  // namespace causeway::simulation
