// dense N: y = x * w^T + b, w [N, inputs] and b [N] as PyTorch's Linear has them, applied to the last dimension.
//
// An input of [T, inputs] (a sequence) is worked on as T rows per example. Other ranks are refused: an image that meets
// a dense layer nearly always lacks a `flatten`.
#include <cmath>

#include <fmt/format.h>

#include "model/layer.h"
#include "model/packed_weights.h"

namespace causeway {
extern const LayerKind dense_layer;
namespace {

constexpr std::int64_t max_units = std::int64_t{1} << 24;

class DensePlan : public LayerPlan {
public:
    DensePlan(PlanCache& plans, const ops::MatmulShape& shape) : plans_(plans), shape_(shape) {}

    Status prepare(Purpose purpose) {
        TRY_ASSIGN(forward_, plans_.get(ops::matmul(shape_)));
        if (purpose == Purpose::training) {
            TRY_ASSIGN(backward_data_, plans_.get(ops::matmul_backward_data(shape_)));
            TRY_ASSIGN(backward_weights_, plans_.get(ops::matmul_backward_weights(shape_)));
        }
        return {};
    }

    Status forward(const LayerForward& call) override {
        TRY_ASSIGN(const void* packed,
                   forward_weights_.at(plans_.device(), *forward_, call.parameters[0], call.version));
        return forward_->run_packed({call.inputs[0], call.parameters[0], call.parameters[1], call.outputs[0]}, packed);
    }

    Status backward(const LayerBackward& call) override {
        const LayerForward& seen = call.forward;
        TRY_ASSIGN(Plan * weights, weights_plan(call.write));
        TRY(weights->run(
            {call.output_gradients[0], seen.inputs[0], call.parameter_gradients[0], call.parameter_gradients[1]}));
        if (call.input_gradients.empty()) {
            return {};
        }
        TRY_ASSIGN(const void* packed,
                   data_weights_.at(plans_.device(), *backward_data_, seen.parameters[0], seen.version));
        return backward_data_->run_packed({call.output_gradients[0], seen.parameters[0], call.input_gradients[0]},
                                          packed);
    }

private:
    /// Adding is rare (microbatches): its plan is made at first use.
    Result<Plan*> weights_plan(ops::Write write) {
        if (write == ops::Write::overwrite) {
            return backward_weights_;
        }
        return plans_.get(ops::matmul_backward_weights(shape_, write));
    }

    PlanCache& plans_;
    ops::MatmulShape shape_;
    Plan* forward_ = nullptr;
    Plan* backward_data_ = nullptr;
    Plan* backward_weights_ = nullptr;
    PackedWeights forward_weights_, data_weights_;
};

class Dense : public Layer {
public:
    explicit Dense(std::int64_t units) : units_(units) {}

    std::string_view kind() const override { return "dense"; }
    std::string text() const override { return fmt::format("dense {}", units_); }

    bool backward_reads_output() const override { return false; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY(expect_one_float_tensor(kind(), input));
        Shape shape = input.front().shape;
        if (shape.empty() || shape.size() > 2) {
            return fail(ErrorKind::invalid, "bad_layer",
                        fmt::format("dense takes [features] or [time, features], not {}; put \"flatten\" before it",
                                    to_string(shape)));
        }
        shape.back() = units_;
        return Boundary{{DType::f32, shape}};
    }

    /// PyTorch's default for Linear: Kaiming-uniform with a = sqrt(5), which is U(-1/sqrt(inputs), 1/sqrt(inputs)) for
    /// the weight, and the same bound for the bias.
    std::vector<ParameterSpec> parameters(const Boundary& input) const override {
        const std::int64_t inputs = input.front().shape.back();
        const InitRule init{InitRule::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(inputs))};
        return {{"weight", {units_, inputs}, ArenaKind::trainable, init},
                {"bias", {units_}, ArenaKind::trainable, init}};
    }

    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose purpose) const override {
        const std::int64_t inputs = input.front().shape.back();
        auto plan = std::make_unique<DensePlan>(
            plans,
            ops::MatmulShape{.batch = batch_elements(input, rows) / inputs, .inputs = inputs, .outputs = units_});
        TRY(plan->prepare(purpose));
        return plan;
    }

private:
    std::int64_t units_;
};

Result<std::shared_ptr<const Layer>> parse_dense(std::span<const std::string> arguments) {
    TRY(expect_arguments(dense_layer, arguments, 1));
    TRY_ASSIGN(const auto units, parse_extent(dense_layer, arguments[0], 1, max_units));
    return std::make_shared<const Dense>(units);
}

}  // namespace

const LayerKind dense_layer{"dense", "dense UNITS", parse_dense};

}  // namespace causeway
