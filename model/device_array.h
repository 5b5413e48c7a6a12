// Memory on a device with an element type: what the trainer keeps there, and copies to and from host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/device.h"

namespace causeway {

constexpr std::size_t dtype_bytes(cw_dtype dtype) {
    switch (dtype) {
        case CW_F64:
        case CW_I64:
            return 8;
        case CW_F32:
        case CW_U32:
        case CW_I32:
            return 4;
        case CW_BF16:
            return 2;
        default:
            return 1;
    }
}

/// threads  thread-bound, as its device
class DeviceArray {
public:
    DeviceArray() = default;
    /// Content undefined. errors: overloaded: no memory.
    static Result<DeviceArray> make(const Device& device, std::uint64_t count, cw_dtype dtype) {
        DeviceArray array;
        TRY_ASSIGN(array.memory_, device.allocate(count * dtype_bytes(dtype)));
        array.count_ = count;
        array.dtype_ = dtype;
        return array;
    }

    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] void* data() const { return memory_.get(); }
    [[nodiscard]] Operand all() const { return part(0, count_); }
    [[nodiscard]] Operand part(std::uint64_t begin, std::uint64_t count) const {
        ASSERT(begin <= count_ && count <= count_ - begin);
        return {static_cast<const std::byte*>(memory_.get()) + begin * dtype_bytes(dtype_), count, dtype_};
    }

    /// The first values.size() elements.
    template <class T>
    Status upload(const Device& device, std::span<const T> values) {
        ASSERT(sizeof(T) == dtype_bytes(dtype_) && values.size() <= count_);
        return device.copy(memory_.get(), values.data(), values.size_bytes(), CW_TO_DEVICE);
    }
    template <class T>
    Status download(const Device& device, std::span<T> values) const {
        ASSERT(sizeof(T) == dtype_bytes(dtype_) && values.size() <= count_);
        return device.copy(values.data(), memory_.get(), values.size_bytes(), CW_FROM_DEVICE);
    }

private:
    std::shared_ptr<void> memory_;
    std::uint64_t count_ = 0;
    cw_dtype dtype_ = CW_F32;
};

}  // namespace causeway
