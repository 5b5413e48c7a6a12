// The order contract: nothing overtakes a step whose persists are not durable yet.
#include "common/effect_queue.h"

#include <string>

#include <catch2/catch.hpp>

namespace causeway {

TEST_CASE("a step waits for its persists, and later steps wait for it", "[common][unit]") {
    EffectQueue<std::string> queue;
    const auto first = queue.push("first", true);
    const auto second = queue.push("second", false);
    const auto third = queue.push("third", true);
    CHECK(first < second);
    CHECK_FALSE(queue.pop().has_value());
    queue.stored(third);
    CHECK_FALSE(queue.pop().has_value());
    queue.stored(first);
    CHECK(queue.pop() == "first");
    CHECK(queue.pop() == "second");
    CHECK(queue.pop() == "third");
    CHECK_FALSE(queue.pop().has_value());
}

}  // namespace causeway
