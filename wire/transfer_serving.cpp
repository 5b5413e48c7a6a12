// Serving pulls: a few chunks of each connection at a time, every transfer of a connection in turn.
#include "wire/transfer_tables.h"

namespace causeway {
namespace {

// In the link's outbox, unsealed. Two keep the socket busy; the third covers the one that may be sent and not told of.
constexpr std::uint32_t max_unsent = 3;

}  // namespace

/// Codes that a fetcher can act on go as they are; the rest is this machine's business.
void ServingTable::refuse(ConnectionId connection, std::uint64_t transfer, const Error& error) {
    const bool own_code =
        error.kind == ErrorKind::not_found || error.kind == ErrorKind::refused || error.kind == ErrorKind::overloaded;
    sink_.send(connection, TransferEnd{transfer, own_code ? std::string(to_string(error.kind)) : "io", error.message});
}

/// Limits before the source: a flood of pulls costs no look-ups.
Result<ServingTable::Serving> ServingTable::prepare(const Reader& reader, const Pull& pull, Instant now) {
    if (reader.servings.contains(pull.transfer)) {
        return fail(ErrorKind::refused, "refused", "this transfer is running already");
    }
    if (reader.servings.size() >= limits_.served_per_connection || being_served_ >= limits_.served) {
        return fail(ErrorKind::overloaded, "overloaded", "too many transfers at once: try again later");
    }
    TRY_ASSIGN(const auto blob, source_(pull.digest, reader.peer));
    File file;
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t total = 0;
    if (const auto* path = std::get_if<std::filesystem::path>(&blob)) {
        TRY_ASSIGN(file, File::open_to_read(*path));
        TRY_ASSIGN(total, file.size());
    } else {
        bytes = std::get<std::shared_ptr<const Bytes>>(blob);
        total = bytes->size();
    }
    if (pull.offset >= total) {
        return fail(ErrorKind::io, "io", "the blob has only " + std::to_string(total) + " bytes");
    }
    TRY_ASSIGN(auto sender, TransferSender::start(pull, total, now, reader.pace));
    std::shared_ptr<void> place(&++being_served_, [](void* count) { --*static_cast<std::size_t*>(count); });
    return Serving{std::move(sender), std::move(file),  std::move(bytes), pull.offset,
                   now,               std::move(place), pull.digest};
}

void ServingTable::pull(ConnectionId connection, const Pull& pull, Instant now) {
    const auto reader = readers_.find(connection);
    if (reader == readers_.end()) {
        return;
    }
    auto serving = prepare(reader->second, pull, now);
    if (!serving) {
        refuse(connection, pull.transfer, serving.error());
        return;
    }
    reader->second.servings.emplace(pull.transfer, std::move(*serving));
    pump(connection, reader->second);
}

void ServingTable::credit(ConnectionId connection, const Credit& credit, Instant now) {
    const auto reader = readers_.find(connection);
    if (reader == readers_.end()) {
        return;
    }
    const auto serving = reader->second.servings.find(credit.transfer);
    if (serving == reader->second.servings.end()) {
        return;  // all of it has been sent: late credits say nothing
    }
    if (const auto status = serving->second.sender.credit(credit, now); !status) {
        sink_.close(connection, status.error());
        readers_.erase(reader);
        return;
    }
    pump(connection, reader->second);
}

void ServingTable::end(ConnectionId connection, const TransferEnd& end, Instant now) {
    const auto found = readers_.find(connection);
    if (found == readers_.end()) {
        return;
    }
    auto& reader = found->second;
    if (end.code.empty() && reader.last && reader.last->sender.transfer() == end.transfer) {
        const auto& last = *reader.last;
        reader.pace = last.sender.pace_at_end(now);
        if (served_) {
            served_(reader.peer, last.sender.total() - last.from, now - last.began);
        }
        reader.last.reset();
    }
    reader.servings.erase(end.transfer);
}

void ServingTable::sent(ConnectionId connection, std::uint32_t chunks) {
    const auto reader = readers_.find(connection);
    if (reader == readers_.end()) {
        return;
    }
    reader->second.unsent -= std::min(reader->second.unsent, chunks);
    pump(connection, reader->second);
}

/// False when the transfer is over, one way or the other.
bool ServingTable::send_piece(ConnectionId connection, Reader& reader, Serving& serving) {
    const auto piece = serving.sender.next();
    if (!piece) {
        return !serving.sender.all_sent();
    }
    Chunk chunk{serving.sender.transfer(), piece->offset, serving.sender.total(), {}};
    if (serving.bytes) {
        chunk.payload = {serving.bytes, ByteView(*serving.bytes).subspan(piece->offset, piece->size)};
    } else if (auto read = serving.file.read(piece->offset, piece->size)) {
        chunk.payload = std::move(*read);
    } else {
        refuse(connection, chunk.transfer, read.error());
        return false;
    }
    ++reader.unsent;
    if (sink_.moved) {
        sink_.moved({.blob = serving.digest, .sent = chunk.payload.size()});
    }
    sink_.send(connection, std::move(chunk));
    return !serving.sender.all_sent();
}

/// One piece of each transfer in turn, until enough is unsealed or all wait for credits: a small model is not stuck
/// behind a large one.
void ServingTable::pump(ConnectionId connection, Reader& reader) {
    bool moved = true;
    while (moved && reader.unsent < max_unsent) {
        moved = false;
        for (auto at = reader.servings.begin(); at != reader.servings.end() && reader.unsent < max_unsent;) {
            const auto before = reader.unsent;
            const bool goes_on = send_piece(connection, reader, at->second);
            moved = moved || reader.unsent != before;
            if (!goes_on && at->second.sender.all_sent()) {
                reader.last = Served{at->second.sender, at->second.from, at->second.began};
            }
            at = goes_on ? std::next(at) : reader.servings.erase(at);
        }
    }
}

/// A reader that took nothing for half a minute gives its descriptor back; its next pull resumes.
void ServingTable::tick(Instant now) {
    for (auto& [connection, reader] : readers_) {
        for (auto at = reader.servings.begin(); at != reader.servings.end();) {
            const bool stalled = at->second.sender.stalled(now);
            if (stalled) {
                sink_.send(connection, TransferEnd{at->first, "stalled", "no credit came back for 30 s"});
            }
            at = stalled ? reader.servings.erase(at) : std::next(at);
        }
    }
}

}  // namespace causeway
