// The text of a file a block at a time, gunzipped where it is gzip: a table of gigabytes is read without being held.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "common/bytes.h"

namespace causeway {

/// threads  one owner at a time
class TextStream {
public:
    /// errors   not_found, io
    static Result<TextStream> open(const std::filesystem::path& path, std::uint64_t limit);
    TextStream(TextStream&&) noexcept;
    TextStream& operator=(TextStream&&) noexcept;
    ~TextStream();

    /// Writes the next bytes; 0 at the end.
    ///
    /// errors   io; corrupt `bad_gzip`; overloaded `too_large`, `inflated_too_large`: more than the limit, or a bomb
    Result<std::size_t> read(std::span<std::byte> room);
    /// The share of the file on disk that has been taken, for who guesses how much is to come: above 0, at most 1.
    [[nodiscard]] double progress() const;

private:
    struct State;
    explicit TextStream(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace causeway
