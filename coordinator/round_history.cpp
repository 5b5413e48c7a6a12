// See round_history.h.
#include "coordinator/round_history.h"

#include <cmath>
#include <limits>
#include <utility>

#include "configs/figures.h"
#include "coordinator/limits.h"

namespace causeway {
namespace {

/// Greater is better, then the other measure; the store orders snapshots that it keeps in the same way. A figure that
/// is not a number is the worst there is: NaN compares with nothing and would stay the best for ever.
std::pair<double, double> worth(const ModelEvaluated& evaluation, std::string_view metric) {
    return {worth_of(metric, figure_of(evaluation, metric)),
            metric == "loss" ? worth_of("accuracy", evaluation.accuracy) : worth_of("loss", evaluation.loss)};
}

bool better(const RoundRecord& a, const RoundRecord& b, std::string_view metric) {
    const auto of_a = worth(*a.evaluation, metric);
    const auto of_b = worth(*b.evaluation, metric);
    return of_a > of_b || (of_a == of_b && a.round < b.round);
}

}  // namespace

namespace {

constexpr std::size_t most_without = 8;

/// Who did not count, why, and how long into the round it was waited for; the slowest come first in the summary.
Json without_of(const Json& member_times) {
    auto without = Json::array();
    for (const auto& [node, times] : member_times.fields()) {
        const auto end = times["end"].text();
        if (end != "counted" && !end.empty() && without.items().size() < most_without) {
            without.push(Json::object().set("node", node).set("why", end).set("seconds", times["total"]));
        }
    }
    return without;
}

}  // namespace

RoundRecord record_of(const StoredRound& stored) {
    RoundRecord record{.round = stored.round, .model = stored.model, .model_bytes = stored.model_bytes};
    const auto& summary = stored.summary;
    record.clients = static_cast<std::uint32_t>(summary["clients"].integer());
    record.cohort = static_cast<std::uint32_t>(summary["cohort"].integer());
    record.loss = summary["loss"].number(record.loss);
    record.seconds = summary["seconds"].number();
    record.bytes_up = static_cast<std::uint64_t>(summary["bytes_up"].integer());
    record.bytes_down = static_cast<std::uint64_t>(summary["bytes_down"].integer());
    record.without = without_of(summary["member_times"]);
    const auto& relays = summary["relays"];
    record.stream_bytes_up = static_cast<std::uint64_t>(relays["stream_bytes_up"].integer());
    record.stream_bytes_down = static_cast<std::uint64_t>(relays["stream_bytes_down"].integer());
    record.critical_group = static_cast<std::uint32_t>(relays["critical_group"].integer());
    record.critical_client = relays["critical_client"].text();
    if (const auto& e = stored.evaluation) {
        record.evaluation_note = e->detail["note"].text();
        if (e->examples > 0) {
            record.evaluation = ModelEvaluated{e->experiment, e->round, e->loss, e->accuracy, e->examples, e->detail};
        }
    }
    return record;
}

void RoundHistory::add(RoundRecord record) {
    if (!first_) {
        first_ = record;
    }
    gaps_ = gaps_ || (!last_.empty() && record.round != last_.back().round + 1);
    totals_.bytes_up += record.bytes_up;
    totals_.bytes_down += record.bytes_down;
    totals_.stream_bytes_up += record.stream_bytes_up;
    totals_.stream_bytes_down += record.stream_bytes_down;
    totals_.seconds += record.seconds;
    consider(record);
    last_.push_back(std::move(record));
    if (last_.size() > limits::rounds_kept) {
        auto& oldest = last_.front();
        if (const auto awaited = awaited_.find(oldest.round); awaited != awaited_.end()) {
            awaited->second = std::move(oldest);
        }
        last_.pop_front();
    }
}

void RoundHistory::settle(RoundRecord record) {
    consider(record);
    awaited_.erase(record.round);
    if (record.round >= last_.front().round) {
        last_.at(record.round - last_.front().round) = std::move(record);
    }
}

void RoundHistory::consider(const RoundRecord& record) {
    if (!record.evaluation) {
        return;
    }
    for (const auto& metric : all_metrics()) {
        // A figure that was not measured is no reason to keep a model, and none to choose by another figure instead.
        if ((!metric_.empty() && metric.name != metric_) ||
            !std::isfinite(figure_of(*record.evaluation, metric.name))) {
            continue;
        }
        const auto [best, added] = best_.try_emplace(std::string(metric.name), record);
        if (!added && better(record, best->second, metric.name)) {
            best->second = record;
        }
    }
}

void RoundHistory::judge_by(const std::string& metric) {
    metric_ = metric;
    std::erase_if(best_, [&](const auto& best) { return best.first != metric; });
}

void RoundHistory::close() {
    awaited_.clear();
    while (last_.size() > 1) {
        last_.pop_front();
    }
}

bool RoundHistory::committed(std::uint32_t round) const {
    return !empty() && round >= front().round && round <= back().round;
}

const RoundRecord* RoundHistory::find(std::uint32_t round) const {
    if (const auto awaited = awaited_.find(round); awaited != awaited_.end() && awaited->second) {
        return &*awaited->second;
    }
    if (!committed(round)) {
        return nullptr;
    }
    if (round == front().round && last_.front().round != round) {
        return &*first_;
    }
    return round >= last_.front().round ? &last_.at(round - last_.front().round) : nullptr;
}

const RoundRecord* RoundHistory::best(const std::string& metric) const {
    const auto found = best_.find(metric);
    return found == best_.end() ? nullptr : &found->second;
}

double figure_of(const ModelEvaluated& evaluation, std::string_view metric) {
    return metric == "loss"       ? evaluation.loss
           : metric == "accuracy" ? evaluation.accuracy
                                  : evaluation.detail[std::string(metric)].number(
                                        std::numeric_limits<double>::quiet_NaN());
}

}  // namespace causeway
