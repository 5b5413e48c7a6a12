// What a client's session machine is told (events) and asks for (effects); same order contract as the coordinator's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/digest.h"
#include "common/time.h"
#include "wire/message.h"

namespace causeway::node {

// ---------------------------------------------------------------- events
struct Connected {};  // TLS is up, identity checked; the machine says Hello
struct Disconnected {
    Error why;
};
struct MessageReceived {
    Message message;
};
struct Tick {};
/// FetchModel: in the cache under its digest, verified; or the error.
struct ModelFetched {
    Digest model;
    std::optional<Error> error;
};
/// Train: the cached model turned out to be damaged; it is gone, and has to be fetched again.
struct ModelLost {
    Lease lease;
    Error why;
};
struct TrainingProgress {
    Lease lease;
    std::uint32_t step = 0;
    std::uint32_t steps = 0;
    double loss = 0;
};
/// Train: the update is encoded and, with its pending state, durable in the state folder.
struct Trained {
    Lease lease;
    HeldUpdate update;
    std::optional<Error> error;
};
/// Evaluate: the reply for the coordinator, figures or an error.
struct Evaluated {
    Reply reply;
};
/// RunTurn: the segment after the turn is here, in memory; or why the turn broke off.
struct TurnDone {
    Lease lease;
    HeldUpdate update;
    std::optional<Error> error;
    std::string peer{};  // whose doing the error was, where it was another node's
};
using Event =
    std::variant<Connected, Disconnected, MessageReceived, Tick, ModelFetched, ModelLost, TrainingProgress, Trained,
                 Evaluated, TurnDone>;

// ---------------------------------------------------------------- effects
/// The coordinator has spoken about a held update: pending becomes base (counted), or is dropped.
struct ResolvePending {
    HeldUpdate update;
    bool counted = false;
};
/// The experiment is over: its client state goes.
struct ForgetExperiment {
    std::uint64_t experiment = 0;
};
using Persist = std::variant<ResolvePending, ForgetExperiment>;

struct Connect {};     // start a connection attempt; answered by Connected or Disconnected
struct Disconnect {    // end the session; answered by nothing
    std::string reason;
};
struct FetchModel {
    Digest model;
    std::uint64_t bytes = 0;
};
/// Fetch is done: run the program on the trainer thread, encode the update, write it beside the base state.
struct Train {
    Assign assign;
};
/// Stop the running Train at the next instruction; a Trained for its lease may still come and is ignored.
struct StopTraining {};
/// Measure a committed model on the held-out examples; fetches it when the cache lacks it. Training goes first.
struct Evaluate {
    std::uint64_t request = 0;
    Assign assign;  // what is known of the experiment: its lease names the round, its model the model
};
/// The segment is here: run the cell's program on the trainer thread, with streams to its peers.
struct RunTurn {
    Assign assign;
};
struct StopTurn {  // a TurnDone for its lease may still come and is ignored
    Lease lease;
};
/// A segment that a turn has made here is needed no more.
struct LetGo {
    Digest segment;
};
using Job = std::variant<Connect, Disconnect, FetchModel, Train, StopTraining, Evaluate, RunTurn, StopTurn, LetGo>;

struct Effects {
    std::vector<Persist> persist;
    std::vector<Message> send;
    std::vector<Job> jobs;
    Instant wake_at = never;
    std::vector<std::string> say;  // lines for the person at the node (joined, training round 3, ...)
};

}  // namespace causeway::node
