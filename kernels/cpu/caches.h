// The sizes of the processor's data caches as oneDNN 2.6 reads them. Thread: any.
#pragma once

#include <string>

namespace causeway::cpu {

/// "48+2048+153600": KiB of each level for one core, from the first level up. oneDNN cuts some sums to fit them, so
/// they are among what decides bits (docs/performance.md). It asks Intel's processors alone and takes 32+512+1024 for
/// all others.
std::string caches_as_onednn_sees_them();

}  // namespace causeway::cpu
