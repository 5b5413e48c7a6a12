// Convolutions by oneDNN's direct primitives. Images are channels last, as everywhere; weights are brought into the
// primitive's own blocked layout at each run, because in training they change at every step: a copy of the weights
// costs little beside a convolution over images, where plain layouts would cost a third or more of its speed.
//
// The layout is what oneDNN chooses for the shape and the instruction set, never a timing. Weight gradients depend on
// the number of threads (docs/performance.md). Thread: the trainer's.
#include "kernels/cpu/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/streaming.h"
#include "kernels/kinds.h"
#include "kernels/window.h"

namespace causeway::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr std::uint64_t alignment = 64;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// oneDNN's descriptions of the op's tensors: images fixed, weights plain and as it likes them.
struct Tensors {
    dnnl::memory::desc in, out, plain, any, bias;
    dnnl::memory::dims strides, before, after;

    explicit Tensors(const Window& w, bool has_bias) {
        constexpr auto f32 = dnnl::memory::data_type::f32;
        in = {{w.batch, w.channels, w.height, w.width}, f32, Tag::nhwc};
        out = {{w.batch, w.outputs, w.out_height, w.out_width}, f32, Tag::nhwc};
        const auto inputs = w.channels / w.groups;
        const dnnl::memory::dims alone{w.outputs, inputs, w.window_height, w.window_width};
        const dnnl::memory::dims grouped{w.groups, w.outputs / w.groups, inputs, w.window_height, w.window_width};
        const auto& weights = w.groups == 1 ? alone : grouped;
        plain = {weights, f32, w.groups == 1 ? Tag::ohwi : Tag::gohwi};
        any = {weights, f32, Tag::any};
        if (has_bias) {
            bias = {{w.outputs}, f32, Tag::x};
        }
        strides = {w.stride, w.stride};
        before = {w.above, w.left};
        after = {w.below, w.right};
    }
};

bool has_bias(const cw_op& op) { return op.kind != CW_CONVOLUTION_BACKWARD_DATA && op.operand_count == 4; }
bool accumulates(const cw_op& op) {
    return op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS && op.integers[0] == CW_ACCUMULATE;
}

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // so that running never allocates
    return attributes;
}

convolution_forward::primitive_desc forward_of(const OnednnEngine& engine, const Tensors& t) {
    constexpr auto training = dnnl::prop_kind::forward_training;
    const auto description =
        t.bias.is_zero()
            ? convolution_forward::desc(training, direct, t.in, t.any, t.out, t.strides, t.before, t.after)
            : convolution_forward::desc(training, direct, t.in, t.any, t.bias, t.out, t.strides, t.before, t.after);
    return {description, user_scratchpad(), engine.engine};
}

/// The three kinds as one plan: images in and out, weights packed before (or unpacked after), scratch.
struct ConvolutionPlan final : cw_plan {
    std::shared_ptr<OnednnEngine> engine;
    cw_op op;
    std::string implementation;
    Primitive primitive;
    Primitive reorder;  // empty where the plain layout is the primitive's own
    int first = -1, second = -1, third = -1, bias = -1, scratchpad = -1;  // arguments, as `point` takes them
    int from = -1, to = -1, reorder_scratchpad = -1;
    std::uint64_t packed_bytes = 0, scratch_bytes = 0, reorder_bytes = 0;

    ConvolutionPlan(std::shared_ptr<OnednnEngine> shared, const cw_op& wanted) : engine(std::move(shared)), op(wanted) {
        const ThreadCount scope(engine->threads);
        const Tensors tensors(window_of(op), has_bias(op) && !accumulates(op));
        switch (op.kind) {
            case CW_CONVOLUTION: prepare_forward(tensors); break;
            case CW_CONVOLUTION_BACKWARD_DATA: prepare_data(tensors); break;
            default: prepare_weights(tensors); break;
        }
    }

