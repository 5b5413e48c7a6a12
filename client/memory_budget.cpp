// See memory_budget.h.
#include "client/memory_budget.h"

#include <fmt/format.h>

#include "common/text.h"

namespace causeway::node {

/// `own` is what the asker has already, and uses again.
Status MemoryBudget::check(std::uint64_t bytes, std::uint64_t own, const std::string& what) const {
    std::uint64_t others = 0;
    for (const auto& [group, taken] : groups_) {
        others += taken.bytes;
    }
    others -= own;
    const auto available = available_ ? available_() : std::nullopt;
    if (limit_ == 0 && !available) {
        return {};
    }
    const auto room = limit_ == 0 ? *available + own + training_ : limit_ - std::min(limit_, others);
    if (bytes <= room) {
        return {};
    }
    auto has = limit_ == 0 ? fmt::format("this machine has {} left", format_bytes(room))
                           : fmt::format("this node may use {}, {} of it for other groups", format_bytes(limit_),
                                         format_bytes(others));
    return fail(ErrorKind::overloaded, "does_not_fit",
                fmt::format("{}; {}: use a smaller batch, microbatch or model, where it is cut a later cut or fewer "
                            "groups, or give the node more (join --memory)",
                            what, has));
}

Status MemoryBudget::take(const Group& group, std::uint64_t bytes, std::uint64_t once, const std::string& what) {
    std::erase_if(groups_, [&](const auto& entry) {
        return entry.first.first == group.experiment && entry.second.round < group.round;
    });
    const auto key = std::pair(group.experiment, group.group);
    const auto old = groups_.find(key);
    TRY(check(bytes + once, old == groups_.end() ? 0 : old->second.bytes, what));
    training_ = 0;
    groups_[key] = {group.round, bytes};
    return {};
}

Status MemoryBudget::take_training(std::uint64_t bytes, const std::string& what) {
    TRY(check(bytes, 0, what));
    training_ = bytes;
    return {};
}

void MemoryBudget::forget(std::uint64_t experiment) {
    std::erase_if(groups_, [&](const auto& entry) { return entry.first.first == experiment; });
}

}  // namespace causeway::node
