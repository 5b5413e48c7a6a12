// Running a product: what differs between the op's form and the primitive's goes through the workspace.
//
// The workspace holds, one after the other, the converted operands, the primitive's own scratch, and the largest of the
// reorders'. Conversions are oneDNN's reorders. Thread: the trainer's.
#include "kernels/cpu/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/streaming.h"
#include "kernels/kinds.h"

namespace causeway::cpu {
namespace {

constexpr std::uint64_t alignment = 64;
std::uint64_t aligned(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// From one form of an operand to another; nothing to do where they are equal.
class Conversion {
public:
    Conversion() = default;
    Conversion(const OnednnEngine& engine, const dnnl::memory::desc& source, const dnnl::memory::desc& target,
               bool adds) {
        if (source == target && !adds) {
            return;
        }
        auto attributes = user_scratchpad();
        if (adds) {
            dnnl::post_ops adding;
            adding.append_sum();
            attributes.set_post_ops(adding);
        }
        const dnnl::reorder::primitive_desc description(engine.engine, source, engine.engine, target, attributes);
        reorder_ = Primitive(dnnl::reorder(description));
        from_ = reorder_.add(engine, DNNL_ARG_FROM, source);
        to_ = reorder_.add(engine, DNNL_ARG_TO, target);
        scratchpad_ = reorder_.add(engine, DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
        scratch_bytes_ = aligned(description.scratchpad_desc().get_size());
    }
    explicit operator bool() const { return static_cast<bool>(reorder_); }
    std::uint64_t scratch_bytes() const { return scratch_bytes_; }
    bool run(const OnednnEngine& engine, void* source, void* target, void* scratch) {
        reorder_.point(from_, source);
        reorder_.point(to_, target);
        reorder_.point(scratchpad_, scratch);
        return reorder_.execute(engine) == dnnl_success;
    }

private:
    Primitive reorder_;
    int from_ = -1, to_ = -1, scratchpad_ = -1;
    std::uint64_t scratch_bytes_ = 0;
};

/// One operand of the prepared primitive and its place in the workspace, if it needs one.
struct Slot {
    int argument = -1;
    int view = 0;
    Conversion conversion;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // of the primitive's form
};

class ProductPlan final : public cw_plan {
public:
    ProductPlan(std::shared_ptr<OnednnEngine> engine, const cw_op& op, Product product)
        : engine_(std::move(engine)), op_(op), product_(std::move(product)) {
        const ThreadCount scope(engine_->threads);
        primitive_ = Primitive(product_.primitive);
        first_ = slot(product_.first, Way::in);
        second_ = slot(product_.second, Way::in);
        result_ = slot(product_.result, Way::out);
        if (!product_.bias.wanted.is_zero()) {
            bias_ = primitive_.add(*engine_, product_.bias.argument, product_.bias.wanted);
        }
        scratchpad_ = primitive_.add(*engine_, DNNL_ARG_SCRATCHPAD, product_.scratchpad);
        scratch_ = take(product_.scratchpad.get_size());
        conversion_scratch_ = take(std::max({first_.conversion.scratch_bytes(), second_.conversion.scratch_bytes(),
                                             result_.conversion.scratch_bytes()}));
    }
    void use_for_packed(std::unique_ptr<ProductPlan> other) { for_packed_ = std::move(other); }

    const std::string& implementation() const { return product_.implementation; }

    cw_plan_size size() const override {
        if (for_packed_ != nullptr) {
            const auto other = for_packed_->size();
            return {std::max(workspace_bytes_, other.workspace_bytes), other.packed_bytes};
        }
        return {workspace_bytes_, product_.packs && second_.conversion ? second_.bytes : 0};
    }

    /// Rare beside runs, so it may allocate what little scratch a reorder wants.
    cw_status pack(const cw_view& weights, void* packed, cw_error* error) override {
        if (for_packed_ != nullptr) {
            return for_packed_->pack(weights, packed, error);
        }
        const ThreadCount scope(engine_->threads);
        std::vector<std::byte> scratch(second_.conversion.scratch_bytes());
        return second_.conversion.run(*engine_, weights.data, packed, scratch.data())
                   ? CW_OK
                   : fail_with(error, CW_FAILED, "oneDNN could not pack weights");
    }

    cw_status run(const cw_run& run, cw_error* error) override {
        if (run.packed != nullptr && for_packed_ != nullptr) {
            return for_packed_->run(run, error);
        }
        const ThreadCount scope(engine_->threads);
        auto* workspace = static_cast<std::byte*>(run.workspace);
        void* const packed = product_.packs ? const_cast<void*>(run.packed) : nullptr;
        bool done = give(first_, run, workspace, nullptr) && give(second_, run, workspace, packed);
        void* const out = run.views[result_.view].data;
        primitive_.point(result_.argument, result_.conversion ? workspace + result_.offset : out);
        if (bias_ >= 0) {
            primitive_.point(bias_, run.views[product_.bias.view].data);
        }
        primitive_.point(scratchpad_, workspace + scratch_);
        done = done && primitive_.execute(*engine_) == dnnl_success;
        if (done && result_.conversion) {
            done = result_.conversion.run(*engine_, workspace + result_.offset, out, workspace + conversion_scratch_);
        }
        if (product_.sums_bias) {
            bias_gradient(op_, run, engine_->threads);
        }
        return done ? CW_OK
                    : fail_with(error, CW_FAILED, fmt::format("oneDNN failed in {}", find_kind(op_.kind)->name));
    }

private:
    enum class Way { in, out };

    std::uint64_t take(std::uint64_t bytes) {
        const auto offset = workspace_bytes_;
        workspace_bytes_ += aligned(bytes);
        return offset;
    }
    Slot slot(const Side& side, Way way) {
        Slot made;
        made.argument = primitive_.add(*engine_, side.argument, side.wanted);
        made.view = side.view;
        made.bytes = aligned(side.wanted.get_size());
        made.conversion = way == Way::in ? Conversion(*engine_, side.plain, side.wanted, false)
                                         : Conversion(*engine_, side.wanted, side.plain, product_.adds);
        made.offset = made.conversion ? take(made.bytes) : 0;
        return made;
    }
    /// Points the primitive at an input, converted where it must be.
    bool give(Slot& slot, const cw_run& run, std::byte* workspace, void* packed) {
        void* data = run.views[slot.view].data;
        if (packed != nullptr) {
            primitive_.point(slot.argument, packed);
            return true;
        }
        if (!slot.conversion) {
            primitive_.point(slot.argument, data);
            return true;
        }
        primitive_.point(slot.argument, workspace + slot.offset);
        return slot.conversion.run(*engine_, data, workspace + slot.offset, workspace + conversion_scratch_);
    }

    std::shared_ptr<OnednnEngine> engine_;
    cw_op op_;
    Product product_;
    Primitive primitive_;
    Slot first_, second_, result_;
    int bias_ = -1, scratchpad_ = -1;
    std::uint64_t scratch_ = 0, conversion_scratch_ = 0;  // offsets
    std::uint64_t workspace_bytes_ = 0;
    std::unique_ptr<ProductPlan> for_packed_;
};

}  // namespace

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // so that running never allocates
    return attributes;
}

std::unique_ptr<cw_plan> make_product_plan(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op,
                                           Product product, std::unique_ptr<Product> for_packed) {
    auto plan = std::make_unique<ProductPlan>(engine, op, std::move(product));
    if (for_packed != nullptr) {
        plan->use_for_packed(std::make_unique<ProductPlan>(engine, op, *std::move(for_packed)));
    }
    return plan;
}

std::string product_implementation(const cw_plan& plan) {
    const auto* product = dynamic_cast<const ProductPlan*>(&plan);
    return product == nullptr ? std::string{} : product->implementation();
}

void bias_gradient(const cw_op& op, const cw_run& run, int threads) {
    const auto& dy = run.views[0];
    const auto width = dy.dims[dy.rank - 1];
    const auto rows = width == 0 ? 0 : element_count(dy) / width;
    constexpr std::int64_t least_columns = 128;  // four cache lines of a row, a few microseconds
    parallel(threads, width, least_columns, [&](std::int64_t begin, std::int64_t end) {
        const Columns columns{static_cast<std::size_t>(rows), static_cast<std::size_t>(width),
                              static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
        column_sums(operand<const float>(run, 0), columns, static_cast<cw_write>(op.integers[0]),
                    operand<float>(run, 3));
    });
}

}  // namespace causeway::cpu
