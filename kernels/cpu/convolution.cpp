// Convolutions by oneDNN's direct primitives or, where it is asked for and pays, by its Winograd ones. Images are
// channels last, as everywhere; weights go into the primitive's own blocked layout, at each run or once per version
// (packed): a copy of the weights costs little beside a convolution over images, where plain layouts would cost a third
// or more of its speed.
//
// The layout is what oneDNN chooses for the shape and the instruction set, never a timing. Weight gradients depend on
// the number of threads (docs/performance.md). Winograd's code takes images in blocks of 16 channels; turning them from
// and to channels last costs a few hundredths of what it saves, a tenth for the largest. Thread: the trainer's.
#include "kernels/cpu/convolution.h"

#include <algorithm>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/product.h"
#include "kernels/kinds.h"
#include "kernels/window.h"

namespace causeway::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
using ConvolutionType = dnnl::memory::data_type;
using Desc = dnnl::memory::desc;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;

/// Whether Winograd's way pays, as measured: with fewer channels or smaller images its transforms cost more than the
/// multiplications that it saves.
bool suits_winograd(const Window& w) {
    constexpr std::int64_t fewest_channels = 32, block = 16, smallest_image = 4;
    const auto suits = [](std::int64_t channels) { return channels >= fewest_channels && channels % block == 0; };
    const bool same_size = w.out_height == w.height && w.out_width == w.width;
    return w.window_height == 3 && w.window_width == 3 && w.stride == 1 && w.groups == 1 && same_size && w.above == 1 &&
           w.left == 1 && suits(w.channels) && suits(w.outputs) && std::min(w.height, w.width) >= smallest_image;
}

bool winograd_of(const cw_op& op) {
    return op.integers[CW_COMPUTE] == CW_COMPUTE_WINOGRAD && has_avx512() && suits_winograd(window_of(op));
}

/// oneDNN's descriptions of the op's tensors; the type of each is up to its role in the kind.
struct Tensors {
    Window w;
    ConvolutionType factors;  // of what is multiplied
    bool winograd;
    dnnl::memory::dims weights, strides, before, after;
    Desc bias;  // zero: none

    explicit Tensors(const cw_op& op, bool has_bias)
        : w(window_of(op)), factors(factor_type(op)), winograd(winograd_of(op)) {
        const auto inputs = w.channels / w.groups;
        weights = w.groups == 1
                      ? dnnl::memory::dims{w.outputs, inputs, w.window_height, w.window_width}
                      : dnnl::memory::dims{w.groups, w.outputs / w.groups, inputs, w.window_height, w.window_width};
        if (has_bias) {
            bias = {{w.outputs}, ConvolutionType::f32, Tag::x};
        }
        strides = {w.stride, w.stride};
        before = {w.above, w.left};
        after = {w.below, w.right};
    }
    Desc in(ConvolutionType type) const { return {{w.batch, w.channels, w.height, w.width}, type, Tag::nhwc}; }
    Desc out(ConvolutionType type) const { return {{w.batch, w.outputs, w.out_height, w.out_width}, type, Tag::nhwc}; }
    /// How the primitive wants them: direct ones take images as they are, Winograd's choose.
    Desc images_in(ConvolutionType type) const { return images(in(type)); }
    Desc images_out(ConvolutionType type) const { return images(out(type)); }
    Desc any(ConvolutionType type) const { return {weights, type, Tag::any}; }
    Desc plain() const { return {weights, ConvolutionType::f32, w.groups == 1 ? Tag::ohwi : Tag::gohwi}; }
    dnnl::algorithm algorithm() const {
        return winograd ? dnnl::algorithm::convolution_winograd : dnnl::algorithm::convolution_direct;
    }

private:
    Desc images(const Desc& plain) const {
        return winograd ? Desc(plain.dims(), plain.data_type(), Tag::any) : plain;
    }
};

bool convolution_accumulates(const cw_op& op) {
    return op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS && op.integers[0] == CW_ACCUMULATE;
}

convolution_forward::primitive_desc forward_of(const OnednnEngine& engine, const Tensors& t) {
    constexpr auto training = dnnl::prop_kind::forward_training;
    const auto x = t.images_in(t.factors), w = t.any(t.factors), y = t.images_out(ConvolutionType::f32);
    const auto how = t.algorithm();
    const auto description =
        t.bias.is_zero() ? convolution_forward::desc(training, how, x, w, y, t.strides, t.before, t.after)
                         : convolution_forward::desc(training, how, x, w, t.bias, y, t.strides, t.before, t.after);
    return {description, user_scratchpad(), engine.engine};
}

