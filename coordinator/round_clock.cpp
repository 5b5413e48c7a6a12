// Instants are put in order before they are subtracted: what a member says of its own time is bounded by ours.
#include "coordinator/round_clock.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace causeway {
namespace {

constexpr const char* counted = "counted";

}  // namespace

Json TimeParts::json() const {
    return Json::object()
        .set("select", seconds(select))
        .set("distribute", seconds(distribute))
        .set("train", seconds(train))
        .set("collect", seconds(collect))
        .set("verify", seconds(verify))
        .set("aggregate", seconds(aggregate))
        .set("commit", seconds(commit))
        .set("evaluate", seconds(evaluate));
}

void RoundClock::begin(Instant now) {
    *this = {};
    begun_ = waiting_since_ = opened_ = closed_ = now;
}

/// The transaction is over; whatever the round waits for from here on is not its doing.
void RoundClock::commit_stored(Instant now) {
    if (!stored_) {
        stored_ = now;
    }
}

void RoundClock::waits(Instant now, Wait what) {
    settle_wait(now);
    waits_for_ = what;
}

/// What has passed since the last change was for what it waited for then, less the transaction's time.
void RoundClock::settle_wait(Instant now) {
    const auto stored = std::clamp(stored_.value_or(waiting_since_), waiting_since_, now);
    before_.commit += stored - waiting_since_;
    (waits_for_ == Wait::evaluation ? before_.evaluate : before_.select) += now - stored;
    waiting_since_ = now;
}

void RoundClock::opened(Instant now) {
    settle_wait(now);
    opened_ = closed_ = now;
    rows_.clear();
}

/// The first assignment counts: what a second attempt costs is time that the round spent on this member.
void RoundClock::assigned(Instant now, const std::string& node) {
    auto& row = rows_[node];
    row.assigned = row.assigned.value_or(now);
}

void RoundClock::working(Instant now, const std::string& node) {
    if (const auto row = rows_.find(node); row != rows_.end()) {
        row->second.working = row->second.working.value_or(now);
    }
}

/// The last offer counts: it is the one that can be pulled.
void RoundClock::offered(Instant now, const std::string& node, double train_seconds) {
    const auto row = rows_.find(node);
    if (row == rows_.end() || row->second.ended) {
        return;
    }
    row->second.offered = now;
    // A peer's number: neither negative, nor longer than there was time for.
    const auto most = seconds(now - row->second.assigned.value_or(now));
    row->second.train = std::isfinite(train_seconds) ? from_seconds(std::clamp(train_seconds, 0.0, most)) : Duration{};
}

void RoundClock::absorbed(Instant now, const std::string& node, Duration verify, Duration aggregate) {
    if (const auto row = rows_.find(node); row != rows_.end() && !row->second.ended) {
        row->second.ended = now;
        row->second.verify = verify;
        row->second.aggregate = aggregate;
        row->second.end = counted;
    }
}

void RoundClock::left(Instant now, const std::string& node, const std::string& why) {
    auto& row = rows_[node];
    row.ended = row.ended.value_or(now);
    row.end = why;
}

void RoundClock::closed(Instant now) {
    closed_ = now;
}

/// From the back: what is known best is cut off first, and what is left has gone into bringing it the work.
TimeParts RoundClock::parts_of(const Row& row, Instant from, Instant to) const {
    TimeParts parts;
    if (!row.offered) {  // it never came so far
        const auto working = std::clamp(row.working.value_or(to), from, to);
        parts.distribute = working - from;
        parts.train = to - working;
        return parts;
    }
    const auto offered = std::clamp(*row.offered, from, to);
    parts.train = std::clamp<Duration>(row.train, Duration::zero(), offered - from);
    parts.distribute = offered - from - parts.train;
    parts.verify = std::clamp<Duration>(row.verify, Duration::zero(), to - offered);
    parts.aggregate = std::clamp<Duration>(row.aggregate, Duration::zero(), to - offered - parts.verify);
    parts.collect = to - offered - parts.verify - parts.aggregate;
    return parts;
}

Duration RoundClock::exchange() const {
    Instant first = never;
    Instant last{};
    for (const auto& [node, row] : rows_) {
        if (row.offered && row.ended && row.end == counted) {
            first = std::min(first, *row.offered);
            last = std::max(last, *row.ended);
        }
    }
    return std::max(last - first, Duration::zero());
}

RoundClock::Times RoundClock::times(Instant now, Duration division) const {
    Times times{.wall = now - begun_, .parts = {}, .last = {}, .members = Json::object()};
    const Row* last = nullptr;
    std::vector<std::pair<Instant, const std::pair<const std::string, Row>*>> slowest;
    for (const auto& entry : rows_) {
        const auto end = entry.second.ended.value_or(closed_);
        slowest.emplace_back(end, &entry);
        if (last == nullptr || end > last->ended.value_or(closed_)) {
            last = &entry.second;
            times.last = entry.first;
        }
    }
    // A round that opens with a commit is told to its members when that commit is durable.
    const auto start = std::clamp(stored_.value_or(opened_), opened_, closed_);
    times.parts = last != nullptr ? parts_of(*last, start, closed_) : TimeParts{.distribute = closed_ - start};
    const auto dividing = std::clamp<Duration>(division, Duration::zero(), now - closed_);
    times.parts.aggregate += dividing;
    times.parts.commit = before_.commit + (start - opened_) + (now - closed_ - dividing);
    times.parts.select = before_.select;
    times.parts.evaluate = before_.evaluate;

    times.exchange = exchange();
    std::ranges::stable_sort(slowest, [](const auto& a, const auto& b) { return a.first > b.first; });
    slowest.resize(std::min(slowest.size(), most_rows));
    for (const auto& [end, entry] : slowest) {
        const auto& row = entry->second;
        const auto from = std::min(std::max(row.assigned.value_or(end), start), end);
        const auto parts = parts_of(row, from, end);
        times.members.set(entry->first, Json::object()
                                            .set("distribute", seconds(parts.distribute))
                                            .set("train", seconds(parts.train))
                                            .set("collect", seconds(parts.collect))
                                            .set("verify", seconds(parts.verify))
                                            .set("aggregate", seconds(parts.aggregate))
                                            .set("total", seconds(end - std::min(start, end)))
                                            .set("end", row.end));
    }
    return times;
}

}  // namespace causeway
