// Fetches without a link: what becomes of memory and parts when sessions end, time passes or the owner gives up.
// The writer's thread is a real one; each test waits for what it has posted.
#include <catch2/catch.hpp>

#include "common/file.h"
#include "common/queue.h"
#include "tests/wire/link_fixtures.h"
#include "wire/part_file.h"
#include "wire/transfer_tables.h"

namespace causeway {
namespace {

Bytes random_content(std::size_t size, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "blob"});
    Bytes bytes(size);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random.next_u32()); });
    return bytes;
}

}  // namespace

TEST_CASE("what has come into memory when its session ends is where the next session goes on", "[wire][transfer]") {
    const TemporaryFolder folder;
    const auto blob = random_content(4000, 4);
    std::vector<Message> sent;
    std::vector<std::string> ends;
    const TransferSink sink{[&](ConnectionId, Message message) { sent.push_back(std::move(message)); },
                            [](ConnectionId, const Error&) {}};
    Fetch wanted{.digest = sha256(blob), .bytes = blob.size(), .destination = folder.path / "x"};
    wanted.in_memory_up_to = blob.size();
    const auto done = [&](const Result<FetchedBlob>& result) {
        ends.push_back(!result ? result.error().code : result->bytes ? "bytes" : "file");
    };
    const auto chunk = [&](std::size_t from, std::size_t size) {
        return Chunk{1, from, blob.size(), to_bytes(ByteView(blob).subspan(from, size))};
    };
    for (const std::size_t begin : {0, 1000}) {
        BoundedQueue<std::function<void(Instant)>> answers(16);
        auto writer = std::make_unique<WorkThread>();
        FetchTable table(
            sink, {*writer, [&](std::function<void(Instant)> answer) { answers.push(std::move(answer)); }}, {});
        table.attach(1);
        table.opened(7, 1, Instant{});
        table.add(1, wanted, done, Instant{});
        CHECK(std::get<Pull>(sent.back()).offset == begin);
        table.chunk(7, chunk(begin, begin == 0 ? 1000 : 3000), Instant{});
        for (int i = 0; begin > 0 && i < 2; ++i) {  // written, then named
            (*answers.pop())(Instant{});
        }
        table.detach(1, Instant{});
        writer.reset();
    }
    CHECK(ends == std::vector<std::string>{"session_ended", "file"});
    CHECK(*read_file(folder.path / "x", 1 << 20) == blob);
}

TEST_CASE("a large blob that takes long goes on as a file, and no credit is given twice", "[wire][transfer]") {
    const TemporaryFolder folder;
    const auto blob = random_content(5 << 20, 5);
    std::uint32_t credits = 0;
    std::vector<std::string> ends;
    const TransferSink sink{[&](ConnectionId, const Message& message) {
                                const auto* credit = std::get_if<Credit>(&message);
                                credits += credit ? credit->credits : 0;
                            },
                            [](ConnectionId, const Error&) {}};
    Fetch wanted{.digest = sha256(blob), .bytes = blob.size(), .destination = folder.path / "x"};
    wanted.in_memory_up_to = blob.size();
    wanted.shift = 3;
    BoundedQueue<std::function<void(Instant)>> answers(16);
    BoundedQueue<int> written(1);  // both outlive the thread that pushes
    const auto writer = std::make_unique<WorkThread>();
    FetchTable table(sink, {*writer, [&](std::function<void(Instant)> answer) { answers.push(std::move(answer)); }},
                     {});
    Instant now{};
    table.attach(1);
    table.opened(7, 1, now);
    table.add(1, wanted,
              [&](const Result<FetchedBlob>& result) {
                  ends.push_back(!result ? result.error().code : result->bytes ? "bytes" : "file");
              },
              now);
    const auto settle = [&](Instant at) {  // what the writer has is written, and the name taken
        for (int i = 0; i < 2; ++i) {
            writer->post([&] { written.push(0); });
            (void)written.pop();
            while (auto answer = answers.try_pop()) {
                (*answer)(at);
            }
        }
    };
    constexpr std::size_t piece = 1 << 20;
    std::uint32_t chunks = 0;
    for (std::size_t at = 0; at < blob.size(); at += piece, ++chunks) {
        table.chunk(7, {1, at, blob.size(), to_bytes(ByteView(blob).subspan(at, piece))}, now);
        now += std::chrono::milliseconds(700);
        table.tick(now);
        CHECK(std::filesystem::exists(PartFile::path_of(wanted.destination, wanted.digest)) == (chunks >= 2));
        settle(now);
        CHECK(credits <= chunks + 1);  // as many as have come
    }
    CHECK(ends == std::vector<std::string>{"file"});
    CHECK(*read_file(folder.path / "x", 1 << 30) == blob);
}

