// The daemon of the virtual world: executes the Coordinator's effects in their order, and can crash between any two.
//
// A step's persists are one transaction that takes store_time; its sends, closes and jobs are released after it, and
// steps are released in order, as coordinator/effects.h demands. Transactions under way are lost in a crash; in a power
// cut the first of them may have reached the disk without anybody having heard of it. A full disk holds them back.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/machine.h"
#include "simulation/invariants.h"
#include "simulation/memory_store.h"
#include "simulation/network.h"
#include "simulation/process.h"
#include "simulation/transcript.h"
#include "simulation/work.h"

namespace causeway::simulation {

constexpr Duration store_time = std::chrono::milliseconds(1);  // a flushed transaction, measured 0.2 ms to 10 ms
constexpr SessionId first_operator_session = 1'000'000'000;

class CoordinatorHost : public Process {
public:
    struct Surroundings {
        EventQueue& queue;
        Network& network;
        Invariants& invariants;
        Transcript& transcript;
        std::function<Result<Bytes>(std::size_t link, const Digest&)> read_update;  // at the client
        std::vector<std::string> nodes;
        std::vector<std::string> roles;                                             // by link
    };

    CoordinatorHost(Surroundings around, CoordinatorOptions options, CoordinatorWork& work)
        : Process(around.queue), around_(std::move(around)), options_(std::move(options)), work_(work) {}

    void start();
    void crash() override { die(0); }
    /// A crash in which so many of the transactions under way are durable all the same, in their order.
    void cut_power(std::size_t durable) { die(durable); }
    [[nodiscard]] bool up() const override { return machine_.has_value(); }
    /// Of the process that is up, or was last.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] std::size_t transactions_under_way() const { return pending_.size(); }
    /// Each transaction takes this long from now on.
    void set_store_time(Duration time) { store_time_ = time; }
    void event(const CoordinatorEvent& event);
    void heard(std::size_t link, ConnectionId connection, const Message& message);
    void request(const std::string& verb, const Json& body);

    [[nodiscard]] const Coordinator* machine() const { return machine_ ? &*machine_ : nullptr; }
    [[nodiscard]] const MemoryStore& store() const { return store_; }
    [[nodiscard]] const std::vector<Reply>& replies() const { return replies_; }

private:
    /// A step whose effects wait for its transaction, and for the steps before it.
    struct Pending {
        Instant due;
        CoordinatorEffects effects;
    };

    void woken() override { event(Tick{}); }
    void die(std::size_t durable);
    void take(CoordinatorEffects effects);
    void release_pending();
    void store(const std::vector<Persist>& persists);
    void release(const CoordinatorEffects& effects);
    void tell_commits(const std::vector<Persist>& persists);
    void send(const Send& send);
    void close(const CloseSession& close);
    void run(const Job& job);
    template <class Answer>
    void count_traffic(Answer& answer) const {
        answer.bytes_up_total = around_.network.bytes_up();
        answer.bytes_down_total = around_.network.bytes_down();
    }
    void run_later(const Job& job, std::function<CoordinatorEvent()> work);
    void absorb(const AbsorbUpdate& job);
    void absorbed(const AbsorbUpdate& job, std::optional<Error> error);

    Surroundings around_;
    CoordinatorOptions options_;
    CoordinatorWork& work_;
    MemoryStore store_;
    std::optional<Coordinator> machine_;
    std::uint64_t epoch_ = 0;
    Duration store_time_ = store_time;
    Instant stored_until_{};
    std::deque<Pending> pending_;
    std::map<ConnectionId, std::size_t> sessions_;
    using FetchKey = std::tuple<ExperimentId, std::uint32_t, std::string>;
    std::map<FetchKey, bool> fetching_;  // false: to be given up
    std::map<Digest, std::shared_ptr<std::uint64_t>> received_;
    std::vector<Reply> replies_;
    SessionId next_operator_ = first_operator_session;
    std::uint64_t next_request_ = 1;
};

}  // namespace causeway::simulation
