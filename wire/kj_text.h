// kj's StringPtr compares with a literal from its right side alone. Clang 16 and later no longer turn that round (C++'s
// P2468), and Cap'n Proto's own headers need it; gcc 12 does. Included before them, by the build, for clang only.
#pragma once

#include <kj/string.h>

namespace kj {

inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
inline bool operator!=(const char* a, const StringPtr& b) { return !(a == b); }

}  // namespace kj
