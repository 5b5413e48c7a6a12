// Every case of the checker on every backend, as tests. The reference against itself catches faults of the checker.
#include <catch2/catch.hpp>

#include "kernels/cpu/matmul.h"
#include "kernels/kinds.h"
#include "kernels/registry.h"
#include "tests/kernels/checker.h"

namespace causeway::checker {
namespace {

constexpr std::uint64_t seed = 1;

struct Promise {
    bool threads = true;  // Verdict::threads must hold
    bool split = true;
};

/// What docs/performance.md promises of a kind on this processor, whatever its caches.
Promise promise_for(const cw_op& op) {
    if (!is_product(op.kind)) {
        return {};
    }
    // oneDNN cuts these sums where a batch, the threads or the caches make it do so.
    const bool in_winograd = op.integers[CW_COMPUTE] == CW_COMPUTE_WINOGRAD;
    if (!cpu::has_avx512() || in_winograd || cpu::computes_in_amx(op)) {
        return {.threads = false, .split = false};
    }
    return {.threads = op.kind != CW_CONVOLUTION_BACKWARD_WEIGHTS};
}

/// Every case of the products, or of all other kinds, on every backend.
void hold_cases(bool products) {
    for (const auto name : backend_names()) {
        for (const auto& tested : correctness_cases()) {
            if (is_product(tested.op.kind) != products) {
                continue;
            }
            const auto verdict = check(name, tested, seed);
            INFO(name << ": " << tested.name << ", seed " << seed << ": " << verdict.problem);
            REQUIRE(verdict.problem.empty());
            REQUIRE(verdict.repeats);
            REQUIRE(verdict.sets);
            REQUIRE(verdict.packed);
            const auto promise = name == "reference" ? Promise{} : promise_for(tested.op);
            REQUIRE((verdict.threads || !promise.threads));
            REQUIRE((verdict.split || !promise.split));
        }
    }
}

}  // namespace

TEST_CASE("every backend agrees with the reference within each kind's tolerance, and stays inside its views",
          "[kernels]") {
    hold_cases(false);
}

TEST_CASE("in products too, whose bits depend on no more than is promised", "[kernels][products]") {
    hold_cases(true);
}

TEST_CASE("each kind is a case of the checker", "[kernels]") {
    const auto cases = correctness_cases();
    for (const auto& kind : kinds()) {
        INFO(kind.name);
        CHECK(std::ranges::any_of(cases, [&](const Case& tested) { return tested.op.kind == kind.kind; }));
    }
}

TEST_CASE("Winograd's convolutions are used where they pay, and elsewhere the bits are the plain ones", "[kernels]") {
    int used = 0, plain = 0;
    for (const auto& tested : correctness_cases()) {
        const auto& op = tested.op;
        const bool winograd = op.integers[CW_COMPUTE] == CW_COMPUTE_WINOGRAD;
        if (!winograd || tested.values == Values::special || op.operands[0].dims[0] == 0) {
            continue;
        }
        auto same = tested;
        same.op.integers[CW_COMPUTE] = CW_COMPUTE_F32;
        const auto device = Device::open("cpu");
        REQUIRE(device.has_value());
        const auto operands = make_operands(tested, 1);
        const auto asked = run(*device, tested, operands), usual = run(*device, same, operands);
        REQUIRE((asked && usual));
        const auto same_bits = [](const Buffer& a, const Buffer& b) { return a.same_bits(b); };
        const bool equal = std::ranges::equal(*asked, *usual, same_bits);
        const auto w = window_of(op);
        const bool pays = w.channels >= 32 && w.outputs >= 32 && w.channels % 16 == 0 && w.outputs % 16 == 0 &&
                          w.window_height == 3 && w.stride == 1 && w.groups == 1 && w.height >= 4;
        INFO(tested.name);
        CHECK((equal || (pays && cpu::has_avx512())));
        (equal ? plain : used) += 1;
    }
    CHECK(plain > 0);
    CHECK((used > 0) == cpu::has_avx512());
}

TEST_CASE("oneDNN never falls back to its slow reference code", "[kernels]") {
    cw_device* device = nullptr;
    cw_error error;
    const cw_options options{1, 0};
    REQUIRE(cpu_backend()->open(&options, &device, &error) == CW_OK);
    for (const auto& tested : correctness_cases()) {
        if (!is_product(tested.op.kind)) {
            continue;
        }
        cw_plan* plan = nullptr;
        const auto status = cpu_backend()->prepare(device, &tested.op, &plan, &error);
        if (status == CW_UNSUPPORTED && tested.op.integers[CW_COMPUTE] == CW_COMPUTE_BF16) {
            continue;  // this processor has no such instructions
        }
        REQUIRE(status == CW_OK);
        const auto implementation = cpu::product_implementation(*plan);
        INFO(tested.name << ": " << implementation);
        CHECK(implementation.find("ref") == std::string::npos);
        cpu_backend()->drop(plan);
    }
    cpu_backend()->close(device);
}

}  // namespace causeway::checker
