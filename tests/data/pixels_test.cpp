// Pixels are the numbers in the file: the rules of data/pixels.h over formats and depths, compared with what Pillow
// reads (tests/golden/images, made by its make.py), and what else lies in folders of images.
#include <algorithm>

#include "common/json.h"
#include "data/leftovers.h"
#include "tests/data/image_files.h"
#include "tests/data/samples.h"

namespace causeway {
namespace {

using Catch::Contains;

const std::filesystem::path golden = std::filesystem::path(CAUSEWAY_SOURCE_ROOT) / "tests/golden/images";

Bytes file_bytes(const std::filesystem::path& path) {
    auto bytes = read_file(path, 1 << 22);
    REQUIRE(bytes);
    return *std::move(bytes);
}

Result<Image> decode(const std::string& name, std::int64_t channels) {
    const auto bytes = file_bytes(golden / name);
    return name.ends_with(".png") ? decode_png(bytes, channels) : decode_jpeg(bytes, channels);
}

std::vector<float> numbers(const Json& list) {
    std::vector<float> values;
    for (const auto& value : list.items()) {
        values.push_back(static_cast<float>(value.number(-1)));
    }
    return values;
}

double largest_difference(const std::vector<float>& one, const std::vector<float>& other) {
    REQUIRE(one.size() == other.size());
    double most = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        most = std::max(most, std::abs(double{1} * one[i] - double{1} * other[i]));
    }
    return most;
}

}  // namespace

TEST_CASE("every image of the set has the numbers that Pillow reads, in its own and in other channels",
          "[golden][images]") {
    const auto figures = Json::parse(as_text(file_bytes(golden / "figures.json")), 1 << 22);
    REQUIRE(figures);
    std::size_t images = 0;
    for (const auto& [name, figure] : figures->fields()) {
        CAPTURE(name);
        const double bound = figure["bound"].number(0);
        for (const auto& [key, channels] : {std::pair("own", 0), std::pair("grey", 1), std::pair("colour", 3)}) {
            CAPTURE(key);
            const auto image = decode(name, channels);
            INFO((image ? "" : image.error().message));
            REQUIRE(image);
            CHECK(image->height == figure["height"].integer(0));
            CHECK(image->width == figure["width"].integer(0));
            CHECK(largest_difference(image->values, numbers(figure[key])) <= bound);
        }
        CHECK(decode(name, 0)->transparent == figure["transparent"].boolean(false));
        CHECK(decode(name, 0)->turned == figure["turned"].boolean(false));
        ++images;
    }
    CHECK(images >= 40);
}

TEST_CASE("kinds of JPEG that are not read are refused by their name", "[golden][images]") {
    for (const char* name : {"refused-cmyk.jpg", "refused-ycck.jpg"}) {
        const auto image = decode(name, 0);
        REQUIRE_FALSE(image);
        CHECK(image.error().kind == ErrorKind::unsupported);
        CHECK_THAT(image.error().message, Contains("CMYK"));
    }
    auto deep = jpeg_bytes(gradient_image(8, 8, 1));
    const auto frame = std::ranges::search(deep, std::vector{std::byte{0xff}, std::byte{0xc0}});
    REQUIRE_FALSE(frame.empty());
    frame.begin()[4] = std::byte{12};  // bits of a sample
    CHECK(decode_jpeg(deep, 0).error().code == "image_kind");
}

