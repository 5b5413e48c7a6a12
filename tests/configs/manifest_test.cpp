// Manifests: what they select, what they refuse and where, and that they cannot lead out of their folder.
#include <algorithm>
#include <filesystem>

#include <catch2/catch.hpp>

#include "configs/dataset_file.h"
#include "configs/manifest.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view table =
    "id,outcome,age,weight,pressure,when\n"
    "P-1,home,30,70,120,monday\n"
    "P-2,ward,45,80,110,\n"
    "P-3,home,28,65,125,tuesday\n"
    "P-4,ward,50,90,105,x\n";

struct Folder : TemporaryFolder {
    fs::path put(const std::string& name, std::string_view text) const {
        REQUIRE(write_file_durably(path / name, as_bytes(text)));
        return path / name;
    }
    Folder() { put("patients.csv", table); }
};

/// The message, without the folder.
std::string mistakes(const Folder& folder, const std::string& manifest) {
    const auto file = read_dataset_file(folder.put("m.toml", manifest), {});
    REQUIRE(!file);
    CHECK(file.error().kind == ErrorKind::invalid);
    auto text = file.error().message;
    const auto prefix = folder.path.string() + "/";
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
        text.erase(at, prefix.size());
    }
    return text;
}

bool has(const std::string& text, std::string_view words) {
    return text.find(words) != std::string::npos;
}

TEST_CASE("a manifest chooses columns in its own order and names the classes") {
    const Folder folder;
    const auto path = folder.put("m.toml",
                                 "file = \"patients.csv\"\nlabel = \"outcome\"\nfeatures = [\"pressure\", "
                                 "\"age..weight\"]\nclasses = [\"home\", \"ward\", \"intensive\"]\n");
    const auto file = read_dataset_file(path, {});
    REQUIRE(file);
    CHECK(file->train.features == std::vector<float>{120, 30, 70, 110, 45, 80, 125, 28, 65, 105, 50, 90});
    CHECK(file->train.labels == std::vector<std::uint32_t>{0, 1, 0, 1});
    CHECK(file->train.classes == 3);  // also the one that nobody has
    CHECK(file->train.class_names == std::vector<std::string>{"home", "ward", "intensive"});
    CHECK_FALSE(file->test);
}

TEST_CASE("a number makes a regression set, and a range leaves the label out") {
    const Folder folder;
    const auto path =
        folder.put("m.toml", "file = \"patients.csv\"\nlabel = 3\nfeatures = [\"2..4\"]\ntarget = \"number\"\n");
    const auto file = read_dataset_file(path, {});
    REQUIRE(file);
    CHECK(file->train.targets == std::vector<float>{70, 80, 65, 90});
    CHECK(file->train.features == std::vector<float>{30, 120, 45, 110, 28, 125, 50, 105});
    CHECK(file->train.classes == 0);
}

TEST_CASE("what a manifest holds out is apart, by a share or by a second file") {
    const Folder folder;
    const std::string base =
        "file = \"patients.csv\"\nlabel = \"outcome\"\nfeatures = [\"age\"]\nclasses = "
        "[\"home\", \"ward\"]\n";
    const auto by_share =
        read_dataset_file(folder.put("a.toml", base + "split = { holdout = \"50%\", seed = 3 }\n"), {});
    REQUIRE(by_share);
    CHECK(by_share->train.size() == 2);
    REQUIRE(by_share->test);
    CHECK(by_share->test->labels == std::vector<std::uint32_t>{0, 1});  // each class gives its share
    folder.put("later.csv", "id,outcome,age,weight,pressure,when\nP-9,ward,61,1,1,z\n");
    const auto by_file = read_dataset_file(folder.put("b.toml", base + "split = { test = \"later.csv\" }\n"), {});
    REQUIRE(by_file);
    CHECK(by_file->train.size() == 4);
    CHECK(by_file->test->features == std::vector<float>{61});
    auto both = *by_file;
    CHECK(std::move(both).whole()->size() == 5);
}

TEST_CASE("a regression set may have a second file, but none of other columns") {
    const Folder folder;
    folder.put("now.csv", "age,weight\n30,70\n45,80\n");
    folder.put("later.csv", "age,weight\n61,81\n");
    const auto path = folder.put("m.toml",
                                 "file = \"now.csv\"\nlabel = \"weight\"\ntarget = \"number\"\n"
                                 "split = { test = \"later.csv\" }\n");
    const auto file = read_dataset_file(path, {});
    REQUIRE(file);
    CHECK(file->train.targets == std::vector<float>{70, 80});
    REQUIRE(file->test);
    CHECK(file->test->targets == std::vector<float>{81});
    folder.put("later.csv", "weight,age\n81,61\n");
    const auto other = read_dataset_file(path, {});
    REQUIRE_FALSE(other);
    CHECK(other.error().code == "parts_differ");
}

TEST_CASE("the digest covers the manifest and the values that it selects") {
    const Folder folder;
    const std::string text =
        "file = \"patients.csv\"\nlabel = \"outcome\"\nfeatures = [\"age\"]\nclasses = [\"home\", "
        "\"ward\"]\n";
    const auto digest = [&](const std::string& manifest) {
        return read_dataset_file(folder.put("m.toml", manifest), {})->digest;
    };
    const auto first = digest(text);
    CHECK(digest(text) == first);
    CHECK(digest(text + "# a word\n") != first);
    std::string changed(table);
    changed.replace(changed.find("30,70"), 2, "31");
    folder.put("patients.csv", changed);
    CHECK(digest(text) != first);
}

