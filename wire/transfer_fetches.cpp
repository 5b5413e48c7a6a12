// Fetching: from the request over parts and reconnections to the verified file.
#include "wire/transfer_tables.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::uint32_t max_unasked = max_transfer_credits;  // in flight when a transfer was given up

}  // namespace

void FetchTable::add(ConnectionId control, Fetch fetch, FetchDone done, Instant now) {
    if (fetch.bytes > limits_.largest) {
        done(fail(ErrorKind::overloaded, "too_large",
                  "a blob of " + std::to_string(fetch.bytes) + " bytes is over the limit of this node"));
        return;
    }
    if (waiting_.size() >= limits_.waiting_fetches) {
        done(fail(ErrorKind::overloaded, "too_many_fetches", "too many fetches wait: try again later"));
        return;
    }
    waiting_.push_back({control, std::move(fetch), std::move(done)});
    begin_waiting(now);
}

/// Two fetches of one digest into one folder would share a part: the second waits.
bool FetchTable::is_part_in_use(const Fetch& fetch) const {
    const auto part = PartFile::path_of(fetch.destination, fetch.digest);
    return std::ranges::any_of(active_, [&](const auto& entry) {
        const auto& other = entry.second.fetch;
        return PartFile::path_of(other.destination, other.digest) == part;
    });
}

/// First come, first served, as far as the limit of fetches and the parts allow.
void FetchTable::begin_waiting(Instant now) {
    for (auto at = waiting_.begin(); at != waiting_.end() && active_.size() < limits_.fetches;) {
        if (is_part_in_use(at->fetch)) {
            ++at;
            continue;
        }
        Waiting next = std::move(*at);
        at = waiting_.erase(at);
        const auto transfer = next_transfer_++;
        auto& active = active_[transfer];
        active.control = next.control;
        active.fetch = std::move(next.fetch);
        active.done = std::move(next.done);
        active.waiting_since = now;
        if (const auto begun = begin(transfer, active, now); !begun) {
            finish(transfer, fail(begun.error()));
        }
        at = waiting_.begin();  // a callback may have changed the queue
    }
}

/// Opens the part, hashes what it holds and asks for the rest.
Status FetchTable::begin(std::uint64_t transfer, Active& active, Instant now) {
    TRY_ASSIGN(auto part, PartFile::open(active.fetch.destination, active.fetch.digest, active.fetch.bytes));
    active.part.emplace(std::move(part));
    active.receiver.emplace(transfer, active.fetch.digest, active.fetch.bytes, active.part->held(), now);
    active.resumed = active.part->held() > 0;
    TRY(active.part->read_held([&](ByteView bytes) { active.receiver->hash_held(bytes); }));
    if (active.receiver->complete()) {
        complete(transfer, active, now);
        return {};
    }
    for (const auto& [connection, control] : control_of_) {
        if (control == active.control) {
            active.connection = connection;
            break;
        }
    }
    request(active);
    return {};
}

void FetchTable::request(Active& active) {
    if (active.connection != 0) {
        sink_.send(active.connection, active.receiver->pull());
    }
}

/// A new bulk connection of a session: what lost its connection, or never had one, goes on here.
void FetchTable::opened(ConnectionId connection, ConnectionId control, Instant now) {
    control_of_[connection] = control;
    for (auto& [transfer, active] : active_) {
        if (active.control == control && active.connection == 0) {
            active.connection = connection;
            active.waiting_since = now;
            request(active);
        }
    }
}

void FetchTable::closed(ConnectionId connection, Instant now) {
    control_of_.erase(connection);
    unasked_.erase(connection);
    for (auto& [transfer, active] : active_) {
        if (active.connection == connection) {
            active.connection = 0;  // goes on from what is written as soon as there is another
            active.waiting_since = now;
        }
    }
}

/// The transfer, if it runs on this very connection: numbers are only unique per connection.
FetchTable::Active* FetchTable::find(ConnectionId connection, std::uint64_t transfer) {
    const auto found = active_.find(transfer);
    return found != active_.end() && found->second.connection == connection ? &found->second : nullptr;
}

