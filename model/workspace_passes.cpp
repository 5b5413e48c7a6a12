// One layer after another, forward and backward, and pairs of layers in one where the device can.
//
// A fused pair leaves the bits of its two layers, at the boundary between them too, so who cuts the chain there or
// looks at it sees no difference. Thread: the trainer's.
#include "model/workspace.h"

namespace causeway {

LayerForward Workspace::forward_call(std::size_t layer, Pass pass) const {
    return {.inputs = now_->values[layer],
            .outputs = now_->values[layer + 1],
            .parameters = layer_parameters_[layer],
            .scratch = scratch_[plan_.scratch[layer]].data(),
            .temporary = temporary_.data(),
            .version = values_version_,
            .purpose = purpose_,
            .pass = pass,
            .layer = static_cast<std::uint32_t>(layer),
            .draws = draws_};
}

Status Workspace::forward(LayerInterval layers, Purpose purpose, const Draws& draws) {
    purpose_ = purpose;
    draws_ = draws;
    for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
        seen_[layer] = true;
        if (runs_fused(layer, layers.end)) {
            TRY(forward_fused(layer));
            seen_[++layer] = true;
        } else if (!chain_.layer(layer).is_view()) {
            TRY(now_->layers[layer]->forward(forward_call(layer)));
        }
    }
    return {};
}

Status Workspace::recompute(LayerInterval layers) {
    for (std::size_t layer = layers.begin; layer < layers.end; ++layer) {
        if (!chain_.layer(layer).is_view()) {
            TRY(now_->layers[layer]->forward(forward_call(layer, Pass::again)));
        }
    }
    return {};
}

Status Workspace::backward(LayerInterval layers) {
    for (std::size_t layer = layers.end; layer-- > layers.begin;) {
        if (now_->gradients[layer + 1].empty() || chain_.layer(layer).is_view()) {
            continue;  // nothing below has parameters, or the gradient is already in place
        }
        if (layer > layers.begin && runs_fused(layer - 1, layers.end) && !now_->gradients[layer - 1].empty()) {
            TRY(backward_fused(--layer));
            continue;
        }
        const LayerBackward call{.forward = forward_call(layer),
                                 .output_gradients = now_->gradients[layer + 1],
                                 .input_gradients = now_->gradients[layer],
                                 .parameter_gradients = layer_gradients_[layer],
                                 .write = has_gradient_[layer] ? ops::Write::accumulate : ops::Write::overwrite};
        TRY(now_->layers[layer]->backward(call));
        has_gradient_[layer] = true;
    }
    return {};
}

/// Only behind a layer that runs in place: the boundary between the two is then the first one's memory.
Status Workspace::prepare_fused(ForRows& made, std::int64_t rows) {
    made.fused.resize(chain_.layer_count());
    for (std::size_t layer = 0; layer + 1 < chain_.layer_count(); ++layer) {
        const bool in_place = chain_.layer(layer).runs_in_place() && plan_.memory[layer] == plan_.memory[layer + 1];
        if (in_place && segment_.holds(layer) && segment_.holds(layer + 1)) {
            TRY_ASSIGN(made.fused[layer], chain_.layer(layer + 1).prepare_fused(plans(), chain_.layer(layer),
                                                                               chain_.boundary(layer), rows));
        }
    }
    return {};
}

/// Both of the pair are asked for.
bool Workspace::runs_fused(std::size_t layer, std::size_t end) const {
    return layer + 1 < end && now_->fused[layer] != nullptr;
}

Status Workspace::forward_fused(std::size_t layer) {
    LayerForward call = forward_call(layer);
    call.outputs = now_->values[layer + 2];
    return now_->fused[layer]->forward(call);
}

Status Workspace::backward_fused(std::size_t layer) {
    LayerForward call = forward_call(layer);
    call.outputs = now_->values[layer + 2];
    TRY(now_->fused[layer]->backward({.forward = call,
                                      .output_gradients = now_->gradients[layer + 2],
                                      .input_gradients = now_->gradients[layer],
                                      .parameter_gradients = {}}));
    has_gradient_[layer] = has_gradient_[layer + 1] = true;
    return {};
}

}  // namespace causeway
