// The owner of the C table: statuses become Results, opened things are closed in the right order.
//
// A plan keeps its device open, and a device its backend (static), so that members of a model may die in any order.
// Threads: as device.h says.
#include "kernels/device.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "common/text.h"
#include "kernels/kinds.h"
#include "kernels/registry.h"

namespace causeway {
namespace {

constexpr std::size_t plan_limit = 4096;  // a model of 100 layers with 2 batch sizes prepares about 1000

/// Statuses of a backend in the words of common/result.h.
tl::unexpected<Error> failure(cw_status status, const cw_error& error) {
    switch (status) {
        case CW_UNSUPPORTED: return fail(ErrorKind::unsupported, "kernel_unsupported", error.message);
        case CW_INVALID: return fail(ErrorKind::invalid, "bad_operation", error.message);
        case CW_OUT_OF_MEMORY: return fail(ErrorKind::overloaded, "out_of_memory", error.message);
        default: return fail(ErrorKind::io, "device_failed", error.message);
    }
}

/// The view of one operand of a run, checked against the op. `any` is the length that stands for CW_ANY, -1 at first.
cw_view view_of(const cw_view& shape, const Operand& operand, std::int64_t& any) {
    cw_view view = shape;
    view.data = const_cast<void*>(operand.data);  // backend.h says which operands are only read
    ASSERT(operand.dtype == shape.dtype);
    if (shape.rank == 1 && shape.dims[0] == CW_ANY) {
        const auto count = static_cast<std::int64_t>(operand.count);
        any = any < 0 ? count : any;
        view.dims[0] = any;
    }
    ASSERT(element_count(view) == static_cast<std::int64_t>(operand.count));
    return view;
}

}  // namespace

/// An open device, closed when the last of its plans, memories and Device values is gone.
struct Device::Handle {
    const cw_backend& backend;
    cw_device* device;
    // Scratch of all plans: they run one after the other, those that need some on the trainer thread alone.
    void* workspace = nullptr;
    std::uint64_t workspace_bytes = 0;
    Handle(const cw_backend& table, cw_device* opened) : backend(table), device(opened) {}
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() {
        backend.free(device, workspace);
        backend.close(device);
    }
    /// The largest scratch that any plan has asked for. What is in it does not matter between two runs.
    Status grow_workspace(std::uint64_t bytes);
};

Status Device::Handle::grow_workspace(std::uint64_t bytes) {
    if (bytes <= workspace_bytes) {
        return {};
    }
    backend.free(device, std::exchange(workspace, nullptr));
    workspace_bytes = 0;
    cw_error error;
    if (const auto status = backend.alloc(device, bytes, &workspace, &error); status != CW_OK) {
        return failure(status, error);
    }
    workspace_bytes = bytes;
    return {};
}

/// What copies of a plan share: the backend's plan, dropped with the last copy.
struct Plan::Open {
    std::shared_ptr<Device::Handle> handle;
    cw_plan* plan;
    cw_plan_size size;
    std::int32_t scalars;
    Open(std::shared_ptr<Device::Handle> device, cw_plan* prepared, std::int32_t scalar_number)
        : handle(std::move(device)), plan(prepared), size(handle->backend.size(prepared)), scalars(scalar_number) {}
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
    ~Open() { handle->backend.drop(plan); }
};

Status Plan::run(std::span<const Operand> operands, std::span<const double> scalars) {
    return run(operands, scalars, nullptr);
}

Status Plan::run_packed(std::initializer_list<Operand> operands, const void* packed) {
    return run(std::span(operands.begin(), operands.size()), {}, packed);
}

std::uint64_t Plan::packed_bytes() const { return open_->size.packed_bytes; }

Status Plan::pack(const Operand& weights, void* packed) {
    ASSERT(packed_bytes() > 0);
    std::int64_t any = -1;
    const auto view = view_of(op_.operands[1], weights, any);  // the second operand of every kind that packs
    cw_error error;
    const auto status = open_->handle->backend.pack(open_->plan, nullptr, &view, packed, &error);
    return status == CW_OK ? Status{} : Status{failure(status, error)};
}

Status Plan::run(std::span<const Operand> operands, std::span<const double> scalars, const void* packed) {
    ASSERT(operands.size() == static_cast<std::size_t>(op_.operand_count));
    ASSERT(scalars.size() == static_cast<std::size_t>(open_->scalars));
    std::array<cw_view, CW_MAX_OPERANDS> views;  // on the stack: a run allocates nothing
    std::int64_t any = -1;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        views[i] = view_of(op_.operands[i], operands[i], any);
    }
    void* workspace = open_->size.workspace_bytes > 0 ? open_->handle->workspace : nullptr;
    const cw_run run{views.data(), op_.operand_count, open_->scalars, scalars.data(), workspace, packed};
    cw_error error;
    const auto status = open_->handle->backend.run(open_->plan, nullptr, &run, &error);
    return status == CW_OK ? Status{} : Status{failure(status, error)};
}

