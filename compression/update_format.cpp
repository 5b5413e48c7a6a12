// The writer appends into one buffer of the right size; the reader takes bytes of strangers. Its rule: a count is
// compared with a limit and with the bytes that are left before anything of that size is made.
#include "compression/update_format.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::string_view magic = "CWUP";
constexpr std::uint16_t version = 1;

template <class T>
void append(Bytes& out, T value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), raw.begin(), raw.end());
}

void append_text(Bytes& out, std::string_view text) {
    append(out, static_cast<std::uint32_t>(text.size()));
    const auto raw = as_bytes(text);
    out.insert(out.end(), raw.begin(), raw.end());
}

void append_part(const Codec& codec, const UpdatePart& part, Bytes& out) {
    ASSERT(part.shape.size() <= max_update_rank);
    ASSERT(part.values.size() == part.ranges.element_count());
    append(out, static_cast<std::uint8_t>(part.arena));
    append(out, static_cast<std::uint8_t>(part.dtype));
    append(out, static_cast<std::uint8_t>(part.shape.size()));
    append(out, std::uint8_t{0});
    for (const auto dimension : part.shape) {
        append(out, static_cast<std::int64_t>(dimension));
    }
    append(out, static_cast<std::uint32_t>(part.ranges.ranges().size()));
    for (const auto& range : part.ranges.ranges()) {
        append(out, range.begin);
        append(out, range.end);
    }
    // The codec's size is known after it has written: its place is kept and filled in.
    const auto size_at = out.size();
    append(out, std::uint64_t{0});
    codec.encode(part, out);
    const std::uint64_t size = out.size() - size_at - sizeof(std::uint64_t);
    std::memcpy(out.data() + size_at, &size, sizeof size);
}

// A good guess, exact for dense: without it a large update would be copied at each growth.
std::size_t encoded_size(const Codec& codec, const Update& update) {
    std::size_t size = magic.size() + sizeof(version) + 8 + codec.text.size();
    for (const auto& part : update.parts) {
        size += 16 + 8 * part.shape.size() + 16 * part.ranges.ranges().size() + 4 * part.values.size();
    }
    return size;
}

tl::unexpected<Error> corrupt(std::string code, std::string message) {
    return fail(ErrorKind::corrupt, std::move(code), "the update " + std::move(message));
}

// Which mistake it is matters to the person at the client: other bytes, another release, or another codec.
Status check_head(ByteReader& in, const Codec& codec) {
    TRY_ASSIGN(const auto found, in.get_bytes(magic.size()));
    if (as_text(found) != magic) {
        return corrupt("bad_magic", "does not begin with CWUP: these bytes are something else");
    }
    TRY_ASSIGN(const auto number, in.get<std::uint16_t>());
    if (number != version) {
        return fail(ErrorKind::unsupported, "update_version",
                    "the update has format " + std::to_string(number) + ", this build reads " +
                        std::to_string(version) + ": install the same release on both sides");
    }
    TRY_ASSIGN(const auto text, in.get_text(max_codec_text));
    if (text != codec.text) {
        return corrupt("codec_mismatch", "is not encoded with the round's codec '" + codec.text + "'");
    }
    return {};
}

class PartReader {
public:
    PartReader(const SharedBytes& whole, ByteReader& in, const Codec& codec, const DecodeLimits& limits)
        : whole_(whole),
          in_(in),
          codec_(codec),
          elements_left_(limits.elements),
          ranges_left_(limits.ranges),
          range_end_(limits.range_end) {}

    Result<UpdatePart> read() {
        UpdatePart part;
        TRY(read_kind(part));
        TRY(read_ranges(part));
        TRY_ASSIGN(const auto size, in_.get<std::uint64_t>());
        if (size > in_.left()) {
            return corrupt("truncated", "ends inside a part's values");
        }
        TRY_ASSIGN(const auto payload, in_.get_bytes(size));
        TRY(codec_.decode(payload_of(payload), part));
        return part;
    }

private:
    /// It shares what holds the whole, if anything does.
    [[nodiscard]] SharedBytes payload_of(ByteView payload) const {
        return whole_ ? SharedBytes(std::make_shared<const SharedBytes>(whole_), payload)
                      : SharedBytes(std::shared_ptr<const void>(), payload);
    }
    Status read_kind(UpdatePart& part) {
        TRY_ASSIGN(const auto arena, in_.get<std::uint8_t>());
        TRY_ASSIGN(const auto dtype, in_.get<std::uint8_t>());
        TRY_ASSIGN(const auto rank, in_.get<std::uint8_t>());
        TRY_ASSIGN(const auto zero, in_.get<std::uint8_t>());
        if (arena > static_cast<std::uint8_t>(ArenaKind::frozen) || dtype > static_cast<std::uint8_t>(DType::u8) ||
            rank > max_update_rank || zero != 0) {
            return corrupt("bad_part", "has a part of an unknown arena, dtype or rank");
        }
        part.arena = static_cast<ArenaKind>(arena);
        part.dtype = static_cast<DType>(dtype);
        for (int i = 0; i < rank; ++i) {
            TRY_ASSIGN(const auto dimension, in_.get<std::int64_t>());
            part.shape.push_back(dimension);
        }
        return {};
    }

