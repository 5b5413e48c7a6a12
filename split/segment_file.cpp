// See segment_file.h. Sizes come from the reader's own segment, never from the file.
#include "split/segment_file.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/optimizer_state.h"

namespace causeway {
namespace {

constexpr std::string_view magic = "CWSE";
constexpr std::uint16_t version = 1;
constexpr std::size_t max_layers_text = 256;
constexpr std::array kinds{ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen};

auto bad_segment(const std::string& why) {
    return fail(ErrorKind::corrupt, "bad_segment", "the segment file " + why);
}

Status read_arena(ByteReader& reader, std::uint64_t size, Arena& arena) {
    TRY_ASSIGN(const auto count, reader.get<std::uint64_t>());
    if (count != size) {
        return bad_segment(fmt::format("holds {} values where its layers have {}", count, size));
    }
    TRY_ASSIGN(const auto raw, reader.get_bytes(size * sizeof(float)));
    arena.values.resize(size);
    std::ranges::copy(raw, std::as_writable_bytes(std::span(arena.values)).begin());
    return {};
}

}  // namespace

Bytes encode_segment(const Segment& segment, const SegmentState& state) {
    ByteWriter writer;
    writer.put_bytes(as_bytes(magic));
    writer.put(version);
    writer.put_text(to_text(segment.layers()));
    for (const auto kind : kinds) {
        const auto& values = state.model.arena(kind).values;
        ASSERT(values.size() == segment.arena_size(kind));
        writer.put(static_cast<std::uint64_t>(values.size()));
        writer.put_bytes(std::as_bytes(std::span(values)));
    }
    const Bytes optimizer = state.optimizer ? encode_optimizer_state(*state.optimizer) : Bytes{};
    writer.put(static_cast<std::uint64_t>(optimizer.size()));
    writer.put_bytes(optimizer);
    return writer.take();
}

Result<SegmentState> decode_segment(const Segment& segment, const OptimizerSpec& optimizer, std::size_t layers,
                                    ByteView bytes) {
    ByteReader reader(bytes);
    TRY_ASSIGN(const auto head, reader.get_bytes(magic.size()));
    TRY_ASSIGN(const auto written, reader.get<std::uint16_t>());
    if (as_text(head) != magic || written != version) {
        return bad_segment("is none that this build reads");
    }
    TRY_ASSIGN(const auto text, reader.get_text(max_layers_text));
    if (text != to_text(segment.layers())) {
        return bad_segment(fmt::format("holds layers {}, not {}", text, to_text(segment.layers())));
    }
    SegmentState state;
    for (const auto kind : kinds) {
        TRY(read_arena(reader, segment.arena_size(kind), state.model.arena(kind)));
    }
    TRY_ASSIGN(const auto size, reader.get<std::uint64_t>());
    if (size != reader.left()) {
        return bad_segment("ends early, or goes on after its end");
    }
    if (size > 0) {
        TRY_ASSIGN(const auto raw, reader.get_bytes(size));
        TRY_ASSIGN(state.optimizer,
                   decode_optimizer_state(raw, optimizer, layers, segment.arena_size(ArenaKind::trainable)));
    }
    return state;
}

}  // namespace causeway
