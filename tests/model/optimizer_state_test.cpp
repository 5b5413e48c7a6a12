// The bytes of an optimizer's state: exact both ways, and total.
#include <limits>

#include "model/optimizer_state.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

OptimizerState some_state(const OptimizerSpec& spec) {
    auto state = OptimizerState::fresh(spec, 3, 5);
    state.steps = {1, UINT64_MAX, 0};
    for (auto& moment : state.moments) {
        moment = {0.0f, -0.0f, 1e-40f, 3.5f, std::numeric_limits<float>::max()};
    }
    return state;
}

}  // namespace

TEST_CASE("an optimizer's state comes back bit for bit, for every optimizer", "[unit][optimizer_state]") {
    const auto* text = GENERATE("sgd learning_rate=0.1", "sgd learning_rate=0.1 momentum=0.9", "adam learning_rate=0.1",
                                "adamw learning_rate=0.1", "nadamw learning_rate=0.1");
    const auto spec = must(parse_optimizer(text));
    const auto state = some_state(spec);
    const auto bytes = encode_optimizer_state(state);
    const auto again = must(decode_optimizer_state(bytes, spec, 3, 5));
    CHECK(again == state);
    CHECK(encode_optimizer_state(again) == bytes);
}

TEST_CASE("an optimizer's state that is cut, goes on, or is of another model is a named error",
          "[unit][optimizer_state]") {
    const auto spec = must(parse_optimizer("adam learning_rate=0.1"));
    auto bytes = encode_optimizer_state(some_state(spec));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        CHECK_FALSE(decode_optimizer_state(ByteView(bytes).first(length), spec, 3, 5));
    }
    const auto refused = [&](const OptimizerSpec& by, std::size_t layers, std::uint64_t parameters) {
        const auto read = decode_optimizer_state(bytes, by, layers, parameters);
        return !read && read.error().kind == ErrorKind::corrupt;
    };
    CHECK(refused(spec, 4, 5));
    CHECK(refused(spec, 3, 4));
    CHECK(refused(spec, 3, 6));
    CHECK(refused(must(parse_optimizer("sgd learning_rate=0.1 momentum=0.9")), 3, 5));
    CHECK_FALSE(refused(spec, 3, 5));
    bytes.push_back(std::byte{0});
    CHECK(refused(spec, 3, 5));
}

TEST_CASE("a moment that is not finite is refused", "[unit][optimizer_state]") {
    const auto spec = must(parse_optimizer("sgd learning_rate=0.1 momentum=0.9"));
    auto state = some_state(spec);
    state.moments.at(0).at(2) =
        GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
    const auto read = decode_optimizer_state(encode_optimizer_state(state), spec, 3, 5);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == "bad_optimizer_state");
}

}  // namespace causeway
