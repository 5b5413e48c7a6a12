// The codec: every kind survives the journey, and no bytes whatever bring decode down.
#include <catch2/catch.hpp>

#include "common/printable.h"
#include "common/random.h"
#include "tests/wire/samples.h"
#include "wire/error_notice.h"
#include "wire/message.h"

namespace causeway {
namespace {

TEST_CASE("every message kind round-trips", "[wire][codec]") {
    const auto samples = sample_messages();
    std::vector<bool> seen(std::variant_size_v<Message>);
    for (const auto& message : samples) {
        INFO(message_name(message));
        seen[message.index()] = true;
        const auto back = decode(encode(message));
        REQUIRE(back.has_value());
        CHECK(*back == message);
    }
    CHECK(std::ranges::all_of(seen, [](bool kind) { return kind; }));
}

TEST_CASE("a message is its header and its payload, and a payload stays where it came", "[wire][codec]") {
    for (const auto& message : sample_messages()) {
        auto bytes = encode_header(message);
        const auto payload = payload_of(message).value_or(ByteView());
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        CHECK(bytes == encode(message));
        const auto* first = bytes.data();
        const auto size = bytes.size();
        const auto back = decode(std::move(bytes));
        REQUIRE(back.has_value());
        CHECK(*back == message);
        if (const auto* chunk = std::get_if<Chunk>(&*back)) {
            CHECK(chunk->payload.view().data() == first + size - chunk->payload.size());
        }
    }
}

TEST_CASE("every error kind has its own value on the wire", "[wire][codec]") {
    for (int kind = 0; kind <= static_cast<int>(ErrorKind::io); ++kind) {
        const Message notice = ErrorNotice{static_cast<ErrorKind>(kind), "code", "message"};
        CHECK(decode(encode(notice)) == notice);
    }
}

TEST_CASE("default-constructed messages either round-trip or are refused by name", "[wire][codec]") {
    // Attach and Welcome without a session, Pull and Credit without credits, a Chunk without bytes mean nothing.
    for (const Message& message : {Message(Attach{}), Message(Welcome{}), Message(Pull{}), Message(Credit{}),
                                   Message(Chunk{}), Message(JoinRequest{})}) {
        INFO(message_name(message));
        const auto back = decode(encode(message));
        REQUIRE_FALSE(back.has_value());
        CHECK(back.error().kind == ErrorKind::corrupt);
    }
}

TEST_CASE("values without a meaning and lists over their limit are refused", "[wire][codec]") {
    const std::vector<Message> bad = {
        ErrorNotice{static_cast<ErrorKind>(77), "x", "y"},
        ErrorNotice{ErrorKind::io, std::string(257, 'a'), ""},
        Bye{std::string(5000, 'a')},
        Bye{"\xc3\x28"},      // not UTF-8
        Bye{"\xed\xa0\x80"},  // a surrogate
        Bye{"\xc0\xaf"},      // an overlong form
        Hello{.version_min = 3, .version_max = 2},
        Hello{.features = std::vector<std::string>(1025, "f")},
        Hello{.datasets = {DatasetDeclaration{.name = "d", .shape = {-1}}}},
        Hello{.datasets = {DatasetDeclaration{.name = "d", .shape = std::vector<std::int64_t>(9, 1)}}},
        Hello{.held = {HeldUpdate{.bytes = std::uint64_t{1} << 62}}},
        Hello{.datasets = {DatasetDeclaration{.name = "d", .labels = std::vector<std::uint64_t>(1025, 1)}}},
        Hello{.held = {HeldUpdate{.metrics = {.train_seconds = -1}}}},
        Hello{.held = {HeldUpdate{.metrics = {.compute_seconds = -1}}}},
        Hello{.memory = std::uint64_t{1} << 62},
        Assign{.smash_noise = -0.5},
        Progress{.step = 5, .steps = 4},
        Pull{.transfer = 1, .credits = 65},
        Chunk{.transfer = 1, .offset = 10, .total = 12, .payload = Bytes(3)},
        Chunk{.transfer = 1, .total = max_chunk_bytes + 1, .payload = Bytes(max_chunk_bytes + 1)},
        Request{1, "verb", std::string(max_request_bytes + 1, ' ')},
    };
    for (const auto& message : bad) {
        INFO(message_name(message) << " " << (&message - bad.data()));
        const auto back = decode(encode(message));
        REQUIRE_FALSE(back.has_value());
        CHECK(back.error().kind == ErrorKind::corrupt);
    }
}

TEST_CASE("what a peer says cannot steer a terminal or forge a line of a log", "[wire][codec]") {
    const std::string evil = "x\x1b[2J\n2030-01-01 info  all is well";
    const std::string harmless = "x?[2J 2030-01-01 info  all is well";
    const auto decline = decode(encode(Decline{{}, evil, evil, evil}));
    REQUIRE(decline);
    CHECK(std::get<Decline>(*decline) == Decline{{}, harmless, harmless, harmless});
    const auto hello = decode(encode(Hello{.software = evil, .datasets = {{.name = evil}}, .addresses = {evil}}));
    REQUIRE(hello);
    CHECK(std::get<Hello>(*hello).software == harmless);
    CHECK(std::get<Hello>(*hello).datasets.front().name == harmless);
    CHECK(std::get<Hello>(*hello).addresses.front() == harmless);
    const auto notice = decode(encode(ErrorNotice{ErrorKind::invalid, "bad", "two\nmistakes\x1b[8m"}));
    REQUIRE(notice);
    CHECK(std::get<ErrorNotice>(*notice).message == "two\nmistakes?[8m");  // lists come in lines
}

TEST_CASE("an error that is sent on is text, whoever's words it quotes", "[wire][codec]") {
    for (const std::string_view bytes : {"\x1b[2J", "a\nb", "\xff\xfe", "\u2028", "\u202e", "\u009b"}) {
        const auto notice = notice_of({ErrorKind::invalid, std::string(bytes), std::string(bytes)});
        CHECK(printable(notice.code, Lines::one) == notice.code);
        CHECK(printable(notice.message, Lines::many) == notice.message);
    }
}

TEST_CASE("every truncation of every kind is refused", "[wire][codec][fuzz]") {
    for (const auto& message : sample_messages()) {
        const auto bytes = encode(message);
        const auto step = std::max<std::size_t>(1, bytes.size() / 300);
        for (std::size_t size = 0; size < bytes.size(); size += step) {
            const auto back = decode(ByteView(bytes).first(size));
            // A chunk whose payload is cut is still a chunk: shorter, and judged by the transfer.
            CHECK((!back.has_value() || payload_of(*back).has_value()));
        }
    }
}

/// Flips, overwrites with telling values, cuts or extends; never the same twice.
Bytes mutated(Bytes bytes, RandomStream& random) {
    const auto edits = 1 + random.below(4);
    for (std::uint64_t edit = 0; edit < edits && !bytes.empty(); ++edit) {
        const auto at = random.below(bytes.size());
        constexpr std::array<unsigned, 6> telling = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xfe};
        switch (random.below(5)) {
            case 0:
                bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
                break;
            case 1:
                bytes[at] = static_cast<std::byte>(telling[random.below(telling.size())]);
                break;
            case 2:
                bytes.resize(at);
                break;
            case 3:
                bytes.insert(bytes.end(), 8, static_cast<std::byte>(random.next_u32()));
                break;
            default:
                bytes[at] = static_cast<std::byte>(random.next_u32());
        }
    }
    return bytes;
}

TEST_CASE("50,000 mutated headers never bring decode down, and what passes is within the limits",
          "[wire][codec][fuzz]") {
    const std::uint64_t seed = 20;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "fuzz"});
    const auto samples = sample_messages();
    std::vector<Bytes> encoded;
    for (const auto& message : samples) {
        if (auto bytes = encode(message); bytes.size() < 4096) {
            encoded.push_back(std::move(bytes));
        }
    }
    int accepted = 0;
    for (int i = 0; i < 50'000; ++i) {
        const auto bytes = mutated(encoded[random.below(encoded.size())], random);
        const auto back = decode(bytes);
        if (back) {
            // What was accepted must be sayable again, and mean the same (NaN differs from itself, so by bytes).
            ++accepted;
            const auto again = decode(encode(*back));
            REQUIRE(again.has_value());
            REQUIRE(encode(*again) == encode(*back));
        } else {
            REQUIRE((back.error().kind == ErrorKind::corrupt || back.error().kind == ErrorKind::unsupported));
            // Cap'n Proto's own words among them, which may quote the header.
            REQUIRE(printable(back.error().message, Lines::one) == back.error().message);
        }
    }
    CHECK(accepted > 0);
}

TEST_CASE("random bytes are refused", "[wire][codec][fuzz]") {
    RandomStream random({.seed = 21, .purpose = "fuzz"});
    for (int i = 0; i < 20'000; ++i) {
        Bytes bytes(random.below(200));
        for (auto& byte : bytes) {
            byte = static_cast<std::byte>(random.next_u32());
        }
        if (bytes.size() > 4 && random.below(2) == 0) {  // a length that fits, so that Cap'n Proto sees the rest
            const auto length = static_cast<std::uint32_t>((bytes.size() - 4) / 8 * 8);
            std::memcpy(bytes.data(), &length, 4);
        }
        const auto back = decode(bytes);
        REQUIRE((back.has_value() || !back.error().code.empty()));
    }
}

}  // namespace
}  // namespace causeway
