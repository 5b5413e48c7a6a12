// conv N HxW: N filters over an image, cross-correlation plus bias, as PyTorch's Conv2d but for the layouts.
//
// Images are [height, width, channels], weights [N, height, width, channels / groups]. Stride 1, `same` padding and a
// bias unless the text says otherwise.
#include <cmath>

#include <fmt/format.h>

#include "model/image.h"
#include "model/packed_weights.h"

namespace causeway {
extern const LayerKind conv_layer;
namespace {

constexpr std::int64_t max_conv_filters = std::int64_t{1} << 20;

class ConvPlan : public LayerPlan {
public:
    ConvPlan(PlanCache& plans, const Window& window, ops::Bias bias) : plans_(plans), window_(window), bias_(bias) {}

    Status prepare(Purpose purpose) {
        TRY_ASSIGN(forward_, plans_.get(ops::convolution(window_, bias_)));
        if (purpose == Purpose::training) {
            TRY_ASSIGN(backward_data_, plans_.get(ops::convolution_backward_data(window_)));
            TRY_ASSIGN(backward_weights_,
                       plans_.get(ops::convolution_backward_weights(window_, ops::Write::overwrite, bias_)));
        }
        return {};
    }

    Status forward(const LayerForward& call) override {
        const auto& p = call.parameters;
        TRY_ASSIGN(const void* packed, forward_weights_.at(plans_.device(), *forward_, p[0], call.version));
        return bias_ == ops::Bias::present ? forward_->run_packed({call.inputs[0], p[0], p[1], call.outputs[0]}, packed)
                                           : forward_->run_packed({call.inputs[0], p[0], call.outputs[0]}, packed);
    }

    Status backward(const LayerBackward& call) override {
        Plan* weights = backward_weights_;
        if (call.write == ops::Write::accumulate) {  // rare (microbatches): its plan is made at first use
            TRY_ASSIGN(weights, plans_.get(ops::convolution_backward_weights(window_, call.write, bias_)));
        }
        const auto& dy = call.output_gradients[0];
        const auto& x = call.forward.inputs[0];
        if (bias_ == ops::Bias::present) {
            TRY(weights->run({dy, x, call.parameter_gradients[0], call.parameter_gradients[1]}));
        } else {
            TRY(weights->run({dy, x, call.parameter_gradients[0]}));
        }
        if (call.input_gradients.empty()) {
            return {};
        }
        const auto& w = call.forward.parameters[0];
        TRY_ASSIGN(const void* packed, data_weights_.at(plans_.device(), *backward_data_, w, call.forward.version));
        return backward_data_->run_packed({dy, w, call.input_gradients[0]}, packed);
    }

private:
    PlanCache& plans_;
    Window window_;
    ops::Bias bias_;
    Plan* forward_ = nullptr;
    Plan* backward_data_ = nullptr;
    Plan* backward_weights_ = nullptr;
    PackedWeights forward_weights_, data_weights_;
};

class Conv : public Layer {
public:
    Conv(std::int64_t filters, const WindowOptions& options) : filters_(filters), options_(options) {}

    std::string_view kind() const override { return "conv"; }
    std::string text() const override { return fmt::format("conv {} {}", filters_, window_text(options_, {})); }

    bool backward_reads_output() const override { return false; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY_ASSIGN(const Window window, window_on(kind(), input, options_, filters_, 1));
        return Boundary{{DType::f32, {window.out_height, window.out_width, filters_}}};
    }

    /// PyTorch's default: U(-1/sqrt(n), 1/sqrt(n)) for weight and bias, n the inputs of one output.
    std::vector<ParameterSpec> parameters(const Boundary& input) const override {
        const std::int64_t channels = input.front().shape[2] / options_.groups;
        const auto inputs = static_cast<double>(options_.height * options_.width * channels);
        const InitRule init{InitRule::Kind::uniform, 1.0 / std::sqrt(inputs)};
        std::vector<ParameterSpec> list{
            {"weight", {filters_, options_.height, options_.width, channels}, ArenaKind::trainable, init}};
        if (options_.bias) {
            list.push_back({"bias", {filters_}, ArenaKind::trainable, init});
        }
        return list;
    }

    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose purpose) const override {
        TRY_ASSIGN(const Window window, window_on(kind(), input, options_, filters_, rows));
        auto plan =
            std::make_unique<ConvPlan>(plans, window, options_.bias ? ops::Bias::present : ops::Bias::absent);
        TRY(plan->prepare(purpose));
        return plan;
    }

private:
    std::int64_t filters_;
    WindowOptions options_;
};

Result<std::shared_ptr<const Layer>> parse_conv(std::span<const std::string> arguments) {
    if (arguments.size() < 2) {
        return fail(ErrorKind::invalid, "bad_layer",
                    fmt::format("conv needs filters and a window: write \"{}\"", conv_layer.form));
    }
    TRY_ASSIGN(const auto filters, parse_extent(conv_layer, arguments[0], 1, max_conv_filters));
    WindowOptions options;
    TRY(parse_window(conv_layer, arguments.subspan(1), "stride same valid pad groups nobias", options));
    return std::make_shared<const Conv>(filters, options);
}

}  // namespace

const LayerKind conv_layer{"conv", "conv FILTERS 3x3 [stride N] [valid|pad N] [groups N] [nobias]", parse_conv};

}  // namespace causeway
