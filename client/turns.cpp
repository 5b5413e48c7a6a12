// See turns.h.
#include "client/turns.h"

#include <algorithm>
#include <limits>

#include "client/session.h"

namespace causeway::node {
namespace {

// The one that the next turn starts from, and the one that the coordinator may still be pulling.
constexpr std::size_t segments_kept = 2;

}  // namespace

void Turns::begin(const Assign& assign, Effects& effects) {
    const Key key{assign.lease.experiment, assign.group};
    if (const auto old = works_.find(key); old != works_.end()) {
        stop(old->second, effects);
    }
    works_[key] = Work{.assign = assign};
    experiments_.insert(assign.lease.experiment);
    effects.send.emplace_back(Progress{assign.lease, 0, 0, 0});
    effects.jobs.emplace_back(FetchModel{assign.model, assign.model_bytes});
}

bool Turns::fetched(Instant now, const ModelFetched& event, Effects& effects) {
    bool any = false;
    for (auto entry = works_.begin(); entry != works_.end();) {
        auto& work = entry++->second;
        if (work.phase != Phase::fetching || work.assign.model != event.model) {
            continue;
        }
        any = true;
        if (event.error && event.error->kind == ErrorKind::not_found) {
            // Neither here nor there: only this node had it, and has it no more.
            const auto lease = work.assign.lease;
            works_.erase({lease.experiment, work.assign.group});
            effects.send.emplace_back(Decline{lease, "segment_lost", event.error->message});
        } else if (event.error) {
            work.phase = Phase::waiting;
            work.pause = work.pause == Duration::zero() ? fetch_retry_first
                                                        : std::min(work.pause * 2, fetch_retry_longest);
            work.fetch_at = now + work.pause;
            effects.say.push_back("could not fetch a segment: " + event.error->message + "; trying again in " +
                                  format_duration(work.pause));
        } else {
            work.phase = Phase::running;
            effects.jobs.emplace_back(RunTurn{work.assign});
        }
    }
    return any;
}

void Turns::done(Instant, const TurnDone& event, Effects& effects) {
    auto* work = find(event.lease);
    if (work == nullptr || work->phase != Phase::running) {
        if (!event.error) {
            effects.jobs.emplace_back(LetGo{event.update.digest});
        }
        return;
    }
    const auto assign = work->assign;
    const Key key{assign.lease.experiment, assign.group};
    if (event.error) {
        effects.say.push_back(assign.experiment_name + ": the turn broke off: " + event.error->message);
        works_.erase(key);
        effects.send.emplace_back(Decline{assign.lease, event.error->code, event.error->message, event.peer});
        return;
    }
    work->phase = Phase::offered;
    std::erase(kept_[key], event.update.digest);  // made again, after its group had to begin anew
    kept_[key].push_back(event.update.digest);
    let_go(key, segments_kept, effects);
    effects.send.emplace_back(Offer{assign.lease, event.update});
}

std::optional<Progress> Turns::progress(Instant now, const TrainingProgress& event) {
    auto* work = find(event.lease);
    if (work == nullptr || now < work->progress_at) {
        return std::nullopt;
    }
    work->progress_at = now + progress_interval;
    return Progress{event.lease, event.step, event.steps, event.loss};
}

void Turns::dropped(const Lease& lease, Effects& effects) {
    for (auto work = works_.begin(); work != works_.end();) {
        const auto& own = work->second.assign.lease;
        const bool meant = own.experiment == lease.experiment && own.round == lease.round &&
                           std::pair(lease.epoch, lease.attempt) >= std::pair(own.epoch, own.attempt);
        if (meant) {
            stop(work->second, effects);
        }
        work = meant ? works_.erase(work) : std::next(work);
    }
}

void Turns::over(std::uint64_t experiment, std::uint32_t round, Effects& effects) {
    for (auto work = works_.begin(); work != works_.end();) {
        const auto& own = work->second.assign.lease;
        const bool ends = own.experiment == experiment && own.round <= round;
        if (ends) {
            stop(work->second, effects);
        }
        work = ends ? works_.erase(work) : std::next(work);
    }
    for (auto& [key, segments] : kept_) {
        if (key.first == experiment) {
            let_go(key, 0, effects);
        }
    }
    std::erase_if(kept_, [&](const auto& entry) { return entry.first.first == experiment; });
    if (round == std::numeric_limits<std::uint32_t>::max()) {
        experiments_.erase(experiment);
    }
}

void Turns::lose_link(Effects& effects) {
    for (const auto& [key, work] : works_) {
        stop(work, effects);
    }
    works_.clear();
}

void Turns::tick(Instant now, Effects& effects) {
    for (auto& [key, work] : works_) {
        if (work.phase == Phase::waiting && now >= work.fetch_at) {
            work.phase = Phase::fetching;
            work.fetch_at = never;
            effects.jobs.emplace_back(FetchModel{work.assign.model, work.assign.model_bytes});
        }
    }
}

Instant Turns::deadline() const {
    Instant due = never;
    for (const auto& [key, work] : works_) {
        due = std::min(due, work.fetch_at);
    }
    return due;
}

void Turns::stop(const Work& work, Effects& effects) const {
    if (work.phase == Phase::running) {
        effects.jobs.emplace_back(StopTurn{work.assign.lease});
    }
}

void Turns::let_go(const Key& key, std::size_t keep, Effects& effects) {
    auto& segments = kept_[key];
    while (segments.size() > keep) {
        effects.jobs.emplace_back(LetGo{segments.front()});
        segments.pop_front();
    }
}

Turns::Work* Turns::find(const Lease& lease) {
    const auto found =
        std::ranges::find_if(works_, [&](const auto& entry) { return entry.second.assign.lease == lease; });
    return found == works_.end() ? nullptr : &found->second;
}

}  // namespace causeway::node
