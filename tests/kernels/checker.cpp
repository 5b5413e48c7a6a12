// One case on one backend: error against the reference, guard zones, untouched inputs, and four kinds of bit equality.
#include "tests/kernels/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/streaming.h"
#include "kernels/kinds.h"

namespace causeway::checker {
namespace {

std::vector<Operand> operands_of(const Buffers& buffers) {
    std::vector<Operand> list;
    for (const auto& buffer : buffers) {
        list.push_back(buffer.operand());
    }
    return list;
}

/// Device::open for backends that must exist: a missing one is a bug of the test.
Device open_backend(std::string_view backend, int threads) {
    auto device = Device::open(backend, {.threads = threads});
    ASSERT(device.has_value());
    return *std::move(device);
}

bool is_in(Compute way, const Case& tested) {
    return tested.op.integers[CW_COMPUTE] == static_cast<std::int64_t>(way);
}

bool is_convolution(const cw_op& op) { return is_product(op.kind) && op.operands[0].rank == 4; }

/// Special factors may spread, but never vanish (kernels/backend.h): in bf16 as NaN, in a tile of Winograd's as either,
/// and in the blocks of convolutions that are computed without AVX-512.
bool may_spread(const Case& tested, double actual) {
    if (tested.values == Values::special && is_convolution(tested.op) && !cpu::has_avx512()) {
        return !std::isfinite(actual);
    }
    return tested.values == Values::special && ((is_in(Compute::bf16, tested) && std::isnan(actual)) ||
                                                (is_in(Compute::winograd, tested) && !std::isfinite(actual)));
}

/// |actual - expected| as a share of the allowed error: 0 when equal, NaN with NaN, or the same infinity.
double share_of(double actual, double expected, double allowed) {
    if (actual == expected || (std::isnan(actual) && std::isnan(expected))) {
        return 0;
    }
    const double error = std::abs(actual - expected);
    // A NaN allowance stands where a special value dominates the sum of absolute terms: there only the kind of the
    // result (NaN, infinity) is compared, above and below.
    const bool both_finite = std::isfinite(actual) && std::isfinite(expected);
    return both_finite && !(error > allowed) ? (allowed > 0 ? error / allowed : 0)
                                             : std::numeric_limits<double>::infinity();
}

void compare(const Case& tested, const Buffers& before, const Buffers& expected, const Buffers& actual,
             Verdict& verdict) {
    for (int k = 0; k < tested.op.operand_count; ++k) {
        if (!actual[k].guards_intact()) {
            verdict.problem = fmt::format("operand {}: written outside", k);
        }
        if (role_of(tested.op, k) == Role::in) {
            verdict.problem = actual[k].same_bits(before[k]) ? verdict.problem : fmt::format("input {} changed", k);
            continue;
        }
        const auto allowed = allowed_error(tested, before, expected, k);
        for (std::size_t i = 0; i < actual[k].count(); ++i) {
            const double value = actual[k].value(i);
            const double share = may_spread(tested, value) ? 0 : share_of(value, expected[k].value(i), allowed[i]);
            verdict.worst_share = std::max(verdict.worst_share, share);
            if (share > 1 && verdict.problem.empty()) {
                verdict.problem = fmt::format("operand {} element {}: {} instead of {}, allowed {}", k, i,
                                              actual[k].value(i), expected[k].value(i), allowed[i]);
            }
        }
    }
}

bool same(const Buffers& a, const Buffers& b) {
    return std::ranges::equal(a, b, [](const Buffer& x, const Buffer& y) { return x.same_bits(y); });
}

/// The op with `rows` instead of all rows.
cw_op part_of(const cw_op& op, std::int64_t rows) {
    cw_op part = op;
    for (std::int32_t k = 0; k < op.operand_count; ++k) {
        part.operands[k].dims[0] = splits(op, k) ? rows : op.operands[k].dims[0];
    }
    return part;
}

/// Runs rows [begin, end) of all operands that have rows.
Status run_part(const Device& device, const Case& tested, Buffers& operands, std::int64_t begin, std::int64_t end) {
    TRY_ASSIGN(auto plan, device.prepare(part_of(tested.op, end - begin)));
    const auto rows = tested.op.operands[0].dims[0];
    std::vector<Operand> list;
    for (std::int32_t k = 0; k < tested.op.operand_count; ++k) {
        const auto width = rows == 0 ? 0 : static_cast<std::int64_t>(operands[k].count()) / rows;
        list.push_back(splits(tested.op, k) ? operands[k].operand(begin * width, end * width) : operands[k].operand());
    }
    return plan.run(list, tested.scalars);
}

bool equal_in_parts(const Device& device, const Case& tested, const Buffers& before, const Buffers& whole) {
    const auto rows = tested.op.operands[0].dims[0];
    if (!splits(tested.op, 0) || rows < 2) {
        return true;
    }
    auto parts = before;
    const auto cut = (rows + 1) / 3 + 1 < rows ? (rows + 1) / 3 + 1 : 1;
    const bool ran = run_part(device, tested, parts, 0, cut) && run_part(device, tested, parts, cut, rows);
    bool equal = ran;
    for (std::int32_t k = 0; k < tested.op.operand_count; ++k) {
        equal = equal && (!splits(tested.op, k) || parts[k].same_bits(whole[k]));
    }
    return equal;
}

/// Packed weights against plain ones, where the plan packs.
bool equal_when_packed(const Device& device, const Case& tested, const Buffers& before, const Buffers& plain) {
    auto plan = device.prepare(tested.op);
    if (!plan || plan->packed_bytes() == 0) {
        return plan.has_value();
    }
    auto copies = before;
    const auto list = operands_of(copies);
    const auto packed = device.allocate(plan->packed_bytes());
    const bool ran = packed && plan->pack(list[1], packed->get()) &&
                     (list.size() == 4 ? plan->run_packed({list[0], list[1], list[2], list[3]}, packed->get())
                                       : plan->run_packed({list[0], list[1], list[2]}, packed->get()));
    return ran && same(copies, plain);
}

/// Every instruction set against the best; nothing to see for oneDNN's kinds, whose set is the library's choice.
bool equal_on_sets(const Device& device, const Case& tested, const Buffers& before, const Buffers& best) {
    bool equal = true;
    for (const auto set : cpu::instruction_sets()) {
        cpu::use_instruction_set(set);
        const auto result = run(device, tested, before);
        equal = equal && result && same(*result, best);
    }
    cpu::use_instruction_set("");
    return equal;
}

}  // namespace

Result<Buffers> run(const Device& device, const Case& tested, const Buffers& operands) {
    TRY_ASSIGN(auto plan, device.prepare(tested.op));
    auto copies = operands;
    TRY(plan.run(operands_of(copies), tested.scalars));
    return copies;
}

Verdict check(std::string_view backend, const Case& tested, std::uint64_t seed) {
    Verdict verdict;
    const auto before = make_operands(tested, seed);
    const auto expected = run(open_backend("reference", 1), tested, before);
    const auto device = open_backend(backend, 1);
    const auto actual = run(device, tested, before);
    if (!actual && is_in(Compute::bf16, tested) && actual.error().kind == ErrorKind::unsupported) {
        verdict.declined = true;
        return verdict;
    }
    if (!actual || !expected) {
        verdict.problem = actual ? expected.error().message : actual.error().message;
        return verdict;
    }
    compare(tested, before, *expected, *actual, verdict);
    const auto again = run(device, tested, before);
    const auto on_two = run(open_backend(backend, 2), tested, before);
    verdict.repeats = again && same(*again, *actual);
    verdict.threads = on_two && same(*on_two, *actual);
    verdict.split = equal_in_parts(device, tested, before, *actual);
    verdict.packed = !is_product(tested.op.kind) || equal_when_packed(device, tested, before, *actual);
    verdict.sets = is_product(tested.op.kind) || equal_on_sets(device, tested, before, *actual);
    return verdict;
}

Result<double> time_of(const Device& device, const Case& tested) {
    using Clock = std::chrono::steady_clock;
    const auto operands = make_operands(tested, 1);
    const auto list = operands_of(operands);
    TRY_ASSIGN(auto plan, device.prepare(tested.op));
    double best = std::numeric_limits<double>::infinity();
    double total = 0;
    for (int run = 0; run < 1000 && (run < 3 || total < 0.05); ++run) {
        const auto start = Clock::now();
        TRY(plan.run(list, tested.scalars));
        const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        best = std::min(best, elapsed);
        total += elapsed;
    }
    return best;
}

}  // namespace causeway::checker
