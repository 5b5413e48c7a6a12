// The one boundary around every command: whatever happens inside, it ends with an exit code and at most one line.
//
// Exceptions of libraries and of the machine (no memory, no thread, no folder) become errors here; signals that a write
// can raise are turned into the write's error; standard descriptors that are closed are held, so that no file of ours
// ever gets their numbers. Main thread, except that the last words may be any thread's.
#pragma once

#include <functional>

#include "cli/output.h"

namespace causeway::cli {

/// At the very start, before anything is opened. errors: io `too_few_descriptors`, `too_little_memory`
[[nodiscard]] Status prepare_process();

/// The command's exit code, or that of what came out of it as an exception.
int guarded(Output output, const std::function<int()>& command);

}  // namespace causeway::cli
