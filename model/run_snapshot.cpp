// The bytes of a run: counts before what they count, every count checked against what is left before memory is taken.
//
//   run := u64 depth, u32 next[depth], u64 epoch, u64 batch, u64 microbatch, totals, floats[3] (arenas by kind),
//          u64 layers, u64 steps[layers], u32 moments, floats[moments]          floats := u64 count, f32[count]
#include "model/run_snapshot.h"

#include <algorithm>

namespace causeway {
namespace {

template <class T>
void put_list(ByteWriter& out, const std::vector<T>& values) {
    out.put(std::uint64_t{values.size()});
    out.put_bytes(std::as_bytes(std::span(values)));
}

template <class T>
Result<std::vector<T>> get_list(ByteReader& in) {
    TRY_ASSIGN(const auto count, in.get<std::uint64_t>());
    if (count > in.left() / sizeof(T)) {
        return fail(ErrorKind::corrupt, "bad_run", "the kept run ends early");
    }
    std::vector<T> values(count);
    TRY_ASSIGN(const auto raw, in.get_bytes(count * sizeof(T)));
    std::ranges::copy(raw, std::as_writable_bytes(std::span(values)).begin());
    return values;
}

void put_totals(ByteWriter& out, const RunTotals& totals) {
    out.put(totals.epoch_loss);
    out.put(totals.epoch_examples);
    out.put(totals.examples);
    out.put(totals.steps);
    out.put(totals.seconds);
}

Result<RunTotals> get_totals(ByteReader& in) {
    RunTotals totals;
    TRY_ASSIGN(totals.epoch_loss, in.get<double>());
    TRY_ASSIGN(totals.epoch_examples, in.get<std::uint64_t>());
    TRY_ASSIGN(totals.examples, in.get<std::uint64_t>());
    TRY_ASSIGN(totals.steps, in.get<std::uint64_t>());
    TRY_ASSIGN(totals.seconds, (in.get<decltype(totals.seconds)>()));
    return totals;
}

}  // namespace

Bytes encode_run(const RunSnapshot& snapshot) {
    ByteWriter out;
    put_list(out, snapshot.place.next);
    out.put(snapshot.place.epoch);
    out.put(snapshot.place.batch);
    out.put(snapshot.place.microbatch);
    put_totals(out, snapshot.totals);
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        put_list(out, snapshot.model.arena(kind).values);
    }
    put_list(out, snapshot.optimizer.steps);
    out.put(static_cast<std::uint32_t>(snapshot.optimizer.moments.size()));
    for (const auto& moment : snapshot.optimizer.moments) {
        put_list(out, moment);
    }
    return out.take();
}

Result<RunSnapshot> decode_run(ByteView bytes) {
    ByteReader in(bytes);
    RunSnapshot snapshot;
    TRY_ASSIGN(snapshot.place.next, get_list<std::uint32_t>(in));
    TRY_ASSIGN(snapshot.place.epoch, in.get<std::uint64_t>());
    TRY_ASSIGN(snapshot.place.batch, in.get<std::uint64_t>());
    TRY_ASSIGN(snapshot.place.microbatch, in.get<std::uint64_t>());
    TRY_ASSIGN(snapshot.totals, get_totals(in));
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        TRY_ASSIGN(snapshot.model.arena(kind).values, get_list<float>(in));
    }
    TRY_ASSIGN(snapshot.optimizer.steps, get_list<std::uint64_t>(in));
    TRY_ASSIGN(const auto moments, in.get<std::uint32_t>());
    for (std::uint32_t i = 0; i < moments; ++i) {
        TRY_ASSIGN(auto moment, get_list<float>(in));
        snapshot.optimizer.moments.push_back(std::move(moment));
    }
    if (in.left() > 0) {
        return fail(ErrorKind::corrupt, "bad_run", "the kept run has more bytes than it says");
    }
    return snapshot;
}

}  // namespace causeway
