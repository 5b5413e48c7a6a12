// How updates come to this machine: asked for within the disk's quota, fetched into the spool, handed to the checkers.
//
// Whoever has to wait for room is still being absorbed as its round sees it; giving up works at every point of the way.
// Part of Loop (loop.h). Thread: loop; large files are unlinked elsewhere.
#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "compression/update_format.h"
#include "coordinator/loop.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

// A file costs an update more than all of its way, so one is written only where that is worth it: larger ones, those
// that come slowly, and what is beyond the limit of all in memory (wire/transfer_engine.h).
constexpr std::uint64_t largest_in_memory = 256 << 20;

UpdateAbsorbed unfetched(const AbsorbUpdate& job, Error why) {
    return {.experiment = job.experiment,
            .round = job.round,
            .attempt = job.attempt,
            .node = job.node,
            .update = job.update.digest,
            .refusal = std::nullopt,
            .fetch_error = std::move(why)};
}

Error spool_full(const AbsorbUpdate& job, std::uint64_t quota) {
    return {
        ErrorKind::io, "spool_full",
        fmt::format("an update of {} does not fit into spool_quota = {}: raise it in STATE/coordinator.toml and reload "
                    "the coordinator (SIGHUP); it goes on by itself",
                    format_bytes(job.update.bytes), format_bytes(quota))};
}

std::uint64_t size_of(const fs::path& file) {
    std::error_code none;
    const auto size = fs::file_size(file, none);
    return none ? 0 : size;
}

}  // namespace

void Loop::fetch(const AbsorbUpdate& job) {
    fetching_.insert_or_assign(key_of(job), job);
    waiting_for_room_.push_back(job);
    let_in();
}

/// In the order in which they came, so that a large one is not passed by small ones for ever. All take their size, also
/// those that will stay in memory: of many at once some go to the disk.
void Loop::let_in() {
    for (; !waiting_for_room_.empty(); waiting_for_room_.pop_front()) {
        const auto& job = waiting_for_room_.front();
        const auto known = fetching_.find(key_of(job));
        if (known == fetching_.end() || known->second.attempt != job.attempt) {
            continue;  // given up meanwhile
        }
        const auto quota = partners_.limits->spool_quota.load();
        const auto admission = room_.ask(job.update.digest, job.update.bytes, quota);
        remove_parts(admission.remove);
        switch (admission.answer) {
            case SpoolRoom::Answer::take:
                pull(job);
                break;
            case SpoolRoom::Answer::wait:
                return;
            case SpoolRoom::Answer::too_large:
                fetching_.erase(known);
                next_.push_back(unfetched(job, spool_full(job, quota)));
                break;
        }
    }
}

void Loop::pull(const AbsorbUpdate& job) {
    const Fetch fetch{.digest = job.update.digest,
                      .bytes = job.update.bytes,
                      .destination = partners_.spool / fmt::format("{}-{}", job.experiment, job.update.digest.hex()),
                      .durability = Durability::unflushed,
                      .in_memory_up_to = largest_in_memory,
                      .shift = dense_shift,
                      .owner = job.experiment};
    partners_.transfers.fetch(job.session, fetch, [queue = queue_, job](Result<FetchedBlob> blob) {
        queue->push(UpdateFetched{job, std::move(blob)});
    });
}

void Loop::on(const UpdateFetched& event) {
    const auto& update = event.job.update.digest;
    const auto known = fetching_.find(key_of(event.job));
    const bool given_up = known == fetching_.end();
    if (given_up || known->second.attempt != event.job.attempt) {  // it was answered then
        if (given_up && event.blob) {
            partners_.jobs.discard(*event.blob);
        }
        return leave_spool(update, 0);
    }
    fetching_.erase(known);
    if (!event.blob) {
        leave_spool(update, size_of(PartFile::path_of(partners_.spool / "part", update)));
        return step(unfetched(event.job, event.blob.error()));
    }
    if (event.blob->moved > 0) {
        step(LinkMeasured{.node = event.job.node, .bytes_up = event.blob->moved, .up = event.blob->took});
    }
    partners_.jobs.absorb(event.job, *event.blob);
}

/// Only what a job answers leaves the spool here: what was never fetched has left it before.
void Loop::on(const CoordinatorEvent& event) {
    if (const auto* absorbed = std::get_if<UpdateAbsorbed>(&event)) {
        leave_spool(absorbed->update, 0);
    }
    step(event);
}

void Loop::cancel(const CancelAbsorb& job) {
    const auto known = fetching_.find(AbsorbKey{job.experiment, job.round, job.node, 0});
    if (known == fetching_.end()) {
        return;  // past the transfer: the job runner answers
    }
    const auto absorb = known->second;
    fetching_.erase(known);
    partners_.transfers.cancel(absorb.session, absorb.update.digest);
    next_.push_back(unfetched(absorb, {ErrorKind::refused, "cancelled", "given up"}));
}

void Loop::leave_spool(const Digest& update, std::uint64_t part) {
    room_.done(update, part);
    let_in();
}

/// Parts of an earlier process are resumed where their updates are offered again.
void Loop::find_parts() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(partners_.spool, ignored)) {
        const auto digest = digest_from_hex(entry.path().stem().string());
        if (digest && entry.path().extension() == ".part") {
            room_.found(*digest, size_of(entry.path()));
        }
    }
}

/// After a commit or an end nothing is resumed, unless another experiment's round is open.
void Loop::forget_parts() {
    const auto& all = machine_.experiments();
    if (std::ranges::count_if(all, [](const auto& entry) { return entry.second.active(); }) <= 1) {
        remove_parts(room_.take_parts());
    }
}

/// Renamed here, so that a new part of the same update is another file; unlinked where it may take its time.
void Loop::remove_parts(const std::vector<Digest>& updates) {
    for (const auto& update : updates) {
        const auto part = PartFile::path_of(partners_.spool / "part", update);
        auto gone = part;
        gone.replace_extension(".gone");
        std::error_code ignored;
        fs::rename(part, gone, ignored);
        partners_.jobs.remove_file(std::move(gone));
    }
}

}  // namespace causeway
