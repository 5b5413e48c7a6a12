// Fetching: from the request over parts and reconnections to the verified blob.
#include "wire/transfer_tables.h"

#include <algorithm>

namespace causeway {
namespace {

constexpr std::uint32_t max_unasked = max_transfer_credits;  // of a connection, ever
constexpr std::size_t max_given_up = 64;                     // of a connection; the oldest are forgotten
constexpr std::uint64_t worth_a_file = 4 << 20;              // less is soon fetched again
constexpr ConnectionId nobody = 0;                           // is owed a credit

Error session_over() {
    return {ErrorKind::disconnected, "session_ended", "the session ended before the transfer"};
}

}  // namespace

void FetchTable::add(ConnectionId control, Fetch fetch, FetchDone done, Instant now) {
    if (fetch.bytes > limits_.largest) {
        done(fail(ErrorKind::overloaded, "too_large",
                  "a blob of " + std::to_string(fetch.bytes) + " bytes is over the limit of this node"));
        return;
    }
    if (!sessions_.contains(control)) {  // no connection of it will ever come to wait for
        done(fail(session_over()));
        return;
    }
    if (waiting_.size() >= limits_.waiting_fetches) {
        done(fail(ErrorKind::overloaded, "too_many_fetches", "too many fetches wait: try again later"));
        return;
    }
    waiting_.push_back({control, std::move(fetch), std::move(done)});
    begin_waiting(now);
}

/// Two fetches of one digest into one folder would share a part: the second waits, also for the last write of a first
/// that was given up.
bool FetchTable::is_part_in_use(const Fetch& fetch) const {
    const auto part = PartFile::path_of(fetch.destination, fetch.digest);
    const auto open = parts_.find(part);
    return (open != parts_.end() && !open->second.expired()) || std::ranges::any_of(active_, [&](const auto& entry) {
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

/// Opens the part and hashes what it holds.
Status FetchTable::open_part(std::uint64_t transfer, Active& active, Instant now) {
    const auto& fetch = active.fetch;
    TRY_ASSIGN(auto part, PartFile::open(fetch.destination, fetch.digest, fetch.bytes));
    active.part = std::make_shared<PartFile>(std::move(part));
    std::erase_if(parts_, [](const auto& entry) { return entry.second.expired(); });
    parts_[PartFile::path_of(fetch.destination, fetch.digest)] = active.part;
    active.receiver.emplace(transfer, fetch.digest, fetch.bytes, active.part->held(), now);
    active.resumed = active.part->held() > 0;
    return active.part->read_held([&](ByteView bytes) { active.receiver->hash_held(bytes); });
}

/// Room in memory, given back with the last copy of the pointer; nothing when the blob is to be a file.
std::shared_ptr<void> FetchTable::claim_memory(const Fetch& fetch) const {
    std::error_code ignored;
    if (fetch.bytes == 0 || fetch.bytes > fetch.in_memory_up_to || *in_memory_ + fetch.bytes > limits_.in_memory ||
        std::filesystem::exists(PartFile::path_of(fetch.destination, fetch.digest), ignored)) {
        return nullptr;
    }
    *in_memory_ += fetch.bytes;
    return {in_memory_.get(), [sum = in_memory_, bytes = fetch.bytes](void*) { *sum -= bytes; }};
}

/// In memory or over a part; then asks for what is missing.
Status FetchTable::begin(std::uint64_t transfer, Active& active, Instant now) {
    const auto& fetch = active.fetch;
    active.claim = claim_memory(fetch);
    if (active.claim) {
        active.receiver.emplace(transfer, fetch.digest, fetch.bytes, 0, now);
    } else {
        TRY(open_part(transfer, active, now));
    }
    if (active.receiver->complete()) {
        complete(transfer, active, now);
        return {};
    }
    active.connection = open_connection(active.control);
    request(active, now);
    return {};
}

/// The newest of a session, 0 where it has none: a side that connects again has lost, or is closing, the one before.
ConnectionId FetchTable::open_connection(ConnectionId control) const {
    const auto behind = open_.lower_bound({control + 1, 0});
    const bool some = behind != open_.begin() && std::prev(behind)->first == control;
    return some ? std::prev(behind)->second : 0;
}

void FetchTable::request(Active& active, Instant now) {
    if (active.connection != 0 && !active.receiver->complete()) {
        active.asked_at = now;
        active.asked_from = active.receiver->position();
        sink_.send(active.connection, active.receiver->pull());
    }
}

/// A new bulk connection of a session: what lost its connection, or never had one, goes on here.
void FetchTable::opened(ConnectionId connection, ConnectionId control, Instant now) {
    control_of_[connection] = control;
    open_.emplace(control, connection);
    for (auto& [transfer, active] : active_) {
        if (active.control == control && active.connection == 0) {
            active.connection = connection;
            active.waiting_since = now;
            request(active, now);
        }
    }
}

void FetchTable::closed(ConnectionId connection, Instant now) {
    if (const auto known = control_of_.extract(connection)) {
        open_.erase({known.mapped(), connection});
    }
    unasked_.erase(connection);
    std::erase_if(given_up_, [&](const auto& entry) { return entry.first.first == connection; });
    for (auto& [transfer, active] : active_) {
        if (active.connection == connection) {
            // It goes on from what is written, over another that is open already or as soon as there is one.
            active.connection = open_connection(active.control);
            active.waiting_since = now;
            request(active, now);
        }
    }
}

/// The transfer, if it runs on this very connection: numbers are only unique per connection.
FetchTable::Active* FetchTable::find(ConnectionId connection, std::uint64_t transfer) {
    const auto found = active_.find(transfer);
    return found != active_.end() && found->second.connection == connection ? &found->second : nullptr;
}

/// Judge, write, give credit back: in this order, so that a credit means written bytes.
void FetchTable::chunk(ConnectionId connection, Chunk&& chunk, Instant now) {
    auto* active = find(connection, chunk.transfer);
    if (!active) {
        if (!was_given_up(connection, chunk.transfer) && ++unasked_[connection] > max_unasked) {
            sink_.close(connection,
                        {ErrorKind::invalid, "unasked_chunk", "chunks of a transfer that nobody asked for"});
        }
        return;
    }
    if (const auto judged = active->receiver->accept(chunk, now); !judged) {
        sink_.send(connection, TransferEnd{chunk.transfer, judged.error().code, judged.error().message, true});
        finish(chunk.transfer, fail(judged.error()));
        begin_waiting(now);
        return;
    }
    if (sink_.moved) {
        sink_.moved({.owner = active->fetch.owner, .blob = active->fetch.digest, .received = chunk.payload.size()});
    }
    if (active->part) {
        write(chunk.transfer, *active, std::move(chunk.payload), connection);
    } else {
        ++active->unwritten;
        keep_in_memory(*active, std::move(chunk.payload));
        written(chunk.transfer, {}, connection, now);
    }
}

/// Grows as bytes come: what is declared alone takes no memory, an eighth that has come does. A large one is a mapping,
/// which takes what is written to it, so it has its place from the first chunk on.
void FetchTable::keep_in_memory(Active& active, SharedBytes payload) {
    if (payload.size() == active.fetch.bytes) {
        active.whole = std::move(payload);
        return;
    }
    auto& memory = active.memory;
    const auto size = active.fetch.shift + active.fetch.bytes;
    if (memory.capacity() < size && (size >= worth_a_file || memory.size() >= size / 8)) {
        memory.reserve(size);
    }
    if (memory.empty()) {
        memory.resize(active.fetch.shift);
    }
    memory.insert(memory.end(), payload.begin(), payload.end());
}

void FetchTable::write(std::uint64_t transfer, Active& active, SharedBytes payload, ConnectionId owed) {
    ++active.unwritten;
    writer_.thread.post([this, answer = writer_.answer, transfer, part = active.part, payload, owed]() mutable {
        auto status = part->append(payload);
        part.reset();
        payload = {};
        answer([this, transfer, status = std::move(status), owed](Instant now) {
            written(transfer, status, owed, now);
        });
    });
}

/// A transfer that was given up meanwhile has nothing to answer; whoever waits for its part may begin. Credits are of
/// the connection that the chunk came on: on a later one it has used none.
void FetchTable::written(std::uint64_t transfer, const Status& status, ConnectionId owed, Instant now) {
    if (const auto found = active_.find(transfer); found != active_.end()) {
        auto& active = found->second;
        --active.unwritten;
        if (!status) {
            tell_given_up(transfer, active, "the receiver cannot write");
            finish(transfer, fail(status.error()));
        } else if (const auto credit =
                       owed != nobody && owed == active.connection ? active.receiver->written() : std::nullopt) {
            sink_.send(active.connection, *credit);
        } else if (active.receiver->complete() && active.unwritten == 0) {
            complete(transfer, active, now);
        }
    }
    begin_waiting(now);
}

/// The name and, where it was asked for, the flush: on the writer's thread, for a disk takes its time.
void FetchTable::finish_file(std::uint64_t transfer, Active& active) {
    active.finishing = true;
    writer_.thread.post([this, answer = writer_.answer, transfer, part = std::move(active.part),
                         durability = active.fetch.durability]() mutable {
        auto status = part->finish(durability);
        part.reset();
        answer([this, transfer, status = std::move(status)](Instant now) {
            if (const auto found = active_.find(transfer); found != active_.end()) {
                const auto& whole = found->second;
                FetchedBlob blob{whole.fetch.destination, {}, whole.fetch.bytes - whole.asked_from, whole.took};
                finish(transfer, status ? Result<FetchedBlob>(std::move(blob)) : fail(status.error()));
            }
            begin_waiting(now);
        });
    });
}

/// All is here. The sender hears the verdict; the owner gets the blob, or the reason.
void FetchTable::complete(std::uint64_t transfer, Active& active, Instant now) {
    const auto verdict = active.receiver->verify();
    active.took = now - active.asked_at;
    if (active.connection != 0) {
        sink_.send(active.connection, TransferEnd{transfer, verdict ? "" : verdict.error().code, "", true});
    }
    if (verdict && active.part) {
        finish_file(transfer, active);
        return;
    }
    if (verdict) {
        struct Held {
            SharedBytes bytes;
            std::shared_ptr<void> claim;
        };
        auto& whole = active.whole;
        const auto held = std::make_shared<const Held>(
            Held{whole ? std::move(whole) : SharedBytes(std::move(active.memory)), std::move(active.claim)});
        const auto blob = held->bytes.view().last(active.fetch.bytes);
        finish(transfer, FetchedBlob{{}, {held, blob}, active.fetch.bytes - active.asked_from, active.took});
        return;
    }
    if (active.part) {
        active.part->discard();
    }
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
void FetchTable::finish(std::uint64_t transfer, Result<FetchedBlob> result) {
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

/// The sender stops; as many chunks as it had credits may be under way, and are nobody's fault.
void FetchTable::tell_given_up(std::uint64_t transfer, const Active& active, std::string why) {
    if (active.connection == 0) {
        return;
    }
    sink_.send(active.connection, TransferEnd{transfer, "cancelled", std::move(why), true});
    given_up_[{active.connection, transfer}] = transfer_credits;
    const auto first = given_up_.lower_bound({active.connection, 0});
    if (std::distance(first, given_up_.upper_bound({active.connection, transfer})) >
        static_cast<std::ptrdiff_t>(max_given_up)) {
        given_up_.erase(first);
    }
}

bool FetchTable::was_given_up(ConnectionId connection, std::uint64_t transfer) {
    const auto known = given_up_.find({connection, transfer});
    if (known == given_up_.end()) {
        return false;
    }
    if (--known->second == 0) {
        given_up_.erase(known);
    }
    return true;
}

/// What has come of it is of no use to anybody: its part goes, behind what the writer has of it.
void FetchTable::cancel(ConnectionId control, const Digest& digest, Instant now) {
    const Error why{ErrorKind::refused, "cancelled", "the transfer was given up"};
    std::vector<FetchDone> never_begun;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        const bool meant = at->control == control && at->fetch.digest == digest;
        if (meant) {
            never_begun.push_back(std::move(at->done));
        }
        at = meant ? waiting_.erase(at) : std::next(at);
    }
    std::vector<std::uint64_t> gone;
    for (const auto& [transfer, active] : active_) {
        if (active.control == control && active.fetch.digest == digest && !active.finishing) {
            gone.push_back(transfer);
        }
    }
    for (const auto transfer : gone) {
        auto& active = active_.at(transfer);
        tell_given_up(transfer, active, why.message);
        if (active.part) {
            writer_.thread.post([this, answer = writer_.answer, part = std::move(active.part)]() mutable {
                part->discard();
                part.reset();
                answer([this](Instant later) { begin_waiting(later); });
            });
        }
        finish(transfer, fail(why));
    }
    for (const auto& done : never_begun) {
        done(fail(why));
    }
    begin_waiting(now);
}

void FetchTable::detach(ConnectionId control, Instant now) {
    sessions_.erase(control);
    const auto why = session_over();
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
        keep_part(active_.at(transfer));
        finish(transfer, fail(why));
    }
    for (const auto& done : never_begun) {
        done(fail(why));
    }
    begin_waiting(now);
}

/// What has come into memory becomes a part: the next session's fetch goes on from it.
void FetchTable::keep_part(const Active& active) {
    if (active.memory.empty()) {
        return;
    }
    auto part = PartFile::open(active.fetch.destination, active.fetch.digest, active.fetch.bytes);
    if (!part || part->held() > 0) {
        return;
    }
    auto kept = std::make_shared<PartFile>(*std::move(part));
    parts_[PartFile::path_of(active.fetch.destination, active.fetch.digest)] = kept;
    const auto shift = active.fetch.shift;
    writer_.thread.post([this, answer = writer_.answer, kept, bytes = active.memory, shift]() mutable {
        (void)kept->append(ByteView(bytes).subspan(shift));  // what cannot be kept is fetched again
        kept.reset();
        answer([this](Instant now) { begin_waiting(now); });
    });
}

/// What takes long is worth more than its way: as a file it outlives this process, and its memory is others'.
void FetchTable::move_to_file(std::uint64_t transfer, Active& active) {
    auto part = PartFile::open(active.fetch.destination, active.fetch.digest, active.fetch.bytes);
    if (!part || part->held() > 0) {
        return;
    }
    active.part = std::make_shared<PartFile>(*std::move(part));
    parts_[PartFile::path_of(active.fetch.destination, active.fetch.digest)] = active.part;
    struct Held {
        Bytes bytes;
        std::shared_ptr<void> claim;
    };
    const auto held = std::make_shared<const Held>(Held{std::exchange(active.memory, {}), std::move(active.claim)});
    write(transfer, active, {held, ByteView(held->bytes).subspan(active.fetch.shift)}, nobody);
}

/// Progress is the rule, not time: only a transfer that stood still for half a minute ends.
void FetchTable::tick(Instant now) {
    std::vector<std::uint64_t> stalled;
    for (auto& [transfer, active] : active_) {
        const bool large = active.fetch.bytes >= worth_a_file && !active.memory.empty();
        if (large && !active.part && now - active.asked_at > limits_.in_memory_time) {
            move_to_file(transfer, active);
        }
        if (active.finishing || active.unwritten > 0) {
            continue;  // the disk's turn: its errors end the transfer
        }
        const auto since = active.connection == 0 ? active.waiting_since : active.asked_at;
        if (now - since > transfer_stall && (active.connection == 0 || active.receiver->stalled(now))) {
            stalled.push_back(transfer);
        }
    }
    for (const auto transfer : stalled) {
        const auto& active = active_.at(transfer);
        tell_given_up(transfer, active, "no progress for 30 s");
        keep_part(active);
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
