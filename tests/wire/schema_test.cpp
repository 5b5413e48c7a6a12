// The schema changes only on purpose: its normalised lines are kept in wire/schema.lock.
#include <catch2/catch.hpp>

#include "common/file.h"
#include "common/text.h"

namespace causeway {
namespace {

/// Without comments, empty lines and runs of spaces.
std::string normalised(std::string_view text) {
    std::string result;
    for (const auto& raw : split_text(text, '\n')) {
        const auto line = trim(std::string_view(raw).substr(0, raw.find('#')));
        std::string words;
        for (const char c : line) {
            const bool repeated_space = c == ' ' && !words.empty() && words.back() == ' ';
            words += repeated_space ? "" : std::string(1, c);
        }
        result += words.empty() ? "" : words + "\n";
    }
    return result;
}

TEST_CASE("the schema is the one in schema.lock: change both, and only add at the end", "[wire][tidy]") {
    const std::filesystem::path folder = std::filesystem::path(SOURCE_ROOT) / "wire";
    const auto schema = read_file(folder / "causeway.capnp", 1 << 20);
    const auto lock = read_file(folder / "schema.lock", 1 << 20);
    REQUIRE(schema.has_value());
    REQUIRE(lock.has_value());
    CHECK(normalised(as_text(*schema)) == std::string(as_text(*lock)));
}

TEST_CASE("the fields of every struct are numbered without a gap", "[wire][tidy]") {
    const auto lock = read_file(std::filesystem::path(SOURCE_ROOT) / "wire" / "schema.lock", 1 << 20);
    int next = 0;
    for (const auto& line : split_text(as_text(*lock), '\n')) {
        if (line.starts_with("struct ") || line.starts_with("enum ")) {
            next = 0;
        }
        const auto at = line.find(" @");
        if (at != std::string::npos && !line.starts_with("@") && !line.starts_with("using")) {
            INFO(line);
            CHECK(std::stoi(line.substr(at + 2)) == next++);
        }
    }
}

}  // namespace
}  // namespace causeway
