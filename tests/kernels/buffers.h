// Operands with guard zones: memory whose surroundings show a write outside it.
//
// The data begins one element after an aligned address, because a tensor in an arena may begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/device.h"

namespace causeway::checker {

class Buffer {
public:
    Buffer(cw_dtype dtype, std::size_t count);

    [[nodiscard]] cw_dtype dtype() const { return dtype_; }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] std::byte* data() { return bytes_.data() + guard_size; }
    [[nodiscard]] const std::byte* data() const { return bytes_.data() + guard_size; }
    template <class T>
    T* as() {
        return reinterpret_cast<T*>(data());
    }
    template <class T>
    const T* as() const {
        return reinterpret_cast<const T*>(data());
    }
    /// The element as a double, whatever its type.
    [[nodiscard]] double value(std::size_t i) const;
    [[nodiscard]] Operand operand() const { return {data(), count_, dtype_}; }
    /// The elements [begin, end).
    [[nodiscard]] Operand operand(std::size_t begin, std::size_t end) const;

    /// False once something was written before or behind the data.
    [[nodiscard]] bool guards_intact() const;
    /// Equal bits, every NaN equal to every other.
    [[nodiscard]] bool same_bits(const Buffer& other) const;

private:
    static constexpr std::size_t guard_size = 72;  // 64 + 8: beyond the widest vector, and off its alignment
    cw_dtype dtype_;
    std::size_t count_;
    std::size_t size_;  // bytes of the data
    std::vector<std::byte> bytes_;
};

using Buffers = std::vector<Buffer>;

std::size_t size_of(cw_dtype dtype);

}  // namespace causeway::checker
