// Outputs destroy nothing: whole or as before, links and streams kept, names of our own, modes of the sources.
#include <csignal>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/output_file.h"
#include "common/output_folder.h"
#include "common/scratch.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void put(const fs::path& path, std::string_view text, mode_t mode = 0644) {
    std::ofstream(path, std::ios::binary) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
}

mode_t mode_of(const fs::path& path) {
    struct stat info {};
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

Status write(const fs::path& path, std::string_view text, Existing existing = Existing::kept, mode_t mode = 0600) {
    return write_output(path, as_bytes(text), mode, existing);
}

/// Folders that others may pass through, so that a file's own mode decides.
struct OpenFolder : TemporaryFolder {
    OpenFolder() { REQUIRE(::chmod(path.c_str(), 0755) == 0); }
};

}  // namespace

TEST_CASE("a file that is there is kept, and the error says how to overwrite it", "[output]") {
    const TemporaryFolder folder;
    put(folder.path / "old", "old");
    const auto refused = write(folder.path / "old", "new");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::invalid);
    CHECK(refused.error().code == "file_exists");
    CHECK_THAT(refused.error().message, Catch::Contains("--force"));
    CHECK(check_output(folder.path / "old", Existing::kept).error().code == "file_exists");
    CHECK(text_of(folder.path / "old") == "old");
    REQUIRE(write(folder.path / "old", "new", Existing::replaced));
    CHECK(text_of(folder.path / "old") == "new");
    CHECK(entries(folder.path) == 1);
}

TEST_CASE("a file that came while another was written is kept too", "[output]") {
    const TemporaryFolder folder;
    auto file = OutputFile::open(folder.path / "new", 0600, Existing::kept);
    REQUIRE(file);
    REQUIRE(file->write(as_bytes("ours")));
    put(folder.path / "new", "theirs");
    CHECK(file->finish().error().code == "file_exists");
    file = fail(ErrorKind::io, "gone", "");
    CHECK(text_of(folder.path / "new") == "theirs");
    CHECK(entries(folder.path) == 1);
}

TEST_CASE("the user's NAME.tmp and NAME.part are not ours", "[output]") {
    const TemporaryFolder folder;
    put(folder.path / "x.tmp", "notes");
    put(folder.path / "x.part", "more");
    REQUIRE(write(folder.path / "x", "new"));
    CHECK(text_of(folder.path / "x.tmp") == "notes");
    CHECK(text_of(folder.path / "x.part") == "more");
    CHECK(entries(folder.path) == 3);
}

TEST_CASE("a link stays and what it leads to is written", "[output]") {
    const TemporaryFolder folder;
    fs::create_directory(folder.path / "there");
    put(folder.path / "there" / "target", "old");
    fs::create_symlink("there/target", folder.path / "link");
    fs::create_symlink("link", folder.path / "further");
    CHECK(write(folder.path / "further", "new").error().code == "file_exists");
    REQUIRE(write(folder.path / "further", "new", Existing::replaced));
    CHECK(fs::is_symlink(folder.path / "link"));
    CHECK(text_of(folder.path / "there" / "target") == "new");
    fs::create_symlink("there/none", folder.path / "dangling");
    REQUIRE(write(folder.path / "dangling", "made"));
    CHECK(text_of(folder.path / "there" / "none") == "made");
    fs::create_symlink("round", folder.path / "round");
    CHECK_FALSE(write(folder.path / "round", "x"));
    CHECK(fs::is_symlink(folder.path / "round"));
}

TEST_CASE("streams and devices are written to and stay what they are", "[output]") {
    const TemporaryFolder folder;
    const auto pipe = folder.path / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::string read;
    std::thread reader([&] { read = text_of(pipe); });
    CHECK(check_output(pipe, Existing::kept));  // without opening it: its reader would see an end
    REQUIRE(write(pipe, "through"));
    reader.join();
    CHECK(read == "through");
    CHECK(fs::is_fifo(pipe));
    REQUIRE(write("/dev/null", "gone"));
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(write("/dev/full", "full").error().code == "disk_full");
    CHECK(write(folder.path, "x").error().code == "not_a_file");
    CHECK(write(folder.path / "no" / "x", "x").error().code == "no_such_file");
    CHECK(entries(folder.path) == 1);
}

TEST_CASE("a write that fails leaves the old file whole and nothing beside it", "[output]") {
    const TemporaryFolder folder;
    put(folder.path / "old", "old");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{16, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const auto written = write(folder.path / "old", std::string(100, 'x'), Existing::replaced);
    const auto fresh = write(folder.path / "new", std::string(100, 'x'));
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handler);
    CHECK(written.error().code == "file_limit");
    CHECK(fresh.error().code == "file_limit");
    CHECK(text_of(folder.path / "old") == "old");
    CHECK(entries(folder.path) == 1);
}

