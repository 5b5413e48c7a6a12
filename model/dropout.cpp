// dropout P: in training each element is 0 with probability P, and the others are scaled by 1 / (1 - P).
//
// Which ones is a function of (seed, round, node, step, layer, row of the batch, element), so neither a cut nor
// microbatches nor a second forward (recomputation) change it, and the backward pass draws the same numbers again.
// Source: Srivastava et al. 2014.
#include <charconv>

#include <fmt/format.h>

#include "common/random.h"
#include "model/layer.h"

namespace causeway {
extern const LayerKind dropout_layer;
namespace {

class DropoutPlan : public LayerPlan {
public:
    DropoutPlan(double rate, std::int64_t example, Plan* drop, Plan* copy)
        : rate_(rate), example_(example), drop_(drop), copy_(copy) {}

    Status forward(const LayerForward& call) override {
        return call.purpose == Purpose::training ? drop(call, call.inputs[0], call.outputs[0])
                                                 : copy_->run({call.inputs[0], call.outputs[0]});
    }
    Status backward(const LayerBackward& call) override {
        return call.input_gradients.empty() ? Status{}
                                            : drop(call.forward, call.output_gradients[0], call.input_gradients[0]);
    }

private:
    Status drop(const LayerForward& call, const Operand& from, const Operand& to) {
        const Draws& draws = call.draws;
        RandomStream key({.seed = draws.seed, .purpose = "dropout", .round = draws.round, .node = draws.node,
                          .step = draws.step, .layer = call.layer});
        const double low = key.next_u32();
        const double high = key.next_u32();
        const auto first = static_cast<double>(draws.first_row) * static_cast<double>(example_);
        return drop_->run({from, to}, {rate_, low, high, first});
    }

    double rate_;
    std::int64_t example_;  // elements
    Plan* drop_;
    Plan* copy_;
};

class Dropout : public Layer {
public:
    explicit Dropout(double rate) : rate_(rate) {}

    std::string_view kind() const override { return "dropout"; }
    std::string text() const override { return fmt::format("dropout {}", rate_); }

    bool backward_reads_output() const override { return false; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY(expect_one_float_tensor(kind(), input));
        return input;
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t,
                                               Purpose) const override {
        TRY_ASSIGN(Plan * drop, plans.get(ops::dropout()));
        TRY_ASSIGN(Plan * copy, plans.get(ops::copy()));
        return std::make_unique<DropoutPlan>(rate_, batch_elements(input, 1), drop, copy);
    }

private:
    double rate_;
};

Result<std::shared_ptr<const Layer>> parse_dropout(std::span<const std::string> arguments) {
    TRY(expect_arguments(dropout_layer, arguments, 1));
    const std::string& text = arguments[0];
    double rate = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
    if (error != std::errc{} || end != text.data() + text.size() || !(rate >= 0 && rate < 1)) {
        return fail(ErrorKind::invalid, "bad_layer",
                    fmt::format("\"{}\" is not a share from 0 to below 1: write \"dropout 0.5\"", text.substr(0, 40)));
    }
    return std::make_shared<const Dropout>(rate + 0.0);  // -0 becomes 0
}

}  // namespace

const LayerKind dropout_layer{"dropout", "dropout SHARE", parse_dropout};

}  // namespace causeway
