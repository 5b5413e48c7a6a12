// The smoke of the fuzz targets: each decoder's seeds and a few thousand mutations of them, the same in every run.
//
// What a search by coverage once found stands here as bytes, so that it stays found (tests/fuzz/run makes the search).
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "tests/data/samples.h"
#include "tests/fuzz/targets.h"

namespace causeway {

TEST_CASE("seeds and thousands of mutations of them are values or named errors", "[fuzz]") {
    for (const auto* target : all_targets()) {
        DYNAMIC_SECTION(target->name) {
            const auto seeds = target->seeds();
            REQUIRE_FALSE(seeds.empty());
            std::mt19937 random(31);
            target->run({});
            for (const auto& seed : seeds) {
                target->run(seed);
            }
            for (int i = 0; i < target->mutations; ++i) {
                target->run(mutated(seeds[static_cast<std::size_t>(i) % seeds.size()], random));
            }
            SUCCEED();
        }
    }
}

TEST_CASE("no two targets have one name, and none has gone", "[fuzz]") {
    std::set<std::string> names;
    for (const auto* target : all_targets()) {
        CHECK(names.insert(target->name).second);
    }
    CHECK(names.size() == 26);
}

}  // namespace causeway