TEST_CASE("what is made of private data is private: an output's mode is that of its most private source", "[output]") {
    const OpenFolder folder;
    const auto mask = ::umask(0);
    put(folder.path / "open", "x", 0644);
    put(folder.path / "ours", "x", 0640);
    put(folder.path / "secret", "x", 0600);
    fs::create_directory(folder.path / "set");
    put(folder.path / "set" / "part", "x", 0600);
    fs::create_directory(folder.path / "closed");
    put(folder.path / "closed" / "open", "x", 0644);
    REQUIRE(::chmod((folder.path / "closed").c_str(), 0700) == 0);
    CHECK(output_mode({folder.path / "open"}) == 0644);
    CHECK(output_mode({folder.path / "open", folder.path / "ours"}) == 0640);
    CHECK(output_mode({folder.path / "open", folder.path / "secret"}) == 0600);
    CHECK(output_mode({folder.path / "set"}) == 0600);
    CHECK(output_mode({folder.path / "closed" / "open"}) == 0600);  // nobody else could reach it
    fs::create_symlink("secret", folder.path / "link");
    CHECK(output_mode({folder.path / "link"}) == 0600);
    CHECK(output_mode({folder.path / "none"}) == 0600);
    CHECK(output_mode({}) == 0600);
    CHECK(folder_mode(0600) == 0700);
    CHECK(folder_mode(0640) == 0750);
    CHECK(folder_mode(0644) == 0755);
    ::umask(077);
    CHECK(output_mode({folder.path / "open"}) == 0600);
    ::umask(mask);
}

TEST_CASE("an overwritten file's mode is never widened, and a new one's is exact", "[output]") {
    const TemporaryFolder folder;
    put(folder.path / "narrow", "x", 0600);
    put(folder.path / "wide", "x", 0644);
    REQUIRE(write(folder.path / "narrow", "y", Existing::replaced, 0644));
    REQUIRE(write(folder.path / "wide", "y", Existing::replaced, 0600));
    REQUIRE(write(folder.path / "new", "y", Existing::kept, 0640));
    CHECK(mode_of(folder.path / "narrow") == 0600);
    CHECK(mode_of(folder.path / "wide") == 0600);
    CHECK(mode_of(folder.path / "new") == 0640);
}

TEST_CASE("folders that were made for an output that failed go again, and only those", "[output]") {
    const TemporaryFolder folder;
    {
        const auto made = OutputFolder::make(folder.path / "a" / "b", 0750);
        REQUIRE(made);
        CHECK(mode_of(folder.path / "a" / "b") == 0750);
        const auto scratch = ScratchFolder::make(folder.path / "a" / "b");
        REQUIRE(scratch);
        put(scratch->path() / "half", "x");
    }
    CHECK(entries(folder.path) == 0);
    fs::create_directory(folder.path / "a");
    { REQUIRE(OutputFolder::make(folder.path / "a" / "b", 0700)); }
    CHECK(entries(folder.path) == 1);
    put(folder.path / "file", "x");
    CHECK(OutputFolder::make(folder.path / "file" / "b", 0700).error().code == "not_a_folder");
}

TEST_CASE("a stop takes what is half done along, and nothing else", "[output]") {
    const TemporaryFolder folder;
    kill_after(1, [&](const std::function<void()>& finished) {
        const auto made = OutputFolder::make(folder.path / "new", 0700);
        const auto scratch = ScratchFolder::make(folder.path / "new");
        const auto half = OutputFile::open(folder.path / "half", 0600, Existing::kept);
        (void)write(folder.path / "whole", "x");
        remove_all_scratch();
        finished();
        std::_Exit(0);
    });
    CHECK(entries(folder.path) == 1);
    CHECK(text_of(folder.path / "whole") == "x");
}

TEST_CASE("without a folder for temporary files it says which and what to do", "[output]") {
    const char* given = std::getenv("TMPDIR");
    const std::string before = given == nullptr ? "" : given;
    ::setenv("TMPDIR", "/nonexistent", 1);
    const auto made = ScratchFolder::make_temporary();
    given == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before.c_str(), 1);
    REQUIRE_FALSE(made);
    CHECK_THAT(made.error().message, Catch::Contains("/nonexistent") && Catch::Contains("TMPDIR"));
}

}  // namespace causeway
