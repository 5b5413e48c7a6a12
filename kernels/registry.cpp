// The backends of this build, the preferred first.
#include "kernels/registry.h"

#include <array>

namespace causeway {

std::span<const cw_backend* const> backends() {
    static const std::array table{cpu_backend(), reference_backend()};
    return table;
}

}  // namespace causeway