Status Plan::run(std::initializer_list<Operand> operands, std::initializer_list<double> scalars) {
    return run(std::span(operands.begin(), operands.size()), std::span(scalars.begin(), scalars.size()));
}

Result<Device> Device::open(std::string_view name, const DeviceOptions& options) {
    if (options.threads < 1 || options.threads > 256) {
        return fail(ErrorKind::invalid, "bad_threads", fmt::format("threads = {}: give 1 to 256", options.threads));
    }
    for (const auto* backend : backends()) {
        if (name != "auto" && name != backend->name) {
            continue;
        }
        const cw_options raw{options.threads, options.device_index};
        cw_device* device = nullptr;
        cw_error error;
        if (const auto status = backend->open(&raw, &device, &error); status != CW_OK) {
            return failure(status, error);
        }
        return Device(std::make_shared<Handle>(*backend, device));
    }
    const auto known = backend_names();
    const std::vector<std::string> names(known.begin(), known.end());
    return fail(ErrorKind::not_found, "unknown_device",
                fmt::format("no compute backend is called '{}'; this build has: {}", name, join(names, ", ")));
}

std::string Device::signature() const { return handle_->backend.signature(handle_->device); }
std::string_view Device::name() const { return handle_->backend.name; }

std::string_view to_string(Compute compute) {
    switch (compute) {
        case Compute::bf16: return "bf16";
        case Compute::winograd: return "winograd";
        case Compute::f32: break;
    }
    return "f32";
}

Status Device::check(Compute compute) const {
    cw_op op = ops::matmul({.batch = 0, .inputs = 1, .outputs = 1});  // prepared without work
    op.integers[CW_COMPUTE] = static_cast<std::int64_t>(compute);
    const auto plan = prepare(op);
    return plan ? Status{} : Status{fail(plan.error())};
}

Result<Plan> Device::prepare(const cw_op& op) const {
    cw_plan* raw = nullptr;
    cw_error error;
    if (const auto status = handle_->backend.prepare(handle_->device, &op, &raw, &error); status != CW_OK) {
        return failure(status, error);
    }
    Plan plan;
    plan.op_ = op;
    plan.open_ = std::make_shared<Plan::Open>(handle_, raw, scalar_count(op));
    if (plan.open_->size.workspace_bytes > 0) {  // never a streaming kind, which any thread may prepare
        TRY(handle_->grow_workspace(plan.open_->size.workspace_bytes));
    }
    return plan;
}

Result<std::shared_ptr<void>> Device::allocate(std::uint64_t bytes) const {
    void* memory = nullptr;
    cw_error error;
    if (const auto status = handle_->backend.alloc(handle_->device, bytes, &memory, &error); status != CW_OK) {
        return failure(status, error);
    }
    const auto give_back = [handle = handle_](void* held) { handle->backend.free(handle->device, held); };
    return std::shared_ptr<void>(memory, give_back);
}

Status Device::copy(void* to, const void* from, std::uint64_t bytes, cw_direction direction) const {
    cw_error error;
    const auto status = handle_->backend.copy(handle_->device, nullptr, to, from, bytes, direction, &error);
    return status == CW_OK ? Status{} : Status{failure(status, error)};
}

Result<Plan*> PlanCache::get(const cw_op& wanted) {
    cw_op op = wanted;
    if (is_product(op.kind)) {
        op.integers[CW_COMPUTE] = static_cast<std::int64_t>(compute_);
    }
    if (const auto found = plans_.find(op); found != plans_.end()) {
        return &found->second;
    }
    if (plans_.size() >= plan_limit) {
        return fail(ErrorKind::overloaded, "too_many_plans",
                    fmt::format("{} operations are prepared already: use fewer batch sizes", plan_limit));
    }
    TRY_ASSIGN(auto plan, device_.prepare(op));
    return &plans_.emplace(op, std::move(plan)).first->second;
}

bool PlanCache::Less::operator()(const cw_op& a, const cw_op& b) const {
    // Builders zero what they do not use, so equal ops have equal bytes; the order itself means nothing.
    static_assert(std::has_unique_object_representations_v<cw_view>, "padding would compare as noise");
    return std::memcmp(&a, &b, sizeof(cw_op)) < 0;
}

std::vector<std::string_view> backend_names() {
    std::vector<std::string_view> names;
    for (const auto* backend : backends()) {
        names.emplace_back(backend->name);
    }
    return names;
}

}  // namespace causeway
