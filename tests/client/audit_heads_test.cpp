// A node's memory of the audit log: durable, bounded, and never without the first head and the newest.
#include <algorithm>
#include <fstream>

#include <catch2/catch.hpp>

#include "client/audit_heads.h"
#include "common/file.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

Digest head(int number) {
    return sha256("head " + std::to_string(number));
}

}  // namespace

TEST_CASE("every new head is kept across restarts, a repeated one once", "[client]") {
    const TemporaryFolder folder;
    CHECK(AuditHeads::open(folder.path)->heads().empty());
    for (const int number : {1, 1, 2, 2, 2, 1}) {
        REQUIRE(AuditHeads::open(folder.path)->note("clinic", head(number)));
    }
    const auto known = *AuditHeads::open(folder.path);
    CHECK(known.federation() == "clinic");
    CHECK(known.heads() == std::vector{head(1), head(2), head(1)});
}

TEST_CASE("however many heads come, the file is bounded and holds the first, the newest and some of every age",
          "[client]") {
    const TemporaryFolder folder;
    auto known = *AuditHeads::open(folder.path);
    constexpr int count = 2000;
    for (int number = 0; number < count; ++number) {
        REQUIRE(known.note("clinic", head(number)));
        REQUIRE(known.heads().size() <= most_audit_heads);
    }
    CHECK(known.heads().front() == head(0));
    CHECK(known.heads().back() == head(count - 1));
    int before = 0;
    for (int number = 0; number < count; ++number) {
        if (std::ranges::find(known.heads(), head(number)) != known.heads().end()) {
            CHECK(number - before <= count / 32);
            before = number;
        }
    }
    CHECK(AuditHeads::open(folder.path)->heads() == known.heads());
}

TEST_CASE("a file that is no list of heads is reported and not written over", "[client]") {
    const TemporaryFolder folder;
    for (const auto* text : {"", "{}", R"({"heads":["no hash"]})", R"({"heads":3})", R"({"heads":[],"seen":-1})"}) {
        std::ofstream(folder.path / "audit_heads") << text;
        const auto opened = AuditHeads::open(folder.path);
        REQUIRE(!opened);
        CHECK(opened.error().code == "state_damaged");
    }
}

TEST_CASE("a flipped byte in the noted heads is found; the node keeps the file aside and goes on", "[client]") {
    const TemporaryFolder folder;
    {
        auto known = AuditHeads::open(folder.path);
        REQUIRE(known);
        REQUIRE(known->note("ours", sha256("one")));
        REQUIRE(known->note("ours", sha256("two")));
    }
    const auto file = folder.path / "audit_heads";
    const auto good = *read_file(file, 1 << 20);
    for (std::size_t i = 0; i + 1 < good.size(); ++i) {  // the last is the line's end
        auto bad = good;
        bad[i] ^= std::byte{1};
        REQUIRE(write_file_durably(file, bad));
        INFO("byte " << i);
        REQUIRE(!AuditHeads::open(folder.path));
    }
    auto anew = AuditHeads::open_or_begin(folder.path);
    REQUIRE(anew);
    CHECK(anew->heads().empty());
    CHECK(std::filesystem::exists(folder.path / "audit_heads.damaged"));
    REQUIRE(anew->note("ours", sha256("three")));
    CHECK(AuditHeads::open(folder.path)->heads().size() == 1);
}

}  // namespace causeway::node
