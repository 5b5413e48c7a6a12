// The cost model against sums written out by hand.
#include <catch2/catch.hpp>

#include "split/cost_model.h"
#include "split/round_walk.h"

namespace causeway {
namespace {

ClientProfile client(double uplink, std::uint64_t batches) {
    return {.name = "c",
            .uplink = uplink,
            .downlink = 4 * uplink,
            .delay = 0.01,
            .forward_seconds = 0.002,
            .backward_seconds = 0.003,
            .batches = batches,
            .examples = batches * 10};
}

const SplitCosts costs{.client_segment_bytes = 1000,
                       .server_segment_bytes = 50'000,
                       .smashed_bytes = 400,
                       .gradient_bytes = 300,
                       .host_batch_seconds = 0.001,
                       .host_activation_bytes = 7000,
                       .optimizer_moments = 1,
                       .aggregation_seconds = 0.5,
                       .local_epochs = 2};

}  // namespace

TEST_CASE("a turn is its segment twice and its batches", "[paper][cost]") {
    // down 1000/4000 + 3 x .01, up 1000/1000 + 3 x .01, 10 batches of .002 + .4 + .01 + .001 + .075 + .01 + .003
    const double expected = 0.28 + 1.03 + 10 * 0.501;
    REQUIRE(turn_seconds(client(1000, 5), costs, 1) == Approx(expected));
}

TEST_CASE("groups run side by side: the slowest one and the aggregation are the round", "[paper][cost]") {
    const std::vector<std::vector<ClientProfile>> split{{client(1000, 5), client(1000, 5)}};
    const RoundCost one = gsfl_round(split, costs);
    REQUIRE(one.seconds == Approx(2 * turn_seconds(client(1000, 5), costs, 1) + 0.5));
    REQUIRE(one.bytes_up == 2 * (10 * 400 + 1000));
    REQUIRE(one.bytes_down == 2 * (10 * 300 + 1000));
    const std::vector<std::vector<ClientProfile>> two{{client(1000, 5)}, {client(1000, 3)}};
    const RoundCost both = gsfl_round(two, costs);
    REQUIRE(both.critical_group == 0);
    REQUIRE(both.seconds == Approx(both.group_seconds[0] + 0.5));
    REQUIRE(both.seconds < one.seconds * 0.6);
    REQUIRE(both.group_seconds[0] >= turn_seconds(client(1000, 5), costs, 1));  // the host is shared
}

TEST_CASE("a host that never rests is the limit, however many groups there are", "[unit][cost]") {
    SplitCosts slow_host = costs;
    slow_host.host_batch_seconds = 10;
    const std::vector<std::vector<ClientProfile>> groups(6, {client(1e9, 5)});
    REQUIRE(gsfl_round(groups, slow_host).seconds >= 6 * 10 * 10.0);
}

TEST_CASE("with an overlap a turn is one way round and then its slowest part, batch after batch", "[paper][cost]") {
    auto overlapped = costs;
    overlapped.overlap = 1;
    // the line up, .4 a batch, is slower than half of .501
    CHECK(turn_seconds(client(1000, 5), overlapped, 1) == Approx(0.28 + 1.03 + 0.501 + 9 * 0.4));
    // two batches at a time where the way is long: .002 + .004 + .2 + .001 + .00075 + .2 + .003
    auto far = client(100e3, 5);
    far.delay = 0.2;
    const double segments = 0.0025 + 0.6 + 0.01 + 0.6;
    CHECK(turn_seconds(far, overlapped, 1) == Approx(segments + 0.41075 + 4 * 0.41075 + 0.005));
    overlapped.overlap = 4;
    CHECK(turn_seconds(far, overlapped, 1) == Approx(segments + 0.41075 + 0.41075 + 4 * 0.005));
}

TEST_CASE("an overlapped turn is walked in the time that the model says, within a twentieth", "[paper][cost]") {
    for (const std::uint32_t overlap : {1, 2, 8}) {
        for (const double delay : {0.0, 0.02, 0.2}) {
            for (const double rate : {1e3, 20e3, 1e6}) {
                auto overlapped = costs;
                overlapped.overlap = overlap;
                auto one = client(rate, 40);
                one.delay = delay;
                const std::vector<std::vector<ClientProfile>> groups{{one}};
                CAPTURE(overlap, delay, rate);
                CHECK(walk_round(groups, overlapped) == Approx(gsfl_round(groups, overlapped).seconds).epsilon(0.05));
            }
        }
    }
}

TEST_CASE("clients that are together wait for each other only at the host", "[paper][cost]") {
    auto quick = costs;
    quick.handover_seconds = 0.25;
    const std::vector<ClientProfile> one{client(1000, 5)};
    const std::vector<std::vector<ClientProfile>> alone{{one}};
    CHECK(together_round(one, quick).seconds == Approx(gsfl_round(alone, quick).seconds));
    const std::vector<ClientProfile> several(4, client(1000, 5));
    const auto round = together_round(several, quick);
    CHECK(round.seconds == Approx(gsfl_round(alone, quick).seconds + 3 * 0.001));  // the last one's first step
    CHECK(round.host_memory == host_memory(1, quick));
    CHECK(round.bytes_up == 4 * together_round(one, quick).bytes_up);
    auto slow = quick;
    slow.host_batch_seconds = 10;
    CHECK(together_round(several, slow).seconds >= 4 * 10 * 10.0);
    auto uneven = several;
    uneven.push_back(client(1000, 1));  // the others' later batches do not wait for it
    CHECK(together_round(uneven, quick).seconds == Approx(round.seconds));
}

TEST_CASE("host memory grows with the groups: segment and moments twice, gradient, activations; a turn's copies once",
          "[paper][cost]") {
    REQUIRE(host_memory(1, costs) == 2 * 100'000 + 50'000 + 7000 + 4 * 100'000);
    REQUIRE(host_memory(4, costs) == 4 * (2 * 100'000 + 50'000 + 7000) + 4 * 100'000);
}

TEST_CASE("a federated round moves the whole model once each way, and waits for the slowest", "[paper][cost]") {
    const std::vector<ClientProfile> clients{client(1000, 5), client(2000, 5)};
    const std::vector<double> whole{0.004, 0.1};
    const RoundCost round = federated_round(clients, whole, 8000, 2, 0.5);
    REQUIRE(round.group_seconds[0] == Approx(2.03 + 10 * 0.004 + 8.03));
    REQUIRE(round.group_seconds[1] == Approx(1.03 + 10 * 0.1 + 4.03));
    REQUIRE(round.seconds == Approx(round.group_seconds[0] + 0.5));
    REQUIRE(round.bytes_up == 16'000);
}

}  // namespace causeway
