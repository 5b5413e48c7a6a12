// Transfers: the two machines against each other under seeded faults, and the engine over real sockets.
#include <atomic>
#include <fstream>
#include <future>
#include <map>

#include <catch2/catch.hpp>

#include "common/file.h"
#include "common/queue.h"
#include "tests/wire/link_fixtures.h"
#include "wire/part_file.h"
#include "wire/transfer_tables.h"

namespace causeway {
namespace {

Bytes random_payload(std::size_t size, std::uint64_t seed) {
    RandomStream random({.seed = seed, .purpose = "blob"});
    Bytes bytes(size);
    for (std::size_t i = 0; i + 8 <= size; i += 8) {
        const auto value = random.next_u64();
        std::memcpy(&bytes[i], &value, 8);
    }
    return bytes;
}

/// A sender and a receiver over a connection that breaks: what is in flight is lost, what was written is not.
struct Wire {
    const Bytes& blob;
    RandomStream& random;
    std::deque<Chunk> chunks;    // in flight to the receiver
    std::deque<Credit> credits;  // and back
    Instant now{};
    std::uint64_t resent = 0;

    void connect(TransferReceiver& receiver, std::optional<TransferSender>& sender) {
        for (const auto& lost : chunks) {
            resent += lost.payload.size();
        }
        chunks.clear();
        credits.clear();
        sender.emplace(*TransferSender::start(receiver.pull(), blob.size(), now));
    }
    void send(TransferSender& sender) {
        while (const auto piece = sender.next()) {
            CHECK(piece->size <= max_chunk_bytes);
            chunks.push_back(
                {1, piece->offset, blob.size(), to_bytes(ByteView(blob).subspan(piece->offset, piece->size))});
        }
        CHECK(chunks.size() <= transfer_credits);
    }
};

TEST_CASE("a blob arrives whole over a connection that breaks at random places", "[wire][transfer][property]") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        CAPTURE(seed);
        RandomStream random({.seed = seed, .purpose = "transfer"});
        const auto blob = random_payload(1 + random.below(3'000'000), seed);
        Wire wire{blob, random, {}, {}, {}, 0};
        TransferReceiver receiver(1, sha256(blob), blob.size(), 0, wire.now);
        std::optional<TransferSender> sender;
        wire.connect(receiver, sender);
        Bytes written;
        int breaks = 0;
        while (!receiver.complete()) {
            wire.now += std::chrono::milliseconds(1 + random.below(200));
            wire.send(*sender);
            if (breaks < 20 && random.below(10) == 0) {
                ++breaks;
                wire.connect(receiver, sender);
                continue;
            }
            REQUIRE((!wire.chunks.empty() || !wire.credits.empty()));  // no deadlock
            if (!wire.chunks.empty() && (wire.credits.empty() || random.below(2) == 0)) {
                const auto chunk = std::move(wire.chunks.front());
                wire.chunks.pop_front();
                REQUIRE(receiver.accept(chunk, wire.now).has_value());
                written.insert(written.end(), chunk.payload.begin(), chunk.payload.end());
                if (const auto credit = receiver.written()) {
                    wire.credits.push_back(*credit);
                }
            } else {
                REQUIRE(sender->credit(wire.credits.front(), wire.now).has_value());
                wire.credits.pop_front();
            }
        }
        REQUIRE(receiver.verify().has_value());
        REQUIRE(written == blob);
        CHECK(wire.resent <= static_cast<std::uint64_t>(breaks) * transfer_credits * max_chunk_bytes);
    }
}