    template <class Description>
    void add_scratchpad(const Description& description) {
        implementation = description.impl_info_str();
        scratch_bytes = aligned(description.scratchpad_desc().get_size());
        scratchpad = primitive.add(*engine, DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
    }
    /// Between the plain layout and the primitive's: `adds` where a gradient is added to what is there.
    void add_reorder(const dnnl::memory::desc& source, const dnnl::memory::desc& target, bool adds) {
        auto attributes = user_scratchpad();
        if (adds) {
            dnnl::post_ops adding;
            adding.append_sum();
            attributes.set_post_ops(adding);
        }
        const dnnl::reorder::primitive_desc description(engine->engine, source, engine->engine, target, attributes);
        reorder = Primitive(dnnl::reorder(description));
        from = reorder.add(*engine, DNNL_ARG_FROM, source);
        to = reorder.add(*engine, DNNL_ARG_TO, target);
        reorder_bytes = aligned(description.scratchpad_desc().get_size());
        reorder_scratchpad = reorder.add(*engine, DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
    }

    void prepare_forward(const Tensors& t) {
        const auto description = forward_of(*engine, t);
        primitive = Primitive(convolution_forward(description));
        first = primitive.add(*engine, DNNL_ARG_SRC, t.in);
        second = primitive.add(*engine, DNNL_ARG_WEIGHTS, description.weights_desc());
        third = primitive.add(*engine, DNNL_ARG_DST, t.out);
        bias = has_bias(op) ? primitive.add(*engine, DNNL_ARG_BIAS, t.bias) : -1;
        add_scratchpad(description);
        pack_into(t.plain, description.weights_desc());
    }
    void prepare_data(const Tensors& t) {
        const convolution_backward_data::primitive_desc description(
            convolution_backward_data::desc(direct, t.in, t.any, t.out, t.strides, t.before, t.after),
            user_scratchpad(), engine->engine, forward_of(*engine, t));
        primitive = Primitive(convolution_backward_data(description));
        first = primitive.add(*engine, DNNL_ARG_DIFF_DST, t.out);
        second = primitive.add(*engine, DNNL_ARG_WEIGHTS, description.weights_desc());
        third = primitive.add(*engine, DNNL_ARG_DIFF_SRC, t.in);
        add_scratchpad(description);
        pack_into(t.plain, description.weights_desc());
    }
    void prepare_weights(const Tensors& t) {
        const auto wanted =
            t.bias.is_zero()
                ? convolution_backward_weights::desc(direct, t.in, t.any, t.out, t.strides, t.before, t.after)
                : convolution_backward_weights::desc(direct, t.in, t.any, t.bias, t.out, t.strides, t.before, t.after);
        const convolution_backward_weights::primitive_desc description(wanted, user_scratchpad(), engine->engine,
                                                                       forward_of(*engine, t));
        primitive = Primitive(convolution_backward_weights(description));
        first = primitive.add(*engine, DNNL_ARG_DIFF_DST, t.out);
        second = primitive.add(*engine, DNNL_ARG_SRC, t.in);
        third = primitive.add(*engine, DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc());
        bias = t.bias.is_zero() ? -1 : primitive.add(*engine, DNNL_ARG_DIFF_BIAS, t.bias);
        add_scratchpad(description);
        if (description.diff_weights_desc() != t.plain || accumulates(op)) {
            packed_bytes = aligned(description.diff_weights_desc().get_size());
            add_reorder(description.diff_weights_desc(), t.plain, accumulates(op));
        }
    }
    void pack_into(const dnnl::memory::desc& plain, const dnnl::memory::desc& packed) {
        if (plain != packed) {
            packed_bytes = aligned(packed.get_size());
            add_reorder(plain, packed, false);
        }
    }

    cw_plan_size size() const override { return {packed_bytes + scratch_bytes + reorder_bytes, 0}; }
    cw_status run(const cw_run& run, cw_error* error) override;
    bool reorder_weights(void* source, void* target, void* scratch);
    void run_bias(const cw_run& run) const;
};

bool ConvolutionPlan::reorder_weights(void* source, void* target, void* scratch) {
    reorder.point(from, source);
    reorder.point(to, target);
    reorder.point(reorder_scratchpad, scratch);
    return reorder.execute(*engine) == dnnl_success;
}

/// Gradients of a bias that are added to what is there: the primitive can only set them.
void ConvolutionPlan::run_bias(const cw_run& run) const {
    const auto* dy = run.views[0].dims;
    const auto columns = static_cast<std::size_t>(dy[3]);
    column_sums(operand<const float>(run, 0), {static_cast<std::size_t>(dy[0] * dy[1] * dy[2]), columns, 0, columns},
                static_cast<cw_write>(op.integers[0]), operand<float>(run, 3));
}

cw_status ConvolutionPlan::run(const cw_run& run, cw_error* error) {
    const ThreadCount scope(engine->threads);
    const bool of_weights = op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS;
    auto* packed = static_cast<std::byte*>(run.workspace);
    auto* scratch = packed + packed_bytes;
    const int image = of_weights || !has_bias(op) ? 2 : 3;  // the operand that is written
    bool done = true;
    primitive.point(first, run.views[0].data);
    primitive.point(second, run.views[1].data);
    primitive.point(third, run.views[image].data);
    primitive.point(scratchpad, scratch);
    if (bias >= 0) {
        primitive.point(bias, run.views[of_weights ? 3 : 2].data);
    }
    if (reorder && !of_weights) {
        primitive.point(second, packed);
        done = reorder_weights(run.views[1].data, packed, scratch + scratch_bytes);
    } else if (reorder) {
        primitive.point(third, packed);
    }
    done = done && primitive.execute(*engine) == dnnl_success;
    if (reorder && of_weights) {
        done = done && reorder_weights(packed, run.views[2].data, scratch + scratch_bytes);
    }
    if (accumulates(op) && op.operand_count == 4) {
        run_bias(run);
    }
    return done ? CW_OK : fail_with(error, CW_FAILED, "oneDNN's convolution failed");
}

/// No images: gradients of weights are zeros, and everything else is empty.
void run_empty(const cw_op& op, const cw_run& run) {
    for (std::int32_t k = 2; op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS && k < op.operand_count; ++k) {
        std::fill_n(operand<float>(run, k), accumulates(op) ? 0 : element_count(run.views[k]), 0.0f);
    }
}

}  // namespace

cw_status prepare_convolution(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op,
                              std::unique_ptr<cw_plan>* plan, cw_error* error) {
    if (window_of(op).batch == 0) {
        return prepare_kernel(op, run_empty, plan, error);
    }
    *plan = std::make_unique<ConvolutionPlan>(engine, op);
    return CW_OK;
}

std::string convolution_implementation(const cw_plan& plan) {
    const auto* convolution = dynamic_cast<const ConvolutionPlan*>(&plan);
    return convolution == nullptr ? std::string{} : convolution->implementation;
}

}  // namespace causeway::cpu
