// What a start and doctor make of machines that this one is not.
#include <algorithm>

#include <catch2/catch.hpp>

#include "common/need.h"

namespace causeway {
namespace {

constexpr std::uint64_t gb = 1'000'000'000;
constexpr std::int64_t built_s = 1'800'000'000;
constexpr std::int64_t day_s = 24 * 3600;

Machine large_machine() {
    return {.descriptors = 1 << 20,
            .memory = MemoryRoom{16 * gb, "the machine"},
            .disk = 100 * gb,
            .folder = "/state",
            .now_s = built_s + day_s,
            .built_s = built_s};
}

Machine with_descriptors(std::uint64_t count) {
    auto machine = large_machine();
    machine.descriptors = count;
    return machine;
}

Machine with_memory(std::uint64_t bytes, std::string_view bound_by = "the machine") {
    auto machine = large_machine();
    machine.memory = MemoryRoom{bytes, bound_by};
    return machine;
}

NeedFinding finding(const Capacity& capacity, std::string_view check) {
    const auto found = std::ranges::find(capacity.findings, check, &NeedFinding::check);
    REQUIRE(found != capacity.findings.end());
    return *found;
}

std::string refusal(const Need& need, const Machine& machine) {
    const auto status = can_start(judge(need, machine));
    return status ? "" : status.error().code + ": " + status.error().message;
}

}  // namespace

TEST_CASE("a large machine serves all that a coordinator can, and every connection of theirs", "[need]") {
    const auto capacity = judge(coordinator_need(), large_machine());
    CHECK(can_start(capacity));
    CHECK(capacity.sessions == 4096);
    CHECK(capacity.connections == 4096 * 5 + capacity.strangers);
    CHECK(std::ranges::all_of(capacity.findings, [](const auto& each) { return each.enough == Enough::yes; }));
}

TEST_CASE("a smaller machine serves fewer nodes, and says by what it is bound and what raises it", "[need]") {
    const auto few = judge(coordinator_need(), with_descriptors(1024));
    CHECK(can_start(few));
    CHECK(few.sessions == (1024 - 128 - 112) / 5);
    CHECK(few.connections + 128 <= 1024);
    CHECK(few.bound.find("1024") != std::string::npos);
    CHECK(few.raised_by.find("ulimit -Hn") != std::string::npos);
    CHECK(finding(few, "descriptors").enough == Enough::little);

    const auto contained = judge(coordinator_need(), with_memory(128'000'000, "the control group"));
    CHECK(can_start(contained));
    CHECK(contained.sessions == 64'000'000 / (256 * 1024));
    CHECK(contained.bound.find("control group") != std::string::npos);
    CHECK(contained.raised_by.find("MemoryMax=") != std::string::npos);
    CHECK(finding(contained, "memory").enough == Enough::little);

    CHECK(judge(coordinator_need(66), with_descriptors(1024)).sessions < few.sessions);  // --http has its own
    CHECK(judge(coordinator_need(), with_memory(300'000'000, "ulimit -v")).raised_by.find("ulimit -v") !=
          std::string::npos);
}

TEST_CASE("sessions never take more descriptors than there are", "[need]") {
    for (std::uint64_t count = 0; count < 30'000; count += 7) {
        const auto capacity = judge(coordinator_need(66), with_descriptors(count));
        if (can_start(capacity)) {
            CHECK(capacity.sessions >= 1);
            CHECK(capacity.connections + 128 + 66 <= count);
        }
    }
}

TEST_CASE("what nothing can run with is refused by name, with the numbers and the remedy", "[need]") {
    for (const auto& need : {coordinator_need(), node_need(), federation_need(3)}) {
        CHECK(refusal(need, with_descriptors(100)).starts_with("too_few_descriptors: 100 "));
        CHECK(refusal(need, with_descriptors(0)).find("ulimit -Hn") != std::string::npos);
        CHECK(refusal(need, with_memory(1'000'000)).starts_with("too_little_memory: 1.00 MB "));
        CHECK(refusal(need, with_memory(100'000'000, "ulimit -v")).find("ulimit -v unlimited") != std::string::npos);
        CHECK(refusal(need, large_machine()).empty());
    }
    auto silent = large_machine();
    silent.memory.reset();  // a kernel that does not say
    CHECK(can_start(judge(coordinator_need(), silent)));
}

TEST_CASE("more sessions than there is room for are refused by the option that asked for them", "[need]") {
    const auto refused = refusal(coordinator_need(0, 1000), with_descriptors(1024));
    CHECK(refused.find("156 nodes") != std::string::npos);
    CHECK(refused.find("--sessions asks for 1000") != std::string::npos);
    CHECK(refusal(federation_need(300), with_descriptors(1024)).find("--clients") != std::string::npos);
    CHECK(refusal(federation_need(100), with_memory(2 * gb)).find("--clients") != std::string::npos);
    const auto asked = judge(coordinator_need(0, 10), large_machine());
    CHECK(can_start(asked));
    CHECK(asked.sessions == 10);
    CHECK(asked.bound == "--sessions 10");
    CHECK(asked.raised_by.find("--sessions") != std::string::npos);
}

TEST_CASE("a disk without room forbids no start, but is spoken of", "[need]") {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1'000'000}, gb}) {
        auto machine = large_machine();
        machine.disk = bytes;
        const auto capacity = judge(coordinator_need(), machine);
        CHECK(can_start(capacity));
        CHECK(finding(capacity, "disk").enough == Enough::little);
    }
    auto unread = large_machine();
    unread.disk.reset();
    CHECK(finding(judge(node_need(), unread), "disk").error.message.find("/state") != std::string::npos);
}

TEST_CASE("a clock before the build is refused at a first start, and spoken of later; an hour or a day is none",
          "[need]") {
    for (auto need : {coordinator_need(), node_need()}) {
        auto machine = large_machine();
        need.first_start = true;
        for (const std::int64_t now_s : {built_s - 2 * day_s, built_s - 4000 * day_s, std::int64_t{0}}) {
            machine.now_s = now_s;
            CHECK(refusal(need, machine).starts_with("clock_before_build: "));
            CHECK(refusal(need, machine).find("timedatectl") != std::string::npos);
        }
        CHECK(refusal(need, machine).find("1970-01-01") != std::string::npos);
        machine.now_s = built_s - 3600;
        CHECK(refusal(need, machine).empty());
        machine.now_s = built_s - 2 * day_s;
        need.first_start = false;
        CHECK(refusal(need, machine).empty());
        CHECK(finding(judge(need, machine), "clock").enough == Enough::little);
    }
}

}  // namespace causeway
