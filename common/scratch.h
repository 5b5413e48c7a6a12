// What of a command's is under way on disk, so that a command which is stopped can take it along (Ctrl-C, a hangup).
// threads  thread-safe
#pragma once

#include <filesystem>

namespace causeway {

/// Half an output goes whole; a folder that was made for it only if nothing else is in it.
enum class Scratch { whole, if_empty };

void note_scratch(const std::filesystem::path& path, Scratch kind = Scratch::whole);
/// It is gone, or there to stay.
void forget_scratch(const std::filesystem::path& path);
/// For who is about to end the process: whoever notes or forgets anything from then on waits.
void remove_all_scratch();

}  // namespace causeway