TEST_CASE("every mistake of a manifest is reported at once, with its place and the nearest name") {
    const Folder folder;
    const auto text = mistakes(folder,
                               "reader = \"csw\"\n"
                               "file = \"patients.csv\"\n"
                               "label = \"outcom\"\n"
                               "features = [\"agee\", \"weight\", \"weight\", 17]\n"
                               "clases = [\"home\"]\n"
                               "target = \"numbr\"\n"
                               "split = { holdout = \"20\", seeed = 1 }\n");
    INFO(text);
    CHECK(has(text, "m.toml:1:10: error: unknown reader \"csw\"; did you mean \"csv\"?"));
    CHECK(has(text, "m.toml:3:9: error: label: patients.csv: no column 'outcom' among 6; did you mean 'outcome'?"));
    CHECK(has(text, "m.toml:4:13: error: features: patients.csv: no column 'agee' among 6; did you mean 'age'?"));
    CHECK(has(text, "m.toml:4:31: error: features: patients.csv: column 'weight' is named twice"));
    CHECK(has(text, "m.toml:4:41: error: features: patients.csv: no column '17' among 6"));
    CHECK(has(text, "m.toml:5:1: error: unknown key \"clases\"; did you mean \"classes\"?"));
    CHECK(has(text, "m.toml:6:10: error: unknown target \"numbr\"; did you mean \"number\"?"));
    CHECK(has(text, "m.toml:7:21: error: split.holdout: a share"));
    CHECK(has(text, "m.toml:7:27: error: unknown key \"seeed\"; did you mean \"seed\"?"));
}

TEST_CASE("a file that is not there, and labels that are no class, are named") {
    const Folder folder;
    CHECK(has(mistakes(folder, "file = \"patient.csv\"\n"), "did you mean \"patients.csv\"?"));
    CHECK(has(mistakes(folder, "label = \"outcome\"\n"), "m.toml:1:1: error: file: missing"));
    const auto text = mistakes(folder,
                               "file = \"patients.csv\"\nlabel = \"outcome\"\nfeatures = [\"age\"]\nclasses = "
                               "[\"home\", \"wrd\"]\n");
    CHECK(has(text, "row 3, column 2: the label is none of the classes home, wrd; did you mean 'wrd'?"));
    CHECK(has(mistakes(folder, "file = \"patients.csv\"\nclasses = [\"a\", \"a\"]\ntarget = \"number\"\n"), "twice"));
}

TEST_CASE("a manifest leads nowhere out of its folder, by words or by links") {
    const Folder folder;
    const Folder elsewhere;
    for (const std::string path : {"../x.csv", "/etc/passwd", "a/../../x.csv", "", "a\\u0000b"}) {
        const auto parsed = parse_manifest("file = \"" + path + "\"\n", "m.toml");
        CHECK(parsed.errors.size() == 1);
        CHECK(parsed.manifest.file.empty());
    }
    fs::create_symlink(elsewhere.path / "patients.csv", folder.path / "link.csv");
    CHECK(has(mistakes(folder, "file = \"link.csv\"\n"), "is a link that leads out of the manifest's folder"));
    fs::create_symlink(elsewhere.path, folder.path / "sub");
    CHECK(has(mistakes(folder, "file = \"sub/patients.csv\"\n"), "leads out"));
}

TEST_CASE("hostile manifests give errors, never a crash") {
    CHECK(parse_manifest(std::string(max_manifest_bytes + 1, '#'), "m").errors.size() == 1);
    const std::string good =
        "file = \"a.csv\"\nlabel = 1\nfeatures = [\"a..b\", 3]\nclasses = [\"x\"]\nsplit = { "
        "holdout = \"20%\", seed = 1 }\n";
    for (std::size_t at = 0; at < good.size(); ++at) {
        auto cut = good.substr(0, at);
        CHECK_NOTHROW(parse_manifest(cut, "m"));
        auto changed = good;
        changed[at] = static_cast<char>(changed[at] ^ 0x15);
        CHECK_NOTHROW(parse_manifest(changed, "m"));
    }
    std::string many = "file = \"a\"\nclasses = [";
    for (std::size_t i = 0; i <= max_manifest_classes; ++i) {
        many += "\"" + std::to_string(i) + "\",";
    }
    CHECK(has(parse_manifest(many + "]", "m").errors.at(0).message, "1 to 4096 items"));
}

TEST_CASE("examples of a node are held out by the options' share where no manifest does it") {
    const Folder folder;
    DataOptions options{"outcome", {}, {}};
    options.file = {"csv", {"age", "weight"}, {"home", "ward"}};
    options.holdout = 0.5;
    auto file = read_dataset_file(folder.path / "patients.csv", options);
    REQUIRE(file);
    REQUIRE(prepare_examples(*file, options, 7));
    CHECK(file->train.size() == 2);
    CHECK(file->test->size() == 2);
    auto again = *read_dataset_file(folder.path / "patients.csv", options);
    REQUIRE(prepare_examples(again, options, 7));
    CHECK(again.test->features == file->test->features);
    options.holdout = 0.1;  // of four examples that is none: all are trained on
    auto few = *read_dataset_file(folder.path / "patients.csv", options);
    REQUIRE(prepare_examples(few, options, 7));
    CHECK_FALSE(few.test);
}

TEST_CASE("the example of the documentation reads") {
    const auto file = read_dataset_file(CAUSEWAY_SOURCE_ROOT "/docs/examples/patients.toml", {});
    REQUIRE(file);
    CHECK(file->train.size() == 18);
    CHECK(file->test->size() == 6);
    CHECK(file->train.shape == std::vector<std::int64_t>{4});
}

}  // namespace
}  // namespace causeway
