// See turn_exchange.h.
#include "simulation/turn_exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace causeway::simulation {
namespace {

constexpr Duration stream_silence = std::chrono::seconds(2);  // until a node knows that its peer is gone

}  // namespace

Result<std::array<node::TurnOutput, 2>> run_turn(ClientWork& client, const Assign& client_assign, ClientWork& host,
                                                 const Assign& host_assign) {
    std::unique_ptr<node::TurnWork> sides[2];
    std::vector<StreamData> sent[2];  // not delivered from inside of a run: the other side may be at work
    const auto hooks = [&sent](std::size_t from) {
        node::TurnHooks made;
        made.send = [&sent, from](std::uint32_t, StreamData message) { sent[from].push_back(std::move(message)); };
        return made;
    };
    TRY_ASSIGN(sides[0], client.begin_turn(client_assign, ClientWork::Examples::own, hooks(0)));
    TRY_ASSIGN(sides[1], host.begin_turn(host_assign, ClientWork::Examples::none, hooks(1)));
    bool over[2] = {};
    while (!over[0] || !over[1]) {
        const std::size_t before = sent[0].size() + sent[1].size();
        for (const std::size_t side : {0, 1}) {
            for (const auto& message : std::exchange(sent[1 - side], {})) {
                TRY(sides[side]->deliver(message));
            }
            if (!over[side]) {
                TRY_ASSIGN(const auto state, sides[side]->advance());
                over[side] = state == node::TurnWork::State::finished;
            }
        }
        if ((!over[0] || !over[1]) && before + sent[0].size() + sent[1].size() == 0) {
            return fail(ErrorKind::invalid, "turn_stuck", "each side of the turn waits for the other");
        }
    }
    std::array<node::TurnOutput, 2> ends;
    TRY_ASSIGN(ends[0], sides[0]->finish());
    TRY_ASSIGN(ends[1], sides[1]->finish());
    return ends;
}

void TurnExchange::begin(Side side) {
    const auto key = key_of(side.assign.lease);
    auto& sides = under_way_[key];
    sides.push_back(std::move(side));
    if (sides.size() < 2) {
        return;
    }
    std::ranges::sort(sides, {}, [](const Side& s) { return s.assign.cell; });
    auto ends = std::make_shared<Result<std::array<node::TurnOutput, 2>>>(
        run_turn(*sides[0].work, sides[0].assign, *sides[1].work, sides[1].assign));
    const auto time = seconds(sides[0].work->time_to_train(sides[0].assign)) * sides[0].slowness;
    queue_.after(from_seconds(time), [this, key, ends] {
        const auto found = under_way_.find(key);
        if (found == under_way_.end()) {
            return;
        }
        const auto both = std::move(found->second);
        under_way_.erase(found);
        for (std::size_t i = 0; i < both.size(); ++i) {
            both[i].done(*ends ? Result<node::TurnOutput>((**ends)[i]) : tl::unexpected(ends->error()));
        }
    });
}

void TurnExchange::stop(const std::string& node, const Lease& lease) {
    const auto found = under_way_.find(key_of(lease));
    const auto of_node = [&](const Side& side) { return side.node == node; };
    if (found != under_way_.end() && std::ranges::any_of(found->second, of_node)) {
        under_way_.erase(found);
    }
}

void TurnExchange::lose(const std::string& node) {
    for (auto turn = under_way_.begin(); turn != under_way_.end();) {
        const auto own = std::ranges::find(turn->second, node, &Side::node);
        if (own == turn->second.end()) {
            ++turn;
            continue;
        }
        for (auto& side : turn->second) {
            if (side.node != node) {
                queue_.after(stream_silence, [done = side.done, node] {
                    done(fail(ErrorKind::disconnected, "stream_lost", "the connection to " + node + " is gone"));
                });
            }
        }
        turn = under_way_.erase(turn);
    }
}

}  // namespace causeway::simulation
