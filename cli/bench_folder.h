// A private temporary folder of a benchmark, gone with it.
#pragma once

#include <filesystem>
#include <system_error>

#include "common/digest.h"
#include "common/file.h"

namespace causeway::cli {

struct BenchFolder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("causeway-bench-" + to_hex(secret_random_bytes(4)));

    BenchFolder() { ASSERT(make_private_folder(path).has_value()); }
    BenchFolder(const BenchFolder&) = delete;
    BenchFolder& operator=(const BenchFolder&) = delete;
    ~BenchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

}  // namespace causeway::cli
