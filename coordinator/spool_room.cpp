// See spool_room.h.
#include "coordinator/spool_room.h"

namespace causeway {

SpoolRoom::Admission SpoolRoom::ask(const Digest& update, std::uint64_t bytes, std::uint64_t quota) {
    Admission admission;
    if (const auto known = active_.find(update); known != active_.end()) {
        ++known->second.members;
        return admission;
    }
    if (quota != 0 && bytes > quota) {
        admission.answer = Answer::too_large;
        return admission;
    }
    if (quota != 0 && active_bytes_ + bytes > quota) {
        admission.answer = Answer::wait;
        return admission;
    }
    parts_.erase(update);  // it becomes part of the update again
    while (quota != 0 && !parts_.empty() && active_bytes_ + bytes + part_bytes() > quota) {
        admission.remove.push_back(parts_.begin()->first);
        parts_.erase(parts_.begin());
    }
    active_[update] = {bytes, 1};
    active_bytes_ += bytes;
    return admission;
}

void SpoolRoom::done(const Digest& update, std::uint64_t part) {
    const auto known = active_.find(update);
    if (known == active_.end() || --known->second.members != 0) {
        return;
    }
    active_bytes_ -= known->second.bytes;
    active_.erase(known);
    if (part != 0) {
        parts_[update] = part;
    }
}

std::vector<Digest> SpoolRoom::take_parts() {
    std::vector<Digest> all;
    for (const auto& [update, bytes] : std::exchange(parts_, {})) {
        all.push_back(update);
    }
    return all;
}

std::uint64_t SpoolRoom::part_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [update, bytes] : parts_) {
        sum += bytes;
    }
    return sum;
}

}  // namespace causeway
