// Watches: requests whose replies come as rounds are committed. See operator_requests.h.
//
// A watcher gets a bounded number of events a step; one that has fallen behind is served in the next steps, so that
// others are served in between. Rounds that are no longer in memory come as pages of the store (ReadRounds): one page
// is under way for a watcher, and the next is asked for when it has been sent. Thread: loop. Pure.
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
    watches_.push_back({session, request, experiment, kind, from_round});
    return {};
}

void Watches::close(SessionId session) {
    std::erase_if(watches_, [&](const auto& watch) { return watch.session == session; });
}

/// Each watcher gets a bounded number of events a step; who has fallen behind is served in the next ones.
bool Watches::send(const Experiments& experiments, CoordinatorEffects& effects) {
    bool more = false;
    for (auto& watch : watches_) {
        const auto found = experiments.find(watch.experiment);
        watch.done = watch.done || found == experiments.end() || send_some(watch, found->second, effects);
        more = more || (!watch.done && !watch.reading && watch.next < found->second.event_count());
        watch.sent = 0;
    }
    std::erase_if(watches_, [](const auto& watch) { return watch.done; });
    return more;
}

/// True once the last event has been sent. Events are made for those who look, so what nobody wants is skipped.
bool Watches::send_some(Watch& watch, const ExperimentMachine& experiment, CoordinatorEffects& effects) {
    if (watch.reading) {
        return false;
    }
    if (watch.kind == Kind::model) {
        ask(watch, watch.from_round, 1, effects);
        return false;
    }
    const auto count = experiment.event_count();
    const auto rounds = count - (experiment.over() ? 1 : 0);
    const auto first = experiment.first_event_round();
    const std::size_t wanted = watch.kind == Kind::wait ? rounds : std::max(watch.from_round, first) - first;
    watch.next = std::max(watch.next, std::min(wanted, rounds));
    for (; watch.next < count && watch.sent < limits::events_per_step; ++watch.sent) {
        const auto event = experiment.event(watch.next);
        if (!event) {
            ask(watch, first + static_cast<std::uint32_t>(watch.next),
                std::min(limits::events_per_step, rounds - watch.next), effects);
            return false;
        }
        const bool last = watch.next++ == rounds;
        effects.send.push_back({watch.session, Reply{watch.request, last, event->dump(), std::nullopt}});
        if (last) {
            return true;
        }
    }
    return false;
}

/// Several that are at the same place share a page.
void Watches::ask(Watch& watch, std::uint32_t from, std::size_t count, CoordinatorEffects& effects) {
    const bool asked = std::ranges::any_of(watches_, [&](const auto& other) {
        return other.experiment == watch.experiment && other.reading == from;
    });
    watch.reading = from;
    if (!asked) {
        effects.jobs.push_back(ReadRounds{watch.experiment, from, static_cast<std::uint32_t>(count)});
    }
}

void Watches::read(const Experiments& experiments, const RoundsRead& page, CoordinatorEffects& effects) {
    for (auto& watch : watches_) {
        if (watch.experiment == page.experiment && watch.reading == page.from) {
            watch.reading.reset();
            watch.done = send_page(watch, experiments.at(watch.experiment), page, effects);
        }
    }
}

/// True when it was what the request asked for, or cannot be had.
bool Watches::send_page(Watch& watch, const ExperimentMachine& experiment, const RoundsRead& page,
                        CoordinatorEffects& effects) {
    Reply reply{.id = watch.request};
    if (page.error || page.rounds.empty()) {
        reply.error = page.error ? ErrorNotice{page.error->kind, page.error->code, page.error->message}
                                 : ErrorNotice{ErrorKind::corrupt, "database_corrupt",
                                               "the database: rounds are missing among the commits"};
        effects.send.push_back({watch.session, std::move(reply)});
        return true;
    }
    if (watch.kind == Kind::model) {
        reply.body = describe_record(experiment, record_of(page.rounds.front())).dump();
        effects.send.push_back({watch.session, std::move(reply)});
        return true;
    }
    for (const auto& round : page.rounds) {
        reply.last = false;
        reply.body = experiment.event_of(record_of(round)).dump();
        effects.send.push_back({watch.session, reply});
        ++watch.next;
        ++watch.sent;
    }
    return false;
}

}  // namespace causeway
