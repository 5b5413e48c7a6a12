// A node of the virtual world: executes a Session's effects, trains by its ClientWork, and can crash between any two.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "client/session.h"
#include "simulation/invariants.h"
#include "simulation/network.h"
#include "simulation/transcript.h"
#include "simulation/work.h"

namespace causeway::simulation {

class ClientHost {
public:
    struct Surroundings {
        EventQueue& queue;
        Network& network;
        Invariants& invariants;
        Transcript& transcript;
        std::function<Result<Bytes>(const Digest&)> read_model;  // at the coordinator
    };

    ClientHost(Surroundings around, std::size_t link, node::SessionOptions options, ClientWork& work)
        : around_(std::move(around)), link_(link), options_(std::move(options)), work_(work) {}

    void start();
    void crash();
    void crash_after(std::uint32_t effects, std::function<void()> crashed);
    [[nodiscard]] bool up() const { return session_.has_value(); }
    void event(const node::Event& event);
    [[nodiscard]] ClientWork& work() { return work_; }
    [[nodiscard]] const std::string& name() const { return options_.node; }
    [[nodiscard]] const node::Session* session() const { return session_ ? &*session_ : nullptr; }

private:
    void take(const node::Effects& effects);
    void wake(Instant when);
    bool survives_next_effect();
    void persist(const node::Persist& persist);
    void run(const node::Job& job);
    void fetch(const node::FetchModel& job);
    void train(const node::Train& job);
    void evaluate(const node::Evaluate& job);
    void pull_model(const Digest& model, std::uint64_t bytes, std::function<void(const Status&)> done);
    std::function<void()> while_alive(std::function<void()> action);

    Surroundings around_;
    std::size_t link_;
    node::SessionOptions options_;
    ClientWork& work_;
    std::optional<node::Session> session_;
    std::uint64_t life_ = 0;
    std::uint64_t wakes_ = 0;
    std::uint64_t trainings_ = 0;  // started or stopped so far: an older one is over
    std::optional<std::uint32_t> effects_left_;
    std::function<void()> crashed_;
    std::map<Digest, std::shared_ptr<std::uint64_t>> received_;
};

}  // namespace causeway::simulation