/// Judge, write, give credit back: in this order, so that a credit means written bytes.
void FetchTable::chunk(ConnectionId connection, const Chunk& chunk, Instant now) {
    auto* active = find(connection, chunk.transfer);
    if (!active) {
        if (++unasked_[connection] > max_unasked) {
            sink_.close(connection,
                        {ErrorKind::invalid, "unasked_chunk", "chunks of a transfer that nobody asked for"});
        }
        return;
    }
    if (const auto judged = active->receiver->accept(chunk, now); !judged) {
        sink_.send(connection, TransferEnd{chunk.transfer, judged.error().code, judged.error().message, true});
        finish(chunk.transfer, fail(judged.error()));
    } else if (const auto written = active->part->append(chunk.payload); !written) {
        sink_.send(connection, TransferEnd{chunk.transfer, "cancelled", "the receiver cannot write", true});
        finish(chunk.transfer, fail(written.error()));
    } else if (const auto credit = active->receiver->written()) {
        sink_.send(connection, *credit);
    } else if (active->receiver->complete()) {
        complete(chunk.transfer, *active, now);
    }
    begin_waiting(now);
}

/// All is here. The sender hears the verdict; the owner gets the file, or the reason.
void FetchTable::complete(std::uint64_t transfer, Active& active, Instant now) {
    const auto verdict = active.receiver->verify();
    if (active.connection != 0) {
        sink_.send(active.connection, TransferEnd{transfer, verdict ? "" : verdict.error().code, "", true});
    }
    if (verdict) {
        const auto finished = active.part->finish(active.fetch.durability);
        finish(transfer, finished ? Result<std::filesystem::path>(active.fetch.destination) : fail(finished.error()));
        return;
    }
    active.part->discard();
    if (!active.resumed) {
        finish(transfer, fail(verdict.error()));
        return;
    }
    // The bytes of the earlier attempt may have been the wrong ones: once more, from the start.
    waiting_.push_front({active.control, active.fetch, std::exchange(active.done, {})});
    active_.erase(transfer);
    begin_waiting(now);
}

/// The entry goes before the callback: a callback may ask for the same digest again.
void FetchTable::finish(std::uint64_t transfer, Result<std::filesystem::path> result) {
    const auto found = active_.find(transfer);
    const auto done = std::move(found->second.done);
    active_.erase(found);
    done(std::move(result));
}

void FetchTable::end(ConnectionId connection, const TransferEnd& end, Instant now) {
    if (find(connection, end.transfer)) {
        finish(end.transfer, fail(transfer_error(end)));
        begin_waiting(now);
    }
}

void FetchTable::detach(ConnectionId control, Instant now) {
    const Error why{ErrorKind::disconnected, "session_ended", "the session ended before the transfer"};
    std::vector<std::uint64_t> gone;
    for (const auto& [transfer, active] : active_) {
        if (active.control == control) {
            gone.push_back(transfer);
        }
    }
    std::vector<FetchDone> never_begun;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        if (at->control == control) {
            never_begun.push_back(std::move(at->done));
            at = waiting_.erase(at);
        } else {
            ++at;
        }
    }
    for (const auto transfer : gone) {
        finish(transfer, fail(why));
    }
    for (const auto& done : never_begun) {
        done(fail(why));
    }
    begin_waiting(now);
}

/// Progress is the rule, not time: only a transfer that stood still for half a minute ends.
void FetchTable::tick(Instant now) {
    std::vector<std::uint64_t> stalled;
    for (const auto& [transfer, active] : active_) {
        const bool waits = active.connection == 0;
        if (waits ? now - active.waiting_since > transfer_stall : active.receiver->stalled(now)) {
            stalled.push_back(transfer);
        }
    }
    for (const auto transfer : stalled) {
        const auto& active = active_.at(transfer);
        if (active.connection != 0) {
            sink_.send(active.connection, TransferEnd{transfer, "cancelled", "no progress for 30 s", true});
        }
        finish(transfer, fail(ErrorKind::timed_out, "stalled",
                              "the transfer made no progress for 30 s: it goes on from there at the next attempt"));
    }
    begin_waiting(now);
}

void FetchTable::fail_all(const Error& why) {
    waiting_.clear();
    auto active = std::exchange(active_, {});
    for (auto& entry : active) {
        entry.second.done(fail(why));
    }
}

}  // namespace causeway
