// See turn_exchange.h.
#include "simulation/turn_exchange.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "split/flow.h"

namespace causeway::simulation {
namespace {

constexpr Duration stream_silence = std::chrono::seconds(2);  // until a node knows that its peer is gone

/// The runs, and what waits for each: nothing is delivered from inside of one, another may be at work.
class RunningTurn {
public:
    tl::expected<TurnRun, TurnFailure> run(const std::vector<TurnSide>& sides) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            places_[sides[i].assign.cell] = i;
        }
        waiting_.resize(sides.size());
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const auto& assign = sides[i].assign;
            const auto examples = assign.cell == host_cell ? ClientWork::Examples::none : ClientWork::Examples::own;
            node::TurnHooks hooks;
            hooks.send = [this, i](std::uint32_t cell, StreamData message) {
                const auto to = places_.at(cell);
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
    return RunningTurn().run(sides);
}

/// A side, and where it is on the clock.
struct TurnExchange::Turn {
    struct Playing : Side {
        std::vector<CellAct> acts{};
        std::size_t at = 0;  // act to come
        std::map<std::pair<std::uint32_t, Payload>, std::uint64_t> arrived{};  // and not used yet, by cell
        std::size_t place = 0;  // in the run
        bool ready = false;     // to end, but for the run
        bool over = false;
    };
    std::uint64_t number = 0;
    std::deque<Playing> sides;
    std::vector<Early> early;
    std::optional<tl::expected<TurnRun, TurnFailure>> run;  // when all have begun

