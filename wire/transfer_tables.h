// Inside of the transfer engine: what is served and what is fetched, each a table that one thread drives.
//
// Both speak through a Sink, so the engine's tests can stand in for the link.
//
// threads  the engine's
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <set>

#include "common/work_thread.h"
#include "wire/part_file.h"
#include "wire/transfer_engine.h"

namespace causeway {

struct TransferSink {
    std::function<void(ConnectionId, Message)> send;
    std::function<void(ConnectionId, Error)> close;
    ChunkMoved moved{};  // may be empty
};

/// Other nodes' pulls.
class ServingTable {
public:
    ServingTable(TransferSink sink, BlobSource source, TransferLimits limits, ServedBlob served = {})
        : sink_(std::move(sink)), source_(std::move(source)), limits_(limits), served_(std::move(served)) {}

    void opened(ConnectionId connection, PeerIdentity peer) { readers_[connection].peer = std::move(peer); }
    void closed(ConnectionId connection) { readers_.erase(connection); }
    void pull(ConnectionId connection, const Pull& pull, Instant now);
    void credit(ConnectionId connection, const Credit& credit, Instant now);
    void end(ConnectionId connection, const TransferEnd& end, Instant now);
    /// Chunks of ours that have left for the socket: room for more.
    void sent(ConnectionId connection, std::uint32_t chunks);
    void tick(Instant now);

private:
    struct Serving {
        TransferSender sender;
        File file;                           // or
        std::shared_ptr<const Bytes> bytes;
        std::uint64_t from = 0;  // asked for from here on, at that time
        Instant began{};
        std::shared_ptr<void> place;  // among those that are served at once
        Digest digest;
    };
    struct Served {
        TransferSender sender;
        std::uint64_t from = 0;
        Instant began{};
    };
    struct Reader {
        PeerIdentity peer;
        std::uint32_t unsent = 0;
        ChunkPace pace;  // of the last transfer, for the next
        std::map<std::uint64_t, Serving> servings;
        std::optional<Served> last;  // all sent, its end not heard of: the newest of these
    };
    Result<Serving> prepare(const Reader& reader, const Pull& pull, Instant now);
    void pump(ConnectionId connection, Reader& reader);
    bool send_piece(ConnectionId connection, Reader& reader, Serving& serving);
    void refuse(ConnectionId connection, std::uint64_t transfer, const Error& error);

    TransferSink sink_;
    BlobSource source_;
    TransferLimits limits_;
    ServedBlob served_;
    std::size_t being_served_ = 0;  // over all connections: each has an open descriptor
    std::map<ConnectionId, Reader> readers_;
};

/// Work for the writer's thread, and answers for the table's own.
struct PartWriter {
    WorkThread& thread;
    std::function<void(std::function<void(Instant)>)> answer;
};

/// Our own fetches, from their request to their callback.
///
/// The table judges and hashes chunks; files are the writer's, chunk by chunk in order. A credit goes back for a chunk
/// that is written, so no more than the credits' worth waits for a disk.
class FetchTable {
public:
    FetchTable(TransferSink sink, PartWriter writer, TransferLimits limits)
        : sink_(std::move(sink)), writer_(std::move(writer)), limits_(limits) {}

    /// The session may be fetched from, until detach.
    void attach(ConnectionId control) { sessions_.insert(control); }
    void add(ConnectionId control, Fetch fetch, FetchDone done, Instant now);
    void opened(ConnectionId connection, ConnectionId control, Instant now);
    void closed(ConnectionId connection, Instant now);
    void chunk(ConnectionId connection, Chunk&& chunk, Instant now);
    void end(ConnectionId connection, const TransferEnd& end, Instant now);
    void cancel(ConnectionId control, const Digest& digest, Instant now);
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
        std::shared_ptr<PartFile> part;  // none: in memory. The writer's while it has chunks
        Bytes memory;                    // `shift` bytes of nothing, then what has come
        SharedBytes whole;            // in its place, where one chunk brought all
        std::shared_ptr<void> claim;  // on the limit of what is in memory
        std::uint32_t unwritten = 0;  // chunks that the writer has
        std::optional<TransferReceiver> receiver;
        Instant waiting_since{};
        std::uint64_t asked_from = 0;  // bytes that were here when the rest was asked for
        Instant asked_at{};
        Duration took{};               // from then until all was here
        bool resumed = false;    // began with bytes of an earlier attempt: a wrong digest gets a second try
        bool finishing = false;  // verified: the file gets its name
    };
    struct Waiting {
        ConnectionId control = 0;
        Fetch fetch;
        FetchDone done;
    };
    void begin_waiting(Instant now);
    Status begin(std::uint64_t transfer, Active& active, Instant now);
    Status open_part(std::uint64_t transfer, Active& active, Instant now);
    void request(Active& active, Instant now);
    void write(std::uint64_t transfer, Active& active, SharedBytes payload, ConnectionId owed);
    void written(std::uint64_t transfer, const Status& status, ConnectionId owed, Instant now);
    void keep_in_memory(Active& active, SharedBytes payload);
    void move_to_file(std::uint64_t transfer, Active& active);
    void complete(std::uint64_t transfer, Active& active, Instant now);
    void tell_given_up(std::uint64_t transfer, const Active& active, std::string why);
    bool was_given_up(ConnectionId connection, std::uint64_t transfer);
    void finish_file(std::uint64_t transfer, Active& active);
    void keep_part(const Active& active);
    [[nodiscard]] std::shared_ptr<void> claim_memory(const Fetch& fetch) const;
    void finish(std::uint64_t transfer, Result<FetchedBlob> result);
    [[nodiscard]] bool is_part_in_use(const Fetch& fetch) const;
    Active* find(ConnectionId connection, std::uint64_t transfer);
    [[nodiscard]] ConnectionId open_connection(ConnectionId control) const;

    TransferSink sink_;
    PartWriter writer_;
    TransferLimits limits_;
    std::shared_ptr<std::atomic<std::uint64_t>> in_memory_ = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::map<std::filesystem::path, std::weak_ptr<PartFile>> parts_;  // the writer may still have work on one
    std::map<std::uint64_t, Active> active_;
    std::deque<Waiting> waiting_;
    std::set<ConnectionId> sessions_;                           // that have not ended
    std::map<ConnectionId, ConnectionId> control_of_;           // of open bulk connections
    std::set<std::pair<ConnectionId, ConnectionId>> open_;      // the same by control connection
    std::map<ConnectionId, std::uint32_t> unasked_;             // chunks of transfers that are not ours
    using OnConnection = std::pair<ConnectionId, std::uint64_t>;
    std::map<OnConnection, std::uint32_t> given_up_;            // chunks that may still be on their way
    std::uint64_t next_transfer_ = 1;
};

}  // namespace causeway
