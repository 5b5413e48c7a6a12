// Crash points: named places before and after each persist and rename, at which a test may kill the process.
//
// A point is one load and a branch that is never taken, beside a flush that costs ten thousand times as much; so it is
// in every build, and the tests kill the very objects that people run. What is missing in a normal executable is
// somebody who sets the hook: only tests/crash/crash_hook.cpp does, which is linked into a test program and nowhere
// else, so no environment variable can hurt a real federation. Points whose name ends in `unflushed` are followed by a
// flush or are meant to do without: there the test also takes away half of the file, as a power cut would.
// Thread: the hook is set before main and never changes; it is called on any thread.
#pragma once

#include <filesystem>

namespace causeway {

/// `of` is the file or the kind of transaction that is about to be, or has just been, made durable.
using CrashHook = void (*)(const char* point, const char* of);

inline CrashHook crash_hook = nullptr;

inline void crash_point(const char* point, const char* of) {
    if (crash_hook != nullptr) [[unlikely]] {
        crash_hook(point, of);
    }
}
inline void crash_point(const char* point, const std::filesystem::path& of) {
    crash_point(point, of.c_str());
}

}  // namespace causeway
