// Inside of the transfer engine: what is served and what is fetched, each a table that one thread drives.
//
// Both speak through a Sink, so the engine's tests can stand in for the link.
//
// threads  the engine's
#pragma once

#include <deque>
#include <map>

#include "wire/part_file.h"
#include "wire/transfer_engine.h"

namespace causeway {

struct TransferSink {
    std::function<void(ConnectionId, Message)> send;
    std::function<void(ConnectionId, Error)> close;
};

/// Other nodes' pulls.
class ServingTable {
public:
    ServingTable(TransferSink sink, BlobSource source, TransferLimits limits)
        : sink_(std::move(sink)), source_(std::move(source)), limits_(limits) {}

    void opened(ConnectionId connection, PeerIdentity peer) { readers_[connection].peer = std::move(peer); }
    void closed(ConnectionId connection) { readers_.erase(connection); }
    void pull(ConnectionId connection, const Pull& pull, Instant now);
    void credit(ConnectionId connection, const Credit& credit, Instant now);
    void end(ConnectionId connection, std::uint64_t transfer);
    /// Messages of ours that have left for the socket: room for more.
    void sent(ConnectionId connection, std::uint32_t messages);
    void tick(Instant now);

private:
    struct Serving {
        TransferSender sender;
        File file;                           // or
        std::shared_ptr<const Bytes> bytes;
    };
    struct Reader {
        PeerIdentity peer;
        std::uint32_t unsent = 0;
        std::map<std::uint64_t, Serving> servings;
    };
    Result<Serving> prepare(const Reader& reader, const Pull& pull, Instant now) const;
    void pump(ConnectionId connection, Reader& reader);
    bool send_piece(ConnectionId connection, Reader& reader, Serving& serving);
    void refuse(ConnectionId connection, std::uint64_t transfer, const Error& error);
    [[nodiscard]] std::size_t served() const;

    TransferSink sink_;
    BlobSource source_;
    TransferLimits limits_;
    std::map<ConnectionId, Reader> readers_;
};

/// Our own fetches, from their request to their callback.
class FetchTable {
public:
    FetchTable(TransferSink sink, TransferLimits limits) : sink_(std::move(sink)), limits_(limits) {}

    void add(ConnectionId control, Fetch fetch, FetchDone done, Instant now);
    void opened(ConnectionId connection, ConnectionId control, Instant now);
    void closed(ConnectionId connection, Instant now);
    void chunk(ConnectionId connection, const Chunk& chunk, Instant now);
    void end(ConnectionId connection, const TransferEnd& end, Instant now);
    /// The session is over.
    void detach(ConnectionId control, Instant now);
    void tick(Instant now);
    void fail_all(const Error& why);

private:
    struct Active {
        ConnectionId control = 0;
        ConnectionId connection = 0;  // 0: waits for one
        Fetch fetch;
        FetchDone done;
        std::optional<PartFile> part;
        std::optional<TransferReceiver> receiver;
        Instant waiting_since{};
        bool resumed = false;  // began with bytes of an earlier attempt: a wrong digest gets a second try
    };
    struct Waiting {
        ConnectionId control = 0;
        Fetch fetch;
        FetchDone done;
    };
    void begin_waiting(Instant now);
    Status begin(std::uint64_t transfer, Active& active, Instant now);
    void request(Active& active);
    void complete(std::uint64_t transfer, Active& active, Instant now);
    void finish(std::uint64_t transfer, Result<std::filesystem::path> result);
    [[nodiscard]] bool is_part_in_use(const Fetch& fetch) const;
    Active* find(ConnectionId connection, std::uint64_t transfer);

    TransferSink sink_;
    TransferLimits limits_;
    std::map<std::uint64_t, Active> active_;
    std::deque<Waiting> waiting_;
    std::map<ConnectionId, ConnectionId> control_of_;           // of open bulk connections
    std::map<ConnectionId, std::uint32_t> unasked_;             // chunks of transfers that are not ours (any more)
    std::uint64_t next_transfer_ = 1;
};

}  // namespace causeway