TEST_CASE("a fetch that is given up ends at once, tells its sender and leaves nothing behind", "[wire][transfer]") {
    const TemporaryFolder folder;
    const auto blob = random_content(100'000, 4);
    std::vector<Message> sent;
    std::vector<std::string> ends;
    bool closed = false;
    const TransferSink sink{[&](ConnectionId, Message message) { sent.push_back(std::move(message)); },
                            [&](ConnectionId, const Error&) { closed = true; }};
    const auto done = [&](const Result<FetchedBlob>& result) { ends.push_back(result ? "" : result.error().code); };
    BoundedQueue<std::function<void(Instant)>> answers(64);
    auto writer = std::make_unique<WorkThread>();
    FetchTable table(sink, {*writer, [&](std::function<void(Instant)> answer) { answers.push(std::move(answer)); }},
                     {.fetches = 1});
    table.attach(1);
    table.opened(7, 1, Instant{});
    const Fetch wanted{.digest = sha256(blob), .bytes = blob.size(), .destination = folder.path / "x"};
    Fetch other = wanted;
    other.digest = sha256("other");
    for (std::uint64_t transfer = 1; transfer <= 20; ++transfer) {
        table.add(1, wanted, done, Instant{});
        table.add(1, other, done, Instant{});  // waits behind it
        table.chunk(7, {transfer, 0, blob.size(), to_bytes(ByteView(blob).first(1000))}, Instant{});
        table.cancel(1, other.digest, Instant{});
        table.cancel(1, wanted.digest, Instant{});
        CHECK(ends == std::vector<std::string>{"cancelled", "cancelled"});
        CHECK(std::get<TransferEnd>(sent.back()).code == "cancelled");
        for (std::uint32_t late = 1; late < transfer_credits; ++late) {  // what was on its way does no harm
            table.chunk(7, {transfer, 1000, blob.size(), Bytes(1)}, Instant{});
        }
        ends.clear();
        (*answers.pop())(Instant{});  // written
        (*answers.pop())(Instant{});  // and gone
        CHECK(std::filesystem::is_empty(folder.path));
    }
    CHECK_FALSE(closed);
    for (std::uint32_t i = 0; i <= max_transfer_credits; ++i) {
        table.chunk(7, {77, 0, 5, Bytes(1)}, Instant{});  // never asked for
    }
    CHECK(closed);
    writer.reset();
}

TEST_CASE("a fetch whose connection is lost goes on at once over another that is open", "[wire][transfer]") {
    const TemporaryFolder folder;
    const auto blob = random_content(4000, 6);
    std::vector<std::pair<ConnectionId, std::uint64_t>> pulls;  // over which connection, from where
    const TransferSink sink{[&](ConnectionId to, const Message& message) {
                                if (const auto* pull = std::get_if<Pull>(&message)) {
                                    pulls.emplace_back(to, pull->offset);
                                }
                            },
                            [](ConnectionId, const Error&) {}};
    Fetch wanted{.digest = sha256(blob), .bytes = blob.size(), .destination = folder.path / "x"};
    wanted.in_memory_up_to = blob.size();
    const auto writer = std::make_unique<WorkThread>();
    FetchTable table(sink, {*writer, [](const std::function<void(Instant)>&) {}}, {});
    table.attach(1);
    table.opened(7, 1, Instant{});
    table.opened(8, 2, Instant{});  // another session's
    table.add(1, wanted, [](const Result<FetchedBlob>&) {}, Instant{});
    table.chunk(7, {1, 0, blob.size(), to_bytes(ByteView(blob).first(1000))}, Instant{});
    table.opened(9, 1, Instant{});  // the peer came again before the end of the old connection was seen
    table.closed(7, Instant{});
    CHECK(pulls == std::vector<std::pair<ConnectionId, std::uint64_t>>{{7, 0}, {9, 1000}});
    table.closed(9, Instant{});
    table.opened(10, 1, Instant{});
    CHECK(pulls.back() == std::pair<ConnectionId, std::uint64_t>{10, 1000});
}

/// A table without a link: what it says and how its fetches end. Its writer's work is done when settle() is called.
struct Table {
    TemporaryFolder folder;
    Bytes blob = random_content(4000, 6);
    std::vector<std::pair<ConnectionId, Message>> sent;
    std::vector<std::string> ends;
    BoundedQueue<std::function<void(Instant)>> answers{64};
    BoundedQueue<int> written{1};
    WorkThread writer;
    FetchTable table{{[this](ConnectionId to, Message message) { sent.emplace_back(to, std::move(message)); },
                      [](ConnectionId, const Error&) {}},
                     {writer, [this](std::function<void(Instant)> answer) { answers.push(std::move(answer)); }},
                     {}};

    void add(ConnectionId control, Instant now) {
        table.add(control, {.digest = sha256(blob), .bytes = blob.size(), .destination = folder.path / "x"},
                  [this](const auto& result) { ends.push_back(result ? "" : result.error().code); }, now);
    }
    void chunk(ConnectionId connection, std::size_t from, std::size_t size, Instant now) {
        table.chunk(connection, {1, from, blob.size(), to_bytes(ByteView(blob).subspan(from, size))}, now);
    }
    void settle(Instant now) {
        for (int i = 0; i < 2; ++i) {  // written, then named
            writer.post([this] { written.push(0); });
            (void)written.pop();
            while (auto answer = answers.try_pop()) {
                (*answer)(now);
            }
        }
    }
    /// Where the newest Pull went, and from which byte it asks.
    [[nodiscard]] std::pair<ConnectionId, std::uint64_t> last_pull() const {
        const auto* pull = sent.empty() ? nullptr : std::get_if<Pull>(&sent.back().second);
        return pull ? std::pair(sent.back().first, pull->offset) : std::pair(ConnectionId{0}, std::uint64_t{0});
    }
};

TEST_CASE("what is asked for in a session that is over, or has not begun, ends at once: it would wait for nobody",
          "[wire][transfer]") {
    Table t;
    t.add(1, Instant{});
    CHECK(t.ends == std::vector<std::string>{"session_ended"});
    t.table.attach(1);
    t.add(1, Instant{});
    CHECK(t.ends.size() == 1);  // waits for a connection
    t.table.detach(1, Instant{});
    t.add(1, Instant{});  // its owner had to store something first
    CHECK(t.ends == std::vector<std::string>{"session_ended", "session_ended", "session_ended"});
    t.table.attach(2);
    t.table.opened(7, 2, Instant{});
    t.add(2, Instant{});
    CHECK(t.last_pull() == std::pair(ConnectionId{7}, std::uint64_t{0}));
}

TEST_CASE("a fetch asks over the newest connection of its session", "[wire][transfer]") {
    Table t;
    t.table.attach(1);
    t.table.opened(7, 1, Instant{});
    t.table.opened(8, 2, Instant{});
    t.table.opened(9, 1, Instant{});
    t.add(1, Instant{});
    CHECK(t.last_pull() == std::pair(ConnectionId{9}, std::uint64_t{0}));
}

TEST_CASE("chunks of a lost connection that are written later give no credit to the next one", "[wire][transfer]") {
    Table t;
    t.table.attach(1);
    t.table.opened(7, 1, Instant{});
    t.add(1, Instant{});
    t.chunk(7, 0, 1000, Instant{});
    t.chunk(7, 1000, 1000, Instant{});  // a pair: worth a credit message there
    t.table.closed(7, Instant{});
    t.table.opened(9, 1, Instant{});
    t.settle(Instant{});
    CHECK(t.last_pull() == std::pair(ConnectionId{9}, std::uint64_t{2000}));
    t.chunk(9, 2000, 500, Instant{});
    t.chunk(9, 2500, 500, Instant{});
    t.settle(Instant{});
    const auto* credit = std::get_if<Credit>(&t.sent.back().second);
    REQUIRE(credit != nullptr);
    CHECK(credit->credits == 2);
}

TEST_CASE("time without a connection is not time without progress", "[wire][transfer]") {
    Table t;
    Instant now{};
    t.table.attach(1);
    t.add(1, now);
    now += transfer_stall - std::chrono::seconds(1);
    t.table.tick(now);
    t.table.opened(7, 1, now);
    now += transfer_stall - std::chrono::seconds(1);
    t.table.tick(now);
    CHECK(t.ends.empty());
    now += std::chrono::seconds(2);
    t.table.tick(now);
    CHECK(t.ends == std::vector<std::string>{"stalled"});
}

}  // namespace causeway
