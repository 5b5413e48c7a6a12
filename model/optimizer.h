// Optimizers by PyTorch's definitions: a text ("sgd learning_rate=0.05 momentum=0.9"), its state, and its step.
//
// To add one: one file that defines `const OptimizerKind NAME_optimizer`, one line in optimizer.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "model/schedule.h"

namespace causeway {

struct OptimizerField {
    std::string_view name;
    double initial;  // when the text does not say
    double least;
    double most;
    enum class Ends { closed, open } ends;  // open: the bounds themselves are refused
    std::string_view doc;
};

struct OptimizerSpec;

/// What holds for a step of any kind: the rate's schedule, a bound on the gradient, and how products are computed.
struct StepRule {
    Schedule schedule;
    double clip_norm = 0;            // of the gradient of all layers together; 0: no bound
    Compute compute = Compute::f32;  // of products; parameters, gradients and moments are f32 always
    bool operator==(const StepRule&) const = default;
};

/// What one step of a range works on, all in device memory: parameters, their gradient, and one array per moment.
struct OptimizerStep {
    Operand parameters;
    Operand gradient;
    std::span<const Operand> moments;
    std::uint64_t step = 1;  // of these parameters, from 1
    double share = 1;        // of the learning rate, by the schedule

    /// The learning rate of this step.
    [[nodiscard]] double rate(const OptimizerSpec& spec) const;
};

/// A registry entry.
struct OptimizerKind {
    std::string_view name;
    std::span<const OptimizerField> fields;
    /// Arrays of the size of the parameters that it keeps; they start as zeros.
    std::size_t (*moments)(const OptimizerSpec& spec);
    Status (*step)(const OptimizerSpec& spec, PlanCache& plans, const OptimizerStep& step);
};

std::span<const OptimizerKind* const> optimizer_kinds();

/// An optimizer with its numbers, one per field of its kind, and what holds for every kind.
struct OptimizerSpec {
    const OptimizerKind* kind = nullptr;
    std::vector<double> values;
    StepRule rule;

    bool operator==(const OptimizerSpec&) const = default;
    /// The value of a field that the kind has.
    [[nodiscard]] double operator[](std::string_view field) const;
};

/// errors   invalid `bad_optimizer`: unknown kind or field (with the nearest name), a number out of bounds; all of them
///          in one message
Result<OptimizerSpec> make_optimizer(std::string_view kind, std::span<const std::pair<std::string, double>> values);
/// Reads the text form: besides the kind's fields `clip_norm=`, `compute=`, `schedule=` and its numbers. Total.
Result<OptimizerSpec> parse_optimizer(std::string_view text);
/// The canonical text, with every field: parse_optimizer(to_text(spec)) == spec, bit for bit.
std::string to_text(const OptimizerSpec& spec);

/// "f32", "bf16", "winograd". errors  invalid `bad_optimizer`
Result<Compute> parse_compute(std::string_view text);

/// What an optimizer carries from step to step. `reset` at a sync is simply a fresh one.
struct OptimizerState {
    std::vector<std::uint64_t> steps;         // per layer of the chain: steps that its parameters have taken
    std::vector<std::vector<float>> moments;  // per moment: a mirror of the trainable arena

    bool operator==(const OptimizerState&) const = default;
    static OptimizerState fresh(const OptimizerSpec& spec, std::size_t layers, std::uint64_t parameters) {
        return {std::vector<std::uint64_t>(layers),
                std::vector<std::vector<float>>(spec.kind->moments(spec), std::vector<float>(parameters))};
    }
};

}  // namespace causeway