Product forward(const OnednnEngine& engine, const cw_op& op) {
    const Tensors t(op, op.operand_count == 4);
    const auto description = forward_of(engine, t);
    Product product;
    product.set(description, convolution_forward(description));
    product.first = {DNNL_ARG_SRC, 0, t.in(ConvolutionType::f32), description.src_desc()};
    product.second = {DNNL_ARG_WEIGHTS, 1, t.plain(), description.weights_desc()};
    product.result = {DNNL_ARG_DST, op.operand_count - 1, t.out(ConvolutionType::f32), description.dst_desc()};
    product.bias = {DNNL_ARG_BIAS, 2, t.bias, t.bias};
    product.packs = true;
    return product;
}

Product backward_data(const OnednnEngine& engine, const cw_op& op) {
    const Tensors t(op, false);
    const convolution_backward_data::primitive_desc description(
        convolution_backward_data::desc(t.algorithm(), t.images_in(ConvolutionType::f32), t.any(t.factors),
                                        t.images_out(t.factors), t.strides, t.before, t.after),
        user_scratchpad(), engine.engine, forward_of(engine, t));
    Product product;
    product.set(description, convolution_backward_data(description));
    product.first = {DNNL_ARG_DIFF_DST, 0, t.out(ConvolutionType::f32), description.diff_dst_desc()};
    product.second = {DNNL_ARG_WEIGHTS, 1, t.plain(), description.weights_desc()};
    product.result = {DNNL_ARG_DIFF_SRC, 2, t.in(ConvolutionType::f32), description.diff_src_desc()};
    product.packs = true;
    return product;
}

/// The primitive only sets, and it would sum rounded gradients: a bias that is added to, or beside bf16 or Winograd, is
/// ours.
Product backward_weights(const OnednnEngine& engine, const cw_op& op) {
    const bool has_bias = op.operand_count == 4;
    const bool own_bias = has_bias && (convolution_accumulates(op) || in_bf16(op) || winograd_of(op));
    const Tensors t(op, has_bias && !own_bias);
    const auto x = t.images_in(t.factors), w = t.any(ConvolutionType::f32), y = t.images_out(t.factors);
    const auto how = t.algorithm();
    const auto wanted =
        t.bias.is_zero() ? convolution_backward_weights::desc(how, x, w, y, t.strides, t.before, t.after)
                         : convolution_backward_weights::desc(how, x, w, t.bias, y, t.strides, t.before, t.after);
    const convolution_backward_weights::primitive_desc description(wanted, user_scratchpad(), engine.engine,
                                                                   forward_of(engine, t));
    Product product;
    product.set(description, convolution_backward_weights(description));
    product.first = {DNNL_ARG_DIFF_DST, 0, t.out(ConvolutionType::f32), description.diff_dst_desc()};
    product.second = {DNNL_ARG_SRC, 1, t.in(ConvolutionType::f32), description.src_desc()};
    product.result = {DNNL_ARG_DIFF_WEIGHTS, 2, t.plain(), description.diff_weights_desc()};
    product.bias = {DNNL_ARG_DIFF_BIAS, 3, t.bias, t.bias};
    product.adds = convolution_accumulates(op);
    product.sums_bias = own_bias;
    return product;
}

/// No images: gradients of weights are zeros, and everything else is empty.
void run_empty_convolution(const cw_op& op, const cw_run& run) {
    for (std::int32_t k = 2; op.kind == CW_CONVOLUTION_BACKWARD_WEIGHTS && k < op.operand_count; ++k) {
        std::fill_n(operand<float>(run, k), convolution_accumulates(op) ? 0 : element_count(run.views[k]), 0.0f);
    }
}

}  // namespace

cw_status prepare_convolution(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op,
                              std::unique_ptr<cw_plan>* plan, cw_error* error) {
    if (const auto status = check_compute(op, error); status != CW_OK) {
        return status;
    }
    if (window_of(op).batch == 0) {
        return prepare_kernel(op, run_empty_convolution, plan, error);
    }
    const ThreadCount scope(engine->threads);
    const auto describe = op.kind == CW_CONVOLUTION                 ? forward
                          : op.kind == CW_CONVOLUTION_BACKWARD_DATA ? backward_data
                                                                    : backward_weights;
    *plan = make_product_plan(engine, op, describe(*engine, op));
    return CW_OK;
}

}  // namespace causeway::cpu
