// The lease of one member on one round: what follows from silence, return and reports.
#include <catch2/catch.hpp>

#include "coordinator/lease.h"

namespace causeway {

using namespace std::chrono_literals;

TEST_CASE("a lease begins with the first resync, at attempt 1", "[lease]") {
    MemberLease lease(60s, 30s, 5s);
    CHECK_FALSE(lease.holds(0));
    CHECK(lease.deadline() == 35s);
    CHECK(lease.resync());
    CHECK(lease.holds(1));
    CHECK(lease.deadline() == never);
}

TEST_CASE("a silent member comes back under the next attempt, and its old words do not count", "[lease]") {
    MemberLease lease(60s, 0s, 0s);
    lease.resync();
    CHECK(lease.suspect(10s));
    CHECK_FALSE(lease.suspect(11s));
    CHECK_FALSE(lease.holds(1));
    CHECK_FALSE(lease.expired(69s));
    CHECK(lease.resync());
    CHECK_FALSE(lease.holds(1));
    CHECK(lease.holds(2));
    CHECK_FALSE(lease.expired(1000s));
}

TEST_CASE("a member that stays away for rejoin has expired; with rejoin = 0 at once", "[lease]") {
    for (const Duration rejoin : {Duration(0s), Duration(3s)}) {
        MemberLease lease(rejoin, 0s, 0s);
        lease.resync();
        lease.suspect(10s);
        CHECK(lease.expired(10s + rejoin));
        CHECK(lease.expired(9s + rejoin) == false);
    }
}

TEST_CASE("a new session that takes over raises the attempt as well", "[lease]") {
    MemberLease lease(60s, 0s, 0s);
    lease.resync();
    CHECK(lease.resync());
    CHECK(lease.attempt() == 2);
}

TEST_CASE("settled and dropped absorb", "[lease]") {
    for (const bool settled : {true, false}) {
        MemberLease lease(60s, 0s, 0s);
        lease.resync();
        CHECK((settled ? lease.settle() : lease.drop()));
        const auto state = lease.state();
        CHECK_FALSE(lease.resync());
        CHECK_FALSE(lease.suspect(1s));
        CHECK_FALSE(lease.settle());
        CHECK_FALSE(lease.drop());
        CHECK_FALSE(lease.holds(1));
        CHECK_FALSE(lease.expired(1000s));
        CHECK(lease.state() == state);
    }
}

TEST_CASE("an endless rejoin never expires", "[lease]") {
    MemberLease lease(never, never, 10s);
    CHECK_FALSE(lease.expired(1'000'000s));
    lease.resync();
    lease.suspect(20s);
    CHECK(lease.deadline() == never);
}

}  // namespace causeway
