// Floats of 16 bits, as files store them, widened exactly to 32 bits. Pure, any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace causeway {

/// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
inline float float_of_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const int fraction = bits & 0x3ff;
    float value = 0;
    if (exponent == 0x1f) {
        value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == 0) {
        value = std::ldexp(static_cast<float>(fraction), -24);
    } else {
        value = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

/// bfloat16: the upper half of a float.
inline float float_of_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace causeway
