// The transfer engine: one worker thread that moves blobs over bulk connections, both ways.
//
// It owns the bulk queue of a link. Fetches are pulled into `<digest>.part` beside their destination, verified, flushed
// and renamed; a part survives a lost connection and a restart, and the next fetch of the digest goes on from it. Small
// blobs, and what comes fast, stay in memory where their owner asks for that: a file costs more than all of its way. A
// second thread writes the files: a slow disk holds up neither the hash nor other transfers. The engine's thread also
// serves others' pulls from a BlobSource. Of each connection at most a few chunks are unsealed at a time, so memory
// follows the number of connections, not the size of blobs.
#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "wire/link.h"
#include "wire/part_file.h"
#include "wire/transfer.h"

namespace causeway {

/// What a digest stands for here: a file, or bytes in memory.
using Blob = std::variant<std::filesystem::path, std::shared_ptr<const Bytes>>;
/// Looks a digest up for a reader, and decides whether it may have it.
///
/// errors   not_found; refused: not for this reader
/// threads  called on the engine's thread: reentrant, and quick
using BlobSource = std::function<Result<Blob>(const Digest& digest, const PeerIdentity& reader)>;

struct Fetch {
    Digest digest;
    std::uint64_t bytes = 0;  // declared beforehand; anything else is refused
    std::filesystem::path destination;
    Durability durability = Durability::flushed;
    /// A blob of at most so many bytes is not written to its destination, unless a part of it lies there already or the
    /// limit of such blobs is reached. When its session ends before all has come, what has come becomes a part; so it
    /// does, and the rest is written behind it, when a large one takes longer than `in_memory_time`.
    std::uint64_t in_memory_up_to = 0;
    std::size_t shift = 0;  // in memory it begins so many bytes behind an address that suits any value
    std::uint64_t owner = 0;  // whose bytes they are: told with each chunk
};
/// A verified blob: its bytes, or else the file under its destination.
struct FetchedBlob {
    std::filesystem::path file;
    SharedBytes bytes;
    std::uint64_t moved = 0;  // bytes since it was asked for last, and how long they took
    Duration took{};
};
/// The blob; or why not: not_found, refused, corrupt `digest_mismatch`, timed_out `stalled`, disconnected (the session
/// ended), io, overloaded `too_large`. Called on the engine's thread.
using FetchDone = std::function<void(Result<FetchedBlob>)>;

/// A reader has verified a blob that was served here: so many bytes since it asked, in so long. On the engine's thread.
using ServedBlob = std::function<void(const PeerIdentity& reader, std::uint64_t bytes, Duration took)>;

/// A chunk has been taken in, of a fetch with its owner, or handed to the link, of a blob that is served. On the
/// engine's thread.
struct MovedChunk {
    std::uint64_t owner = 0;
    Digest blob;
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
};
using ChunkMoved = std::function<void(const MovedChunk&)>;

struct TransferLimits {
    std::size_t fetches = 8;                 // at once; others wait their turn
    std::size_t waiting_fetches = 65'536;
    std::size_t served_per_connection = 8;  // as many as the other side fetches at once
    std::size_t served = 2048;               // each may hold a descriptor
    std::uint64_t in_memory = 64 << 20;      // of blobs that were asked for so, until their owners let go of them
    Duration in_memory_time = std::chrono::seconds(2);
    std::uint64_t largest = std::uint64_t{64} << 30;
};

/// threads  thread-safe
class TransferEngine {
public:
    /// `events` is the bulk queue that the link was started with. The link must outlive the engine.
    TransferEngine(Link& link, std::shared_ptr<LinkEvents> events, BlobSource source, TransferLimits limits = {},
                   ServedBlob served = {}, ChunkMoved moved = {});
    /// Ends all fetches with `disconnected`.
    ~TransferEngine();
    TransferEngine(const TransferEngine&) = delete;
    TransferEngine& operator=(const TransferEngine&) = delete;

    /// Connecting side: may open a bulk connection for our session from now on, until detach. want() and fetch() open
    /// one; it is opened again when it is lost, and closed when nothing has moved or been wanted for half a minute.
    void attach(ConnectionId control, Address coordinator, std::uint64_t session);
    /// Accepting side: the session has begun, and may be fetched from until detach. The other side opens connections.
    void attach(ConnectionId control);
    /// Something is to be fetched, or to be pulled from here by the other side, which cannot open a connection.
    void want(ConnectionId control);
    /// The session is over (its control connection has closed): its fetches end with `disconnected`.
    void detach(ConnectionId control);
    /// Fetches from the peer of a session over its bulk connection, waiting for one where none is open yet. For one
    /// that is not attached there will be none: such a fetch ends at once with `disconnected`. Owners ask when their
    /// state is stored or their cache looked at, and the session that they ask for may be over by then.
    void fetch(ConnectionId control, Fetch fetch, FetchDone done);
    /// Gives up the fetches of a digest from a session's peer, which is told; they end with `cancelled`, and their
    /// parts go. One that is verified already ends as it would have.
    void cancel(ConnectionId control, const Digest& digest);

    struct State;

private:
    std::unique_ptr<State> state_;
};

}  // namespace causeway
