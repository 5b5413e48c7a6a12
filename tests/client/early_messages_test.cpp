// What peers send before a turn has begun is kept in order, and never more of it than the bounds say.
#include "client/early_messages.h"

#include <catch2/catch.hpp>

namespace causeway::node {
namespace {

StreamData message_of(std::uint32_t attempt, std::uint32_t batch, std::size_t size = 10, std::uint64_t experiment = 1) {
    StreamData message;
    message.lease = {1, experiment, 1, attempt};
    message.batch = batch;
    message.payload = Bytes(size);
    return message;
}

std::vector<std::uint32_t> batches_of(const std::vector<StreamData>& messages) {
    std::vector<std::uint32_t> batches;
    for (const auto& message : messages) {
        batches.push_back(message.batch);
    }
    return batches;
}

}  // namespace

TEST_CASE("early messages wait for their own turn, in their order", "[early]") {
    EarlyMessages early;
    early.put("a", message_of(1, 0));
    early.put("b", message_of(2, 0));
    early.put("a", message_of(1, 1));
    CHECK(batches_of(early.take({1, 1, 1, 1})) == std::vector<std::uint32_t>{0, 1});
    CHECK(early.take({1, 1, 1, 1}).empty());
    CHECK(early.bytes() == 10);
    early.forget({1, 1, 1, 2});
    CHECK(early.bytes() == 0);
}

TEST_CASE("of one node no more early messages are kept than a turn leaves waiting, and others' stay", "[early]") {
    EarlyMessages early;
    early.put("b", message_of(2, 7));
    for (std::uint32_t batch = 0; batch < 2 * most_waiting_messages; ++batch) {
        early.put("a", message_of(1, batch));
    }
    const auto kept = batches_of(early.take({1, 1, 1, 1}));
    REQUIRE(kept.size() == most_waiting_messages);
    CHECK(kept.front() == most_waiting_messages);
    CHECK(batches_of(early.take({1, 1, 1, 2})) == std::vector<std::uint32_t>{7});
}

TEST_CASE("of all nodes together no more bytes are kept than the bound, at the cost of who sent most", "[early]") {
    EarlyMessages early(100);
    early.put("a", message_of(1, 0, 40));
    early.put("b", message_of(2, 0, 30));
    early.put("a", message_of(1, 1, 40));
    CHECK(early.bytes() == 70);
    CHECK(batches_of(early.take({1, 1, 1, 1})) == std::vector<std::uint32_t>{1});
    early.put("c", message_of(3, 0, 500));  // the only one of its node: it is what there is most of
    CHECK(early.bytes() == 30);
    CHECK(batches_of(early.take({1, 1, 1, 2})) == std::vector<std::uint32_t>{0});
}

TEST_CASE("early messages go with their experiment", "[early]") {
    EarlyMessages early;
    early.put("a", message_of(1, 0, 10, 1));
    early.put("a", message_of(1, 0, 20, 2));
    early.forget(1);
    CHECK(early.bytes() == 20);
    CHECK(early.take({1, 2, 1, 1}).size() == 1);
}

}  // namespace causeway::node