TEST_CASE("what systems leave in folders is no example and no class, and is counted", "[unit][images]") {
    const TempFolder root;
    for (const char* folder :
         {"pets/cat", "pets/dog", "pets/__MACOSX/cat", "pets/bird", "pets/.git", "pets/only", "pets/dog/more"}) {
        std::filesystem::create_directories(root / folder);
    }
    const auto png = png_bytes(gradient_image(3, 4, 1));
    for (const char* image :
         {"pets/cat/0000.png", "pets/dog/0000.png", "pets/__MACOSX/cat/0000.png", "pets/.git/x.png"}) {
        root.put(image, png);
    }
    for (const char* other : {"pets/cat/._0000.png", "pets/cat/.DS_Store", "pets/cat/Thumbs.db", "pets/dog/desktop.ini",
                              "pets/dog/~$list.xlsx", "pets/dog/notes.txt", "pets/only/readme.md", "pets/.DS_Store"}) {
        root.put(other, "no image");
    }
    const auto read = read_dataset(root / "pets", {});
    INFO((read ? "" : read.error().message));
    REQUIRE(read);
    CHECK(read->class_names == std::vector<std::string>{"cat", "dog"});
    CHECK(read->labels == std::vector<std::uint32_t>{0, 1});
    CHECK(read->skipped == 12);  // 5 beside the classes, 3 with the cat, 4 with the dog
    REQUIRE(read->notes.size() == 1);
    CHECK_THAT(read->notes[0], Contains("12 entries are no examples and are skipped: "));
    root.put("pets/dog/scan.TIF", "II*");
    CHECK_THAT(read_dataset(root / "pets", {}).error().message, Contains("dog/scan.TIF") && Contains("PNG"));
}

TEST_CASE("leftovers beside a table or its parts are none of them", "[unit][reader]") {
    for (const char* name : {"._a.csv", ".DS_Store", "__MACOSX", "__macosx", "thumbs.db", "Desktop.ini", "~$a.csv",
                             ".~lock.a.csv#", "@eaDir", "$RECYCLE.BIN"}) {
        CHECK(is_leftover(name));
    }
    for (const char* name : {"a.csv", "part-1.csv.gz", "_a.csv", "thumbs", "MACOSX", "~a.csv"}) {
        CHECK_FALSE(is_leftover(name));
    }
    const TempFolder folder;
    folder.put("a.csv", "1,2,0\n3,4,1\n");
    folder.put("._a.csv", "\0\5\26\7");
    folder.put("~$a.csv", "lock");
    const auto read = read_dataset(folder.path(), {.label = "last"});
    REQUIRE(read);
    CHECK(read->size() == 2);
    CHECK(read->skipped == 2);
    CHECK_THAT(read->notes.back(), Contains("2 entries are no examples"));
}

TEST_CASE("folders and classes are one name however it is written, and two look-alikes are refused", "[unit][images]") {
    const TempFolder root;
    const auto png = png_bytes(gradient_image(3, 4, 1));
    const std::string apart = "pets/e\xCC\x81t\xC3\xA9";  // as a Mac writes it
    std::filesystem::create_directories(root / apart);
    std::filesystem::create_directories(root / "pets/hiver");
    root.put(apart + "/a.png", png);
    root.put("pets/hiver/a.png", png);
    DataOptions options;
    options.file.class_names = {"hiver", "\xC3\xA9t\xC3\xA9"};
    CHECK(read_dataset(root / "pets", options)->labels == std::vector<std::uint32_t>{0, 1});
    CHECK(read_dataset(root / "pets", {})->class_names == std::vector<std::string>{"hiver", "\xC3\xA9t\xC3\xA9"});
    std::filesystem::create_directories(root / "pets/Hiver");
    root.put("pets/Hiver/a.png", png);
    CHECK(read_dataset(root / "pets", {}).error().code == "ambiguous_name");
}

TEST_CASE("grey and colour in one set are refused until a shape says which", "[unit][images]") {
    const TempFolder root;
    std::filesystem::create_directories(root / "pets/cat");
    root.put("pets/cat/a.png", png_bytes(gradient_image(3, 4, 1)));
    root.put("pets/cat/b.png", png_bytes(gradient_image(3, 4, 3)));
    const auto mixed = read_dataset(root / "pets", {});
    REQUIRE_FALSE(mixed);
    CHECK(mixed.error().code == "mixed_channels");
    CHECK(read_dataset(root / "pets", {.shape = {3, 4, 1}})->size() == 2);
    CHECK(read_dataset(root / "pets", {.shape = {3, 4, 3}})->size() == 2);
}

}  // namespace causeway
