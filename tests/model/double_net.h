// A network written a second time, in double and by definition: what the engine's gradients are compared with.
//
// It shares nothing with the engine but the texts of layers and losses and the order of the parameters. In double a
// central difference is good to about 1e-9, so a gradient in f32 is held parameter by parameter, kinks included: a relu
// or a window's largest place almost never changes within 1e-6. Dropout is left out: its mask is the engine's own draw.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/model/fixtures.h"

namespace causeway {

class DoubleNet {
public:
    /// Canonical texts, as Layer::text() gives them.
    DoubleNet(std::vector<std::string> layers, Shape input, std::string loss)
        : layers_(std::move(layers)), input_(std::move(input)), loss_(std::move(loss)) {}

    /// The mean loss over all examples, in training (batch norm by the batch's statistics).
    [[nodiscard]] double loss(const std::vector<double>& theta, const MemoryIo& io) const;
    /// The slope along each parameter.
    [[nodiscard]] std::vector<double> slopes(std::vector<double> theta, const MemoryIo& io) const;

private:
    std::vector<std::string> layers_;
    Shape input_;
    std::string loss_;
};

}  // namespace causeway
