// Who is next: which experiment leaves the queue, and which one gets the clients that several could use.
//
// The queue goes by priority, then first in, first out. Running experiments share clients in turns: one that waits for
// members comes before one that has just had its round, so neither the earlier nor the later one starves. Among those
// that wait, priority decides, then who has waited longest. To be served, a waiting experiment must find all that it
// needs at one time; so what it could use is kept for it until the rounds that hold it have ended.
// Part of Coordinator (machine.h). Thread: loop. Pure.
#include <algorithm>
#include <iterator>

#include "coordinator/machine.h"

namespace causeway {
namespace {

/// Among those that wait for members.
bool comes_before(const ExperimentMachine& a, const ExperimentMachine& b) {
    return std::tuple(-std::int64_t{a.priority()}, a.waiting_since(), a.id()) <
           std::tuple(-std::int64_t{b.priority()}, b.waiting_since(), b.id());
}

}  // namespace

/// Ticks are cheap and idempotent, so every step gives one to each active experiment: a member that another
/// experiment has just let go can be drawn without a word from anybody.
void Coordinator::finish(Instant now, CoordinatorEffects& effects) {
    for (const auto& node : members_.give_up(now)) {
        for (const auto id : unfinished_) {
            experiments_.at(id).member_given_up({now, members_, busy_for(id), effects}, node);
        }
    }
    start_queued(now, effects);
    for (const auto id : in_turn()) {
        experiments_.at(id).tick({now, members_, busy_for(id), effects});
    }
    std::vector<ExperimentId> ended;
    std::ranges::copy_if(unfinished_, std::back_inserter(ended), [&](auto id) { return experiments_.at(id).over(); });
    std::erase_if(unfinished_, [&](auto id) { return experiments_.at(id).over(); });
    start_queued(now, effects);
    if (watches_.send(experiments_, effects)) {
        effects.wake_at = now;
    }
    for (const auto id : ended) {
        experiments_.at(id).close();
    }
    effects.wake_at = std::min(effects.wake_at, members_.next_given_up());
    std::vector<Rosters::Pair> pairs;
    for (const auto id : unfinished_) {
        effects.wake_at = std::min(effects.wake_at, experiments_.at(id).deadline());
        for (auto& nodes : experiments_.at(id).streams()) {
            pairs.push_back({id, std::move(nodes)});
        }
    }
    effects.wake_at = std::min(effects.wake_at, rosters_.keep(now, pairs, members_, effects));
}

/// Active ones: first those that wait, in the order in which they are served.
std::vector<ExperimentId> Coordinator::in_turn() const {
    std::vector<const ExperimentMachine*> active;
    for (const auto id : unfinished_) {
        if (experiments_.at(id).active()) {
            active.push_back(&experiments_.at(id));
        }
    }
    std::ranges::stable_sort(active, [](const auto* a, const auto* b) {
        return a->waiting() != b->waiting() ? a->waiting() : a->waiting() && comes_before(*a, *b);
    });
    std::vector<ExperimentId> ids;
    for (const auto* experiment : active) {
        ids.push_back(experiment->id());
    }
    return ids;
}

/// As they would start.
std::vector<ExperimentId> Coordinator::queue() const {
    std::vector<const ExperimentMachine*> queued;
    for (const auto id : unfinished_) {
        if (experiments_.at(id).queued()) {
            queued.push_back(&experiments_.at(id));
        }
    }
    std::ranges::stable_sort(queued, [](const auto* a, const auto* b) { return a->priority() > b->priority(); });
    std::vector<ExperimentId> ids;
    for (const auto* experiment : queued) {
        ids.push_back(experiment->id());
    }
    return ids;
}

void Coordinator::start_queued(Instant now, CoordinatorEffects& effects) {
    const auto most = std::max<std::uint32_t>(options_.parallel, 1);
    for (const auto id : queue()) {
        if (active_count() >= most) {
            return;
        }
        experiments_.at(id).start({now, members_, busy_for(id), effects});
    }
}

/// One that waits for another build of the engine keeps nobody from running.
std::size_t Coordinator::active_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(unfinished_, [&](auto id) {
        const auto& experiment = experiments_.at(id);
        return experiment.active() && !experiment.pinned();
    }));
}

/// Nodes that another experiment's open round has (a client holds one assignment), or that one which is served before
/// this waits for.
Busy Coordinator::busy_for(ExperimentId id) const {
    Busy busy;
    auto& names = busy.nodes;
    const auto own = experiments_.find(id);
    for (const auto other : unfinished_) {
        const auto& experiment = experiments_.at(other);
        if (other == id) {
            continue;
        }
        for (auto& node : experiment.members_in_round()) {
            names.insert(std::move(node));
        }
        for (const auto& [host, bytes] : experiment.host_bytes()) {
            busy.host_bytes[host] += bytes;
        }
        const bool first = experiment.waiting() && (own == experiments_.end() || !own->second.waiting() ||
                                                    comes_before(experiment, own->second));
        if (first) {
            CoordinatorEffects none;
            for (auto& node : experiment.usable({{}, members_, {}, none})) {
                names.insert(std::move(node));
            }
        }
    }
    return busy;
}

}  // namespace causeway
