// A private temporary folder of a benchmark, gone with it.
#pragma once

#include <filesystem>

#include "common/output_folder.h"

namespace causeway::cli {

struct BenchFolder {
    ScratchFolder scratch;
    std::filesystem::path path = scratch.path();

    /// errors  those of ScratchFolder::make_temporary
    static Result<BenchFolder> make() {
        TRY_ASSIGN(auto scratch, ScratchFolder::make_temporary("causeway-bench-"));
        return BenchFolder{std::move(scratch)};
    }
};

}  // namespace causeway::cli