TEST_CASE("a gap, a repetition, a swap, a wrong total or an overlong chunk ends the transfer", "[wire][transfer]") {
    const auto blob = random_payload(100'000, 1);
    const auto piece = [&](std::uint64_t offset, std::size_t size, std::uint64_t total = 100'000) {
        return Chunk{1, offset, total, to_bytes(ByteView(blob).subspan(offset, size))};
    };
    const auto verdict = [&](const std::vector<Chunk>& chunks) {
        TransferReceiver receiver(1, sha256(blob), blob.size(), 0, Instant{});
        Status status;
        for (const auto& chunk : chunks) {
            status = receiver.accept(chunk, Instant{});
        }
        return status ? "accepted" : status.error().code;
    };
    CHECK(verdict({piece(0, 100), piece(100, 50)}) == "accepted");
    CHECK(verdict({piece(0, 100), piece(200, 50)}) == "out_of_order");
    CHECK(verdict({piece(0, 100), piece(0, 100)}) == "out_of_order");
    CHECK(verdict({piece(100, 100)}) == "out_of_order");
    CHECK(verdict({piece(0, 100, 99'999)}) == "wrong_size");
    CHECK(verdict({Chunk{1, 0, 100'000, {}}}) == "wrong_size");
    CHECK(verdict({Chunk{1, 0, 100'000, Bytes(100'001)}}) == "wrong_size");
}

TEST_CASE("a blob that is not what its digest says is told at the end", "[wire][transfer]") {
    const auto blob = random_payload(5000, 1);
    TransferReceiver receiver(1, sha256("something else"), blob.size(), 0, Instant{});
    REQUIRE(receiver.accept({1, 0, 5000, blob}, Instant{}).has_value());
    CHECK(receiver.verify().error().code == "digest_mismatch");
}

TEST_CASE("credits bound what is in flight, and more than were used are refused", "[wire][transfer]") {
    auto sender = *TransferSender::start({1, {}, 0, 2}, 10'000'000, Instant{});
    CHECK(sender.next().has_value());
    CHECK(sender.next().has_value());
    CHECK_FALSE(sender.next().has_value());
    CHECK(sender.credit({1, 3}, Instant{}).error().code == "bad_credits");
    CHECK(sender.credit({1, 1}, Instant{}).has_value());
    CHECK(sender.next().has_value());
    CHECK_FALSE(sender.next().has_value());
    CHECK(TransferSender::start({1, {}, 11, 8}, 10, Instant{}).error().code == "bad_offset");
    CHECK(TransferSender::start({1, {}, 0, 65}, 10, Instant{}).error().code == "bad_credits");
}

TEST_CASE("a chunk takes at most 100 ms of the measured rate, 16 KiB to 1 MiB", "[wire][transfer]") {
    const auto settled = [](double bytes_per_second) {
        auto sender = *TransferSender::start({1, {}, 0, 8}, std::uint64_t{1} << 40, Instant{});
        Instant now{};
        for (int i = 0; i < 200; ++i) {
            const auto piece = sender.next();
            now += from_seconds(static_cast<double>(piece->size) / bytes_per_second);
            REQUIRE(sender.credit({1, 1}, now).has_value());
        }
        return sender.chunk_bytes();
    };
    CHECK(settled(125e3) == min_chunk_bytes);  // 1 Mbit/s
    CHECK(settled(125e6) == max_chunk_bytes);  // 1 Gbit/s
    CHECK(settled(4e6) >= 300'000);
    CHECK(settled(4e6) <= 400'000);
}

TEST_CASE("a connection's second small blob is one chunk where the first came fast, and small ones where it did not",
          "[wire][transfer]") {
    for (const bool fast : {true, false}) {
        std::vector<Chunk> chunks;
        const TransferSink sink{[&](ConnectionId, Message message) { chunks.push_back(std::get<Chunk>(message)); },
                                [](ConnectionId, const Error&) {}};
        const auto blob = std::make_shared<const Bytes>(random_payload(400'000, 1));
        ServingTable table(sink, [&](const Digest&, const PeerIdentity&) { return Result<Blob>(blob); }, {});
        table.opened(1, {});
        Instant now{};
        table.pull(1, {1, {}, 0, 8}, now);
        for (int i = 0; i < 3; ++i) {
            table.sent(1, 1);
        }
        REQUIRE(chunks.size() == 4);
        CHECK(chunks[0].payload.size() == first_chunk_bytes);
        CHECK(chunks[0].payload.view().data() == blob->data());  // not a copy
        now += fast ? std::chrono::milliseconds(4) : std::chrono::milliseconds(4000);
        table.end(1, {.transfer = 1, .by_receiver = true}, now);
        chunks.clear();
        table.pull(1, {2, {}, 0, 8}, now);
        CHECK(chunks[0].payload.size() == (fast ? blob->size() : min_chunk_bytes));
    }
}

TEST_CASE("a transfer that moves, however slowly, is not stalled; one that stands still is", "[wire][transfer]") {
    auto sender = *TransferSender::start({1, {}, 0, 8}, 10'000'000, Instant{});
    Instant now{};
    for (int i = 0; i < 20; ++i) {
        CHECK(sender.next().has_value());
        now += std::chrono::seconds(25);
        CHECK_FALSE(sender.stalled(now));
        REQUIRE(sender.credit({1, 1}, now).has_value());
    }
    CHECK(sender.stalled(now + std::chrono::seconds(31)));
}

// ---------------------------------------------------------------- the engine over sockets

/// What an engine serves. Its thread alone holds it: the test hands over what is to be added.
struct Shelf {
    BoundedQueue<std::pair<Digest, Blob>> added{64};
    std::map<Digest, Blob> held;

    Result<Blob> find(const Digest& digest) {
        while (auto one = added.try_pop()) {
            held.insert_or_assign(one->first, std::move(one->second));
        }
        const auto found = held.find(digest);
        return found != held.end() ? Result<Blob>(found->second)
                                   : fail(ErrorKind::not_found, "not_found", "no blob " + digest.short_hex());
    }
};

/// Two links with engines and an open session between them.
struct TransferPair {
    Federation federation;
    TemporaryFolder folder;
    TestLink server{federation.node(Role::coordinator, "coordinator"), Address{"*", 0}};
    TestLink client{federation.node(Role::client, "site-a")};
    std::shared_ptr<Shelf> server_shelf = std::make_shared<Shelf>();
    std::shared_ptr<Shelf> client_shelf = std::make_shared<Shelf>();
    std::unique_ptr<TransferEngine> server_engine = engine(server, server_shelf);
    std::unique_ptr<TransferEngine> client_engine = engine(client, client_shelf);
    Session session = open_session(client, server);

    TransferPair() {
        server_engine->attach(session.at_server);
        client_engine->attach(session.at_client, server.address(), session.at_server);
        client_engine->want(session.at_client);
    }
    ~TransferPair() {
        client_engine.reset();
        server_engine.reset();
    }
    static std::unique_ptr<TransferEngine> engine(TestLink& link, std::shared_ptr<Shelf> shelf) {
        return std::make_unique<TransferEngine>(
            *link.link, link.bulk,
            [shelf = std::move(shelf)](const Digest& digest, const PeerIdentity&) { return shelf->find(digest); });
    }
    void serve(const Digest& digest, const Blob& blob) const {
        server_shelf->added.push({digest, blob});
        client_shelf->added.push({digest, blob});
    }
    static Result<FetchedBlob> fetch(TransferEngine& engine, ConnectionId control, Fetch wanted) {
        auto promise = std::make_shared<std::promise<Result<FetchedBlob>>>();
        auto future = promise->get_future();
        engine.fetch(control, std::move(wanted), [promise](auto result) { promise->set_value(std::move(result)); });
        if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
            return fail(ErrorKind::timed_out, "test_deadline", "no answer");
        }
        return future.get();
    }
};

TEST_CASE("20 MB are pulled in both directions, verified and durable", "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = random_payload(20'000'000, 7);
    const auto digest = sha256(blob);
    const auto file = pair.folder.path / "served";
    REQUIRE(write_file_durably(file, blob).has_value());
    pair.serve(digest, file);
    const auto down = pair.folder.path / "down";
    const auto fetched = TransferPair::fetch(*pair.client_engine, pair.session.at_client, {digest, blob.size(), down});
    REQUIRE(fetched.has_value());
    CHECK(*read_file(down, 1 << 30) == blob);

    const auto small = std::make_shared<const Bytes>(random_payload(1'000'001, 8));
    pair.serve(sha256(*small), small);  // from memory
    const auto up = pair.folder.path / "up";
    const auto pulled =
        TransferPair::fetch(*pair.server_engine, pair.session.at_server, {sha256(*small), small->size(), up});
    REQUIRE(pulled.has_value());
    CHECK(*read_file(up, 1 << 30) == *small);
    CHECK(pair.server.link->traffic().sent > 20'000'000);
    CHECK(pair.server.link->traffic().sent < 20'200'000);  // what encryption and framing add is below 1 %
}

TEST_CASE("a small blob stays in memory where its owner asks for that, a larger one does not",
          "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = std::make_shared<const Bytes>(random_payload(300'000, 3));
    pair.serve(sha256(*blob), blob);
    Fetch wanted{.digest = sha256(*blob), .bytes = blob->size(), .destination = pair.folder.path / "x"};
    wanted.in_memory_up_to = blob->size();
    const auto small = TransferPair::fetch(*pair.client_engine, pair.session.at_client, wanted);
    REQUIRE(small.has_value());
    REQUIRE(small->bytes);
    CHECK(small->bytes == SharedBytes(blob));
    CHECK(std::filesystem::is_empty(pair.folder.path));
    wanted.in_memory_up_to = blob->size() - 1;
    const auto large = TransferPair::fetch(*pair.client_engine, pair.session.at_client, wanted);
    REQUIRE(large.has_value());
    CHECK_FALSE(large->bytes);
    CHECK(*read_file(large->file, 1 << 20) == *blob);
}

TEST_CASE("a blob in memory begins where its owner wants it", "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = std::make_shared<const Bytes>(random_payload(5'000'000, 6));
    pair.serve(sha256(*blob), blob);
    Fetch wanted{.digest = sha256(*blob), .bytes = blob->size(), .destination = pair.folder.path / "x"};
    wanted.in_memory_up_to = blob->size();
    wanted.shift = 3;
    const auto fetched = TransferPair::fetch(*pair.client_engine, pair.session.at_client, wanted);
    REQUIRE(fetched.has_value());
    CHECK(fetched->bytes == SharedBytes(blob));
    CHECK(reinterpret_cast<std::uintptr_t>(fetched->bytes.view().data()) % 8 == wanted.shift);
}

TEST_CASE("both sides fetch at once over one connection", "[wire][transfer][link]") {
    TransferPair pair;
    std::vector<std::future<Result<FetchedBlob>>> results;
    std::vector<Bytes> blobs;
    for (std::uint64_t i = 0; i < 12; ++i) {
        blobs.push_back(random_payload(500'000 + i, i));
        pair.serve(sha256(blobs.back()), std::make_shared<const Bytes>(blobs.back()));
    }
    for (std::size_t i = 0; i < blobs.size(); ++i) {
        auto promise = std::make_shared<std::promise<Result<FetchedBlob>>>();
        results.push_back(promise->get_future());
        const bool down = i % 2 == 0;
        (down ? pair.client_engine : pair.server_engine)
            ->fetch(down ? pair.session.at_client : pair.session.at_server,
                    {sha256(blobs[i]), blobs[i].size(), pair.folder.path / std::to_string(i)},
                    [promise](auto result) { promise->set_value(std::move(result)); });
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        REQUIRE(results[i].wait_for(std::chrono::seconds(20)) == std::future_status::ready);
        CHECK(results[i].get().has_value());
    }
}

TEST_CASE("what a fetch can meet: nothing there, another size, a wrong digest, nothing at all to move",
          "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = std::make_shared<const Bytes>(random_payload(100'000, 9));
    const auto digest = sha256(*blob);
    const auto lie = sha256("a lie");
    pair.serve(digest, blob);
    pair.serve(lie, blob);
    const auto code = [&](const Digest& wanted, std::uint64_t bytes) {
        const auto result =
            TransferPair::fetch(*pair.client_engine, pair.session.at_client, {wanted, bytes, pair.folder.path / "x"});
        return result ? "" : result.error().code;
    };
    CHECK(code(sha256("unknown"), 10) == "not_found");
    CHECK(code(digest, 99'999) == "wrong_size");
    CHECK(code(digest, 100'001) == "wrong_size");
    CHECK(code(lie, 100'000) == "digest_mismatch");
    CHECK_FALSE(std::filesystem::exists(PartFile::path_of(pair.folder.path / "x", lie)));
    CHECK(code(digest, std::uint64_t{1} << 40) == "too_large");
    CHECK(code(sha256(""), 0).empty());
    CHECK(std::filesystem::file_size(pair.folder.path / "x") == 0);
    CHECK(code(digest, 100'000).empty());
}

TEST_CASE("a part of an earlier attempt is not fetched again, and a false one costs one more try",
          "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = std::make_shared<const Bytes>(random_payload(8'000'000, 10));
    const auto digest = sha256(*blob);
    pair.serve(digest, blob);
    const auto destination = pair.folder.path / "model";
    const auto part = PartFile::path_of(destination, digest);
    const auto traffic = [&] { return pair.client.link->traffic().received; };

    REQUIRE(write_file_durably(part, ByteView(*blob).first(7'000'000)).has_value());
    const auto before = traffic();
    REQUIRE(TransferPair::fetch(*pair.client_engine, pair.session.at_client, {digest, blob->size(), destination})
                .has_value());
    CHECK(traffic() - before < 1'100'000);
    CHECK(*read_file(destination, 1 << 30) == *blob);
    CHECK_FALSE(std::filesystem::exists(part));

    REQUIRE(write_file_durably(part, Bytes(7'000'000)).has_value());
    REQUIRE(TransferPair::fetch(*pair.client_engine, pair.session.at_client, {digest, blob->size(), destination})
                .has_value());
    CHECK(*read_file(destination, 1 << 30) == *blob);
    REQUIRE(write_file_durably(part, Bytes(9'000'000)).has_value());  // longer than the blob
    REQUIRE(TransferPair::fetch(*pair.client_engine, pair.session.at_client, {digest, blob->size(), destination})
                .has_value());
}

TEST_CASE("when the bulk connection is cut, another is opened and the transfer goes on", "[wire][transfer][link]") {
    TransferPair pair;
    const auto blob = random_payload(60'000'000, 11);
    const auto digest = sha256(blob);
    const auto file = pair.folder.path / "served";
    REQUIRE(write_file_durably(file, blob).has_value());
    pair.serve(digest, file);
    std::atomic<int> cuts{0};
    std::promise<Result<FetchedBlob>> promise;
    const auto destination = pair.folder.path / "model";
    pair.client_engine->fetch(pair.session.at_client, {digest, blob.size(), destination},
                              [&](auto result) { promise.set_value(std::move(result)); });
    auto done = promise.get_future();
    const auto part = PartFile::path_of(destination, digest);
    std::uintmax_t last_cut_at = 0;
    while (done.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        std::error_code none;
        const auto size = std::filesystem::file_size(part, none);
        if (!none && cuts < 2 && size > last_cut_at + 5'000'000) {
            last_cut_at = size;
            ++cuts;
            // The connections after the session's own: cutting any that is not open is harmless.
            for (ConnectionId id = pair.session.at_server + 1; id < pair.session.at_server + 8; ++id) {
                pair.server.link->close(id, {ErrorKind::io, "cut", "for the test"});
            }
        }
    }
    const auto result = done.get();
    REQUIRE(result.has_value());
    CHECK(cuts > 0);
    CHECK(*read_file(destination, 1 << 30) == blob);
}

TEST_CASE("the end of a session ends its fetches, and the part stays for the next", "[wire][transfer][link]") {
    TransferPair pair;
    std::promise<Result<FetchedBlob>> promise;
    pair.server_engine->fetch(pair.session.at_server + 77, {sha256("x"), 10, pair.folder.path / "x"},
                              [&](auto result) { promise.set_value(std::move(result)); });
    pair.server_engine->detach(pair.session.at_server + 77);
    auto done = promise.get_future();
    REQUIRE(done.wait_for(test_deadline) == std::future_status::ready);
    CHECK(done.get().error().code == "session_ended");
}

}  // namespace
}  // namespace causeway
