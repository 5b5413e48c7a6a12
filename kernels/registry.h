// The backends of this build. A new one is one line in registry.cpp.
#pragma once

#include <span>

#include "kernels/backend.h"

namespace causeway {

/// In order of preference: the first is what `auto` opens.
std::span<const cw_backend* const> backends();

const cw_backend* cpu_backend();
const cw_backend* reference_backend();

}  // namespace causeway
