// What the coordinator computes for an experiment besides sums: its first model and the evaluation of later ones.
//
// The daemon and the simulator both call this; it touches no file, socket or clock. Thread: the trainer's for evaluate.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "configs/evaluate.h"
#include "configs/experiment.h"
#include "coordinator/effects.h"
#include "coordinator/round_work.h"
#include "coordinator/segment_work.h"

namespace causeway {

/// An experiment's file, parsed into what the jobs need.
struct ExperimentSetup {
    Experiment experiment;
    Chain chain;
    RoundRules rules;
    std::optional<SegmentRules> split{};  // of regimes whose model is cut
    std::string file{};                   // of which it was read
};

/// From the canonical text that the store keeps. errors: invalid: a file of another version
Result<ExperimentSetup> read_setup(const SaveExperiment& saved);

/// The bytes of the file that its owner named. errors: not_found, io, overloaded
using ReadNamedModel = std::function<Result<Bytes>(const std::string& name)>;

/// The first model as canonical safetensors bytes: from the seed, or from the file that `init_from` names.
///
/// errors   io `model_unavailable`, `model_changed`: of the file; put right, the job succeeds when it is tried again
Result<Bytes> make_first_model(const ExperimentSetup& setup, const ReadNamedModel& read_named);

/// The input of a round: what its members start from; of round 0 no model. errors: corrupt: not this experiment's model
Result<std::shared_ptr<const RoundInput>> make_round_input(const ExperimentSetup& setup, const OpenRound& job,
                                                           ByteView model);

/// For the machine: loss and accuracy by themselves, the rest as detail.
ModelEvaluated evaluated(ExperimentId experiment, std::uint32_t round, const Figures& figures);

/// errors   invalid: the held-out set does not fit the model; corrupt: the model's bytes
Result<Figures> evaluate_model(Trainer& trainer, const ExperimentSetup& setup, ByteView model,
                                  const Dataset& held_out);

}  // namespace causeway
