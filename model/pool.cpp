// The plans of pools. A global mean is a pool whose window is the image, and its output a row of features.
#include "model/pool.h"

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr WindowOptions defaults{.stride = 0, .padding = WindowOptions::Padding::valid};  // stride: the window's size

class PoolPlan : public LayerPlan {
public:
    PoolPlan(PoolRule rule, Plan* forward, Plan* backward) : rule_(rule), forward_(forward), backward_(backward) {}

    Status forward(const LayerForward& call) override { return forward_->run({call.inputs[0], call.outputs[0]}); }

    Status backward(const LayerBackward& call) override {
        if (call.input_gradients.empty()) {
            return {};
        }
        const auto& dy = call.output_gradients[0];
        const auto& dx = call.input_gradients[0];
        return rule_ == PoolRule::largest
                   ? backward_->run({call.forward.inputs[0], call.forward.outputs[0], dy, dx})
                   : backward_->run({dy, dx});
    }

private:
    PoolRule rule_;
    Plan* forward_;
    Plan* backward_;
};

Result<std::unique_ptr<LayerPlan>> prepare_pool(PlanCache& plans, PoolRule rule, const Window& window) {
    const bool largest = rule == PoolRule::largest;
    TRY_ASSIGN(Plan * forward, plans.get(largest ? ops::maxpool(window) : ops::avgpool(window)));
    TRY_ASSIGN(Plan * backward, plans.get(largest ? ops::maxpool_backward(window) : ops::avgpool_backward(window)));
    return std::make_unique<PoolPlan>(rule, forward, backward);
}

class Pool : public Layer {
public:
    Pool(std::string_view kind, PoolRule rule, const WindowOptions& options)
        : kind_(kind), rule_(rule), options_(options) {}

    std::string_view kind() const override { return kind_; }
    std::string text() const override { return fmt::format("{} {}", kind_, window_text(options_, defaults)); }

    bool backward_reads_output() const override { return rule_ == PoolRule::largest; }
    Result<Boundary> infer(const Boundary& input) const override {
        TRY_ASSIGN(const Window window, window(input, 1));
        if (options_.pad >= std::min(options_.height, options_.width)) {
            return fail(ErrorKind::invalid, "bad_layer",
                        fmt::format("{}'s padding must be smaller than its window", kind_));
        }
        return Boundary{{DType::f32, {window.out_height, window.out_width, window.channels}}};
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose) const override {
        TRY_ASSIGN(const Window window, window(input, rows));
        return prepare_pool(plans, rule_, window);
    }
    Result<std::unique_ptr<LayerPlan>> prepare_fused(PlanCache& plans, const Layer& before, const Boundary& input,
                                                     std::int64_t rows) const override {
        TRY_ASSIGN(const Window window, window(input, rows));
        if (rule_ != PoolRule::largest || before.kind() != "relu" || !tiles(window)) {
            return std::unique_ptr<LayerPlan>();
        }
        const auto forward = plans.get(ops::relu_maxpool(window));
        const auto backward = plans.get(ops::relu_maxpool_backward(window));
        if (!forward && forward.error().kind == ErrorKind::unsupported) {
            return std::unique_ptr<LayerPlan>();
        }
        TRY(forward);
        TRY(backward);
        // The inputs are relu's, the outputs the pool's; of both kinds the operands are a pool's.
        return std::make_unique<PoolPlan>(rule_, *forward, *backward);
    }

private:
    Result<Window> window(const Boundary& input, std::int64_t rows) const {
        const bool image = input.size() == 1 && input.front().shape.size() == 3;
        return window_on(kind_, input, options_, image ? input.front().shape[2] : 1, rows);
    }

    std::string_view kind_;  // of a registry entry: lives as long as the process
    PoolRule rule_;
    WindowOptions options_;
};

class GlobalMean : public Layer {
public:
    explicit GlobalMean(std::string_view kind) : kind_(kind) {}

    std::string_view kind() const override { return kind_; }
    std::string text() const override { return std::string(kind_); }

    Result<Boundary> infer(const Boundary& input) const override {
        TRY_ASSIGN(const Window window, window(input, 1));
        return Boundary{{DType::f32, {window.channels}}};
    }
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary& input, std::int64_t rows,
                                               Purpose) const override {
        TRY_ASSIGN(const Window window, window(input, rows));
        return prepare_pool(plans, PoolRule::mean, window);
    }

private:
    Result<Window> window(const Boundary& input, std::int64_t rows) const {
        const bool image = input.size() == 1 && input.front().shape.size() == 3;
        const Shape shape = image ? input.front().shape : Shape{1, 1, 1};
        const WindowOptions whole{.height = shape[0], .width = shape[1], .padding = WindowOptions::Padding::valid};
        return window_on(kind_, input, whole, shape[2], rows);
    }

    std::string_view kind_;
};

}  // namespace

Result<std::shared_ptr<const Layer>> parse_pool(const LayerKind& kind, PoolRule rule,
                                                std::span<const std::string> arguments) {
    WindowOptions options = defaults;
    TRY(parse_window(kind, arguments, "stride valid pad", options));
    return std::make_shared<const Pool>(kind.name, rule, options);
}

std::shared_ptr<const Layer> make_global_mean(std::string_view kind) {
    return std::make_shared<const GlobalMean>(kind);
}

}  // namespace causeway
