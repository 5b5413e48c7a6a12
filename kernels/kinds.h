// What each kind of kernels/backend.h accepts, as one table: every backend checks its ops against it.
//
// So a wrong op is refused in the same words by all of them, and a kernel body may rely on shapes that fit together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/backend.h"

namespace causeway {

enum class Where { trainer_thread, any_thread };
/// Attributes besides integers[0]: none, those of a window over images (kernels/window.h), of windows that tile them,
/// or reals[0], an epsilon.
enum class Extra { none, window, tiles, epsilon };

struct Kind {
    cw_kind kind;
    std::string_view name;      // "matmul_backward_weights"
    std::string_view operands;  // the accepted operand lists, see kinds.cpp
    std::int32_t scalars;       // needed at each run; -1: one per operand after the second
    std::int64_t largest_attribute;  // integers[0] is in [0, this]; all others are 0, but for `extra`
    Where where;                // any_thread: a streaming kind
    Extra extra = Extra::none;
};

/// All known kinds, in the order of backend.h.
std::span<const Kind> kinds();
/// nullptr for an unknown number.
const Kind* find_kind(std::int32_t kind);

/// CW_OK when the op is what its kind's description says; else CW_INVALID or CW_UNSUPPORTED with a message.
///
/// threads  reentrant
cw_status check_op(const cw_op& op, cw_error* error);
/// How many scalars each run of a checked op takes.
std::int32_t scalar_count(const cw_op& op);
/// Matmul and convolution, forward and backward: the kinds with a cw_compute.
bool is_product(std::int32_t kind);
/// The dims' product.
std::int64_t element_count(const cw_view& view);

/// Writes the message, cut to fit, and returns the status.
cw_status fail_with(cw_error* error, cw_status status, std::string_view message);

}  // namespace causeway
