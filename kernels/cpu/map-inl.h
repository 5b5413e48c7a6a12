// A loop over whole vectors for element-wise kernels; the rest of an array goes through zero-padded buffers.
//
// So a kernel body is written once, for whole vectors, and the last elements see the same instructions as the others.
// Included once per instruction set by the files of this folder (Highway's foreach_target): hence no #pragma once but a
// guard that toggles. Thread: any.
#if defined(CAUSEWAY_KERNELS_CPU_MAP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CAUSEWAY_KERNELS_CPU_MAP_INL_H
#undef CAUSEWAY_KERNELS_CPU_MAP_INL_H
#else
#define CAUSEWAY_KERNELS_CPU_MAP_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace causeway::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t widest = 16;  // floats in the widest vector

/// body(in, out) reads `step` floats at each in[k] and writes as many at each out[k]. An array may be in both.
template <std::size_t I, std::size_t O, class Body>
HWY_INLINE void map(std::size_t n, std::size_t step, const float* const (&in)[I], float* const (&out)[O], Body body) {
    const float* from[I];
    float* to[O];
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        for (std::size_t k = 0; k < I; ++k) {
            from[k] = in[k] + i;
        }
        for (std::size_t k = 0; k < O; ++k) {
            to[k] = out[k] + i;
        }
        body(from, to);
    }
    if (i == n) {
        return;
    }
    HWY_ALIGN float padded[I][widest] = {};
    HWY_ALIGN float results[O][widest];
    for (std::size_t k = 0; k < I; ++k) {
        for (std::size_t j = i; j < n; ++j) {
            padded[k][j - i] = in[k][j];
        }
        from[k] = padded[k];
    }
    for (std::size_t k = 0; k < O; ++k) {
        to[k] = results[k];
    }
    body(from, to);
    for (std::size_t k = 0; k < O; ++k) {
        for (std::size_t j = i; j < n; ++j) {
            out[k][j] = results[k][j - i];
        }
    }
}

}  // namespace causeway::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
