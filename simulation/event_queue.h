// Virtual time: what is due next, in the order of (instant, being asked for). Nothing here sleeps.
//
// An action may belong to a process of the world: it is forgotten when that process has died meanwhile, and put off
// while it is stopped. A heap of small keys beside a pool of actions: planning and running one costs some 50 ns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/assert.h"
#include "common/time.h"
#include "simulation/action.h"

namespace causeway::simulation {

/// One run of a process, from start to crash.
struct Life {
    std::uint64_t number = 0;  // rises at each crash
    Instant stopped_until{};
};

class EventQueue {
public:
    [[nodiscard]] Instant now() const { return now_; }

    void at(Instant when, Action action) { plan(when, nullptr, 0, std::move(action)); }
    void after(Duration wait, Action action) { plan(now_ + wait, nullptr, 0, std::move(action)); }
    /// Of a process; `life` outlives the queue's actions.
    void at(Instant when, const Life& life, Action action) { plan(when, &life, life.number, std::move(action)); }
    void after(Duration wait, const Life& life, Action action) {
        plan(now_ + wait, &life, life.number, std::move(action));
    }

    /// Runs the next action; false when there is none until `bound`, and then it is `bound`.
    bool run_next(Instant bound) {
        if (heap_.empty() || heap_.front().when > bound) {
            now_ = std::max(now_, bound);
            return false;
        }
        std::ranges::pop_heap(heap_, later);
        const auto key = heap_.back();
        heap_.pop_back();
        ASSERT(key.when >= now_);
        now_ = key.when;
        auto planned = std::move(pool_[key.slot]);
        free_.push_back(key.slot);
        if (planned.life == nullptr || planned.life->number == planned.number) {
            if (planned.life != nullptr && planned.life->stopped_until > now_) {
                plan(planned.life->stopped_until, planned.life, planned.number, std::move(planned.action));
            } else {
                planned.action();
            }
        }
        return true;
    }

private:
    struct Key {
        Instant when;
        std::uint64_t order;
        std::uint32_t slot;
    };
    struct Planned {
        const Life* life = nullptr;
        std::uint64_t number = 0;
        Action action;
    };
    static bool later(const Key& a, const Key& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }

    void plan(Instant when, const Life* life, std::uint64_t number, Action action) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(pool_.size()));
            pool_.emplace_back();
        }
        const auto slot = free_.back();
        free_.pop_back();
        pool_[slot] = {life, number, std::move(action)};
        heap_.push_back({std::max(when, now_), next_++, slot});
        std::ranges::push_heap(heap_, later);
    }

    Instant now_{};
    std::uint64_t next_ = 0;
    std::vector<Key> heap_;
    std::vector<Planned> pool_;
    std::vector<std::uint32_t> free_;
};

}  // namespace causeway::simulation
