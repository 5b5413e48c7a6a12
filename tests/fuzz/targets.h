// What decodes bytes that somebody else chose: one target per decoder, with seeds made by code.
//
// Two programs drive them: test_fuzz (Catch2) tries the seeds and a few thousand mutations of each in every ./check;
// causeway_fuzz (libFuzzer, -Dfuzz=true, clang) searches by coverage. A target checks what the decoder
// promises, by REQUIRE_FUZZ: a sound value or a named error, and that a value that is written comes back.
#pragma once

#include <cstdlib>
#include <span>
#include <vector>

#include "common/assert.h"
#include "common/bytes.h"
#include "common/result.h"

// Both drivers and the sanitizers see an abort; Catch2's macros would tie the targets to one of them.
#define REQUIRE_FUZZ(condition) ASSERT(condition)

namespace causeway {

struct FuzzTarget {
    const char* name;
    void (*run)(ByteView input);
    std::vector<Bytes> (*seeds)();
    int mutations;  // in test_fuzz; fewer where one input costs a handshake
};

std::span<const FuzzTarget> wire_targets();
std::span<const FuzzTarget> stream_targets();
std::span<const FuzzTarget> data_targets();
std::span<const FuzzTarget> text_targets();
std::span<const FuzzTarget> model_targets();

/// Every failure has a code and words.
inline void require_named(const Error& error) {
    REQUIRE_FUZZ(!error.code.empty() && !error.message.empty());
}
template <class T>
void require_named(const Result<T>& result) {
    if (!result) {
        require_named(result.error());
    }
}

std::vector<const FuzzTarget*> all_targets();

}  // namespace causeway
