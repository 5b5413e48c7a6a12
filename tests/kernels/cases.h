// The checker's cases: which operations, on which shapes and values, and how far a backend may be from the reference.
//
// One table gives correctness, bit equality and speed on every backend. A new kind is a few lines in allowances.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/buffers.h"

namespace causeway::checker {

enum class Values {
    ordinary,  // finite, of the sizes that training sees
    special,   // with NaN, infinities, signed zeros, denormals and large values among them
};

struct Case {
    std::string name;  // "matmul 32x64->10 bias"
    cw_op op;
    std::vector<double> scalars;
    Values values = Values::ordinary;
};

/// Shapes 0, 1, odd, prime, around and above vector and block sizes; each kind also with special values.
std::vector<Case> correctness_cases();
/// One large shape a kind.
std::vector<Case> speed_cases();

/// Inputs and initial contents of all operands, from a seed.
Buffers make_operands(const Case& tested, std::uint64_t seed);

enum class Role { in, out, both };
Role role_of(const cw_op& op, int operand);
/// Whether the first dimension of this operand is the batch (or the elements), so that the op may be run in two parts.
bool splits(const cw_op& op, int operand);
/// Bytes that one run must move at least.
std::uint64_t bytes_moved(const cw_op& op);
/// Multiplications and additions of one run, 0 where memory decides.
double flops(const cw_op& op);

/// The largest allowed |backend - reference| of each element of an output. The reasons stand in allowances.cpp.
std::vector<double> allowed_error(const Case& tested, const Buffers& operands, const Buffers& expected, int output);

}  // namespace causeway::checker
