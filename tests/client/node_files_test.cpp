// Which updates reach the disk before they are offered, and which only when their verdict does not come.
#include "client/node_files.h"

#include "common/queue.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

TrainingOutput output_of(double train_seconds, StateSections sections = {}) {
    TrainingOutput output;
    output.update = to_bytes("an update");
    output.sections = std::move(sections);
    output.held.experiment = 7;
    output.held.round = 3;
    output.held.digest = sha256(output.update);
    output.held.bytes = output.update.size();
    output.held.metrics.train_seconds = train_seconds;
    return output;
}

struct FilesBench {
    TemporaryFolder temporary;
    std::unique_ptr<NodeFiles> files = open();

    std::unique_ptr<NodeFiles> open() const {
        auto opened = NodeFiles::open(temporary.path, std::make_shared<NodeLimits>());
        REQUIRE(opened);
        return *std::move(opened);
    }
    void hold(TrainingOutput output) const {
        const auto answer = std::make_shared<BoundedQueue<Status>>(1);
        files->hold(std::move(output), [answer](const Status& held) { answer->push(held); });
        REQUIRE(*answer->pop());
    }
    void resolve(const HeldUpdate& update, bool counted) const {
        const auto answer = std::make_shared<BoundedQueue<bool>>(1);
        files->apply({ResolvePending{update, counted}}, [answer] { answer->push(true); });
        REQUIRE(answer->pop());
    }
    bool on_disk() const { return fs::exists(temporary.path / "experiments" / "7.pending"); }
};

}  // namespace

TEST_CASE("an update that is soon made again is offered from memory and goes with its verdict", "[unit][state]") {
    const FilesBench bench;
    const auto output = output_of(0.01);
    for (const bool counted : {true, false}) {
        bench.hold(output);
        CHECK_FALSE(bench.on_disk());
        REQUIRE(bench.files->held_bytes(output.held.digest));
        CHECK(*bench.files->held_bytes(output.held.digest) == output.update);
        bench.resolve(output.held, counted);
        CHECK(bench.files->held_bytes(output.held.digest) == nullptr);
    }
}

TEST_CASE("an update that took long or that has state beside it is on disk when it is offered", "[unit][state]") {
    const FilesBench bench;
    const auto long_one = output_of(5);
    bench.hold(long_one);
    CHECK(bench.on_disk());
    bench.resolve(long_one.held, true);
    CHECK_FALSE(bench.on_disk());
    const auto with_state = output_of(0.01, {{"momentum", to_bytes("m")}});
    bench.hold(with_state);
    CHECK(bench.on_disk());
    bench.resolve(with_state.held, true);
    bench.hold(output_of(0.01));  // there is a base now, which this update's verdict must empty
    CHECK(bench.on_disk());
}

TEST_CASE("a node that stops before the verdict writes what it holds and offers it again", "[unit][state]") {
    FilesBench bench;
    const auto output = output_of(0.01);
    bench.hold(output);
    bench.files.reset();
    CHECK(bench.on_disk());
    bench.files = bench.open();
    const auto held = bench.files->load_held();
    REQUIRE(held);
    CHECK(*held == std::vector{output.held});
    CHECK(*bench.files->held_bytes(output.held.digest) == output.update);
}

TEST_CASE("of an experiment that is over nothing is left, neither unwritten nor in memory", "[unit][state]") {
    FilesBench bench;
    const auto output = output_of(GENERATE(0.01, 5.0));
    bench.hold(output);
    const auto answer = std::make_shared<BoundedQueue<bool>>(1);
    bench.files->apply({ForgetExperiment{7}}, [answer] { answer->push(true); });
    REQUIRE(answer->pop());
    CHECK(bench.files->held_bytes(output.held.digest) == nullptr);
    bench.files.reset();
    CHECK_FALSE(bench.on_disk());
}

TEST_CASE("equal updates of two experiments are each held until their own verdict", "[unit][state]") {
    const FilesBench bench;
    const auto first = output_of(GENERATE(0.01, 5.0));
    auto second = first;
    second.held.experiment = 8;
    bench.hold(first);
    bench.hold(second);
    bench.resolve(first.held, true);
    REQUIRE(bench.files->held_bytes(second.held.digest));
    CHECK(*bench.files->held_bytes(second.held.digest) == second.update);
    bench.resolve(second.held, true);
    CHECK(bench.files->held_bytes(second.held.digest) == nullptr);
}

}  // namespace causeway::node
