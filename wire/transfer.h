// Transfers as two pure machines: a sender that is pulled from, and a receiver that pulls with credits.
//
// A blob is addressed by its SHA-256 and its size is declared before. The receiver asks for it from an offset (what it
// holds already) and grants credits; each chunk uses one, each chunk written gives one back. Chunks come in order; a
// gap, a repetition or a chunk beyond the declared size ends the transfer. The receiver hashes as it goes and says at
// the end whether the digest was right. A connection may break anywhere: what was written is kept, and the next Pull
// starts there. Time is an argument; nothing here reads a file.
//
// threads  reentrant
#pragma once

#include <optional>

#include "common/digest.h"
#include "common/time.h"
#include "wire/message.h"

namespace causeway {

constexpr std::uint32_t transfer_credits = 8;            // x 1 MiB: 80 MB/s at 100 ms of round trip
constexpr std::uint32_t max_transfer_credits = 64;       // the schema's
constexpr std::size_t min_chunk_bytes = 16 * 1024;       // one TLS record
constexpr std::size_t first_chunk_bytes = 128 * 1024;    // before a rate is known
constexpr Duration chunk_time = std::chrono::milliseconds(100);  // a chunk takes at most this at the measured rate
constexpr Duration transfer_stall = std::chrono::seconds(30);    // without any progress: 16 KiB at 0.5 kB/s

/// How large chunks are made for a connection: at most chunk_time of the rate at which they have come to its other end.
/// A connection keeps what it has learnt, so that its second blob, where it is small, is a single chunk.
class ChunkPace {
public:
    [[nodiscard]] std::size_t chunk_bytes() const { return chunk_bytes_; }
    /// So many bytes took so long, until the other side's answer was here.
    void measure(std::uint64_t bytes, Duration elapsed);

private:
    std::size_t chunk_bytes_ = first_chunk_bytes;
    double rate_ = 0;  // bytes per second, smoothed; 0 unknown
};

class TransferSender {
public:
    struct Piece {
        std::uint64_t offset = 0;
        std::size_t size = 0;
    };

    /// errors  invalid `bad_offset`: beyond the blob; bad_credits
    static Result<TransferSender> start(const Pull& pull, std::uint64_t total, Instant now, ChunkPace pace = {});

    /// What to read and send next; nothing while no credit is left, or at the end.
    std::optional<Piece> next();
    /// errors  corrupt `bad_credits`: more than were ever used
    Status credit(const Credit& credit, Instant now);

    [[nodiscard]] bool all_sent() const { return position_ == total_; }
    [[nodiscard]] bool stalled(Instant now) const { return now - progress_at_ > transfer_stall; }
    [[nodiscard]] std::uint64_t transfer() const { return transfer_; }
    [[nodiscard]] std::uint64_t total() const { return total_; }
    [[nodiscard]] std::size_t chunk_bytes() const { return pace_.chunk_bytes(); }
    /// What has been learnt, also from the end of the transfer: the other side has verified all of it.
    [[nodiscard]] ChunkPace pace_at_end(Instant now) const;

private:
    TransferSender(const Pull& pull, std::uint64_t total, Instant now, ChunkPace pace);

    std::uint64_t transfer_;
    std::uint64_t total_;
    std::uint64_t position_;
    std::uint32_t credits_;
    std::uint32_t window_;  // credits granted at the start
    ChunkPace pace_;
    std::uint64_t measured_;  // up to here
    Instant progress_at_;
    Instant rate_since_;
};

class TransferReceiver {
public:
    /// `held` bytes are here already; feed them to hash_held before the first chunk.
    TransferReceiver(std::uint64_t transfer, const Digest& digest, std::uint64_t total, std::uint64_t held,
                     Instant now);

    void hash_held(ByteView bytes) { hasher_.update(bytes); }
    /// Asks for the rest, at first and again on a new connection.
    [[nodiscard]] Pull pull() {
        owed_ = 0;
        return {transfer_, digest_, position_, transfer_credits};
    }

    /// Judges a chunk; its payload is to be written at its offset.
    ///
    /// errors  corrupt: out_of_order, wrong_size
    Status accept(const Chunk& chunk, Instant now);
    /// The chunk is written: credits to give back, in pairs (half the messages) and before the window is empty.
    std::optional<Credit> written();

    [[nodiscard]] bool complete() const { return position_ == total_; }
    /// Once complete: "" or digest_mismatch, for the sender; the owner gets it as a Status.
    Status verify();
    [[nodiscard]] bool stalled(Instant now) const { return now - progress_at_ > transfer_stall; }
    [[nodiscard]] std::uint64_t position() const { return position_; }

private:
    std::uint64_t transfer_;
    Digest digest_;
    std::uint64_t total_;
    std::uint64_t position_;
    std::uint32_t owed_ = 0;
    Instant progress_at_;
    Hasher hasher_;
};

/// The sender's word that a transfer will not happen, as an error of the fetch.
Error transfer_error(const TransferEnd& end);

}  // namespace causeway
