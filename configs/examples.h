// The examples of configs/examples/, carried inside the binary: a single installed file can run `causeway demo`.
//
// The texts are put in at build time by embed_examples.py; nothing is read from a disk here. Any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace causeway {

struct Example {
    std::string_view name;  // "digits-fedavg": the file's name without .toml
    std::string_view text;
};

/// Sorted by name.
[[nodiscard]] std::span<const Example> all_examples();
/// errors  not_found `unknown_example`, with the nearest name or the list
[[nodiscard]] Result<std::string> find_example(std::string_view name);

}  // namespace causeway
