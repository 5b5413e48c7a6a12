// The rules of batch norm in a federation, as what they make of a chain; and the tensors that a node keeps for itself.
#include "model/local_state.h"
#include "model/presets.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

Chain ruled(const std::vector<std::string>& norm_layers, BatchNormRule rule, const Shape& input = {8, 8, 3}) {
    auto chain = Chain::parse(norm_layers, input, "cross-entropy", rule);
    REQUIRE(chain);
    return *chain;
}

const std::vector<std::string> norm_layers = {
    "conv 16 3x3", "batchnorm", "relu",      "residual 16", "residual 24 stride 2 groupnorm 3",
    "flatten",     "dense 7",   "batchnorm", "dense 3"};

std::size_t rule_code_of(const Status& status, std::string_view code) {
    return status || status.error().code != code ? 0 : 1;
}

}  // namespace

TEST_CASE("a rule rewrites the norms that do not say it themselves, and no others", "[unit][layers]") {
    CHECK(ruled(norm_layers, BatchNormRule::average) == make_chain(norm_layers, {8, 8, 3}));
    CHECK(ruled(norm_layers, BatchNormRule::local) ==
          make_chain({"conv 16 3x3", "batchnorm local", "relu", "residual 16 local", "residual 24 stride 2 groupnorm 3",
                      "flatten", "dense 7", "batchnorm local", "dense 3"},
                     {8, 8, 3}));
    CHECK(ruled(norm_layers, BatchNormRule::group) ==
          make_chain({"conv 16 3x3", "groupnorm 4", "relu", "residual 16 groupnorm 4",
                      "residual 24 stride 2 groupnorm 3", "flatten", "dense 7", "groupnorm 1", "dense 3"},
                     {8, 8, 3}));
    CHECK(ruled({"batchnorm local", "dense 3"}, BatchNormRule::group, {4}) ==
          make_chain({"batchnorm local", "dense 3"}, {4}));
    const Chain resnet = ruled({"resnet-18 10"}, BatchNormRule::group, {32, 32, 3});
    CHECK(resnet.table().arena_size(ArenaKind::buffers) == 0);
    CHECK_THAT(resnet.architecture(), Catch::Contains("residual 512 stride 2 groupnorm 32"));
}

TEST_CASE("groups divide the channels, are at most 32, and have at least four channels where there are four",
          "[unit][layers]") {
    const auto checked = GENERATE(range(1, 700));
    const auto groups = groups_for(checked);
    CHECK(checked % groups == 0);
    CHECK(groups <= 32);
    CHECK((groups == 1 || checked / groups >= 4));
    CHECK(groups_for(64) == 16);
    CHECK(groups_for(512) == 32);
    CHECK(groups_for(7) == 1);
}

TEST_CASE("local tensors are those of local norms alone, and the rest is the whole rest", "[unit][layers]") {
    const Chain chain = ruled(norm_layers, BatchNormRule::local);
    const auto& table = chain.table();
    REQUIRE(has_local_tensors(table));
    CHECK_FALSE(has_local_tensors(ruled(norm_layers, BatchNormRule::group).table()));
    for (const TensorInfo& tensor : table.tensors) {
        const bool norm = tensor.name.find("norm") != std::string::npos && tensor.name.find("residual2") != 0;
        CAPTURE(tensor.name);
        CHECK((tensor.exchange == Exchange::local) == norm);
    }
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers}) {
        const auto own = table.ranges(kind, Exchange::local), others = table.ranges(kind, Exchange::shared);
        CHECK(own.intersected(others).empty());
        CHECK(own.united(others) == RangeSet::all(table.arena_size(kind)));
    }
    CHECK(table.ranges(ArenaKind::buffers, Exchange::shared).empty());
}

TEST_CASE("local layers compute what the others do", "[unit][layers]") {
    const std::vector<std::string> small = {"conv 4 3x3", "batchnorm", "residual 4", "flatten", "dense 3"};
    MemoryIo io = clusters(6, 36, 3, 3);
    Trainer trainer = open_trainer("cpu");
    const TrainJob plain = make_job(ruled(small, BatchNormRule::average, {6, 6, 1}), 3, "sgd learning_rate=0.1");
    TrainJob local = make_job(ruled(small, BatchNormRule::local, {6, 6, 1}), 3, "sgd learning_rate=0.1");
    CHECK(must(trainer.train(plain, io)).end == must(trainer.train(local, io)).end);
}

TEST_CASE("what a node keeps comes back into the next model, the newest that is not of a later round",
          "[unit][local]") {
    const Chain chain = ruled(norm_layers, BatchNormRule::local);
    const auto& table = chain.table();
    const auto model = [&](float value) {
        ModelState state = initial_model(chain, 1);
        std::ranges::fill(state.trainable.values, value);
        std::ranges::fill(state.buffers.values, value);
        return state;
    };
    const auto read = [&](ByteView section, std::uint32_t round) {
        ModelState state = model(0);
        must(put_local(table, section, round, state));
        for (const TensorInfo& tensor : table.tensors) {  // shared ones are left alone
            const float expected = tensor.exchange == Exchange::shared ? 0.0f : state.buffers.values.front();
            CHECK(std::ranges::all_of(state.arena(tensor.arena).view(tensor),
                                      [&](float value) { return value == expected; }));
        }
        return state.buffers.values.front();
    };
    const Bytes first = must(keep_local(table, {}, 3, model(3)));
    CHECK(read(first, 3) == 3);
    CHECK(read(first, 9) == 3);
    CHECK(read(first, 2) == 3);  // the oldest: better than nobody's
    const Bytes second = must(keep_local(table, first, 5, model(5)));
    CHECK(read(second, 4) == 3);
    CHECK(read(second, 5) == 5);
    const Bytes third = must(keep_local(table, second, 6, model(6)));
    CHECK(read(third, 5) == 5);
    CHECK(read(third, 3) == 5);
    CHECK(third.size() == second.size());
}

TEST_CASE("a kept section that is damaged or of another model is refused, whatever its bytes", "[unit][fuzz][local]") {
    const Chain chain = ruled({"dense 4", "batchnorm", "dense 3"}, BatchNormRule::local, {5});
    const Chain other = ruled({"dense 6", "batchnorm", "dense 3"}, BatchNormRule::local, {5});
    ModelState state = initial_model(chain, 1);
    const Bytes good = must(keep_local(chain.table(), {}, 1, state));
    CHECK(rule_code_of(put_local(other.table(), good, 1, state), "bad_local_state") ==
          0);  // runs out of bytes: truncated
    CHECK_FALSE(put_local(other.table(), good, 1, state));
    for (std::size_t size = 0; size < good.size(); ++size) {
        CHECK_FALSE(put_local(chain.table(), ByteView(good).first(size), 1, state));
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    CHECK(rule_code_of(put_local(chain.table(), longer, 1, state), "bad_local_state") == 1);
    Bytes count = good;
    count[0] = std::byte{3};
    CHECK(rule_code_of(put_local(chain.table(), count, 1, state), "bad_local_state") == 1);
    state.trainable.values.assign(state.trainable.values.size(), NAN);
    const Bytes nan = must(keep_local(chain.table(), {}, 1, state));
    CHECK(rule_code_of(put_local(chain.table(), nan, 1, state), "bad_local_state") == 1);
}

}  // namespace causeway
