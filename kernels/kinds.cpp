// The table of kinds and the matcher of its small language.
//
// An operand list is words of dtype[letters]: one letter per dimension, equal letters are equal dimensions, `1` is one.
// `label` is i64 or u32. A `+` after the last word: once to CW_MAX_EXACT_TERMS times. Alternatives are parted by ` | `.
// Thread: any; reentrant.
#include "kernels/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/window.h"

namespace causeway {
namespace {

constexpr auto anywhere = Where::any_thread;
constexpr auto trainer = Where::trainer_thread;

constexpr Kind all_kinds[] = {
    {CW_MATMUL, "matmul", "f32[BI] f32[OI] f32[O] f32[BO] | f32[BI] f32[OI] f32[BO]", 0, 0, trainer},
    {CW_MATMUL_BACKWARD_DATA, "matmul_backward_data", "f32[BO] f32[OI] f32[BI]", 0, 0, trainer},
    {CW_MATMUL_BACKWARD_WEIGHTS, "matmul_backward_weights",
     "f32[BO] f32[BI] f32[OI] f32[O] | f32[BO] f32[BI] f32[OI]", 0, 1, trainer},
    {CW_RELU, "relu", "f32[N] f32[N]", 0, 0, anywhere},
    {CW_RELU_BACKWARD, "relu_backward", "f32[N] f32[N] f32[N]", 0, 0, anywhere},
    {CW_GELU, "gelu", "f32[N] f32[N]", 0, 0, anywhere},
    {CW_GELU_BACKWARD, "gelu_backward", "f32[N] f32[N] f32[N]", 0, 0, anywhere},
    {CW_SILU, "silu", "f32[N] f32[N]", 0, 0, anywhere},
    {CW_SILU_BACKWARD, "silu_backward", "f32[N] f32[N] f32[N]", 0, 0, anywhere},
    {CW_SOFTMAX_CROSS_ENTROPY, "softmax_cross_entropy",
     "f32[BV] label[B] f64[1] i64[1] f32[BV] | f32[BV] label[B] f64[1] i64[1]", 1, 0, trainer},
    {CW_WEIGHTED_CROSS_ENTROPY, "weighted_cross_entropy",
     "f32[BV] label[B] f32[V] f64[1] i64[1] f32[BV] | f32[BV] label[B] f32[V] f64[1] i64[1]", 2, 0, trainer},
    {CW_MEAN_SQUARED_ERROR, "mean_squared_error",
     "f32[BV] f32[BV] f64[1] f32[BV] | f32[BV] f32[BV] f64[1]", 1, 0, trainer},
    {CW_BINARY_CROSS_ENTROPY, "binary_cross_entropy",
     "f32[BV] f32[BV] f64[1] i64[1] f32[BV] | f32[BV] f32[BV] f64[1] i64[1]", 1, 0, trainer},
    {CW_SGD, "sgd", "f32[N] f32[N] f32[N] | f32[N] f32[N]", 5, 1, anywhere},
    {CW_ADAMW, "adamw", "f32[N] f32[N] f32[N] f32[N]", 6, 0, anywhere},
    {CW_ADAM, "adam", "f32[N] f32[N] f32[N] f32[N]", 8, 0, anywhere},
    {CW_AXPY, "axpy", "f32[N] f32[N]", 1, 0, anywhere},
    {CW_SCALE, "scale", "f32[N]", 1, 0, anywhere},
    {CW_SUM_OF_SQUARES, "sum_of_squares", "f32[N] f64[1]", 0, 0, anywhere},
    {CW_FILL, "fill", "f32[N]", 1, 0, anywhere},
    {CW_COPY, "copy", "f32[N] f32[N]", 0, 0, anywhere},
    {CW_DROPOUT, "dropout", "f32[N] f32[N]", 4, 0, anywhere},
    {CW_EXACT_ADD, "exact_add", "i64[N] i64[N] f32[N]+", -1, 0, anywhere},
    {CW_EXACT_CARRY, "exact_carry", "i64[N] i64[N]", 0, 0, anywhere},
    {CW_EXACT_MEAN, "exact_mean", "i64[N] i64[N] f32[N]", 1, 0, anywhere},
    {CW_CONVOLUTION, "convolution", "f32[BHWC] f32[OPQI] f32[O] f32[BRSO] | f32[BHWC] f32[OPQI] f32[BRSO]", 0, 0,
     trainer, Extra::window},
    {CW_CONVOLUTION_BACKWARD_DATA, "convolution_backward_data", "f32[BRSO] f32[OPQI] f32[BHWC]", 0, 0, trainer,
     Extra::window},
    {CW_CONVOLUTION_BACKWARD_WEIGHTS, "convolution_backward_weights",
     "f32[BRSO] f32[BHWC] f32[OPQI] f32[O] | f32[BRSO] f32[BHWC] f32[OPQI]", 0, 1, trainer, Extra::window},
    {CW_MAXPOOL, "maxpool", "f32[BHWC] f32[BRSC]", 0, 0, trainer, Extra::window},
    {CW_MAXPOOL_BACKWARD, "maxpool_backward", "f32[BHWC] f32[BRSC] f32[BRSC] f32[BHWC]", 0, 0, trainer, Extra::window},
    {CW_AVGPOOL, "avgpool", "f32[BHWC] f32[BRSC]", 0, 0, trainer, Extra::window},
    {CW_AVGPOOL_BACKWARD, "avgpool_backward", "f32[BRSC] f32[BHWC]", 0, 0, trainer, Extra::window},
    {CW_GROUP_NORM, "group_norm", "f32[BSC] f32[C] f32[C] f32[BSC] f32[BG] f32[BG]", 0, 0, trainer, Extra::epsilon},
    {CW_GROUP_NORM_BACKWARD, "group_norm_backward",
     "f32[BSC] f32[C] f32[BG] f32[BG] f32[BSC] f32[BSC] f32[C] f32[C]", 0, 1, trainer, Extra::epsilon},
    {CW_BATCH_NORM, "batch_norm", "f32[NC] f32[C] f32[C] f32[C] f32[C] f32[NC] f32[C] f32[C]", 1, 0, trainer,
     Extra::epsilon},
    {CW_BATCH_NORM_INFERENCE, "batch_norm_inference", "f32[NC] f32[C] f32[C] f32[C] f32[C] f32[NC]", 0, 0, trainer,
     Extra::epsilon},
    {CW_BATCH_NORM_BACKWARD, "batch_norm_backward", "f32[NC] f32[C] f32[C] f32[C] f32[NC] f32[NC] f32[C] f32[C]", 0, 1,
     trainer, Extra::epsilon},
    {CW_RELU_MAXPOOL, "relu_maxpool", "f32[BHWC] f32[BRSC]", 0, 0, trainer, Extra::tiles},
    {CW_RELU_MAXPOOL_BACKWARD, "relu_maxpool_backward", "f32[BHWC] f32[BRSC] f32[BRSC] f32[BHWC]", 0, 0, trainer,
     Extra::tiles},
};

constexpr std::int64_t largest_tensor = std::int64_t{1} << 40;  // elements: 4 TiB of f32, and products stay in int64
constexpr std::int64_t unbound = -2;

/// The head of a text up to a separator; the text keeps the rest.
std::string_view take(std::string_view& text, std::string_view separator) {
    const auto end = std::min(text.find(separator), text.size());
    const auto head = text.substr(0, end);
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    return head;
}

bool dtype_matches(std::string_view name, std::int32_t dtype) {
    switch (dtype) {
        case CW_F32: return name == "f32";
        case CW_F64: return name == "f64";
        case CW_I64: return name == "i64" || name == "label";
        case CW_U32: return name == "label";
        default: return false;
    }
}

using Letters = std::array<std::int64_t, 128>;

/// One word against one operand; a letter seen before must have the same dimension again.
bool word_matches(std::string_view word, const cw_view& view, Letters& letters) {
    const auto dtype = take(word, "[");
    const auto dims = take(word, "]");
    if (!dtype_matches(dtype, view.dtype) || view.rank != static_cast<std::int32_t>(dims.size())) {
        return false;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        auto& bound = letters[static_cast<unsigned char>(dims[i])];
        bound = bound == unbound ? view.dims[i] : bound;
        if (bound != view.dims[i]) {
            return false;
        }
    }
    return true;
}

bool list_matches(std::string_view list, const cw_op& op) {
    Letters letters;
    letters.fill(unbound);
    letters['1'] = 1;
    const bool repeats = list.ends_with('+');
    std::string_view word;
    std::int32_t i = 0;
    for (; i < op.operand_count && (!list.empty() || repeats); ++i) {
        word = list.empty() ? word : take(list, " ");
        if (!word_matches(word, op.operands[i], letters)) {
            return false;
        }
    }
    return i == op.operand_count && list.empty();
}

bool any_list_matches(std::string_view lists, const cw_op& op) {
    while (!lists.empty()) {
        if (list_matches(take(lists, " | "), op)) {
            return true;
        }
    }
    return false;
}

/// Dimensions in range, CW_ANY only where allowed, strides dense.
cw_status check_view(const Kind& kind, const cw_view& view, cw_error* error) {
    if (view.rank < 0 || view.rank > CW_MAX_RANK) {
        return fail_with(error, CW_INVALID, fmt::format("{}: an operand of rank {}", kind.name, view.rank));
    }
    std::int64_t expected = 1;
    for (std::int32_t i = view.rank - 1; i >= 0; --i) {
        const auto dim = view.dims[i];
        const bool any = dim == CW_ANY && kind.where == Where::any_thread && view.rank == 1;
        if (!any && (dim < 0 || dim > largest_tensor / std::max<std::int64_t>(expected, 1))) {
            return fail_with(error, CW_INVALID, fmt::format("{}: a dimension of {} is out of range", kind.name, dim));
        }
        if (view.strides[i] != expected && dim > 1) {
            return fail_with(error, CW_UNSUPPORTED, fmt::format("{}: strides must be dense", kind.name));
        }
        expected *= any ? 1 : dim;
    }
    return CW_OK;
}

cw_status check_attributes(const Kind& kind, const cw_op& op, cw_error* error) {
    const auto is_zero = [](auto x) { return x == 0; };
    const bool window = kind.extra == Extra::window || kind.extra == Extra::tiles;
    const int integers = window ? window_integers : 1;
    const int reals = kind.extra == Extra::epsilon ? 1 : 0;
    const bool first_fits = op.integers[0] >= 0 && op.integers[0] <= kind.largest_attribute;
    const auto compute = op.integers[CW_COMPUTE];
    const bool other_compute = compute == CW_COMPUTE_BF16 || compute == CW_COMPUTE_WINOGRAD;
    const bool compute_fits = compute == CW_COMPUTE_F32 || (other_compute && is_product(op.kind));
    const bool rest_fits = compute_fits && std::all_of(op.integers + integers, op.integers + CW_COMPUTE, is_zero) &&
                           std::all_of(op.reals + reals, op.reals + CW_MAX_REALS, is_zero);
    if (!first_fits || !rest_fits) {
        return fail_with(error, CW_INVALID, fmt::format("{}: an attribute that this kind does not have", kind.name));
    }
    if (kind.extra == Extra::epsilon && !(op.reals[0] > 0)) {
        return fail_with(error, CW_INVALID, fmt::format("{}: epsilon must be above 0", kind.name));
    }
    const bool group_norm = op.kind == CW_GROUP_NORM || op.kind == CW_GROUP_NORM_BACKWARD;
    const auto groups = group_norm ? op.operands[op.kind == CW_GROUP_NORM ? 4 : 2].dims[1] : 1;
    if (group_norm && (groups < 1 || op.operands[0].dims[2] % groups != 0)) {
        return fail_with(error, CW_INVALID, fmt::format("{}: the groups must divide the channels", kind.name));
    }
    const auto status = window ? check_window(op, kind.name, error) : CW_OK;
    if (status == CW_OK && kind.extra == Extra::tiles && !tiles(window_of(op))) {
        return fail_with(error, CW_INVALID, fmt::format("{}: the windows must tile the image", kind.name));
    }
    return status;
}

}  // namespace

std::span<const Kind> kinds() { return all_kinds; }

const Kind* find_kind(std::int32_t number) {
    const auto found = std::ranges::find(all_kinds, number, [](const Kind& kind) { return std::int32_t{kind.kind}; });
    return found == std::end(all_kinds) ? nullptr : found;
}

cw_status check_op(const cw_op& op, cw_error* error) {
    const auto* kind = find_kind(op.kind);
    if (kind == nullptr) {
        return fail_with(error, CW_UNSUPPORTED, fmt::format("kind {} is not known to this build", op.kind));
    }
    if (op.operand_count < 0 || op.operand_count > CW_MAX_OPERANDS) {
        return fail_with(error, CW_INVALID, fmt::format("{}: {} operands", kind->name, op.operand_count));
    }
    for (std::int32_t i = 0; i < op.operand_count; ++i) {
        if (const auto status = check_view(*kind, op.operands[i], error); status != CW_OK) {
            return status;
        }
    }
    const bool too_many = op.kind == CW_EXACT_ADD && op.operand_count > 2 + CW_MAX_EXACT_TERMS;
    if (too_many || !any_list_matches(kind->operands, op)) {
        return fail_with(error, CW_INVALID, fmt::format("{}: operands must be {}", kind->name, kind->operands));
    }
    return check_attributes(*kind, op, error);
}

bool is_product(std::int32_t kind) {
    return (kind >= CW_MATMUL && kind <= CW_MATMUL_BACKWARD_WEIGHTS) ||
           (kind >= CW_CONVOLUTION && kind <= CW_CONVOLUTION_BACKWARD_WEIGHTS);
}

std::int32_t scalar_count(const cw_op& op) {
    const auto* kind = find_kind(op.kind);
    return kind == nullptr ? 0 : kind->scalars < 0 ? op.operand_count - 2 : kind->scalars;
}

std::int64_t element_count(const cw_view& view) {
    std::int64_t count = 1;
    for (std::int32_t i = 0; i < view.rank; ++i) {
        count *= view.dims[i];
    }
    return count;
}

cw_status fail_with(cw_error* error, cw_status status, std::string_view message) {
    const auto size = std::min(message.size(), sizeof(error->message) - 1);
    std::memcpy(error->message, message.data(), size);
    error->message[size] = '\0';
    return status;
}

}  // namespace causeway
