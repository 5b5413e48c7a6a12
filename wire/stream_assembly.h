// A stream's messages and their pieces: cut at the sender, put together at the receiver.
//
// A connection is in order and a sender never mixes two messages, so at most one is unfinished per connection and a
// piece either begins a message or continues the one before it without a gap. What is reserved follows what has come,
// never what a peer declares.
//
// threads  reentrant
#pragma once

#include <optional>

#include "wire/message.h"

namespace causeway {

/// Takes the next piece of at most `most` bytes off the front; the whole is empty after its last. cost: the piece is
/// copied, unless it is all
StreamData cut_piece(StreamData& whole, std::size_t most = max_chunk_bytes);

class StreamAssembly {
public:
    /// `largest`  bytes of a whole message
    explicit StreamAssembly(std::uint64_t largest) : largest_(largest) {}

    /// The whole message when its last piece has come: offset 0, the payload all of it.
    ///
    /// errors  overloaded `stream_too_long`: it declares more than `largest`; corrupt `out_of_order`: a gap, a
    ///         repetition, another message before the end of this one. Afterwards the stream is of no use
    Result<std::optional<StreamData>> add(StreamData piece);

    [[nodiscard]] bool unfinished() const { return building_.has_value(); }
    /// Bytes held of the unfinished message.
    [[nodiscard]] std::size_t held() const { return building_ ? building_->payload.size() : 0; }

private:
    std::uint64_t largest_;
    std::optional<StreamData> building_;
};

}  // namespace causeway
