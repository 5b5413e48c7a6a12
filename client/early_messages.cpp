// See early_messages.h.
#include "client/early_messages.h"

#include <algorithm>
#include <map>

namespace causeway::node {

void EarlyMessages::put(const std::string& node, StreamData message) {
    bytes_ += message.payload.size();
    all_.push_back({node, std::move(message)});
    std::map<std::string, std::pair<std::size_t, std::uint64_t>> held;  // messages and bytes, by node
    for (const auto& early : all_) {
        auto& sum = held[early.node];
        sum = {sum.first + 1, sum.second + early.message.payload.size()};
    }
    auto& [count, bytes] = held[node];
    while (count > most_waiting_messages || (bytes > most_waiting_bytes && count > 1)) {
        bytes -= drop_eldest_of(node);
        --count;
    }
    while (bytes_ > most_in_all_ && all_.size() > 1) {
        const auto most = std::ranges::max_element(held, {}, [](const auto& entry) { return entry.second.second; });
        most->second.second -= drop_eldest_of(most->first);
    }
}

std::uint64_t EarlyMessages::drop_eldest_of(const std::string& node) {
    const auto eldest = std::ranges::find(all_, node, &Early::node);
    const auto dropped = eldest->message.payload.size();
    bytes_ -= dropped;
    all_.erase(eldest);
    return dropped;
}

std::vector<StreamData> EarlyMessages::take(const Lease& lease) {
    std::vector<StreamData> taken;
    for (auto early = all_.begin(); early != all_.end();) {
        if (early->message.lease == lease) {
            bytes_ -= early->message.payload.size();
            taken.push_back(std::move(early->message));
            early = all_.erase(early);
        } else {
            ++early;
        }
    }
    return taken;
}

void EarlyMessages::forget(std::uint64_t experiment) {
    std::erase_if(all_, [&](const Early& early) {
        const bool own = early.message.lease.experiment == experiment;
        bytes_ -= own ? early.message.payload.size() : 0;
        return own;
    });
}

}  // namespace causeway::node
