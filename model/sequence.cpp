// Offsets into one piece of scratch and one of temporary memory, handed out once; a run only forms operands.
#include "model/sequence.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::uint64_t aligned_sequence(std::uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

Operand floats(const void* scratch, std::uint64_t offset, std::uint64_t elements) {
    return {static_cast<const std::byte*>(scratch) + offset, elements, CW_F32};
}

}  // namespace

Result<std::vector<Boundary>> Sequence::boundaries(const Boundary& input) const {
    std::vector<Boundary> list{input};
    for (const Part& part : parts_) {
        TRY_ASSIGN(Boundary output, part.layer->infer(list.back()));
        list.push_back(std::move(output));
    }
    return list;
}

std::vector<ParameterSpec> Sequence::parameters(const Boundary& input) const {
    const auto inputs = boundaries(input);
    ASSERT(inputs.has_value());
    std::vector<ParameterSpec> list;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        for (ParameterSpec& parameter : parts_[i].layer->parameters((*inputs)[i])) {
            parameter.name = parts_[i].name + "." + parameter.name;
            list.push_back(std::move(parameter));
        }
    }
    return list;
}

Result<SequencePlan> SequencePlan::make(PlanCache& plans, const Sequence& sequence, const Boundary& input,
                                        std::int64_t rows, Purpose purpose) {
    TRY_ASSIGN(const auto boundaries, sequence.boundaries(input));
    SequencePlan made;
    for (std::size_t i = 0; i < sequence.parts().size(); ++i) {
        const Layer& layer = *sequence.parts()[i].layer;
        Step step;
        TRY_ASSIGN(step.plan, layer.prepare(plans, boundaries[i], rows, purpose));
        for (const ParameterSpec& parameter : layer.parameters(boundaries[i])) {
            ++step.parameters;
            step.gradients += parameter.arena == ArenaKind::trainable ? 1 : 0;
        }
        step.elements = static_cast<std::uint64_t>(batch_elements(boundaries[i + 1], rows));
        step.scratch = made.scratch_bytes_;
        made.scratch_bytes_ += aligned_sequence(step.plan->scratch_bytes());
        made.turns_ = std::max(made.turns_, aligned_sequence(step.plan->temporary_bytes()));
        const std::uint64_t bytes = aligned_sequence(step.elements * sizeof(float));
        const bool last = i + 1 == sequence.parts().size();  // its output is the caller's
        const bool in_place = i > 0 && !last && overwrites(layer, *sequence.parts()[i - 1].layer);
        step.output = in_place ? made.steps_.back().output : made.scratch_bytes_;
        made.scratch_bytes_ += last || in_place ? 0 : bytes;
        made.turn_bytes_ = std::max(made.turn_bytes_, bytes);
        made.parameters_ += step.parameters;
        made.gradients_ += step.gradients;
        made.steps_.push_back(std::move(step));
    }
    made.training_ = purpose == Purpose::training && made.steps_.size() > 1;
    return made;
}

Operand SequencePlan::value(const LayerForward& call, std::size_t boundary) const {
    if (boundary == 0) {
        return call.inputs[0];
    }
    const Step& step = steps_[boundary - 1];
    return boundary == steps_.size() ? call.outputs[0] : floats(call.scratch, step.output, step.elements);
}

Operand SequencePlan::slope(const LayerForward& call, std::size_t boundary) const {
    return floats(call.temporary, turns_ + boundary % 2 * turn_bytes_, steps_[boundary - 1].elements);
}

Status SequencePlan::forward(const LayerForward& call) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Operand input = value(call, i);
        const Operand output = value(call, i + 1);
        LayerForward inner = call;
        inner.inputs = std::span(&input, 1);
        inner.outputs = std::span(&output, 1);
        inner.parameters = call.parameters.subspan(first, steps_[i].parameters);
        inner.scratch = static_cast<std::byte*>(call.scratch) + steps_[i].scratch;
        TRY(steps_[i].plan->forward(inner));
        first += steps_[i].parameters;
    }
    return {};
}

Status SequencePlan::backward(const LayerBackward& call) {
    std::size_t end = parameters_;
    std::size_t gradient_end = gradients_;
    for (std::size_t i = steps_.size(); i-- > 0;) {
        const Step& step = steps_[i];
        const Operand input = value(call.forward, i);
        const Operand output = value(call.forward, i + 1);
        const Operand dy = i + 1 == steps_.size() ? call.output_gradients[0] : slope(call.forward, i + 1);
        const Operand dx = i == 0 ? dy : slope(call.forward, i);
        LayerBackward inner = call;
        inner.forward.inputs = std::span(&input, 1);
        inner.forward.outputs = std::span(&output, 1);
        end -= step.parameters;
        gradient_end -= step.gradients;
        inner.forward.parameters = call.forward.parameters.subspan(end, step.parameters);
        inner.forward.scratch = static_cast<std::byte*>(call.forward.scratch) + step.scratch;
        inner.output_gradients = std::span(&dy, 1);
        inner.input_gradients = i == 0 ? call.input_gradients : std::span(&dx, 1);
        inner.parameter_gradients = call.parameter_gradients.subspan(gradient_end, step.gradients);
        TRY(step.plan->backward(inner));
    }
    return {};
}

}  // namespace causeway
