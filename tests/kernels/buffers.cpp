// Guarded operands; the guard byte pattern is one that no kernel writes by accident.
#include "tests/kernels/buffers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/assert.h"

namespace causeway::checker {
namespace {
constexpr auto guard_byte = std::byte{0xA5};
}

std::size_t size_of(cw_dtype dtype) { return dtype == CW_F32 || dtype == CW_U32 ? 4 : 8; }

Buffer::Buffer(cw_dtype dtype, std::size_t count)
    : dtype_(dtype), count_(count), size_(count * size_of(dtype)), bytes_(size_ + 2 * guard_size, guard_byte) {
    std::fill_n(data(), size_, std::byte{0});
}

double Buffer::value(std::size_t i) const {
    switch (dtype_) {
        case CW_F32: return as<float>()[i];
        case CW_F64: return as<double>()[i];
        case CW_U32: return as<std::uint32_t>()[i];
        default: return static_cast<double>(as<std::int64_t>()[i]);
    }
}

Operand Buffer::operand(std::size_t begin, std::size_t end) const {
    ASSERT(begin <= end && end <= count_);
    return {data() + begin * size_of(dtype_), end - begin, dtype_};
}

bool Buffer::guards_intact() const {
    const auto untouched = [](std::byte byte) { return byte == guard_byte; };
    return std::all_of(bytes_.begin(), bytes_.begin() + guard_size, untouched) &&
           std::all_of(bytes_.end() - guard_size, bytes_.end(), untouched);
}

bool Buffer::same_bits(const Buffer& other) const {
    ASSERT(dtype_ == other.dtype_ && count_ == other.count_);
    if (size_ == 0 || std::memcmp(data(), other.data(), size_) == 0) {
        return true;
    }
    const auto width = size_of(dtype_);
    for (std::size_t i = 0; i < count_; ++i) {
        const bool equal = std::memcmp(data() + i * width, other.data() + i * width, width) == 0;
        if (!equal && !(std::isnan(value(i)) && std::isnan(other.value(i)))) {
            return false;
        }
    }
    return true;
}

}  // namespace causeway::checker
