// See turn_exchange.h.
#include "simulation/turn_exchange.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "split/flow.h"

namespace causeway::simulation {
namespace {

constexpr Duration stream_silence = std::chrono::seconds(2);  // until a node knows that its peer is gone

/// The runs, and what waits for each: nothing is delivered from inside of one, another may be at work.
class Turn {
public:
    tl::expected<TurnRun, TurnFailure> run(const std::vector<TurnSide>& sides) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            places_[sides[i].assign.cell] = i;
        }
        waiting_.resize(sides.size());
        run_.sent.resize(sides.size());
        run_.received.resize(sides.size());
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const auto& assign = sides[i].assign;
            const auto examples = assign.cell == host_cell ? ClientWork::Examples::none : ClientWork::Examples::own;
            node::TurnHooks hooks;
            hooks.send = [this, i](std::uint32_t cell, StreamData message) {
                const auto to = places_.at(cell);
                for (auto* way : {&run_.sent[i], &run_.received[to]}) {
                    way->bytes += message.payload.size();
                    ++way->messages;
                }
                waiting_.at(to).push_back(std::move(message));
                ++sent_;
            };
            auto work = sides[i].work->begin_turn(assign, examples, std::move(hooks));
            if (!work) {
                return tl::unexpected(TurnFailure{i, work.error()});
            }
            works_.push_back(*std::move(work));
        }
        over_.resize(sides.size());
        while (std::ranges::find(over_, false) != over_.end()) {
            const auto before = sent_;
            bool ended = false;
            for (std::size_t i = 0; i < works_.size(); ++i) {
                const bool had = over_[i];
                if (auto failure = advance(i)) {
                    return tl::unexpected(*std::move(failure));
                }
                ended = ended || over_[i] != had;
            }
            if (!ended && sent_ == before) {
                return tl::unexpected(
                    TurnFailure{0, {ErrorKind::invalid, "turn_stuck", "each side of the turn waits for the others"}});
            }
        }
        return finish();
    }

private:
    std::optional<TurnFailure> advance(std::size_t i) {
        for (const auto& message : std::exchange(waiting_[i], {})) {
            if (const auto taken = works_[i]->deliver(message); !taken) {
                return TurnFailure{i, taken.error()};
            }
        }
        if (over_[i]) {
            return std::nullopt;
        }
        const auto state = works_[i]->advance();
        if (!state) {
            return TurnFailure{i, state.error(), works_[i]->blamed(state.error())};
        }
        over_[i] = *state == node::TurnWork::State::finished;
        return std::nullopt;
    }

    tl::expected<TurnRun, TurnFailure> finish() {
        for (std::size_t i = 0; i < works_.size(); ++i) {
            auto end = works_[i]->finish();
            if (!end) {
                return tl::unexpected(TurnFailure{i, end.error()});
            }
            run_.ends.push_back(*std::move(end));
        }
        return std::move(run_);
    }

    std::map<std::uint32_t, std::size_t> places_;  // by cell
    std::vector<std::unique_ptr<node::TurnWork>> works_;
    std::vector<std::vector<StreamData>> waiting_;
    std::vector<bool> over_;
    std::uint64_t sent_ = 0;
    TurnRun run_;
};

}  // namespace

tl::expected<TurnRun, TurnFailure> run_turn(const std::vector<TurnSide>& sides) {
    return Turn().run(sides);
}

/// Seconds; a failed run has no traffic.
double TurnExchange::time_of(const std::vector<Side>& sides, const TurnRun& run) {
    const auto over = [](const Way& way, const TurnTraffic& traffic) {
        return static_cast<double>(traffic.bytes) / way.rate +
               static_cast<double>(traffic.messages) * seconds(way.delay);
    };
    double time = 0;
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const auto& one = sides[i];
        if (one.assign.cell == host_cell) {
            continue;
        }
        double its = seconds(one.work->time_to_train(one.assign)) * one.slowness;
        if (i < run.sent.size()) {
            its += over(one.link.up, run.sent[i]) + over(one.link.down, run.received[i]);
        }
        time = std::max(time, its);
    }
    return time;
}

/// The host is there, and whoever it works for.
bool TurnExchange::complete(const std::vector<Side>& sides) {
    const auto host = std::ranges::find(sides, host_cell, [](const Side& side) { return side.assign.cell; });
    return host != sides.end() && sides.size() > host->assign.peers.size();
}

void TurnExchange::begin(Side side) {
    const auto key = key_of(side.assign.lease);
    auto& sides = under_way_[key];
    sides.push_back(std::move(side));
    if (!complete(sides)) {
        return;
    }
    std::ranges::sort(sides, {}, [](const Side& s) { return s.assign.cell; });
    std::vector<TurnSide> runs;
    for (const auto& one : sides) {
        runs.push_back({one.work, one.assign});
    }
    const auto ends = std::make_shared<tl::expected<TurnRun, TurnFailure>>(run_turn(runs));
    const double time = time_of(sides, *ends ? **ends : TurnRun{});
    queue_.after(from_seconds(time), [this, key, ends] {
        const auto found = under_way_.find(key);
        if (found == under_way_.end()) {
            return;
        }
        const auto all = std::move(found->second);
        under_way_.erase(found);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (*ends) {
                all[i].done({std::move((*ends)->ends[i])});
            } else if (ends->error().side == i) {  // the others wait until the coordinator gives them another turn
                all[i].done({fail(ends->error().error), ends->error().peer});
            }
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
            const auto& peers = side.assign.peers;
            if (side.node != node && std::ranges::find(peers, node, &CellPeer::node) != peers.end()) {
                queue_.after(stream_silence, [done = side.done, node] {
                    done(
                        {fail(ErrorKind::disconnected, "stream_lost", "the connection to " + node + " is gone"), node});
                });
            }
        }
        turn = under_way_.erase(turn);
    }
}

}  // namespace causeway::simulation
