// Members that the straggler deadline found still at work, and when they are tried again.
//
// A member that has been late once is not waited for any more: it rests for a round, then for two, four and so on, and
// between these it is tried: its update counts if it comes before those of the others are all in. Once one counts it is
// a member like every other. So whoever can never be in time costs the others one deadline. Who was late is decided by
// time; what follows stands in the decision log beside the cohort. Thread: loop. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/json.h"

namespace causeway {

class Latecomers {
public:
    /// The round ended without its update.
    void missed(const std::string& node, std::uint32_t round) {
        auto& late = late_[node];
        late.again = round + 1 + (1U << std::min(late.misses++, most_doublings));
        late.tried = false;
    }
    void in_time(const std::string& node) { late_.erase(node); }

    [[nodiscard]] bool empty() const { return late_.empty(); }
    [[nodiscard]] bool has(const std::string& node) const { return late_.contains(node); }
    [[nodiscard]] bool rests(const std::string& node, std::uint32_t round) const {
        const auto found = late_.find(node);
        return found != late_.end() && round < found->second.again;
    }
    /// It was drawn for the open round without being waited for.
    [[nodiscard]] bool tried(const std::string& node) const {
        const auto found = late_.find(node);
        return found != late_.end() && found->second.tried;
    }
    /// Decides for whom of `there`, sorted names, this round is a try; with `waited_for` nobody's is.
    void draw(std::uint32_t round, const std::vector<std::string>& there, bool waited_for) {
        for (auto& [node, late] : late_) {
            late.tried = !waited_for && round >= late.again && std::ranges::binary_search(there, node);
        }
    }

    /// {node: {misses, again, tried}}
    [[nodiscard]] Json detail() const {
        auto nodes = Json::object();
        for (const auto& [node, late] : late_) {
            nodes.set(node, Json::object()
                                .set("misses", late.misses)
                                .set("again", late.again)
                                .set("tried", late.tried));
        }
        return nodes;
    }
    void restore(const Json& detail) {
        for (const auto& [node, late] : detail.fields()) {
            late_[node] = {static_cast<std::uint32_t>(late["misses"].integer()),
                           static_cast<std::uint32_t>(late["again"].integer()), late["tried"].boolean(false)};
        }
    }

private:
    static constexpr std::uint32_t most_doublings = 10;
    struct Late {
        std::uint32_t misses = 0;
        std::uint32_t again = 0;  // the round from which it is tried
        bool tried = false;
    };
    std::map<std::string, Late> late_;
};

}  // namespace causeway
