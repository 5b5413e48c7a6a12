// What the virtual world cannot do itself: the computing behind jobs. Tests script it; `simulate` does the real thing.
//
// Calls are made at the virtual instant at which a job ends, so a crash before that leaves nothing behind. What a
// crash loses (sums in memory) and keeps (files) is the work's own affair: crash() tells it.
#pragma once

#include <optional>
#include <vector>

#include "client/effects.h"
#include "client/turn_work.h"
#include "coordinator/effects.h"
#include "split/program_acts.h"

namespace causeway::simulation {

/// How a process ended: a power cut also loses what was not flushed.
enum class Crash { process, power };

class CoordinatorWork {
public:
    virtual ~CoordinatorWork() = default;
    /// Before a round of statistics: it comes before make_model.
    virtual void know(const SaveExperiment& /*experiment*/) {}
    virtual void open_round(const OpenRound& job) = 0;
    /// The answer to it, where there is one: the segments that a round of relays starts from.
    virtual std::optional<RoundOpened> opened(const OpenRound& /*job*/) { return std::nullopt; }
    virtual void release(const ReleaseExperiment& job) = 0;
    /// How long the job takes, without transfers.
    virtual Duration time_of(const Job& job) = 0;
    // Each answers with its event, or with JobFailed.
    virtual CoordinatorEvent make_model(const MakeModel& job, const SaveExperiment& experiment) = 0;
    /// The update has arrived: past the firewall and into the sum, or refused.
    virtual UpdateAbsorbed absorb(const AbsorbUpdate& job, ByteView update) = 0;
    virtual CoordinatorEvent finish_round(const FinishRound& job) = 0;
    virtual CoordinatorEvent evaluate(const EvaluateModel& job) = 0;
    virtual Result<Bytes> read_model(const Digest& model) = 0;
    virtual void crash() = 0;
};

class ClientWork {
public:
    virtual ~ClientWork() = default;
    virtual bool has_model(const Digest& model) = 0;
    virtual void keep_model(const Digest& model, ByteView bytes) = 0;
    virtual Duration time_to_train(const Assign& assign) = 0;
    /// The update and its pending state are durable when it returns.
    virtual node::Trained train(const Assign& assign) = 0;
    /// Figures of a model that has been kept, or an error: the reply to the coordinator's request.
    virtual Reply evaluate(const node::Evaluate& job) {
        return {.id = job.request, .error = ErrorNotice{ErrorKind::not_found, "no_holdout", "nothing is held out"}};
    }
    /// One side of a relay's turn, from a segment that has been kept; a host's has no examples of its own.
    enum class Examples { own, none };
    virtual Result<std::unique_ptr<node::TurnWork>> begin_turn(const Assign& /*assign*/, Examples /*examples*/,
                                                               node::TurnHooks /*hooks*/) {
        return fail(ErrorKind::unsupported, "no_turns", "this work trains whole models only");
    }
    /// What a side of a turn does, one thing after another, where computing is not slowed.
    virtual std::vector<CellAct> acts_of_turn(const Assign& /*assign*/) { return {}; }
    /// What a turn has made: until it is let go, or the process ends.
    virtual void keep_segment(const node::TurnOutput& /*output*/) {}
    virtual void let_go(const Digest& /*segment*/) {}
    virtual Result<Bytes> read_update(const Digest& update) = 0;
    virtual void resolve(const node::ResolvePending& what) = 0;
    virtual void forget(const node::ForgetExperiment& what) = 0;
    /// What is durable: read at each start.
    virtual std::vector<HeldUpdate> held() = 0;
    /// A removal that was not flushed (an update given up) may be undone: the update is held again.
    virtual void crash(Crash how) = 0;
};

}  // namespace causeway::simulation
