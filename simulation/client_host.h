// A node of the virtual world: executes a Session's effects, trains by its ClientWork, and can crash between any two.
// As on a real node what cannot be written (disk full) waits, and all that was to follow it waits with it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "client/session.h"
#include "common/random.h"
#include "simulation/invariants.h"
#include "simulation/network.h"
#include "simulation/process.h"
#include "simulation/transcript.h"
#include "simulation/turn_exchange.h"
#include "simulation/work.h"

namespace causeway::simulation {

class ClientHost : public Process {
public:
    struct Surroundings {
        EventQueue& queue;
        Network& network;
        Invariants& invariants;
        Transcript& transcript;
        TurnExchange& turns;
        std::function<Result<Bytes>(const Digest&)> read_model;  // at the coordinator
    };

    ClientHost(Surroundings around, std::size_t link, node::SessionOptions options, ClientWork& work)
        : Process(around.queue), around_(std::move(around)), link_(link), options_(std::move(options)), work_(work) {}

    void start();
    void crash() override { die(Crash::process); }
    /// A crash that also undoes what was not flushed.
    void cut_power() { die(Crash::power); }
    [[nodiscard]] bool up() const override { return session_.has_value(); }
    void event(const node::Event& event);
    /// Trains so many times as long from now on.
    void set_slowness(double factor) { slowness_ = factor; }
    /// Says something that its session would not: stale, forged, or not a client's to say.
    void lie(RandomStream& random);
    [[nodiscard]] ClientWork& work() { return work_; }
    [[nodiscard]] const std::string& name() const { return options_.node; }
    [[nodiscard]] const node::Session* session() const { return session_ ? &*session_ : nullptr; }

private:
    void woken() override { event(node::Tick{}); }
    void die(Crash how);
    void take(node::Effects effects);
    void release_pending();
    void release(const node::Effects& effects);
    void remember(const Message& message);
    void persist(const node::Persist& persist);
    void run(const node::Job& job);
    void fetch(const node::FetchModel& job);
    void train(const node::Train& job);
    void end_training(std::uint64_t run, const Assign& assign);
    void evaluate(const node::Evaluate& job);
    void run_turn(const node::RunTurn& job);
    void pull_model(const Digest& model, std::uint64_t bytes, std::function<void(const Status&)> done);

    Surroundings around_;
    std::size_t link_;
    node::SessionOptions options_;
    ClientWork& work_;
    std::optional<node::Session> session_;
    std::uint64_t trainings_ = 0;  // started or stopped so far: an older one is over
    double slowness_ = 1;
    std::deque<node::Effects> pending_;  // steps that wait for room on the disk
    std::optional<Lease> last_lease_;    // what a lie is made of
    std::optional<HeldUpdate> last_offer_;
    std::map<Digest, std::shared_ptr<std::uint64_t>> received_;
};

}  // namespace causeway::simulation
