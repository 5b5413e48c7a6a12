// The planner against the cost model called by hand, and what it must prefer where one thing alone is scarce.
#include "split/planner.h"
#include "split/segment_memory.h"

#include <algorithm>

#include <catch2/catch.hpp>

namespace causeway {
namespace {

const std::vector<std::string> planner_layers = {"conv 4 3x3", "relu", "maxpool 2", "flatten",
                                                 "dense 16",   "relu", "dense 10"};

PlanInput input_of(const Chain& planner_chain, std::size_t clients, double rate, double slowness) {
    PlanInput input{.chain = planner_chain, .clients = {}, .times = {}, .host = {}};
    for (std::size_t i = 0; i < clients; ++i) {
        input.clients.push_back({.name = "client-" + std::to_string(i + 1),
                                 .uplink = rate,
                                 .downlink = 4 * rate,
                                 .delay = 0.005,
                                 .slowness = slowness,
                                 .examples = 100 + 10 * i});
    }
    input.times.forward.assign(planner_chain.layer_count(), 1e-4);
    input.times.backward.assign(planner_chain.layer_count(), 2e-4);
    input.times.step.assign(planner_chain.layer_count(), 1e-5);
    input.times.loss = 1e-5;
    input.optimizer_moments = 1;
    return input;
}

const Chain& planner_chain() {
    static const Chain made = *Chain::parse(planner_layers, {8, 8, 1}, "cross-entropy");
    return made;
}

const PlanRow& row_of(const std::vector<PlanRow>& rows, std::uint32_t cut, std::uint32_t groups) {
    const auto found =
        std::ranges::find_if(rows, [&](const auto& row) { return row.cut == cut && row.groups == groups; });
    REQUIRE(found != rows.end());
    return *found;
}

}  // namespace

TEST_CASE("what a host plans with for one group is the cost model's, and a segment of two parts is their sum",
          "[unit][plan]") {
    auto input = input_of(planner_chain(), 4, 1e6, 2);
    for (const std::uint32_t moments : {0u, 2u}) {
        input.optimizer_moments = moments;
        const auto planner_layers = static_cast<std::uint32_t>(planner_chain().layer_count());
        for (std::uint32_t cut = 1; cut < planner_layers; ++cut) {
            const auto group = segment_memory(planner_chain(), {{cut, planner_layers}}, moments);
            CHECK(3 * group.of(input.batch) + group.once == host_memory(3, costs_of(input, cut)));
        }
        const auto ends = segment_memory(planner_chain(), {{0, 1}, {3, planner_layers}}, moments);
        CHECK(ends.of(7) == segment_memory(planner_chain(), {{0, 1}}, moments).of(7) +
                                segment_memory(planner_chain(), {{3, planner_layers}}, moments).of(7));
    }
}

TEST_CASE("every regime is there once for each cut and group count, and no cut that sends raw inputs", "[unit][plan]") {
    const auto rows = predict_rounds(input_of(planner_chain(), 4, 1e6, 2));
    REQUIRE(rows.has_value());
    REQUIRE(rows->size() == 1 + 6 * (4 + 1));
    CHECK(std::ranges::count(*rows, "splitfed-v2", &PlanRow::regime) == 6);
    CHECK(rows->front().regime == "federated");
    CHECK(row_of(*rows, 3, 1).regime == "split");
    CHECK(row_of(*rows, 3, 2).regime == "gsfl");
    CHECK(row_of(*rows, 3, 4).regime == "splitfed-v1");
    const auto raw = *Chain::parse({"flatten", "dense 8", "relu", "dense 10"}, {8, 8, 1}, "cross-entropy");
    const auto of_raw = predict_rounds(input_of(raw, 2, 1e6, 1));
    REQUIRE(of_raw.has_value());
    for (const auto& row : *of_raw) {
        CHECK(row.cut != 1);
    }
    CHECK(group_counts(1) == std::vector<std::uint32_t>{1});
    CHECK(group_counts(3) == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(group_counts(100).back() == 100);
}

TEST_CASE("a row is the cost model's sum for its cut", "[paper][plan]") {
    auto input = input_of(planner_chain(), 2, 1e5, 3);
    input.local_epochs = 2;
    const auto rows = predict_rounds(input);
    REQUIRE(rows.has_value());
    // After maxpool: 4 x 4 x 4 values an example; the client's conv has 4 x 9 weights and 4 biases, and momentum.
    const double batch = 4.0 * 64 * 32;
    double expected = 0;
    for (const double examples : {110.0, 100.0}) {
        const double full = 2 * examples / 32;
        const double compute = 3 * 3 * (1e-4 + 2e-4) + 4 * (1e-4 + 2e-4) + 1e-5;
        expected += (320 + 300) / 4e5 + (320 + 300) / 1e5 + 6 * 0.005 + 0.001;
        expected += full * (compute + (batch + 8 * 32) / 1e5 + batch / 4e5);
        expected += 2 * 4 * (2 * 0.005 + 3 * 3 * 1e-5);
    }
    expected -= 160 / 4e5;  // the first client's segment has no momentum yet
    const double replica = 4.0 * (40 + 64 * 16 + 16 + 160 + 10);
    expected += replica / 1e9 + replica / 0.5e9 + 0.0015;
    const auto& split = row_of(*rows, 3, 1);
    CHECK(split.cost.seconds == Approx(expected));
    CHECK(split.smashed_bytes == 4 * 64 * 32 + 8 * 32);
    CHECK(split.cost.bytes_up == 2 * 210 * (4 * 64 + 8) + 2 * 320);
    CHECK(split.cost.bytes_down == 2 * 210 * 4 * 64 + 2 * 320);
    CHECK(split.cost.handover_bytes == 2 * 2 * 4 * (64 * 16 + 16 + 160 + 10));
    const auto group =
        segment_memory(planner_chain(), {{3, static_cast<std::uint32_t>(planner_chain().layer_count())}}, 1);
    CHECK(split.cost.host_memory == group.of(32) + group.once);
    CHECK(row_of(*rows, 3, 2).cost.host_memory == 2 * group.of(32) + group.once);
}

TEST_CASE("slow clients with fast links are split early, fast clients with slow links train the whole model",
          "[unit][plan]") {
    const auto weak = predict_rounds(input_of(planner_chain(), 6, 100e6, 30));
    REQUIRE(weak.has_value());
    CHECK(best_row(*weak)->regime != "federated");
    CHECK(best_row(*weak)->cut <= 3);
    const auto far = predict_rounds(input_of(planner_chain(), 6, 50e3, 1));
    REQUIRE(far.has_value());
    CHECK(best_row(*far)->regime == "federated");
    CHECK(best_row(*far, "gsfl")->cost.seconds < best_row(*far, "split")->cost.seconds);
}

TEST_CASE("what does not fit in memory is told and never chosen", "[unit][plan]") {
    auto input = input_of(planner_chain(), 6, 100e6, 30);
    const auto free = predict_rounds(input);
    const auto* best = best_row(*free);
    REQUIRE(best->groups > 1);
    input.host.memory = best->cost.host_memory - 1;
    const auto bounded = predict_rounds(input);
    CHECK_FALSE(row_of(*bounded, best->cut, best->groups).fits);
    CHECK(best_row(*bounded)->cost.seconds >= best->cost.seconds);
    CHECK(best_row(*bounded)->cost.host_memory <= input.host.memory);
    input.client_memory = 1;
    CHECK(best_row(*predict_rounds(input)) == nullptr);
}

TEST_CASE("with an overlap a client needs, for each batch that waits, its values and a copy of the parameters",
          "[unit][plan]") {
    auto input = input_of(planner_chain(), 2, 1e6, 1);
    const auto plain = row_of(*predict_rounds(input), 3, 2).client_memory;
    const auto whole = predict_rounds(input)->front().client_memory;
    input.overlap = 3;
    // In: 8 x 8, after conv and relu 8 x 8 x 4, after maxpool 4 x 4 x 4; the conv has 4 x 9 weights and 4 biases.
    CHECK(row_of(*predict_rounds(input), 3, 2).client_memory - plain == 3 * 4 * (32 * (64 + 256 + 256 + 64) + 40));
    CHECK(predict_rounds(input)->front().client_memory == whole);
}

TEST_CASE("a copy of the host's segment costs time only over a link", "[unit][plan]") {
    auto input = input_of(planner_chain(), 2, 1e6, 1);
    const auto beside = row_of(*predict_rounds(input), 3, 1).cost;
    input.handover_copies = false;
    const auto one_copy = row_of(*predict_rounds(input), 3, 1).cost;
    CHECK(one_copy.seconds == beside.seconds);
    CHECK(2 * one_copy.handover_bytes == beside.handover_bytes);
    // Over a line the turn waits for the copy, which leaves with the last gradient, instead of the client's segment.
    input.host.uplink = 1e5;
    const double last_only = row_of(*predict_rounds(input), 3, 1).cost.seconds;
    input.handover_copies = true;
    const double after_each = row_of(*predict_rounds(input), 3, 1).cost.seconds;
    const double copy = 2 * 4.0 * (64 * 16 + 16 + 160 + 10) / 1e5;
    CHECK(after_each - last_only == Approx(copy - 0.005 - (320 + 300) / 1e6 - 3 * 0.005).margin(0.001));
}

TEST_CASE("a plan without clients or with a link of no rate is refused", "[unit][plan]") {
    CHECK(predict_rounds(input_of(planner_chain(), 0, 1e6, 1)).error().code == "bad_plan");
    CHECK(predict_rounds(input_of(planner_chain(), 2, 0, 1)).error().code == "bad_plan");
    CHECK(predict_rounds(input_of(planner_chain(), 2, 1e6, -1)).error().code == "bad_plan");
    auto other = input_of(planner_chain(), 2, 1e6, 1);
    other.grouping = "nearest";
    CHECK(predict_rounds(other).error().code == "unknown_grouping");
}

}  // namespace causeway
