// The update's bytes: what was encoded comes back, and any other bytes give a named error and nothing worse.
#include "compression/update_format.h"

#include <algorithm>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

namespace causeway {
namespace {

TensorTable two_layer_table() {
    TensorTable table;
    table.tensors = {{"dense1.weight", DType::f32, {3, 4}, 0, ArenaKind::trainable, 0},
                     {"dense1.bias", DType::f32, {3}, 0, ArenaKind::trainable, 12},
                     {"norm.mean", DType::f32, {3}, 1, ArenaKind::buffers, 0}};
    return table;
}

const std::vector<float> trainable{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
const std::vector<float> buffers{-1, -2, -3};

Update whole_update() {
    return make_update(two_layer_table(), {RangeSet::all(15), RangeSet::all(3), {}}, {trainable, buffers, {}});
}

bool equal(const Update& a, const Update& b) {
    return std::ranges::equal(a.parts, b.parts, [](const UpdatePart& x, const UpdatePart& y) {
        return x.arena == y.arena && x.ranges == y.ranges && x.dtype == y.dtype && x.shape == y.shape &&
               x.values == y.values;
    });
}

const Codec& dense() {
    static const Codec codec = *parse_codec("dense");
    return codec;
}

Result<Update> decode(ByteView bytes) {
    return decode_update(dense(), bytes, decode_limits(two_layer_table()));
}

std::string code_of(const Result<Update>& result) {
    return result ? "" : result.error().code;
}

}  // namespace

TEST_CASE("a borrowed update has the bytes of a copied one", "[unit][update]") {
    const auto slice = *RangeSet::make({{2, 5}, {10, 13}}, 15);
    for (const auto& wanted : {ArenaRanges{RangeSet::all(15), RangeSet::all(3), {}}, ArenaRanges{slice, {}, {}}}) {
        const ArenaValues arenas{trainable, buffers, {}};
        const auto borrowed = borrow_update(two_layer_table(), wanted, arenas);
        const auto copied = make_update(two_layer_table(), wanted, arenas);
        CHECK(encode_update(dense(), borrowed) == encode_update(dense(), copied));
        const auto* last = borrowed.parts.size() == 3 ? arenas[1].data() : arenas[0].data() + 12;
        CHECK(borrowed.parts.back().values.view().data() == last);
    }
}

TEST_CASE("values are read where an update lies, if that is where floats may lie, and copied otherwise",
          "[unit][update]") {
    const auto encoded = encode_update(dense(), whole_update());
    for (std::size_t shift = 0; shift < 8; ++shift) {
        Bytes held(shift);
        held.insert(held.end(), encoded.begin(), encoded.end());
        const SharedBytes whole(std::move(held));
        const SharedBytes bytes(std::make_shared<const SharedBytes>(whole), whole.view().subspan(shift));
        const auto update = decode_update(dense(), bytes, decode_limits(two_layer_table()));
        REQUIRE(update.has_value());
        CHECK(equal(*update, whole_update()));
        for (const auto& part : update->parts) {
            const auto* at = reinterpret_cast<const std::byte*>(part.values.view().data());
            const bool inside = bytes.view().data() <= at && at < bytes.view().data() + bytes.size();
            CHECK(inside == (shift % alignof(float) == dense_shift));
        }
        auto changed = update->parts[0];
        changed.values.own()[0] = 5;
        CHECK(update->parts[0].values[0] == 0);
    }
}

TEST_CASE("an update has one part per tensor, and a slice says its own length", "[unit][update]") {
    const auto whole = whole_update();
    REQUIRE(whole.parts.size() == 3);
    CHECK(whole.parts[0].shape == Shape{3, 4});
    CHECK(whole.parts[2].arena == ArenaKind::buffers);
    const auto ranges = *RangeSet::make({{2, 5}, {10, 13}}, 15);
    const auto slice = make_update(two_layer_table(), {ranges, {}, {}}, {trainable, buffers, {}});
    REQUIRE(slice.parts.size() == 2);
    CHECK(slice.parts[0].shape == Shape{5});
    CHECK(slice.parts[0].values == std::vector<float>{2, 3, 4, 10, 11});
    CHECK(slice.parts[1].values == std::vector<float>{12});
}

TEST_CASE("what is encoded comes back, and equal updates have equal bytes", "[unit][update]") {
    const auto bytes = encode_update(dense(), whole_update());
    const auto back = decode(bytes);
    REQUIRE(back);
    CHECK(equal(*back, whole_update()));
    CHECK(encode_update(dense(), *back) == bytes);
    CHECK(decode(encode_update(dense(), Update{}))->parts.empty());
}

TEST_CASE("every proper prefix of an update and any trailing byte are refused", "[unit][update]") {
    auto bytes = encode_update(dense(), whole_update());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        REQUIRE_FALSE(decode(ByteView(bytes).first(size)));
    }
    bytes.push_back(std::byte{0});
    CHECK(code_of(decode(bytes)) == "trailing_bytes");
}

TEST_CASE("foreign bytes, a newer version and another codec are told apart", "[unit][update]") {
    const auto good = encode_update(dense(), whole_update());
    auto foreign = good;
    foreign[0] = std::byte{'X'};
    CHECK(code_of(decode(foreign)) == "bad_magic");
    auto newer = good;
    newer[4] = std::byte{2};
    CHECK(code_of(decode(newer)) == "update_version");
    CHECK(decode(newer).error().kind == ErrorKind::unsupported);
    auto other = dense();
    other.text = "topk 1%";
    CHECK(code_of(decode(encode_update(other, whole_update()))) == "codec_mismatch");
}

TEST_CASE("counts beyond the limits or beyond the payload are refused before anything is allocated", "[unit][update]") {
    const auto good = encode_update(dense(), whole_update());
    const std::size_t parts_at = 4 + 2 + 4 + 5;
    auto many_parts = good;
    std::fill_n(many_parts.begin() + parts_at, 4, std::byte{0xff});
    CHECK(code_of(decode(many_parts)) == "too_many_parts");
    auto many_ranges = good;
    std::fill_n(many_ranges.begin() + parts_at + 4 + 4 + 16, 4, std::byte{0xff});
    CHECK(code_of(decode(many_ranges)) == "too_many_ranges");
    auto deep = good;
    deep[parts_at + 4 + 2] = std::byte{9};
    CHECK(code_of(decode(deep)) == "bad_part");
    auto limits = decode_limits(two_layer_table());
    limits.elements = 14;
    CHECK(code_of(decode_update(dense(), ByteView(good), limits)) == "too_many_elements");
    auto huge = good;  // the end of the first range: 2^61 elements
    huge[parts_at + 4 + 4 + 16 + 4 + 8 + 7] = std::byte{0x20};
    CHECK(code_of(decode(huge)) == "bad_ranges");
}

TEST_CASE("twenty thousand mutations give an update or an error, never a crash", "[fuzz][update]") {
    const auto good = encode_update(dense(), whole_update());
    const unsigned seed = 20'260'730;
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::size_t accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto bytes = good;
        for (auto n = 1 + random() % 4; n > 0; --n) {
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        }
        if (random() % 4 == 0) {
            bytes.resize(random() % (bytes.size() + 8));
        }
        const auto update = decode(bytes);
        accepted += update.has_value();
        REQUIRE((update || !update.error().code.empty()));
        if (update) {
            for (const auto& part : update->parts) {
                REQUIRE(part.values.size() == part.ranges.element_count());
            }
        }
    }
    CHECK(accepted > 0);  // values may change freely: it is the firewall that judges them
}

}  // namespace causeway
