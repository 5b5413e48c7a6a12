// Watches: requests whose replies come as rounds are committed. See operator_requests.h.
//
// A watcher gets a bounded number of events a step; one that has fallen behind is served in the next steps, so that
// others are served in between. Thread: loop. Pure.
#include <algorithm>

#include "coordinator/limits.h"
#include "coordinator/operator_requests.h"

namespace causeway {

Status Watches::add(SessionId session, std::uint64_t request, ExperimentId experiment, Kind kind,
                    std::uint32_t from_round) {
    const auto own =
        std::count_if(watches_.begin(), watches_.end(), [&](const auto& watch) { return watch.session == session; });
    if (watches_.size() >= limits::watches || static_cast<std::size_t>(own) >= limits::watches_per_session) {
        return fail(ErrorKind::overloaded, "too_many_watches", "too many watches are open; end one first");
    }
    watches_.push_back({session, request, experiment, kind, from_round, 0});
    return {};
}

void Watches::close(SessionId session) {
    std::erase_if(watches_, [&](const auto& watch) { return watch.session == session; });
}

/// Each watcher gets a bounded number of events a step; who has fallen behind is served in the next ones.
bool Watches::send(const Experiments& experiments, CoordinatorEffects& effects) {
    bool more = false;
    std::erase_if(watches_, [&](auto& watch) {
        const auto found = experiments.find(watch.experiment);
        if (found == experiments.end()) {
            return true;
        }
        const bool ended = send_some(watch, found->second, effects);
        more = more || (!ended && watch.next < found->second.event_count());
        return ended;
    });
    return more;
}

/// True once the last event has been sent. Events are made for those who look, so what nobody wants is skipped.
bool Watches::send_some(Watch& watch, const ExperimentMachine& experiment, CoordinatorEffects& effects) {
    const auto count = experiment.event_count();
    const auto rounds = count - (experiment.over() ? 1 : 0);
    const auto first = experiment.first_event_round();
    const std::size_t wanted = watch.kind == Kind::wait ? rounds : std::max(watch.from_round, first) - first;
    watch.next = std::max(watch.next, std::min(wanted, rounds));
    for (std::size_t sent = 0; watch.next < count && sent < limits::events_per_step; ++sent) {
        const bool last = watch.next == rounds;
        const auto event = experiment.event(watch.next++);
        effects.send.push_back({watch.session, Reply{watch.request, last, event.dump(), std::nullopt}});
        if (last) {
            return true;
        }
    }
    return false;
}

}  // namespace causeway
