// The model cache: what is there moves no bytes, what is damaged is never used, what is half there goes on.
#include "client/cache.h"

#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

Bytes model(char letter, std::size_t size = 100) {
    return Bytes(size, static_cast<std::byte>(letter));
}
Digest name(char letter, std::size_t size = 100) {
    return sha256(model(letter, size));
}

ModelCache open_cache(const TemporaryFolder& temporary, std::uint64_t bytes = 1000) {
    auto cache = ModelCache::open(temporary.path, {bytes, 2});
    REQUIRE(cache);
    return *std::move(cache);
}

}  // namespace

TEST_CASE("a cached model is read back, also after a restart", "[unit][cache]") {
    const TemporaryFolder temporary;
    {
        auto cache = open_cache(temporary);
        REQUIRE(cache.put(name('a'), model('a')));
        CHECK(cache.read(name('b')).error().kind == ErrorKind::not_found);
    }
    auto cache = open_cache(temporary);
    CHECK(cache.has(name('a')));
    CHECK(*cache.read(name('a')) == model('a'));
    CHECK(cache.bytes() == 100);
}

TEST_CASE("the model used longest ago goes first, restarts included", "[unit][cache]") {
    const TemporaryFolder temporary;
    {
        auto cache = open_cache(temporary, 300);
        for (const char letter : {'a', 'b', 'c'}) {
            REQUIRE(cache.put(name(letter), model(letter)));
        }
        REQUIRE(cache.read(name('a')));
    }
    auto cache = open_cache(temporary, 300);
    REQUIRE(cache.put(name('d'), model('d')));
    CHECK(cache.has(name('a')));
    CHECK_FALSE(cache.has(name('b')));
    CHECK(cache.has(name('c')));
    CHECK(cache.bytes() <= 300);
    REQUIRE(cache.put(name('e', 5000), model('e', 5000)));  // larger than the cache: it alone stays
    CHECK(cache.has(name('e', 5000)));
    CHECK(cache.bytes() == 5000);
}

TEST_CASE("a damaged model is found out when it is read, and is gone", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    REQUIRE(cache.put(name('a'), model('a')));
    for (const auto& entry : fs::directory_iterator(temporary.path / "cache")) {
        REQUIRE(write_file_durably(entry.path(), model('x')));
    }
    CHECK(cache.read(name('a')).error().code == "digest_mismatch");
    CHECK_FALSE(cache.has(name('a')));
    CHECK_FALSE(open_cache(temporary).has(name('a')));
}

TEST_CASE("a download goes on after a restart from the bytes that are there", "[unit][cache]") {
    const TemporaryFolder temporary;
    const auto whole = model('a');
    {
        auto cache = open_cache(temporary);
        REQUIRE(cache.append(name('a'), 0, ByteView(whole).first(30)));
        REQUIRE(cache.append(name('a'), 30, ByteView(whole).subspan(30, 30)));
    }
    auto cache = open_cache(temporary);
    CHECK_FALSE(cache.has(name('a')));
    REQUIRE(cache.part_size(name('a')) == 60);
    CHECK(cache.append(name('a'), 30, ByteView(whole).first(30)).error().code == "wrong_offset");
    REQUIRE(cache.append(name('a'), 60, ByteView(whole).subspan(60)));
    REQUIRE(cache.finish(name('a')));
    CHECK(*cache.read(name('a')) == whole);
    CHECK(cache.part_size(name('a')) == 0);
}

TEST_CASE("a download that is not what its name says is thrown away", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    REQUIRE(cache.append(name('a'), 0, model('b')));
    CHECK(cache.finish(name('a')).error().code == "digest_mismatch");
    CHECK(cache.part_size(name('a')) == 0);
    CHECK_FALSE(cache.has(name('a')));
    CHECK(cache.put(name('a'), model('b')).error().code == "digest_mismatch");
}

TEST_CASE("downloads that nobody finishes do not pile up", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    for (char letter = 'a'; letter < 'k'; ++letter) {
        REQUIRE(cache.append(name(letter), 0, as_bytes("begin")));
    }
    CHECK(std::distance(fs::directory_iterator(temporary.path / "cache"), {}) <= 2);
    CHECK(cache.part_size(name('j')) == 5);
}

}  // namespace causeway::node
