// What a client with a valid certificate might say to harm a federation: stale and forged leases, updates that it does
// not hold or that are not of the round, weights out of range, words that only a coordinator says; and, by its work,
// updates that are damaged, of another round, or hold NaN.
//
// All of it must be answered or ignored without disturbing the others. A plausible lie (another model that passes the
// firewall) is not among them: nobody could tell, and a replay would rightly differ.
#pragma once

#include "common/random.h"
#include "simulation/work.h"

namespace causeway::simulation {

/// A message made from the client's last assignment and offer.
Message forge(RandomStream& random, const Lease& lease, const HeldUpdate& offer);

/// Trains honestly, and with this probability hands out something else in the update's place.
class LyingClientWork : public ClientWork {
public:
    LyingClientWork(ClientWork& honest, std::string name, std::uint64_t seed, double share)
        : honest_(honest), name_(std::move(name)), seed_(seed), share_(share) {}

    bool has_model(const Digest& model) override { return honest_.has_model(model); }
    void keep_model(const Digest& model, ByteView bytes) override { honest_.keep_model(model, bytes); }
    Duration time_to_train(const Assign& assign) override { return honest_.time_to_train(assign); }
    node::Trained train(const Assign& assign) override;
    Reply evaluate(const node::Evaluate& job) override { return honest_.evaluate(job); }
    Result<std::unique_ptr<node::TurnWork>> begin_turn(const Assign& assign, Examples examples,
                                                       node::TurnHooks hooks) override {
        return honest_.begin_turn(assign, examples, std::move(hooks));
    }
    std::vector<CellAct> acts_of_turn(const Assign& assign) override { return honest_.acts_of_turn(assign); }
    void keep_segment(const node::TurnOutput& output) override { honest_.keep_segment(output); }
    void let_go(const Digest& segment) override { honest_.let_go(segment); }
    Result<Bytes> read_update(const Digest& update) override;
    void resolve(const node::ResolvePending& what) override;
    void forget(const node::ForgetExperiment& what) override { honest_.forget(what); }
    std::vector<HeldUpdate> held() override { return honest_.held(); }
    void crash(Crash how) override { honest_.crash(how); }

private:
    struct Forgery {
        HeldUpdate honest;
        Bytes bytes;
    };
    ClientWork& honest_;
    std::string name_;
    std::uint64_t seed_;
    double share_;
    std::map<Digest, Forgery> forgeries_;  // by the digest that is offered
    Bytes last_update_;                    // an earlier one, to be offered again
};

}  // namespace causeway::simulation
