// The daemon of the virtual world: executes the Coordinator's effects in their order, and can crash between any two.
//
// A step's persists are one transaction that takes store_time; its sends, closes and jobs are released after it, and
// steps are released in order, as coordinator/effects.h demands.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/machine.h"
#include "simulation/invariants.h"
#include "simulation/memory_store.h"
#include "simulation/network.h"
#include "simulation/transcript.h"
#include "simulation/work.h"

namespace causeway::simulation {

constexpr Duration store_time = std::chrono::milliseconds(1);  // a flushed transaction, measured 0.2 ms to 10 ms
constexpr SessionId first_operator_session = 1'000'000'000;

class CoordinatorHost {
public:
    struct Surroundings {
        EventQueue& queue;
        Network& network;
        Invariants& invariants;
        Transcript& transcript;
        std::function<Result<Bytes>(std::size_t link, const Digest&)> read_update;  // at the client
        std::vector<std::string> nodes;                                             // by link
    };

    CoordinatorHost(Surroundings around, CoordinatorOptions options, CoordinatorWork& work)
        : around_(std::move(around)), options_(std::move(options)), work_(work) {}

    void start();
    void crash();
    /// Crashes before the effect after this many, and tells.
    void crash_after(std::uint32_t effects, std::function<void()> crashed);
    [[nodiscard]] bool up() const { return machine_.has_value(); }
    void event(const CoordinatorEvent& event);
    void heard(std::size_t link, ConnectionId connection, const Message& message);
    void request(const std::string& verb, const Json& body);

    [[nodiscard]] const Coordinator* machine() const { return machine_ ? &*machine_ : nullptr; }
    [[nodiscard]] const MemoryStore& store() const { return store_; }
    [[nodiscard]] const std::vector<Reply>& replies() const { return replies_; }

private:
    void released(const CoordinatorEffects& effects);
    void take(CoordinatorEffects effects);
    void wake(Instant when);
    bool survives_next_effect();
    void send(const Send& send);
    void close(const CloseSession& close);
    void run(const Job& job);
    void run_later(const Job& job, std::function<CoordinatorEvent()> work);
    void absorb(const AbsorbUpdate& job);
    void absorbed(const AbsorbUpdate& job, std::optional<Error> error);
    /// Runs it unless the process has died meanwhile.
    std::function<void()> while_alive(std::function<void()> action);

    Surroundings around_;
    CoordinatorOptions options_;
    CoordinatorWork& work_;
    MemoryStore store_;
    std::optional<Coordinator> machine_;
    std::uint64_t life_ = 0;  // rises at each crash
    std::uint64_t epoch_ = 0;
    std::uint64_t wakes_ = 0;
    Instant released_until_{};
    std::optional<std::uint32_t> effects_left_;
    std::function<void()> crashed_;
    std::map<ConnectionId, std::size_t> sessions_;
    using FetchKey = std::tuple<ExperimentId, std::uint32_t, std::string>;
    std::map<FetchKey, bool> fetching_;  // false: to be given up
    std::map<Digest, std::shared_ptr<std::uint64_t>> received_;
    std::vector<Reply> replies_;
    SessionId next_operator_ = first_operator_session;
    std::uint64_t next_request_ = 1;
};

}  // namespace causeway::simulation
