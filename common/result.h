// Result<T>: what a function returns when it can fail for a reason outside this program.
//
// A failure that can happen (a peer, a file, a configuration, a device) is a value, and its kind says the remedy.
// A bug is an ASSERT (common/assert.h). Exceptions of foreign libraries are turned into a Result at one place each.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

#include "common/assert.h"

namespace causeway {

/// Named by what the caller should do about it. docs/errors.md has a line for each.
enum class ErrorKind {
    invalid,       // the input is wrong: correct it
    not_found,     // the thing named does not exist: look at the list of those that do
    refused,       // not allowed, or against a rule: ask who set the rule
    overloaded,    // a limit was reached: try later or raise the limit
    disconnected,  // the peer went away: connect again
    timed_out,     // no progress within the bound: try again
    corrupt,       // bytes are not what they must be: fetch or restore them again
    unsupported,   // this build or version cannot do it: upgrade or choose another way
    io,            // the machine failed (disk, descriptor): mend it, then go on
};

/// `invalid`, `not_found`, ...: the spelling used in logs, --json and on the wire.
std::string_view to_string(ErrorKind kind);
/// The kind with that spelling; `io` for an unknown one (a newer peer's).
ErrorKind error_kind_from(std::string_view name);

struct Error {
    ErrorKind kind = ErrorKind::io;
    std::string code;     // stable, snake_case, for programs: `zero_total_weight`; may equal the kind's name
    std::string message;  // for people: what, where, what next

    bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// return fail(ErrorKind::corrupt, "bad_magic", "model.bin is not a safetensors file");
inline tl::unexpected<Error> fail(ErrorKind kind, std::string code, std::string message) {
    return tl::unexpected<Error>(Error{kind, std::move(code), std::move(message)});
}

inline tl::unexpected<Error> fail(Error error) {
    return tl::unexpected<Error>(std::move(error));
}

/// The same error with `where: ` before its message.
Error with_context(Error error, std::string_view where);

}  // namespace causeway

#define CAUSEWAY_JOIN2(a, b) a##b
#define CAUSEWAY_JOIN(a, b) CAUSEWAY_JOIN2(a, b)

/// TRY(expression): returns the error of a Status or Result<T> from the calling function, drops the value.
#define TRY(...)                                                    \
    do {                                                            \
        if (auto&& try_result = (__VA_ARGS__); !try_result) {       \
            return ::causeway::fail(std::move(try_result).error()); \
        }                                                           \
    } while (false)

/// TRY_ASSIGN(auto x, expression): x is the value, or the calling function returns the error.
#define TRY_ASSIGN(target, ...)                                                          \
    auto CAUSEWAY_JOIN(try_value_, __LINE__) = (__VA_ARGS__);                            \
    if (!CAUSEWAY_JOIN(try_value_, __LINE__)) {                                          \
        return ::causeway::fail(std::move(CAUSEWAY_JOIN(try_value_, __LINE__)).error()); \
    }                                                                                    \
    target = *std::move(CAUSEWAY_JOIN(try_value_, __LINE__))
