// The order contract of a machine's effects, as a queue: what a step sends and starts goes out when its persists are
// durable, and steps go out in the order in which the machine made them. Coordinator and node use the same one.
// Thread: the loop that owns the machine.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace causeway {

/// Effects: a struct with a `persist` list besides what is to be released.
template <class Effects>
class EffectQueue {
public:
    /// Takes a step without its persists. `durable` tells that there were some, to be reported by stored(number).
    std::uint64_t push(Effects effects, bool durable) {
        waiting_.push_back({++last_, !durable, std::move(effects)});
        return last_;
    }
    void stored(std::uint64_t number) {
        for (auto& step : waiting_) {
            step.ready = step.ready || step.number == number;
        }
    }
    /// The next step that may go out, if any.
    std::optional<Effects> pop() {
        if (waiting_.empty() || !waiting_.front().ready) {
            return std::nullopt;
        }
        std::optional<Effects> effects(std::move(waiting_.front().effects));
        waiting_.pop_front();
        return effects;
    }

private:
    struct Step {
        std::uint64_t number;
        bool ready;
        Effects effects;
    };
    std::uint64_t last_ = 0;
    std::deque<Step> waiting_;
};

}  // namespace causeway
