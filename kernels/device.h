// Compute for C++ callers: a device opened by name, and plans that run operations on it.
//
// A thin owner of the C table in kernels/backend.h: it frees what it opened, turns statuses into Results, and checks
// every operand of a run against the prepared op (a mismatch is a bug: ASSERT). The ops are built in kernels/ops.h.
//
//   TRY_ASSIGN(auto device, Device::open("cpu", {.threads = 1}));
//   TRY_ASSIGN(auto forward, device.prepare(ops::matmul({.batch = 32, .inputs = 64, .outputs = 10})));
//   TRY(forward.run({x, w, b, y}));
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "kernels/backend.h"
#include "kernels/ops.h"

namespace causeway {

/// One operand of a run: dense device memory with its element type and count. Made from a span.
struct Operand {
    Operand(std::span<const float> values) : Operand(values.data(), values.size(), CW_F32) {}
    Operand(std::span<float> values) : Operand(values.data(), values.size(), CW_F32) {}
    Operand(std::span<const double> values) : Operand(values.data(), values.size(), CW_F64) {}
    Operand(std::span<double> values) : Operand(values.data(), values.size(), CW_F64) {}
    Operand(std::span<const std::int64_t> values) : Operand(values.data(), values.size(), CW_I64) {}
    Operand(std::span<std::int64_t> values) : Operand(values.data(), values.size(), CW_I64) {}
    Operand(std::span<const std::uint32_t> values) : Operand(values.data(), values.size(), CW_U32) {}
    template <class T>
    Operand(std::vector<T>& values) : Operand(std::span<T>(values)) {}
    template <class T>
    Operand(const std::vector<T>& values) : Operand(std::span<const T>(values)) {}
    /// A single result: the loss, a count.
    Operand(double& value) : Operand(&value, 1, CW_F64) {}
    Operand(std::int64_t& value) : Operand(&value, 1, CW_I64) {}
    Operand(const void* first, std::size_t size, cw_dtype type) : data(first), count(size), dtype(type) {}

    const void* data;
    std::size_t count;
    cw_dtype dtype;
};

struct DeviceOptions {
    std::int32_t threads = 1;       // 1..256
    std::int32_t device_index = 0;
};

/// A prepared operation. Keeps its device open; all plans of a device share one workspace, as large as the largest.
///
/// threads  streaming kinds: run is reentrant. Others: the thread that prepared it.
class Plan {
public:
    /// Runs on the device's own stream. Operands in the order that backend.h gives for the kind, scalars too.
    ///
    /// errors   io: the device failed; overloaded: out of memory
    /// cost     no allocation
    Status run(std::span<const Operand> operands, std::span<const double> scalars = {});
    Status run(std::initializer_list<Operand> operands, std::initializer_list<double> scalars = {});
    /// The same with what pack() wrote from these weights; null: none.
    Status run_packed(std::initializer_list<Operand> operands, const void* packed);
    /// Bytes of the packed form of the weights; 0: this plan only takes plain ones.
    [[nodiscard]] std::uint64_t packed_bytes() const;
    /// errors   as run
    Status pack(const Operand& weights, void* packed);
    [[nodiscard]] const cw_op& op() const { return op_; }

private:
    friend class Device;
    struct Open;
    Plan() = default;
    Status run(std::span<const Operand> operands, std::span<const double> scalars, const void* packed);

    cw_op op_{};
    std::shared_ptr<Open> open_;
};

/// How products are computed: in f32, with factors rounded to bf16, or in f32 with Winograd's convolutions
/// (kernels/backend.h).
enum class Compute { f32 = CW_COMPUTE_F32, bf16 = CW_COMPUTE_BF16, winograd = CW_COMPUTE_WINOGRAD };
inline constexpr std::array all_computes = {Compute::f32, Compute::bf16, Compute::winograd};
std::string_view to_string(Compute compute);

/// An open backend.
///
/// threads  thread-bound, but for plans of streaming kinds
class Device {
public:
    /// errors   not_found: no backend of that name (`auto` is cpu); invalid: threads; unsupported: not on this machine
    static Result<Device> open(std::string_view name, const DeviceOptions& options = {});

    /// "cpu onednn-2.6.3 avx512 caches=32+512+1024 threads=1": equal inputs on equal signatures give equal bits.
    [[nodiscard]] std::string signature() const;
    [[nodiscard]] std::string_view name() const;
    /// errors   unsupported `kernel_unsupported`: the processor lacks the instructions, which the message names
    [[nodiscard]] Status check(Compute compute) const;
    /// errors   unsupported `kernel_unsupported`: the backend lacks a required kind; invalid `bad_operation`
    /// cost     up to milliseconds (matmul kinds generate code once per shape); streaming kinds are free
    Result<Plan> prepare(const cw_op& op) const;

    /// Device memory, 64-byte aligned, freed with the pointer; on a CPU it is host memory.
    [[nodiscard]] Result<std::shared_ptr<void>> allocate(std::uint64_t bytes) const;
    [[nodiscard]] Status copy(void* to, const void* from, std::uint64_t bytes, cw_direction direction) const;

private:
    friend class Plan;
    struct Handle;
    explicit Device(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
    std::shared_ptr<Handle> handle_;
};

/// Plans by op: prepared at first use, so that a training loop can ask at every step (0.1 us when found). All products
/// that come from one cache are computed in the same way, so layers need not know of it.
class PlanCache {
public:
    explicit PlanCache(Device device, Compute compute = Compute::f32) : device_(std::move(device)), compute_(compute) {}
    [[nodiscard]] Compute compute() const { return compute_; }
    /// Valid as long as the cache. errors: as prepare; overloaded `too_many_plans`: above 4096 different ops.
    Result<Plan*> get(const cw_op& op);
    [[nodiscard]] const Device& device() const { return device_; }

private:
    struct Less {
        bool operator()(const cw_op& a, const cw_op& b) const;
    };
    Device device_;
    Compute compute_;
    std::map<cw_op, Plan, Less> plans_;
};

/// The names that open accepts, in order of preference.
std::vector<std::string_view> backend_names();

}  // namespace causeway
