// The commands as a tree of plain values, from which completion and the man pages are made, and what to say of words
// that name none. Includes CLI11, as arguments.cpp does, whose tree it reads. Pure.
#pragma once

#include <span>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/completion.h"

namespace causeway::cli {

[[nodiscard]] CommandNode tree_of(const CLI::App& app);

/// What is wrong with the words, in place of CLI11's "A subcommand is required", and where the help is.
[[nodiscard]] std::string usage_message(CLI::App& root, std::span<char*> words, const std::string& wrong);

}  // namespace causeway::cli
