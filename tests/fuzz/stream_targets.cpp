// What nodes say to each other and to the relay: pieces of streams in any order and of any claim, and words to the
// relay from several nodes at once. Whatever they are, nothing is kept or forwarded beyond what the rules allow.
// Thread: one.
#include <map>

#include "tests/fuzz/targets.h"
#include "wire/relay_table.h"
#include "wire/stream_assembly.h"

namespace causeway {
namespace {

constexpr std::uint64_t largest = 100'000;

/// Input is a list of pieces of one connection.
void run_stream(ByteView input) {
    ByteReader in(input);
    StreamAssembly assembly(largest);
    for (int pieces = 0; pieces < 200; ++pieces) {
        const auto offset = in.get<std::uint32_t>();
        const auto total = in.get<std::uint32_t>();
        const auto size = in.get<std::uint16_t>();
        if (!offset || !total || !size) {
            return;
        }
        StreamData piece{};
        piece.batch = *total % 3;
        piece.offset = *offset % (2 * largest);
        piece.total = *total % (2 * largest);
        piece.payload = Bytes(std::size_t{*size} % 5000 + 1);
        if (piece.offset + piece.payload.size() > piece.total) {
            continue;  // decode has refused it
        }
        const auto whole = assembly.add(std::move(piece));
        REQUIRE_FUZZ(assembly.held() <= largest);
        if (!whole) {
            return require_named(whole.error());
        }
        if (*whole) {
            REQUIRE_FUZZ((*whole)->offset == 0 && (*whole)->payload.size() == (*whole)->total);
            REQUIRE_FUZZ((*whole)->total <= largest && !assembly.unfinished());
        }
    }
}

std::vector<Bytes> stream_seeds() {
    ByteWriter out;
    for (std::uint32_t offset = 0; offset < 12'000; offset += 4000) {
        out.put(offset);
        out.put(std::uint32_t{12'000});
        out.put(std::uint16_t{3999});
    }
    return {out.take()};
}

/// Three nodes at a relay that allows two pairs of them.
struct FuzzedRelay {
    std::map<std::pair<ConnectionId, std::uint64_t>, std::uint64_t> granted;  // by whom, for what may come to it
    std::uint64_t quota = 1'000'000;
    RelayTable table{{[this](ConnectionId to, Message message) {
                          if (const auto* frame = std::get_if<RelayFrame>(&message)) {
                              auto& left = granted[{to, frame->pair}];
                              REQUIRE_FUZZ(frame->payload.size() <= left);
                              left -= frame->payload.size();
                          }
                      },
                      [](const std::string& node, const RelayOpen&) { return node != "c"; }}};

    void say(ConnectionId from, Message message, Instant now) {
        if (const auto* credit = std::get_if<RelayCredit>(&message)) {
            granted[{from, credit->pair}] += credit->bytes;
        }
        require_named(table.handle(from, std::move(message), now));
        for (const auto& use : table.use()) {
            REQUIRE_FUZZ(use.bytes <= quota);
        }
    }
};

/// Input is a list of words: who says what of which pair, and how long after the one before.
void run_relay(ByteView input) {
    ByteReader in(input);
    FuzzedRelay relay;
    Instant now{};
    const std::array<std::string, 3> names = {"a", "b", "c"};
    relay.table.allow(
        {{"a", "b", 1, std::chrono::seconds(60), relay.quota}, {"c", "b", 1, std::chrono::seconds(30), relay.quota}},
        now);
    for (int words = 0; words < 300; ++words) {
        const auto kind = in.get<std::uint8_t>();
        const auto number = in.get<std::uint8_t>();
        const auto value = in.get<std::uint32_t>();
        if (!kind || !number || !value) {
            return;
        }
        const std::size_t who = *number % 3;
        const ConnectionId from = 11 + who;
        const bool asked = (*number & 64) != 0;
        const auto pair = (asked ? relay_number_bit : 0) + *number / 3 % 5;
        switch (*kind % 7) {
            case 0:
                relay.table.opened(from, names[who]);
                break;
            case 1:
                relay.table.closed(from);
                std::erase_if(relay.granted, [&](const auto& entry) { return entry.first.first == from; });
                break;
            case 2:
                relay.say(from, RelayOpen{pair, names[*value % 3], *value / 3 % 2 + 1}, now);
                break;
            case 3:
                relay.say(from, RelayCredit{pair, *value}, now);
                break;
            case 4:
                relay.say(from, RelayFrame{pair, Bytes(*value % 300'000 + 1)}, now);
                break;
            case 5:
                relay.say(from, RelayEnd{pair, "", ""}, now);
                break;
            default:
                now += std::chrono::milliseconds(*value % 10'000);
                relay.table.tick(now);
        }
    }
}

std::vector<Bytes> relay_seeds() {
    ByteWriter out;
    const auto word = [&](std::uint8_t kind, std::uint8_t number, std::uint32_t value) {
        out.put(kind);
        out.put(number);
        out.put(value);
    };
    word(0, 0, 0);  // a and b are here
    word(0, 1, 0);
    word(2, 3, 1);         // a asks for b, as its pair 1
    word(3, 64, 100'000);  // b grants
    word(4, 3, 5000);      // a sends
    word(6, 0, 1000);
    word(5, 3, 0);
    return {out.take()};
}

constexpr FuzzTarget stream_targets_table[] = {{"stream", run_stream, stream_seeds, 5000},
                                               {"relay", run_relay, relay_seeds, 5000}};

}  // namespace

std::span<const FuzzTarget> stream_targets() {
    return stream_targets_table;
}

}  // namespace causeway
