// The spelling of the error kinds: one table for logs, --json and the wire.
#include "common/result.h"

#include <array>

namespace causeway {
namespace {

constexpr std::array<std::string_view, 9> kind_names = {
    "invalid", "not_found", "refused", "overloaded", "disconnected", "timed_out", "corrupt", "unsupported", "io"};

}  // namespace

std::string_view to_string(ErrorKind kind) {
    return kind_names[static_cast<std::size_t>(kind)];
}

ErrorKind error_kind_from(std::string_view name) {
    for (std::size_t i = 0; i < kind_names.size(); ++i) {
        if (kind_names[i] == name) {
            return static_cast<ErrorKind>(i);
        }
    }
    return ErrorKind::io;
}

Error with_context(Error error, std::string_view where) {
    error.message = std::string(where) + ": " + error.message;
    return error;
}

}  // namespace causeway
