// Durable writes over a file that is kept for them: beside common/file.h, for who writes one file again and again.
// Thread: any; one writer of a path at a time.
//
// The writing is that of write_file_durably, by the same code.
#pragma once

#include "common/file.h"

namespace causeway {

/// As write_file_durably, by way of `spare`, a file beside it whose blocks are written over where it is there: making
/// and removing a file for each of many writes costs more than the writing. On failure the spare is gone.
Status write_file_durably_over(const std::filesystem::path& spare, const std::filesystem::path& path, ByteView bytes,
                               FileMode mode = FileMode::shared);

}  // namespace causeway