    Status read_ranges(UpdatePart& part) {
        TRY_ASSIGN(const auto count, in_.get<std::uint32_t>());
        if (count > ranges_left_ || count > in_.left() / (2 * sizeof(std::uint64_t))) {
            return corrupt("too_many_ranges", "has more ranges than it may or its size allows");
        }
        ranges_left_ -= count;
        std::vector<Range> ranges(count);
        for (auto& range : ranges) {
            TRY_ASSIGN(range.begin, in_.get<std::uint64_t>());
            TRY_ASSIGN(range.end, in_.get<std::uint64_t>());
        }
        auto made = RangeSet::make(std::move(ranges), range_end_);
        if (!made) {
            return corrupt("bad_ranges", "has ranges that are empty, overlap, descend or are too far");
        }
        part.ranges = *std::move(made);
        const auto elements = part.ranges.element_count();
        if (elements > elements_left_) {
            return corrupt("too_many_elements", "holds more elements than twice the model");
        }
        elements_left_ -= elements;
        return {};
    }

    const SharedBytes& whole_;
    ByteReader& in_;
    const Codec& codec_;
    std::uint64_t elements_left_;
    std::uint32_t ranges_left_;
    std::uint64_t range_end_;
};

enum class Values { copied, borrowed };

// A tensor that travels whole keeps its shape; a slice has only a length.
UpdatePart make_part(const TensorInfo& tensor, const RangeSet& ranges, std::span<const float> arena, Values kept) {
    const auto count = ranges.element_count();
    const bool whole = count == tensor.range().size();
    UpdatePart part{
        tensor.arena, ranges, DType::f32, whole ? tensor.shape : Shape{static_cast<std::int64_t>(count)}, {}};
    if (kept == Values::borrowed && ranges.ranges().size() == 1) {
        const auto& only = ranges.ranges().front();
        ASSERT(only.end <= arena.size());
        const auto raw = std::as_bytes(arena.subspan(only.begin, only.size()));
        part.values = PartValues(SharedBytes({std::shared_ptr<const void>(), raw.data()}, raw));  // nobody's to free
        return part;
    }
    auto& values = part.values.own();
    values.reserve(count);
    for (const auto& range : ranges.ranges()) {
        ASSERT(range.end <= arena.size());
        const auto slice = arena.subspan(range.begin, range.size());
        values.insert(values.end(), slice.begin(), slice.end());
    }
    return part;
}

}  // namespace

DecodeLimits decode_limits(const TensorTable& table) {
    DecodeLimits limits;
    limits.parts = static_cast<std::uint32_t>(2 * table.tensors.size());
    for (const auto kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        limits.elements += 2 * table.arena_size(kind);
    }
    return limits;
}

ArenaRanges exchanged_ranges(const TensorTable& table) {
    return {table.ranges(ArenaKind::trainable, Exchange::shared), table.ranges(ArenaKind::buffers, Exchange::shared),
            RangeSet{}};
}

namespace {

Update update_of(const TensorTable& table, const ArenaRanges& wanted, const ArenaValues& arenas, Values kept) {
    Update update;
    for (const auto& tensor : table.tensors) {
        const auto kind = static_cast<std::size_t>(tensor.arena);
        const auto own = RangeSet::make({tensor.range()}, tensor.range().end);
        const auto ranges = own ? wanted[kind].intersected(*own) : RangeSet{};
        if (!ranges.empty()) {
            update.parts.push_back(make_part(tensor, ranges, arenas[kind], kept));
        }
    }
    return update;
}

}  // namespace

Update make_update(const TensorTable& table, const ArenaRanges& wanted, const ArenaValues& arenas) {
    return update_of(table, wanted, arenas, Values::copied);
}

Update borrow_update(const TensorTable& table, const ArenaRanges& wanted, const ArenaValues& arenas) {
    return update_of(table, wanted, arenas, Values::borrowed);
}

Bytes encode_update(const Codec& codec, const Update& update) {
    Bytes out;
    out.reserve(encoded_size(codec, update));
    const auto raw = as_bytes(magic);
    out.insert(out.end(), raw.begin(), raw.end());
    append(out, version);
    append_text(out, codec.text);
    append(out, static_cast<std::uint32_t>(update.parts.size()));
    for (const auto& part : update.parts) {
        append_part(codec, part, out);
    }
    return out;
}

Result<Update> decode_update(const Codec& codec, const SharedBytes& bytes, const DecodeLimits& limits) {
    ByteReader in(bytes.view());
    TRY(check_head(in, codec));
    TRY_ASSIGN(const auto count, in.get<std::uint32_t>());
    if (count > limits.parts) {
        return corrupt("too_many_parts", "has " + std::to_string(count) + " parts, more than twice the tensors");
    }
    Update update;
    PartReader reader(bytes, in, codec, limits);
    for (std::uint32_t i = 0; i < count; ++i) {
        TRY_ASSIGN(auto part, reader.read());
        update.parts.push_back(std::move(part));
    }
    if (in.left() != 0) {
        return corrupt("trailing_bytes", "goes on after its last part");
    }
    return update;
}

}  // namespace causeway
