// Published vectors for the hashes, strictness of hex and base64url, cursors over short bytes.
#include "common/digest.h"

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("SHA-256 gives the vectors of FIPS 180-2, in one piece and in many", "[common][unit]") {
    CHECK(sha256("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    Hasher hasher;
    for (const char c : std::string("abc")) {
        hasher.update(std::string_view(&c, 1));
    }
    CHECK(hasher.finish() == sha256("abc"));
}

TEST_CASE("HMAC-SHA-256 gives test case 2 of RFC 4231", "[common][unit]") {
    CHECK(hmac_sha256(as_bytes("Jefe"), as_bytes("what do ya want for nothing?")).hex() ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("hexadecimal and base64url come back as they went, and nothing else is accepted", "[common][property]") {
    for (std::size_t size = 0; size < 70; ++size) {
        const auto bytes = secret_random_bytes(size);
        CHECK(*from_hex(to_hex(bytes)) == bytes);
        CHECK(*from_base64url(to_base64url(bytes)) == bytes);
    }
    for (const auto* wrong : {"a", "zz", "AB", "0x"}) {
        CHECK(from_hex(wrong).error().kind == ErrorKind::corrupt);
    }
    for (const auto* wrong : {"A", "AB", "AA=", "A A", "AAAA+"}) {
        INFO(wrong);
        CHECK_FALSE(from_base64url(wrong).has_value());
    }
    CHECK(from_base64url("AA").has_value());
    CHECK(digest_from_hex("abcd").error().code == "bad_digest");
    CHECK(digest_from_hex(sha256("x").hex()).value() == sha256("x"));
}

TEST_CASE("a byte cursor never reads past the end", "[common][unit]") {
    ByteWriter writer;
    writer.put<std::uint16_t>(7);
    writer.put_text("abc");
    const auto bytes = writer.take();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        ByteReader reader(ByteView(bytes).first(size));
        const auto number = reader.get<std::uint16_t>();
        CHECK((!number || !reader.get_text(10)));
    }
    ByteReader reader(bytes);
    CHECK(*reader.get<std::uint16_t>() == 7);
    CHECK(reader.get_text(2).error().code == "too_long");
}

TEST_CASE("comparison in constant time compares length and content", "[common][unit]") {
    CHECK(equal_in_constant_time(as_bytes("abc"), as_bytes("abc")));
    CHECK_FALSE(equal_in_constant_time(as_bytes("abc"), as_bytes("abd")));
    CHECK_FALSE(equal_in_constant_time(as_bytes("abc"), as_bytes("ab")));
}

}  // namespace causeway
