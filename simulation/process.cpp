// See process.h.
#include "simulation/process.h"

#include <cmath>
#include <utility>

namespace causeway::simulation {

Instant HostClock::local(Instant world) const {
    const auto passed = world - world_base_;
    return local_base_ + (rate_ == 1 ? passed : Duration(std::llround(static_cast<double>(passed.count()) * rate_)));
}

/// Rounded up by more than the rounding of local(): a wake that comes too early would only be asked for again.
Instant HostClock::world(Instant local) const {
    const auto passed = local - local_base_;
    if (rate_ == 1) {
        return world_base_ + passed;
    }
    constexpr std::int64_t margin_ns = 1000;
    return world_base_ + Duration(std::llround(static_cast<double>(passed.count()) / rate_) + margin_ns);
}

void HostClock::set_rate(Instant world_now, double rate) {
    local_base_ = local(world_now);
    world_base_ = world_now;
    rate_ = rate;
}

void Process::crash_after(std::uint32_t effects, std::function<void()> crashed) {
    effects_left_ = effects;
    crashed_ = std::move(crashed);
}

/// A turn comes as soon as it goes on, whatever else there is to do.
void Process::stop(Duration how_long) {
    interrupt();
    life_.stopped_until = std::max(life_.stopped_until, queue_.now() + how_long);
    queue_.at(life_.stopped_until, life_, [this] { note_turn(); });
}

void Process::interrupt() {
    if (!interrupted_) {
        listening_.ran_until(clock_.local(queue_.now()));
        interrupted_ = true;
    }
}

void Process::note_turn() {
    const auto local = clock_.local(queue_.now());
    if (std::exchange(interrupted_, false)) {
        stood_still_ = std::max(stood_still_, listening_.turn(local));
        plan_wake();
    } else {
        listening_.ran_until(local);
    }
}

void Process::begin_life() {
    listening_ = ListeningClock(clock_.local(queue_.now()));
    last_now_ = listening_.now();
    interrupted_ = queue_.now() < life_.stopped_until;
}

Duration Process::begin_turn() {
    note_turn();
    last_now_ = std::max(last_now_, listening_.before(wake_at_));
    return std::exchange(stood_still_, Duration::zero());
}

void Process::set_clock_rate(double rate) {
    clock_.set_rate(queue_.now(), rate);
    plan_wake();
}

/// As of a virtual machine that was paused: its loop had no turn meanwhile.
void Process::jump_clock(Duration ahead) {
    interrupt();
    clock_.jump(ahead);
    queue_.at(queue_.now(), life_, [this] { note_turn(); });
}

void Process::fill_disk(Duration how_long) {
    disk_full_until_ = std::max(disk_full_until_, queue_.now() + how_long);
}

void Process::wake_at(Instant local) {
    wake_at_ = local;
    plan_wake();
}

/// A wake that is planned already is early enough for a later wish: it looks again when it comes. So a step that only
/// moves a deadline away costs nothing.
void Process::plan_wake() {
    if (wake_at_ == never || !up()) {
        return;
    }
    const auto when = std::max(clock_.world(listening_.real_at(wake_at_)), queue_.now());
    if (planned_for_ <= when) {
        return;
    }
    planned_for_ = when;
    queue_.at(when, life_, [this, wake = ++wakes_] {
        if (wake != wakes_) {
            return;
        }
        planned_for_ = never;
        note_turn();
        if (listening_.now() < wake_at_) {
            return plan_wake();
        }
        // What has come by this instant is heard before.
        queue_.at(queue_.now(), life_, [this, wake_at = wake_at_] {
            note_turn();
            if (wake_at_ == wake_at && listening_.now() >= wake_at_) {
                last_now_ = std::max(last_now_, listening_.now());
                woken();
            } else {
                plan_wake();
            }
        });
    });
}

bool Process::survives_next_effect() {
    if (effects_left_ && (*effects_left_)-- == 0) {
        crash();
        return false;
    }
    return true;
}

void Process::end_life() {
    ++life_.number;
    life_.stopped_until = {};
    interrupted_ = false;
    stood_still_ = {};
    wake_at_ = never;
    planned_for_ = never;
    effects_left_.reset();
    if (const auto crashed = std::exchange(crashed_, {})) {
        crashed();
    }
}

}  // namespace causeway::simulation
