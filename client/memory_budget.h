// What a node may use for models, and what of it its groups have: each turn and training is asked for before anything
// of it is allocated, since a machine that swaps or kills helps nobody.
//
// A host serves groups of several experiments at one time, and what a group has it keeps between its turns: all of them
// count until their experiment is over, or its next round has begun without them. Without a limit of its own the node
// asks the machine what is left (common/machine.h). Thread: the trainer's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/result.h"

namespace causeway::node {

class MemoryBudget {
public:
    using Available = std::function<std::optional<std::uint64_t>()>;
    /// limit  bytes for everything, 0: what `available` says is left
    MemoryBudget(std::uint64_t limit, Available available) : limit_(limit), available_(std::move(available)) {}

    struct Group {
        std::uint64_t experiment = 0;
        std::uint32_t round = 0;
        std::uint32_t group = 0;
    };
    /// Room for a turn of the group, in place of what its turn before had, and for `once` bytes while it begins or
    /// ends.
    ///
    /// errors   overloaded `does_not_fit`: with `what` and every number
    Status take(const Group& group, std::uint64_t bytes, std::uint64_t once, const std::string& what);
    /// Room for a whole model's training, in place of the training before. errors: the same
    Status take_training(std::uint64_t bytes, const std::string& what);
    void forget(std::uint64_t experiment);

private:
    struct Taken {
        std::uint32_t round = 0;
        std::uint64_t bytes = 0;
    };
    [[nodiscard]] Status check(std::uint64_t bytes, std::uint64_t own, const std::string& what) const;

    std::uint64_t limit_;
    Available available_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, Taken> groups_;  // by experiment and group
    std::uint64_t training_ = 0;  // of the last one, which still has it; given up where something else is taken
};

}  // namespace causeway::node
