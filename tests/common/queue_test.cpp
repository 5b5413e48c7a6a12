// The bounded queue: order, limit, closing, and two real threads.
#include "common/queue.h"

#include <thread>

#include <catch2/catch.hpp>

namespace causeway {

using namespace std::chrono_literals;

TEST_CASE("a queue keeps order, refuses past its limit and drains after closing", "[common][unit]") {
    BoundedQueue<int> queue(2);
    int one = 1;
    int two = 2;
    int three = 3;
    CHECK(queue.try_push(one));
    CHECK(queue.try_push(two));
    CHECK_FALSE(queue.try_push(three));
    queue.close();
    CHECK_FALSE(queue.push(4));
    CHECK(queue.pop() == 1);
    CHECK(queue.pop() == 2);
    CHECK_FALSE(queue.pop().has_value());
}

TEST_CASE("waiting for a value ends at its bound", "[common][unit]") {
    BoundedQueue<int> queue(1);
    CHECK_FALSE(queue.pop_for(1ms).has_value());
}

TEST_CASE("a thousand values cross between threads in order", "[common][unit]") {
    BoundedQueue<int> queue(3);
    std::thread producer([&] {
        for (int i = 0; i < 1000; ++i) {
            queue.push(i);
        }
        queue.close();
    });
    int next = 0;
    while (const auto value = queue.pop()) {
        REQUIRE(*value == next++);
    }
    producer.join();
    CHECK(next == 1000);
}

}  // namespace causeway
