// Messages of streams cut into pieces and put together again. What comes from a peer is refused by name when its pieces
// do not fit: nothing is reserved for what it only announces.
// Thread: the test's.
#include <catch2/catch.hpp>

#include "tests/wire/stream_message.h"
#include "wire/stream_assembly.h"

namespace causeway {
namespace {

TEST_CASE("a message is cut into pieces of at most 1 MiB and put together again, bit for bit", "[wire][streams]") {
    for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, max_chunk_bytes, max_chunk_bytes + 1,
                                   3 * max_chunk_bytes, 5 * max_chunk_bytes - 7}) {
        auto whole = message(size);
        StreamAssembly assembly(std::uint64_t{8} << 20);
        std::size_t pieces = 0;
        for (bool done = false; !done;) {
            REQUIRE_FALSE(whole.payload.empty());
            auto piece = cut_piece(whole);
            ++pieces;
            CHECK(piece.payload.size() <= max_chunk_bytes);
            const auto sent = decode(encode(piece));
            REQUIRE(sent.has_value());
            auto joined = assembly.add(std::get<StreamData>(*sent));
            REQUIRE(joined.has_value());
            done = joined->has_value();
            if (done) {
                CHECK(**joined == message(size));
            }
            CHECK(assembly.unfinished() == !done);
        }
        CHECK(whole.payload.empty());
        CHECK(pieces == (size + max_chunk_bytes - 1) / max_chunk_bytes);
    }
}

TEST_CASE("pieces that leave a gap, come twice, belong to another message or lie about it are refused by name",
          "[wire][streams]") {
    StreamAssembly assembly(std::uint64_t{4} << 20);
    auto whole = message(3 * max_chunk_bytes);
    const auto first = cut_piece(whole);
    auto second = cut_piece(whole);
    const auto third = cut_piece(whole);
    const auto code = [&](const StreamData& piece) {
        const auto joined = assembly.add(piece);
        return joined ? std::string() : joined.error().code;
    };
    SECTION("the first is missing") {
        CHECK(code(second) == "out_of_order");
    }
    SECTION("a gap") {
        REQUIRE(code(first).empty());
        CHECK(code(third) == "out_of_order");
    }
    SECTION("a repetition") {
        REQUIRE(code(first).empty());
        CHECK(code(first) == "out_of_order");
    }
    SECTION("another message's piece") {
        REQUIRE(code(first).empty());
        second.batch = 9;
        CHECK(code(second) == "out_of_order");
    }
    SECTION("another total") {
        REQUIRE(code(first).empty());
        second.total += 1;
        CHECK(code(second) == "out_of_order");
    }
    SECTION("a message longer than is taken; nothing is reserved for it") {
        second = first;
        second.total = (std::uint64_t{4} << 20) + 1;
        CHECK(code(second) == "stream_too_long");
        CHECK(assembly.held() == 0);
    }
}

}  // namespace
}  // namespace causeway
