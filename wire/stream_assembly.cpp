// Cutting and joining. Both keep the header of the message and move only offset and payload.
#include "wire/stream_assembly.h"

#include <algorithm>

namespace causeway {
namespace {

/// Everything but where the piece lies and its bytes.
StreamData header_of(const StreamData& m) {
    return {m.lease, m.cell, m.kind, m.epoch, m.batch, m.microbatch, m.rows, 0, m.total, {}};
}

}  // namespace

StreamData cut_piece(StreamData& whole, std::size_t most) {
    ASSERT(!whole.payload.empty());
    // `whole.offset` counts what has been cut; the payload keeps its length until the end, for nothing is moved.
    const auto begin = static_cast<std::size_t>(whole.offset);
    const auto rest = whole.payload.size() - begin;
    auto piece = header_of(whole);
    piece.total = whole.payload.size();
    piece.offset = begin;
    if (begin == 0 && rest <= most) {
        piece.payload = std::exchange(whole.payload, {});
        return piece;
    }
    const auto size = std::min(rest, most);
    const auto from = whole.payload.begin() + static_cast<std::ptrdiff_t>(begin);
    piece.payload.assign(from, from + static_cast<std::ptrdiff_t>(size));
    whole.offset += size;
    if (size == rest) {
        whole.payload = Bytes();
    }
    return piece;
}

Result<std::optional<StreamData>> StreamAssembly::add(StreamData piece) {
    if (piece.total > largest_) {
        return fail(ErrorKind::overloaded, "stream_too_long",
                    "a stream's message of " + std::to_string(piece.total) + " bytes is declared, and at most " +
                        std::to_string(largest_) + " are taken: smaller batches, or more microbatches");
    }
    const auto continues = [&] { return header_of(*building_) == header_of(piece); };
    if (piece.offset != held() || (building_ && !continues())) {
        return fail(ErrorKind::corrupt, "out_of_order",
                    "a piece of a stream's message begins at " + std::to_string(piece.offset) + " where " +
                        std::to_string(held()) + " bytes of it have come");
    }
    if (!building_) {
        building_.emplace(std::move(piece));
    } else {
        auto& bytes = building_->payload;
        bytes.insert(bytes.end(), piece.payload.begin(), piece.payload.end());
    }
    if (building_->payload.size() > building_->total) {
        return fail(ErrorKind::corrupt, "out_of_order", "a piece reaches beyond its message's end");
    }
    if (building_->payload.size() < building_->total) {
        return std::optional<StreamData>();
    }
    auto whole = std::exchange(building_, std::nullopt);
    return whole;
}

}  // namespace causeway
