// The store's thread: what waits is stored together where it only declares, each is reported, and order is kept.
#include "coordinator/store_thread.h"

#include <catch2/catch.hpp>

#include "common/log.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

constexpr Duration deadline = std::chrono::seconds(20);

Persist declares(const std::string& node) {
    return SaveDeclaration{node, {{.name = "digits", .digest = sha256(node), .examples = 7}}};
}

/// A thread whose work waits until the test lets it go.
struct HeldThread {
    TemporaryFolder folder;
    BoundedQueue<std::string> told{256};
    BoundedQueue<int> gate{1};
    std::unique_ptr<StoreThread> thread;

    HeldThread() {
        start_log(LogLevel::error, LogFormat::human);
        StoreThreadOptions options;
        options.stored = [this](std::uint64_t step) { told.push(std::to_string(step)); };
        options.stuck = [this](const Error& why) { told.push(why.code); };
        options.broken = [this](const Error& why) { told.push(why.code); };
        options.committed = [](const std::set<Digest>&) {};
        thread = std::make_unique<StoreThread>(*Store::open(folder.path), std::move(options));
        thread->run([this](Store&) { (void)gate.pop(); });
    }
    /// What it has told, up to that and with it.
    std::vector<std::string> tells_until(const std::string& last) {
        std::vector<std::string> all;
        while (all.empty() || all.back() != last) {
            const auto one = told.pop_for(deadline);
            REQUIRE(one.has_value());
            all.push_back(*one);
        }
        return all;
    }
};

}  // namespace

TEST_CASE("what a crowd declares costs one flush, and each step is reported in its order", "[unit][store]") {
    HeldThread held;
    const auto before = held.thread->flushes();
    std::vector<std::string> expected;
    for (std::uint64_t step = 1; step <= 100; ++step) {
        held.thread->execute(step, {declares("node-" + std::to_string(step))});
        expected.push_back(std::to_string(step));
    }
    held.gate.push(0);
    CHECK(held.tells_until("100") == expected);
    CHECK(held.thread->flushes() == before + 1);
    held.thread.reset();
    CHECK(Store::open(held.folder.path)->load()->declared.size() == 100);
}

TEST_CASE("declarations do not pass other work, and other steps are stored alone", "[unit][store]") {
    HeldThread held;
    const auto before = held.thread->flushes();
    const SaveExperiment experiment{1, "e", "[experiment]\n", "running", "", "operator"};
    held.thread->execute(1, {declares("ann")});
    held.thread->execute(2, {declares("bob")});
    held.thread->execute(3, {declares("cid"), experiment});
    held.thread->execute(4, {declares("dan")});
    held.thread->run([&](Store& store) {
        held.told.push(std::to_string(store.load()->declared.size()) + " declared");
    });
    held.thread->execute(5, {declares("eve")});
    held.thread->execute(6, {SaveDecision{1, 1, "dropped", Json::object()}});
    held.gate.push(0);
    CHECK(held.tells_until("6") == std::vector<std::string>{"1", "2", "3", "4", "4 declared", "5", "6"});
    CHECK(held.thread->flushes() == before + 5);  // the first two together
}

TEST_CASE("a declaration that cannot be stored holds up itself and what comes later, as it does alone",
          "[unit][store]") {
    HeldThread held;
    held.thread->run([](Store& store) {
        REQUIRE(store.database().run_script("CREATE TRIGGER full BEFORE INSERT ON datasets WHEN NEW.node = 'cid' "
                                            "BEGIN SELECT RAISE(ABORT, 'no room'); END"));
    });
    held.thread->execute(1, {declares("ann")});
    held.thread->execute(2, {declares("bob")});
    held.thread->execute(3, {declares("cid")});
    held.thread->execute(4, {declares("dan")});
    held.gate.push(0);
    CHECK(held.tells_until("io") == std::vector<std::string>{"1", "2", "io"});
    CHECK_FALSE(held.told.try_pop().has_value());
}

}  // namespace causeway
