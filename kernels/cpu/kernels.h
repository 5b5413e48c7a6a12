// How the cpu backend finds the kernel of a kind.
//
// threads  reentrant, all of them
#pragma once

#include "kernels/host.h"

namespace causeway::cpu {

/// nullptr when the file has no kernel of that kind.
HostKernel loss_kernel(std::int32_t kind);
HostKernel streaming_kernel(std::int32_t kind);

}  // namespace causeway::cpu
