// Lines of logs (audit, node) as people read them: an event's fields as key=value. Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "common/json.h"

namespace causeway::cli {

/// Every field but those left out, in their order: `node=lab-a code=revoked`. Nulls are left out, too; digests and
/// fractions are shortened.
[[nodiscard]] std::string details_text(const Json& entry, std::initializer_list<std::string_view> left_out);

}  // namespace causeway::cli
