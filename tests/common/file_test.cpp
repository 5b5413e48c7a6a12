// Files: durable writes leave the old or the new content, modes are enforced, a lock is exclusive.
#include "common/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/digest.h"

namespace causeway {
namespace {

struct TemporaryFolder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("causeway-file-" + to_hex(secret_random_bytes(6)));
    TemporaryFolder() { REQUIRE(make_private_folder(path).has_value()); }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a file written durably reads back, replaces the old one and leaves nothing beside it", "[common][unit]") {
    const TemporaryFolder folder;
    const auto path = folder.path / "x";
    for (const auto* content : {"first", "second, longer", ""}) {
        REQUIRE(write_file_durably(path, as_bytes(content)).has_value());
        CHECK(as_text(*read_file(path, 100)) == content);
    }
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("reading refuses what is missing, too large or no file", "[common][unit]") {
    const TemporaryFolder folder;
    CHECK(read_file(folder.path / "none", 10).error().kind == ErrorKind::not_found);
    CHECK(read_file(folder.path, 10).error().code == "not_a_file");
    REQUIRE(write_file_durably(folder.path / "x", as_bytes("0123456789a")).has_value());
    CHECK(read_file(folder.path / "x", 10).error().kind == ErrorKind::overloaded);
}

TEST_CASE("a write that cannot succeed is an io error naming the path", "[common][unit]") {
    const auto written = write_file_durably("/proc/causeway/none", as_bytes("x"));
    REQUIRE_FALSE(written.has_value());
    CHECK(written.error().message.find("/proc/causeway") != std::string::npos);
    const auto full = write_file_durably("/dev/full/x", as_bytes("x"));
    CHECK_FALSE(full.has_value());
}

TEST_CASE("secrets are 0600 and folders 0700, else refused with the remedy", "[common][unit]") {
    const TemporaryFolder folder;
    const auto key = folder.path / "key";
    REQUIRE(write_file_durably(key, as_bytes("k"), FileMode::secret).has_value());
    CHECK(require_secret_mode(key).has_value());
    ::chmod(key.c_str(), 0644);
    CHECK(require_secret_mode(key).error().message.find("chmod 600") != std::string::npos);
    ::chmod(folder.path.c_str(), 0755);
    CHECK(make_private_folder(folder.path).error().message.find("chmod 700") != std::string::npos);
}

TEST_CASE("a state folder has one owner at a time", "[common][unit]") {
    const TemporaryFolder folder;
    {
        const auto lock = FolderLock::acquire(folder.path);
        REQUIRE(lock.has_value());
        CHECK(FolderLock::acquire(folder.path).error().code == "state_in_use");
    }
    CHECK(FolderLock::acquire(folder.path).has_value());
}

}  // namespace causeway
