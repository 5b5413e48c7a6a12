// See local_state.h. Sizes come from the table alone; what a section says is compared with them.
#include "model/local_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace causeway {
namespace {

constexpr std::array kinds{ArenaKind::trainable, ArenaKind::buffers};
constexpr std::uint32_t most_states = 2;

struct LocalState {
    std::uint32_t round = 0;
    std::array<std::vector<float>, 2> values;  // by kinds
};

auto bad_local_state(const char* why) {
    return fail(ErrorKind::corrupt, "bad_local_state", std::string("what this node keeps of the model ") + why);
}

Result<std::vector<LocalState>> read_states(const TensorTable& table, ByteView section) {
    ByteReader reader(section);
    TRY_ASSIGN(const auto count, reader.get<std::uint32_t>());
    if (count < 1 || count > most_states) {
        return bad_local_state("is not of this format");
    }
    std::vector<LocalState> states(count);
    for (LocalState& state : states) {
        TRY_ASSIGN(state.round, reader.get<std::uint32_t>());
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            state.values[i].resize(table.ranges(kinds[i], Exchange::local).element_count());
            TRY_ASSIGN(const auto raw, reader.get_bytes(state.values[i].size() * sizeof(float)));
            std::memcpy(state.values[i].data(), raw.data(), raw.size());
            if (!std::ranges::all_of(state.values[i], [](float value) { return std::isfinite(value); })) {
                return bad_local_state("holds NaN or infinity");
            }
        }
    }
    if (reader.left() != 0) {
        return bad_local_state("is of another model");
    }
    return states;
}

Bytes write_states(const std::vector<LocalState>& states) {
    ByteWriter writer;
    writer.put(static_cast<std::uint32_t>(states.size()));
    for (const LocalState& state : states) {
        writer.put(state.round);
        for (const auto& values : state.values) {
            writer.put_bytes(std::as_bytes(std::span(values)));
        }
    }
    return writer.take();
}

}  // namespace

bool has_local_tensors(const TensorTable& table) {
    return std::ranges::any_of(table.tensors, [](const TensorInfo& t) { return t.exchange == Exchange::local; });
}

Status put_local(const TensorTable& table, ByteView section, std::uint32_t round, ModelState& model) {
    TRY_ASSIGN(const auto states, read_states(table, section));
    const auto found = std::ranges::find_if(states, [&](const LocalState& state) { return state.round <= round; });
    const LocalState& state = found != states.end() ? *found : states.back();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        auto& into = model.arena(kinds[i]).values;
        const float* next = state.values[i].data();
        const RangeSet own = table.ranges(kinds[i], Exchange::local);
        for (const Range& range : own.ranges()) {
            ASSERT(range.end <= into.size());
            std::copy_n(next, range.size(), into.begin() + static_cast<std::ptrdiff_t>(range.begin));
            next += range.size();
        }
    }
    return {};
}

Result<Bytes> keep_local(const TensorTable& table, ByteView before, std::uint32_t round, const ModelState& end) {
    std::vector<LocalState> states(1);
    states.front().round = round;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const auto& from = end.arena(kinds[i]).values;
        const RangeSet own = table.ranges(kinds[i], Exchange::local);
        for (const Range& range : own.ranges()) {
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(range.begin);
            states.front().values[i].insert(states.front().values[i].end(), first,
                                            first + static_cast<std::ptrdiff_t>(range.size()));
        }
    }
    if (!before.empty()) {
        TRY_ASSIGN(auto older, read_states(table, before));
        states.push_back(std::move(older.front()));
    }
    return write_states(states);
}

}  // namespace causeway
