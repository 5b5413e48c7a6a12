// The layers of a chain that one node holds: one interval, or the two ends of a chain in u-shaped training.
//
// A node keeps arenas of its own layers only, packed in chain order: 4 bytes times the parameters that it holds, not
// those of the model. Programs, range sets and messages speak of the whole chain's places; this is where one becomes
// the other. Immutable; any thread.
#pragma once

#include <array>
#include <vector>

#include "model/arena.h"
#include "model/chain.h"
#include "model/optimizer.h"
#include "model/program.h"

namespace causeway {

class Segment {
public:
    static Segment whole(const Chain& chain);
    /// errors   invalid `bad_segment`: empty, descending, overlapping or touching intervals, or none, or past the end
    static Result<Segment> make(const Chain& chain, std::vector<LayerInterval> layers);

    [[nodiscard]] const std::vector<LayerInterval>& layers() const { return layers_; }
    [[nodiscard]] bool holds(std::size_t layer) const;
    /// Whether values at this boundary exist here: a layer before or after it is held.
    [[nodiscard]] bool touches(std::size_t boundary) const;
    /// Its parts of an arena, in places of the whole chain.
    [[nodiscard]] const RangeSet& ranges(ArenaKind kind) const { return ranges_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] std::uint64_t arena_size(ArenaKind kind) const { return ranges(kind).element_count(); }
    /// Where a range of the whole arena lies in the packed one. It must be held as a whole, or be empty.
    [[nodiscard]] Range local(ArenaKind kind, Range range) const;

    /// The packed part of a whole model, with its versions.
    [[nodiscard]] ModelState cut(const ModelState& whole) const;
    /// Writes the packed part back into a whole model.
    void paste(const ModelState& part, ModelState& whole) const;

    bool operator==(const Segment&) const = default;

private:
    std::vector<LayerInterval> layers_;
    std::array<RangeSet, 3> ranges_;  // by ArenaKind
};

/// "[0, 3)" or "[0, 3) [5, 6)": the form of assignments and errors.
std::string to_text(const std::vector<LayerInterval>& layers);
/// Total. errors  invalid `bad_segment`
Result<std::vector<LayerInterval>> parse_intervals(std::string_view text);

}  // namespace causeway
