// An experiment file that is right, and ways to make it wrong: what the tests of configs/ start from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "configs/reader.h"

namespace causeway {

constexpr std::string_view right_text = R"([experiment]
name = "test"
rounds = 3

[data]
dataset = "digits"
shape = [8, 8, 1]
scale = "0..16 -> 0..1"
partition = { kind = "dirichlet", alpha = 0.5 }

[model]
layers = ["flatten", "dense 16", "relu", "dense 10"]

[train]
optimizer = { kind = "sgd", learning_rate = 0.05, momentum = 0.9 }
batch = 16
)";

/// The right text with one piece replaced.
inline std::string with(std::string_view piece, std::string_view replacement) {
    std::string text(right_text);
    const auto at = text.find(piece);
    REQUIRE(at != std::string::npos);
    return text.replace(at, piece.size(), replacement);
}

inline std::vector<std::string> errors_of(std::string_view text, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> lines;
    const auto read = read_experiment(text, "e.toml", overrides);
    if (!read) {
        for (const auto& error : read.error()) {
            lines.push_back(error.text());
        }
    }
    return lines;
}

/// One line, with all errors: for messages of failed checks and for searching.
inline std::string all_errors(std::string_view text, const std::vector<std::string>& overrides = {}) {
    std::string all;
    for (const auto& line : errors_of(text, overrides)) {
        all += line + "\n";
    }
    return all;
}

}  // namespace causeway