    /// The host is there, and whoever it works for.
    [[nodiscard]] bool complete() const {
        const auto host = std::ranges::find(sides, host_cell, [](const Side& side) { return side.assign.cell; });
        return host != sides.end() && sides.size() > host->assign.peers.size();
    }
    [[nodiscard]] bool has_failed() const { return run && !run->has_value(); }
};

void TurnExchange::begin(Side side) {
    const auto key = key_of(side.assign.lease);
    auto& turn = under_way_[key];
    if (!turn) {
        turn = std::make_shared<Turn>();
        turn->number = ++turns_;
    }
    const auto there = turn;
    const Item item{.key = key, .number = there->number, .side = there->sides.size()};
    auto acts = side.work->acts_of_turn(side.assign);
    auto& begun = there->sides.emplace_back(Turn::Playing{{std::move(side)}, std::move(acts)});
    for (const auto& early : there->early) {
        if (early.to == begun.assign.cell) {
            auto mine = early.item;
            mine.side = item.side;
            arrive_at(early.when, mine);
        }
    }
    if (there->complete()) {
        compute(key, *there);
    }
    give(item);
}

/// Of a run that fails the side whose failure it is tells it after its own work; the others wait until the coordinator
/// gives them another turn.
void TurnExchange::compute(const Key& key, Turn& turn) {
    std::vector<std::size_t> order(turn.sides.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return turn.sides[i].assign.cell; });
    std::vector<TurnSide> runs;
    for (const auto i : order) {
        turn.sides[i].place = runs.size();
        runs.push_back({turn.sides[i].work, turn.sides[i].assign});
    }
    turn.run = run_turn(runs);
    for (std::size_t i = 0; i < turn.sides.size(); ++i) {
        const auto& side = turn.sides[i];
        const Item item{.key = key, .number = turn.number, .side = i};
        const bool fails = turn.has_failed() && turn.run->error().side == side.place;
        if (side.ready && !turn.has_failed()) {
            end(item);
        } else if (fails) {
            const auto add = [](double sum, const CellAct& act) { return sum + act.seconds; };
            const double time = std::accumulate(side.acts.begin(), side.acts.end(), 0.0, add);
            queue_.after(from_seconds(time * side.slowness), [this, item] { end(item); });
        }
    }
}

/// Nothing: the turn is over, or this side of it.
std::shared_ptr<TurnExchange::Turn> TurnExchange::find(const Item& item) {
    const auto found = under_way_.find(item.key);
    const bool same = found != under_way_.end() && found->second->number == item.number;
    return same && !found->second->sides.at(item.side).over ? found->second : nullptr;
}

void TurnExchange::give(const Item& item) {
    const auto turn = find(item);
    if (!turn) {
        return;
    }
    const auto& node = turn->sides[item.side].node;
    trainers_[node].waiting.push_back(item);
    work(node);
}

/// What has come first.
void TurnExchange::work(const std::string& node) {
    auto& trainer = trainers_[node];
    while (!trainer.waiting.empty() && !trainer.at_work) {
        const auto item = trainer.waiting.front();
        trainer.waiting.pop_front();
        const auto turn = find(item);
        if (turn && !turn->has_failed()) {
            go_on(item, *turn);
        }
    }
}

/// Until the program waits for what is not here; the trainer is busy so long, and what it sends leaves in between.
void TurnExchange::go_on(const Item& item, Turn& turn) {
    auto& side = turn.sides[item.side];
    if (item.message != nullptr) {
        ++side.arrived[{item.from, item.message->payload}];
    }
    double time = 0;
    for (; side.at < side.acts.size(); ++side.at) {
        const auto& act = side.acts[side.at];
        if (act.kind == CellAct::Kind::work) {
            time += act.seconds * side.slowness;
        } else if (act.kind == CellAct::Kind::send) {
            queue_.after(from_seconds(time), [this, item, message = side.at] { send(item, message); });
        } else if (auto& here = side.arrived[{act.cell, act.payload}]; here > 0) {
            --here;
        } else {
            break;
        }
    }
    auto& trainer = trainers_[side.node];
    trainer.at_work = true;
    const bool over = side.at == side.acts.size();
    queue_.after(from_seconds(time), [this, item, over, node = side.node, life = trainer.life] {
        if (trainers_[node].life != life) {
            return;
        }
        trainers_[node].at_work = false;
        if (over) {
            end(item);
        }
        work(node);
    });
}

void TurnExchange::send(const Item& item, std::size_t message) {
    const auto turn = find(item);
    if (!turn) {
        return;
    }
    const auto& side = turn->sides[item.side];
    const auto& act = side.acts[message];
    auto when = network_.through_line(side.link, simulation::Side::client, act.bytes);
    const auto to = std::ranges::find(turn->sides, act.cell, [](const Side& other) { return other.assign.cell; });
    Item arrival = item;
    arrival.message = &act;
    arrival.from = side.assign.cell;
    when += network_.delay_of(side.link, simulation::Side::client);
    if (to == turn->sides.end()) {
        turn->early.push_back({arrival, act.cell, when});
        return;
    }
    arrival.side = static_cast<std::size_t>(to - turn->sides.begin());
    when = std::max(when, network_.through_line(to->link, simulation::Side::coordinator, act.bytes) +
                              network_.delay_of(side.link, simulation::Side::client));
    arrive_at(when + network_.delay_of(to->link, simulation::Side::coordinator), arrival);
}

void TurnExchange::arrive_at(Instant when, const Item& item) {
    queue_.at(when, [this, item] { give(item); });
}

void TurnExchange::end(const Item& item) {
    const auto turn = find(item);
    if (!turn) {
        return;
    }
    auto& side = turn->sides[item.side];
    if (!turn->run) {
        side.ready = true;
        return;
    }
    side.over = true;
    if (std::ranges::all_of(turn->sides, &Turn::Playing::over)) {
        under_way_.erase(item.key);
    }
    if (turn->has_failed()) {
        side.done({fail(turn->run->error().error), turn->run->error().peer});
    } else {
        side.done({std::move((*turn->run)->ends[side.place])});
    }
}

void TurnExchange::stop(const std::string& node, const Lease& lease) {
    const auto found = under_way_.find(key_of(lease));
    const auto works = [&](const Turn::Playing& side) { return side.node == node && !side.over; };
    if (found != under_way_.end() && std::ranges::any_of(found->second->sides, works)) {
        under_way_.erase(found);
    }
}

void TurnExchange::lose(const std::string& node) {
    auto& trainer = trainers_[node];
    trainer.waiting.clear();
    trainer.at_work = false;
    ++trainer.life;
    for (auto turn = under_way_.begin(); turn != under_way_.end();) {
        const auto& sides = turn->second->sides;
        const auto works = [&](const Turn::Playing& side) { return side.node == node && !side.over; };
        if (std::ranges::none_of(sides, works)) {
            ++turn;
            continue;
        }
        for (const auto& side : sides) {
            const auto& peers = side.assign.peers;
            if (side.node != node && !side.over && std::ranges::find(peers, node, &CellPeer::node) != peers.end()) {
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
