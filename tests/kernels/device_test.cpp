// Opening devices, preparing operations, and what is refused with which words.
#include <catch2/catch.hpp>

#include "kernels/device.h"
#include "kernels/kinds.h"
#include "kernels/registry.h"

namespace causeway {
namespace {

Device open_device(std::string_view name, int threads = 1) {
    auto device = Device::open(name, {.threads = threads});
    REQUIRE(device.has_value());
    return *std::move(device);
}

}  // namespace

TEST_CASE("auto opens the cpu backend, whose signature names all that decides bits", "[kernels]") {
    const auto device = open_device("auto", 2);
    CHECK(device.name() == "cpu");
    CHECK(device.signature().starts_with("cpu onednn-"));
    CHECK(device.signature().find(" caches=") != std::string::npos);
    CHECK(device.signature().ends_with(" threads=2"));
}

TEST_CASE("an unknown device is not found, and the message lists those that are", "[kernels]") {
    const auto device = Device::open("tpu");
    REQUIRE_FALSE(device.has_value());
    CHECK(device.error().kind == ErrorKind::not_found);
    CHECK(device.error().message.find("cpu, reference") != std::string::npos);
}

TEST_CASE("a number of threads outside 1 to 256 is refused", "[kernels]") {
    for (const int threads : {-1, 0, 257}) {
        const auto device = Device::open("cpu", {.threads = threads});
        REQUIRE_FALSE(device.has_value());
        CHECK(device.error().code == "bad_threads");
    }
}

TEST_CASE("a kind that a backend lacks is refused when it is prepared, not when it runs", "[kernels]") {
    for (const auto name : backend_names()) {
        auto op = ops::relu(3);
        op.kind = CW_FIRST_FUSED + 999;
        const auto plan = open_device(name).prepare(op);
        REQUIRE_FALSE(plan.has_value());
        CHECK(plan.error().kind == ErrorKind::unsupported);
        CHECK(plan.error().code == "kernel_unsupported");
    }
}

TEST_CASE("every backend has every required kind", "[kernels]") {
    for (const auto* backend : backends()) {
        CHECK(backend->abi == CW_ABI);
        for (const auto& kind : kinds()) {
            CHECK(find_kind(kind.kind) == &kind);
        }
        // Those that a backend may decline stand last, so that a number tells which they are.
        CHECK(std::ranges::is_sorted(kinds(), {}, &Kind::kind));
    }
}

TEST_CASE("an op that contradicts its kind is invalid", "[kernels]") {
    const auto device = open_device("cpu");
    const auto code_of = [&](const cw_op& op) {
        const auto plan = device.prepare(op);
        return plan ? std::string("accepted") : plan.error().code;
    };
    auto op = ops::matmul({.batch = 2, .inputs = 3, .outputs = 4});
    CHECK(code_of(op) == "accepted");

    SECTION("shapes that do not fit together") { op.operands[1].dims[1] = 5, op.operands[1].strides[0] = 5; }
    SECTION("too few operands") { op.operand_count = 2; }
    SECTION("a negative number of operands") { op.operand_count = -1; }
    SECTION("too many operands") { op.operand_count = CW_MAX_OPERANDS + 1; }
    SECTION("another dtype") { op.operands[0].dtype = CW_F64; }
    SECTION("another rank") { op.operands[0].rank = 1, op.operands[0].strides[0] = 1; }
    SECTION("an impossible rank") { op.operands[0].rank = CW_MAX_RANK + 1; }
    SECTION("a negative dimension") { op.operands[0].dims[0] = -7; }
    SECTION("an open dimension where the kind needs a fixed one") { op.operands[0].dims[0] = CW_ANY; }
    SECTION("a size whose product overflows") { op.operands[0].dims[0] = std::int64_t{1} << 62; }
    SECTION("an attribute that the kind does not have") { op.integers[0] = 1; }
    SECTION("a real attribute that the kind does not have") { op.reals[2] = 0.5; }
    CHECK(code_of(op) == "bad_operation");
}

TEST_CASE("strides that are not dense are unsupported", "[kernels]") {
    auto op = ops::matmul({.batch = 2, .inputs = 3, .outputs = 4});
    op.operands[0].strides[0] = 7;
    const auto plan = open_device("cpu").prepare(op);
    REQUIRE_FALSE(plan.has_value());
    CHECK(plan.error().code == "kernel_unsupported");
}

TEST_CASE("a plan of a streaming kind takes any length at each run", "[kernels]") {
    auto plan = open_device("cpu").prepare(ops::axpy());
    REQUIRE(plan.has_value());
    for (const std::size_t n : {0u, 1u, 7u, 100u}) {
        const std::vector<float> x(n, 2.0f);
        std::vector<float> y(n, 1.0f);
        REQUIRE(plan->run({x, y}, {3.0}).has_value());
        CHECK(y == std::vector<float>(n, 7.0f));
    }
}

TEST_CASE("a plan keeps its device alive", "[kernels]") {
    auto plan = open_device("cpu").prepare(ops::matmul({.batch = 1, .inputs = 2, .outputs = 1}));
    REQUIRE(plan.has_value());
    const std::vector<float> x{2, 3}, w{10, 100}, b{1};
    std::vector<float> y(1);
    REQUIRE(plan->run({x, w, b, y}).has_value());
    CHECK(y[0] == 321.0f);
}

TEST_CASE("memory of a device is aligned, zero bytes included, and copies move it", "[kernels]") {
    for (const auto name : backend_names()) {
        const auto device = open_device(name);
        for (const std::uint64_t bytes : {0u, 1u, 64u, 1000u}) {
            const auto memory = device.allocate(bytes);
            REQUIRE(memory.has_value());
            CHECK(reinterpret_cast<std::uintptr_t>(memory->get()) % 64 == 0);
            const std::vector<std::byte> from(bytes, std::byte{7});
            std::vector<std::byte> back(bytes);
            REQUIRE(device.copy(memory->get(), from.data(), bytes, CW_TO_DEVICE).has_value());
            REQUIRE(device.copy(back.data(), memory->get(), bytes, CW_FROM_DEVICE).has_value());
            CHECK(back == from);
        }
    }
}

TEST_CASE("memory that the machine does not have is refused as overloaded", "[kernels]") {
    const auto memory = open_device("cpu").allocate(~std::uint64_t{0} - 1);
    REQUIRE_FALSE(memory.has_value());
    CHECK(memory.error().kind == ErrorKind::overloaded);
}

TEST_CASE("a cache prepares an op once and tells apart what differs", "[kernels]") {
    PlanCache plans(open_device("cpu"));
    const auto first = plans.get(ops::relu(3));
    const auto second = plans.get(ops::relu(3));
    const auto other = plans.get(ops::relu(4));
    REQUIRE((first && second && other));
    CHECK(*first == *second);
    CHECK(*first != *other);
}

TEST_CASE("a cache of plans has a limit", "[kernels]") {
    PlanCache plans(open_device("reference"));
    for (std::int64_t n = 0; n < 4096; ++n) {
        REQUIRE(plans.get(ops::relu(n)).has_value());
    }
    const auto more = plans.get(ops::relu(5000));
    REQUIRE_FALSE(more.has_value());
    CHECK(more.error().code == "too_many_plans");
    CHECK(plans.get(ops::relu(7)).has_value());
}

}  // namespace causeway
