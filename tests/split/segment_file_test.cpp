// Segment files: what is written comes back, and whatever else the bytes are is a named error or an equal value.
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "model/initialise.h"
#include "split/segment_file.h"

namespace causeway {
namespace {

const Chain& segment_chain() {
    static const Chain made =
        *Chain::parse({"conv 2 3x3", "batchnorm", "relu", "flatten", "dense 3"}, {4, 4, 1}, "cross-entropy");
    return made;
}

const OptimizerSpec& adam() {
    static const auto spec = *parse_optimizer("adam learning_rate=0.1");
    return spec;
}

Segment segment(std::uint32_t from, std::uint32_t to) {
    return *Segment::make(segment_chain(), {{from, to}});
}

SegmentState state_of(const Segment& part) {
    SegmentState state{part.cut(initial_model(segment_chain(), 3)), {}};
    state.optimizer =
        OptimizerState::fresh(adam(), segment_chain().layer_count(), part.arena_size(ArenaKind::trainable));
    state.optimizer->steps[0] = 7;
    state.optimizer->moments.at(0).at(0) = 0.25f;
    state.model.trainable.values[1] = std::numeric_limits<float>::quiet_NaN();  // the firewall's to say
    return state;
}

Result<SegmentState> read(const Segment& part, ByteView bytes, const OptimizerSpec& optimizer = adam()) {
    return decode_segment(part, optimizer, segment_chain().layer_count(), bytes);
}

}  // namespace

TEST_CASE("a segment comes back bit for bit, with and without its optimizer's state", "[unit][segment_file]") {
    const auto part = GENERATE(segment(0, 2), segment(2, 5), segment(0, 5), segment(2, 4));
    const bool learns = part.arena_size(ArenaKind::trainable) > 0;
    auto state = learns ? state_of(part) : SegmentState{part.cut(initial_model(segment_chain(), 3)), {}};
    for (const bool with : {true, false}) {
        if (!with) {
            state.optimizer.reset();
        }
        const auto bytes = encode_segment(part, state);
        const auto again = read(part, bytes);
        REQUIRE(again);
        CHECK(again->optimizer == state.optimizer);
        CHECK(encode_segment(part, *again) == bytes);  // NaN included
    }
}

TEST_CASE("a segment that is cut short anywhere, or goes on, is a named error", "[unit][segment_file]") {
    const auto part = segment(0, 2);
    auto bytes = encode_segment(part, state_of(part));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto read_back = read(part, ByteView(bytes).first(length));
        INFO("length " << length);
        REQUIRE_FALSE(read_back);
        CHECK(read_back.error().kind == ErrorKind::corrupt);
        CHECK_FALSE(read_back.error().code.empty());
    }
    bytes.push_back(std::byte{0});
    CHECK(read(part, bytes).error().code == "bad_segment");
}

TEST_CASE("a flipped bit of a segment is a named error, or the very value that it says", "[unit][segment_file]") {
    const auto part = segment(0, 2);
    const auto bytes = encode_segment(part, state_of(part));
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        auto flipped = bytes;
        flipped[bit / 8] ^= std::byte{1} << (bit % 8);
        const auto again = read(part, flipped);
        INFO("bit " << bit);
        if (again) {
            CHECK(encode_segment(part, *again) == flipped);
        } else {
            CHECK_FALSE(again.error().code.empty());
        }
    }
}

TEST_CASE("a segment of other layers, sizes or another optimizer is refused", "[unit][segment_file]") {
    const auto part = segment(0, 2);
    const auto bytes = encode_segment(part, state_of(part));
    CHECK(read(segment(2, 5), bytes).error().code == "bad_segment");
    CHECK(read(segment(0, 5), bytes).error().code == "bad_segment");
    CHECK(read(part, bytes, *parse_optimizer("sgd learning_rate=0.1")).error().code == "bad_optimizer_state");
    const auto wider =
        *Chain::parse({"conv 4 3x3", "batchnorm", "relu", "flatten", "dense 3"}, {4, 4, 1}, "cross-entropy");
    const auto same_layers = *Segment::make(wider, {{0, 2}});
    const auto read_wider = decode_segment(same_layers, adam(), wider.layer_count(), bytes);
    REQUIRE_FALSE(read_wider);
    CHECK(read_wider.error().code == "bad_segment");
}

TEST_CASE("no claim of a segment file makes the reader allocate", "[unit][segment_file]") {
    const auto part = segment(0, 2);
    ByteWriter writer;
    writer.put_bytes(as_bytes(std::string_view("CWSE")));
    writer.put(std::uint16_t{1});
    writer.put_text("[0, 2)");
    const auto head = writer.take();
    for (const auto claim : {std::uint64_t{1} << 40, UINT64_MAX, UINT64_MAX / 4 + 1}) {
        ByteWriter claims;
        claims.put_bytes(head);
        claims.put(claim);
        const auto file = claims.take();
        CHECK(read(part, file).error().code == "bad_segment");
    }
}

}  // namespace causeway
