// One side of a relay's turn: segment file and stream messages in, the next segment file out.
//
// The client's side reads examples and sends what leaves its segment; the host's side works on what arrives. Both are
// resumable runs of one trainer: a run that finds no message hands the thread back, so a host serves many groups in
// turn and a simulation runs both sides in one thread. A host's turn may be with several clients, whose batches its
// program takes up in turn. No file, socket or clock. Thread: the trainer's.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "client/training_work.h"

namespace causeway::node {

/// What a turn needs of its surroundings.
struct TurnHooks {
    std::function<void(std::uint32_t cell, StreamData message)> send;  // whole: payload = total bytes
    std::function<void(std::uint64_t step, std::uint64_t steps, double loss)> progress;  // may be empty
    std::function<bool()> stop_requested;                                                // may be empty
    std::function<Duration()> clock;                                                     // empty: no times
};

struct TurnOutput {
    HeldUpdate held;
    Bytes file;  // the segment after the turn; its SHA-256 is held.digest
};

/// How a turn ended here; of an error the node whose doing it was, where it was another's.
struct TurnEnd {
    Result<TurnOutput> output;
    std::string peer{};
};

class TurnWork {
public:
    enum class State { waiting, finished };

    /// `dataset` is read by the client's side only; the trainer and the dataset outlive this.
    ///
    /// errors   invalid: the assignment's texts, a dataset that does not fit, `examples_changed`: not as many examples
    ///          as were declared; corrupt: the segment's bytes; unsupported; overloaded
    static Result<std::unique_ptr<TurnWork>> begin(Trainer& trainer, const Assign& assign, ByteView segment,
                                                   const Dataset* dataset, TurnHooks hooks);
    ~TurnWork();
    TurnWork(const TurnWork&) = delete;
    TurnWork& operator=(const TurnWork&) = delete;

    /// What another cell has sent; advance() takes it up. What is not of this turn's peers is refused.
    ///
    /// errors   invalid `bad_stream_message`: from a cell that the program does not name, or values of no length that
    ///          fits; overloaded `stream_flood`: more messages than any program leaves waiting
    Status deliver(const StreamData& message);
    /// Goes on until the program ends or a message is missing.
    ///
    /// errors   as Trainer::train
    Result<State> advance();
    /// Once, after advance() has said finished.
    Result<TurnOutput> finish();

    /// After an error of advance(): the node whose message could not be used, or "".
    [[nodiscard]] std::string blamed(const Error& error) const;

    [[nodiscard]] const Assign& assign() const;

    struct Parts;
    explicit TurnWork(std::unique_ptr<Parts> parts);

private:
    std::unique_ptr<Parts> parts_;
};

/// Whether this build could do the work of a cell; `bf16` as in check_assignment. errors: as TurnWork::begin, but for
/// examples and segment
Status check_cell(const Assign& assign, const Status& bf16);

}  // namespace causeway::node
