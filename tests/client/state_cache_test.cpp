// The model cache: what is there moves no bytes, what is damaged is never used.
#include "client/cache.h"

#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

Bytes cached_model(char letter, std::size_t size = 100) {
    return Bytes(size, static_cast<std::byte>(letter));
}
Digest name(char letter, std::size_t size = 100) {
    return sha256(cached_model(letter, size));
}

ModelCache open_cache(const TemporaryFolder& temporary, std::uint64_t bytes = 1000) {
    auto cache = ModelCache::open(temporary.path, {bytes});
    REQUIRE(cache);
    return *std::move(cache);
}

}  // namespace

TEST_CASE("a cached model is read back, also after a restart", "[unit][cache]") {
    const TemporaryFolder temporary;
    {
        auto cache = open_cache(temporary);
        REQUIRE(cache.put(name('a'), cached_model('a')));
        CHECK(cache.read(name('b')).error().kind == ErrorKind::not_found);
    }
    auto cache = open_cache(temporary);
    CHECK(cache.has(name('a')));
    CHECK(*cache.read(name('a')) == cached_model('a'));
    CHECK(cache.bytes() == 100);
}

TEST_CASE("the model used longest ago goes first, restarts included", "[unit][cache]") {
    const TemporaryFolder temporary;
    {
        auto cache = open_cache(temporary, 300);
        for (const char letter : {'a', 'b', 'c'}) {
            REQUIRE(cache.put(name(letter), cached_model(letter)));
        }
        REQUIRE(cache.read(name('a')));
    }
    auto cache = open_cache(temporary, 300);
    REQUIRE(cache.put(name('d'), cached_model('d')));
    CHECK(cache.has(name('a')));
    CHECK_FALSE(cache.has(name('b')));
    CHECK(cache.has(name('c')));
    CHECK(cache.bytes() <= 300);
    REQUIRE(cache.put(name('e', 5000), cached_model('e', 5000)));  // larger than the cache: it alone stays
    CHECK(cache.has(name('e', 5000)));
    CHECK(cache.bytes() == 5000);
}

TEST_CASE("many small models do not become many files, and on a full disk all but the last used go", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary, 1'000'000);
    const auto files = [&] {
        const std::filesystem::directory_iterator all(temporary.path / "cache");
        return std::distance(begin(all), end(all));
    };
    for (char letter = 'A'; letter <= 'z'; ++letter) {
        REQUIRE(cache.put(name(letter), cached_model(letter)));
        CHECK(files() <= 16);
    }
    CHECK(cache.make_room());
    CHECK(files() == 1);
    CHECK(cache.has(name('z')));
    CHECK_FALSE(cache.make_room());
}

TEST_CASE("a damaged model is found out when it is read, and is gone", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    REQUIRE(cache.put(name('a'), cached_model('a')));
    for (const auto& entry : fs::directory_iterator(temporary.path / "cache")) {
        REQUIRE(write_file_durably(entry.path(), cached_model('x')));
    }
    CHECK(cache.read(name('a')).error().code == "digest_mismatch");
    CHECK_FALSE(cache.has(name('a')));
    CHECK_FALSE(open_cache(temporary).has(name('a')));
}

TEST_CASE("a fetched file is taken in by a rename, once", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    const auto file = temporary.path / "fetched";
    REQUIRE(write_file_durably(file, cached_model('a')));
    REQUIRE(cache.adopt(name('a'), file));
    CHECK_FALSE(fs::exists(file));
    CHECK(*cache.read(name('a')) == cached_model('a'));
    CHECK(cache.adopt(name('b'), file).error().kind == ErrorKind::not_found);
    REQUIRE(write_file_durably(file, cached_model('a')));
    REQUIRE(cache.adopt(name('a'), file));  // again: it replaces itself
    CHECK(cache.bytes() == 100);
}

TEST_CASE("bytes that are not what their name says are refused", "[unit][cache]") {
    const TemporaryFolder temporary;
    auto cache = open_cache(temporary);
    CHECK(cache.put(name('a'), cached_model('b')).error().code == "digest_mismatch");
    CHECK_FALSE(cache.has(name('a')));
}

}  // namespace causeway::node
