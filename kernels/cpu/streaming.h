// The vectorised kernels of the cpu backend as plain functions. The Highway library stays behind them.
//
// Each is compiled for AVX-512, AVX2 and plain C++ and picked by the machine; all three give the same bits, because no
// multiply is fused with an add and every sum has an order of its own (tests/kernels compares them).
// Thread: any; reentrant. kernels/backend.h says what each computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace causeway::cpu {

void relu(const float* x, float* y, std::size_t n);
void relu_backward(const float* x, const float* dy, float* dx, std::size_t n);
void gelu(const float* x, float* y, std::size_t n);
void gelu_backward(const float* x, const float* dy, float* dx, std::size_t n);
void silu(const float* x, float* y, std::size_t n);
void silu_backward(const float* x, const float* dy, float* dx, std::size_t n);

/// The sum over j of exp(x[j] - largest). 0 < n.
double sum_of_exponentials(const float* x, double largest, std::size_t n);
/// p[j] = exp(x[j] - largest) * factor. In place allowed.
void scaled_exponentials(const float* x, double largest, double factor, float* p, std::size_t n);

/// One step's numbers, rounded to float where the element-wise arithmetic uses them.
struct SgdStep {
    float rate;
    float momentum;
    float undampened;  // 1 - dampening
    float decay;
    bool first;
    bool nesterov;
};
/// m may be null: no momentum.
void sgd(const SgdStep& step, float* theta, const float* g, float* m, std::size_t n);

struct AdamwStep {
    float keep;        // 1 - rate * decay
    float step_size;   // rate / (1 - beta1^t)
    float beta1;
    float rest1;       // 1 - beta1
    float beta2;
    float rest2;       // 1 - beta2
    float correction;  // 1 / sqrt(1 - beta2^t)
    float epsilon;
};
void adamw(const AdamwStep& step, float* theta, const float* g, float* m, float* v, std::size_t n);

struct AdamStep {
    float keep, l2;
    float beta1, rest1;  // rest: 1 - beta
    float beta2, rest2;
    float own, moment;
    float correction, epsilon;
};
void adam(const AdamStep& step, float* theta, const float* g, float* m, float* v, std::size_t n);

void axpy(float a, const float* x, float* y, std::size_t n);
void scale(float a, float* x, std::size_t n);
double sum_of_squares(const float* x, std::size_t n);
/// sums[o] = (adds ? sums[o] : 0) + sum over b of x[b, o], each in double, rounded once; for o in [begin, end).
struct Columns {
    std::size_t rows, columns;
    std::size_t begin, end;
};
void column_sums(const float* x, const Columns& shape, cw_write write, float* sums);

struct ExactPass {
    const float* values[CW_MAX_EXACT_TERMS];
    double weights[CW_MAX_EXACT_TERMS];
    int count;
};
void exact_add(const ExactPass& pass, std::int64_t* high, std::int64_t* low, std::size_t n);
void exact_carry(std::int64_t* high, std::int64_t* low, std::size_t n);
void exact_mean(const std::int64_t* high, const std::int64_t* low, double weight, float* mean, std::size_t n);

/// The instruction sets compiled in that this machine has: "AVX3", "AVX2", ...
std::vector<std::string_view> instruction_sets();
/// For tests: later calls use this one (empty: the best). Not while kernels run on other threads.
void use_instruction_set(std::string_view name);

}  // namespace causeway::cpu
