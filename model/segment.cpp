// Places of the whole chain and of a node's packed arenas, one into the other.
#include "model/segment.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::array arena_kinds{ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen};
constexpr std::size_t max_intervals = 16;  // more than any flow gives a node

tl::unexpected<Error> bad_segment(const std::string& what) {
    return fail(ErrorKind::invalid, "bad_segment", "segment: " + what);
}

Status check_intervals(const Chain& chain, const std::vector<LayerInterval>& layers) {
    if (layers.empty() || layers.size() > max_intervals) {
        return bad_segment(fmt::format("{} intervals, of 1 to {}", layers.size(), max_intervals));
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const bool apart = i == 0 || layers[i - 1].end < layers[i].begin;
        if (layers[i].begin >= layers[i].end || layers[i].end > chain.layer_count() || !apart) {
            return bad_segment(
                fmt::format("{} in a model of {} layers: ascending intervals with a gap between them "
                            "are needed",
                            to_text(layers), chain.layer_count()));
        }
    }
    return {};
}

/// Takes `text` from the front; false when it is not there.
bool take(std::string_view& from, std::string_view text) {
    if (!from.starts_with(text)) {
        return false;
    }
    from.remove_prefix(text.size());
    return true;
}

bool take_number(std::string_view& from, std::uint32_t& number) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), number);
    from.remove_prefix(static_cast<std::size_t>(end - from.data()));
    return error == std::errc{};
}

}  // namespace

Segment Segment::whole(const Chain& chain) {
    auto made = make(chain, {{0, static_cast<std::uint32_t>(chain.layer_count())}});
    ASSERT(made);
    return *std::move(made);
}

Result<Segment> Segment::make(const Chain& chain, std::vector<LayerInterval> layers) {
    TRY(check_intervals(chain, layers));
    Segment segment;
    for (const ArenaKind kind : arena_kinds) {
        std::vector<Range> ranges;
        for (const auto [begin, end] : layers) {
            const Range range = chain.arena_range(kind, begin, end);
            if (range.size() > 0) {
                ranges.push_back(range);
            }
        }
        TRY_ASSIGN(segment.ranges_[static_cast<std::size_t>(kind)],
                   RangeSet::make(std::move(ranges), chain.table().arena_size(kind)));
    }
    segment.layers_ = std::move(layers);
    return segment;
}

bool Segment::holds(std::size_t layer) const {
    return std::ranges::any_of(layers_, [&](LayerInterval part) { return part.begin <= layer && layer < part.end; });
}

bool Segment::touches(std::size_t boundary) const {
    return std::ranges::any_of(layers_,
                               [&](LayerInterval part) { return part.begin <= boundary && boundary <= part.end; });
}

Range Segment::local(ArenaKind kind, Range range) const {
    if (range.size() == 0) {
        return {};
    }
    std::uint64_t before = 0;
    for (const Range& part : ranges(kind).ranges()) {
        if (part.begin <= range.begin && range.end <= part.end) {
            return {before + range.begin - part.begin, before + range.end - part.begin};
        }
        before += part.size();
    }
    ASSERT(!"a range of layers that this segment does not hold");
    return {};
}

ModelState Segment::cut(const ModelState& whole) const {
    ModelState part;
    for (const ArenaKind kind : arena_kinds) {
        const Arena& from = whole.arena(kind);
        Arena& to = part.arena(kind);
        to.version = from.version;
        to.values.reserve(arena_size(kind));
        for (const auto& [begin, end] : ranges(kind).ranges()) {
            to.values.insert(to.values.end(), from.values.begin() + static_cast<std::ptrdiff_t>(begin),
                             from.values.begin() + static_cast<std::ptrdiff_t>(end));
        }
    }
    return part;
}

void Segment::paste(const ModelState& part, ModelState& whole) const {
    for (const ArenaKind kind : arena_kinds) {
        ASSERT(part.arena(kind).values.size() == arena_size(kind));
        auto next = part.arena(kind).values.begin();
        for (const Range& range : ranges(kind).ranges()) {
            const auto end = next + static_cast<std::ptrdiff_t>(range.size());
            std::copy(next, end, whole.arena(kind).values.begin() + static_cast<std::ptrdiff_t>(range.begin));
            next = end;
        }
    }
}

std::string to_text(const std::vector<LayerInterval>& layers) {
    std::string text;
    for (const auto [begin, end] : layers) {
        text += fmt::format("{}[{}, {})", text.empty() ? "" : " ", begin, end);
    }
    return text;
}

Result<std::vector<LayerInterval>> parse_intervals(std::string_view text) {
    std::vector<LayerInterval> layers;
    for (std::string_view rest = text; !rest.empty() || layers.empty();) {
        LayerInterval part;
        const bool read = (layers.empty() || take(rest, " ")) && take(rest, "[") && take_number(rest, part.begin) &&
                          take(rest, ", ") && take_number(rest, part.end) && take(rest, ")");
        if (!read || layers.size() == max_intervals) {
            return bad_segment(fmt::format("\"{}\" is not a list such as \"[0, 3) [5, 6)\"", text.substr(0, 80)));
        }
        layers.push_back(part);
    }
    return layers;
}

}  // namespace causeway
