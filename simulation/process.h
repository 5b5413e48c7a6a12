// What every process of the virtual world has, whatever runs in it: a life that ends in a crash, a clock of its own, a
// disk that can be full, and a wish when to be woken. The hosts of both machines are built on it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/listening_clock.h"
#include "simulation/event_queue.h"

namespace causeway::simulation {

/// Monotonic, as the machines' time is: it may run fast or slow and jump ahead (a virtual machine that was paused),
/// never back. What the wall clock says reaches no machine.
class HostClock {
public:
    [[nodiscard]] Instant local(Instant world) const;
    /// The first instant at which local() is at least this.
    [[nodiscard]] Instant world(Instant local) const;
    void set_rate(Instant world_now, double rate);
    void jump(Duration ahead) { local_base_ += ahead; }

private:
    double rate_ = 1;
    Instant world_base_{};
    Instant local_base_{};
};

class Process {
public:
    explicit Process(EventQueue& queue) : queue_(queue) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    virtual ~Process() = default;

    [[nodiscard]] virtual bool up() const = 0;
    virtual void crash() = 0;
    /// Crashes before the effect after this many, and tells. Nothing when it dies before.
    void crash_after(std::uint32_t effects, std::function<void()> crashed);
    /// As by SIGSTOP: all that is due waits.
    void stop(Duration how_long);
    void set_clock_rate(double rate);
    void jump_clock(Duration ahead);
    void fill_disk(Duration how_long);

protected:
    virtual void woken() = 0;

    /// A turn of the loop inside begins; between its events it has had turns in which nothing happened. returns  how
    /// long it stood still before, told once
    Duration begin_turn();
    void begin_life();
    /// As the machine inside sees it: before the instant that it waits for, until it is woken.
    [[nodiscard]] Instant now() const { return last_now_; }
    [[nodiscard]] bool disk_full() const { return queue_.now() < disk_full_until_; }
    [[nodiscard]] Instant disk_full_until() const { return disk_full_until_; }
    /// Only the latest wish counts: every step says anew when to wake.
    void wake_at(Instant local);
    bool survives_next_effect();
    /// What was planned is forgotten; then whoever asked for the crash is told.
    void end_life();

    EventQueue& queue_;
    Life life_;

private:
    void plan_wake();
    void note_turn();
    void interrupt();

    HostClock clock_;
    ListeningClock listening_;
    bool interrupted_ = false;  // stopped since the last turn
    Duration stood_still_{};    // and the machine has not heard of it
    Instant last_now_{};
    Instant disk_full_until_{};
    Instant wake_at_ = never;      // by this process's clock
    Instant planned_for_ = never;  // by the world's
    std::uint64_t wakes_ = 0;
    std::optional<std::uint32_t> effects_left_;
    std::function<void()> crashed_;
};

}  // namespace causeway::simulation
