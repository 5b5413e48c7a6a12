// Virtual time: what is due next, in the order of (instant, being asked for). Nothing here sleeps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "common/assert.h"
#include "common/time.h"

namespace causeway::simulation {

class EventQueue {
public:
    using Action = std::function<void()>;

    [[nodiscard]] Instant now() const { return now_; }
    void at(Instant when, Action action) {
        actions_.emplace(std::pair(when < now_ ? now_ : when, next_++), std::move(action));
    }
    void after(Duration wait, Action action) { at(now_ + wait, std::move(action)); }
    /// Runs the next action; false when there is none until `bound`, and then it is `bound`.
    bool run_next(Instant bound) {
        if (actions_.empty() || actions_.begin()->first.first > bound) {
            now_ = bound;
            return false;
        }
        auto node = actions_.extract(actions_.begin());
        ASSERT(node.key().first >= now_);
        now_ = node.key().first;
        node.mapped()();
        return true;
    }

private:
    Instant now_{};
    std::uint64_t next_ = 0;
    std::map<std::pair<Instant, std::uint64_t>, Action> actions_;
};

}  // namespace causeway::simulation
