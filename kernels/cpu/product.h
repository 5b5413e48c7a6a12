// A plan around one oneDNN product: its operands as the op has them, as the primitive wants them, and the way between.
//
// matmul.cpp and convolution.cpp only describe; running, converting to bf16, packing weights and unpacking gradients
// stand here once. All that is not constant is a pointer: a run allocates nothing. oneDNN's headers stay in the files
// that include this one. Thread: the trainer's; a run enters OpenMP with exactly the device's thread count.
#pragma once

#include <memory>
#include <string>

#include "kernels/cpu/onednn.h"

namespace causeway::cpu {

/// An operand of a primitive.
struct Side {
    int argument = 0;           // DNNL_ARG_...
    int view = 0;               // of the op
    dnnl::memory::desc plain;   // as the op has it
    dnnl::memory::desc wanted;  // as the primitive takes or gives it
};

struct Product {
    dnnl::primitive primitive;
    std::string implementation;
    dnnl::memory::desc scratchpad;
    Side first, second, result;
    Side bias;                // wanted is zero: none; else the same as plain
    bool packs = false;       // the second operand is weights, which run may get in the wanted form
    bool adds = false;        // the result is added to what is there, by a reorder
    bool sums_bias = false;   // operand 3 is the gradient of a bias, which the primitive does not make

    template <class Description>
    void set(const Description& description, dnnl::primitive made) {
        primitive = std::move(made);
        implementation = description.impl_info_str();
        scratchpad = description.scratchpad_desc();
    }
};

/// Attributes that make a primitive take its scratch memory from the caller.
dnnl::primitive_attr user_scratchpad();

/// A plan of it. `for_packed` is another primitive of the same op that takes packed weights, where `product` only takes
/// plain ones well; its bits must be the same.
std::unique_ptr<cw_plan> make_product_plan(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op,
                                           Product product, std::unique_ptr<Product> for_packed = nullptr);
/// oneDNN's name of the chosen code, empty for another plan.
std::string product_implementation(const cw_plan& plan);

/// db = column sums of dy (operands 3 and 0); threads share the columns.
void bias_gradient(const cw_op& op, const cw_run& run, int threads);

inline bool in_bf16(const cw_op& op) { return op.integers[CW_COMPUTE] == CW_COMPUTE_BF16; }
/// The element type of the factors.
inline dnnl::memory::data_type factor_type(const cw_op& op) {
    return in_bf16(op) ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace causeway::cpu
