// flatten: an example of any shape becomes one row of features. Row-major memory stays as it is, so nothing is copied.
#include "model/layer.h"

namespace causeway {
extern const LayerKind flatten_layer;
namespace {

/// A view is never run.
class FlattenPlan : public LayerPlan {
public:
    Status forward(const LayerForward&) override { return {}; }
    Status backward(const LayerBackward&) override { return {}; }
};

class Flatten : public Layer {
public:
    std::string_view kind() const override { return "flatten"; }
    std::string text() const override { return "flatten"; }
    bool is_view() const override { return true; }

    Result<Boundary> infer(const Boundary& input) const override {
        TRY(expect_one_float_tensor(kind(), input));
        return Boundary{{DType::f32, {element_count(input.front().shape)}}};
    }

    Result<std::unique_ptr<LayerPlan>> prepare(PlanCache&, const Boundary&, std::int64_t, Purpose) const override {
        return std::make_unique<FlattenPlan>();
    }
};

Result<std::shared_ptr<const Layer>> parse_flatten(std::span<const std::string> arguments) {
    TRY(expect_arguments(flatten_layer, arguments, 0));
    return std::make_shared<const Flatten>();
}

}  // namespace

const LayerKind flatten_layer{"flatten", "flatten", parse_flatten};

}  // namespace causeway
