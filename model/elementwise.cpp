// The one implementation behind relu and gelu.
#include "model/elementwise.h"

namespace causeway {
namespace {

class ElementwisePlan : public LayerPlan {
public:
    ElementwisePlan(Plan* forward, Plan* backward) : forward_(forward), backward_(backward) {}

    Status forward(const LayerForward& call) override {
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            TRY(forward_->run({call.inputs[i], call.outputs[i]}));
        }
        return {};
    }

    Status backward(const LayerBackward& call) override {
        for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
            TRY(backward_->run({call.forward.inputs[i], call.output_gradients[i], call.input_gradients[i]}));
        }
        return {};
    }

private:
    Plan* forward_;
    Plan* backward_;
};

class Elementwise : public Layer {
public:
    Elementwise(std::string_view kind, ElementwiseOp forward, ElementwiseOp backward, BackwardTakes takes)
        : kind_(kind), forward_(forward), backward_(backward), takes_(takes) {}

    std::string_view kind() const override { return kind_; }
    std::string text() const override { return std::string(kind_); }
    bool runs_in_place() const override { return takes_ == BackwardTakes::input_or_output; }
    bool backward_reads_output() const override { return runs_in_place(); }

    Result<Boundary> infer(const Boundary& input) const override {
        for (const BoundaryTensor& tensor : input) {
            TRY(expect_one_float_tensor(kind_, {tensor}));
        }
        return input;
    }

    /// Streaming kinds take any length, so all batch sizes share two plans.
    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache& plans, const Boundary&, std::int64_t,
                                               Purpose) const override {
        TRY_ASSIGN(Plan * forward, plans.get(forward_(ops::any)));
        TRY_ASSIGN(Plan * backward, plans.get(backward_(ops::any)));
        return std::make_unique<ElementwisePlan>(forward, backward);
    }

private:
    std::string_view kind_;  // of a registry entry: lives as long as the process
    ElementwiseOp forward_;
    ElementwiseOp backward_;
    BackwardTakes takes_;
};

}  // namespace

std::shared_ptr<const Layer> make_elementwise(std::string_view kind, ElementwiseOp forward, ElementwiseOp backward,
                                              BackwardTakes takes) {
    return std::make_shared<const Elementwise>(kind, forward, backward, takes);
}

}  // namespace causeway
