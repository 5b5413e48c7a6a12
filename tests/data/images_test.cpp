// Folders of images: what is read, in which order, and every way in which a folder is refused.
#include "data/images.h"

#include "tests/data/image_files.h"
#include "tests/data/samples.h"

namespace causeway {
namespace {

using Catch::Contains;

std::filesystem::path folder(const TempFolder& root, std::string_view name) {
    std::filesystem::create_directories(root / name);
    return root / name;
}

/// Two cats and a dog, in both formats.
void put_pets(const TempFolder& root) {
    folder(root, "pets/cat");
    folder(root, "pets/dog");
    root.put("pets/cat/b.PNG", png_bytes(gradient_image(6, 5, 3, 1)));
    root.put("pets/cat/a.png", png_bytes(gradient_image(6, 5, 3, 2)));
    root.put("pets/cat/notes.txt", "not an image");
    root.put("pets/dog/x.jpeg", jpeg_bytes(gradient_image(6, 5, 3, 3)));
}

std::string image_refusal(const TempFolder& root, const DataOptions& options = {}) {
    const auto read = read_dataset(root / "pets", options);
    REQUIRE_FALSE(read);
    return read.error().code + ": " + read.error().message;
}

}  // namespace

TEST_CASE("a folder for each class is a dataset, classes and files in the order of their names", "[unit][images]") {
    const TempFolder root;
    put_pets(root);
    const auto read = read_dataset(root / "pets", {});
    REQUIRE(read);
    CHECK(read->name == "pets");
    CHECK(read->reader == "images");
    CHECK(read->shape == std::vector<std::int64_t>{6, 5, 3});
    CHECK(read->labels == std::vector<std::uint32_t>{0, 0, 1});
    CHECK(read->class_names == std::vector<std::string>{"cat", "dog"});
    const auto first = gradient_image(6, 5, 3, 2);  // a.png
    for (std::size_t i = 0; i < first.values.size(); ++i) {
        REQUIRE(read->features[i] == static_cast<float>(first.values[i]));
    }
    DataOptions by_name;
    by_name.file.reader = "images";
    by_name.scale = *parse_scale("0..255 -> 0..1");
    const auto scaled = read_dataset(root / "pets", by_name);
    REQUIRE(scaled);
    CHECK(std::ranges::max(scaled->features) <= 1.0f);
}

TEST_CASE("JPEG and PNG give the image that was written, JPEG to its own loss", "[unit][images]") {
    const auto image = gradient_image(16, 24, 3);
    const auto png = decode_png(png_bytes(image), 0);
    REQUIRE(png);
    CHECK(png->values == image.floats());
    for (const bool progressive : {false, true}) {
        const auto jpeg = decode_jpeg(jpeg_bytes(image, progressive), 0);
        REQUIRE(jpeg);
        CHECK((jpeg->height == 16 && jpeg->width == 24 && jpeg->channels == 3));
        double apart = 0;
        for (std::size_t i = 0; i < image.values.size(); ++i) {
            apart += std::abs(double{1} * jpeg->values[i] - double{1} * image.values[i]);
        }
        CHECK(apart / static_cast<double>(image.values.size()) < 12);  // chroma is stored at half the size
    }
    const auto grey = gradient_image(7, 3, 1);
    CHECK(decode_png(png_bytes(grey), 0)->channels == 1);
    CHECK(decode_png(png_bytes(grey), 3)->values.size() == 3 * grey.values.size());
    CHECK(decode_jpeg(jpeg_bytes(grey), 0)->channels == 1);
    CHECK(decode_jpeg(jpeg_bytes(image), 1)->channels == 1);
}

TEST_CASE("a damaged image is refused with its file, at whatever byte it ends", "[unit][images]") {
    const auto image = gradient_image(16, 16, 3);
    const auto png = png_bytes(image);
    const auto jpeg = jpeg_bytes(image);
    for (std::size_t size = 0; size + 24 < png.size(); size += 7) {  // what follows the pixels is not needed
        REQUIRE_FALSE(decode_png(ByteView(png).first(size), 0));
    }
    for (std::size_t size = 0; size + 2 < jpeg.size(); size += 7) {
        const auto cut = decode_jpeg(ByteView(jpeg).first(size), 0);
        REQUIRE_FALSE(cut);
        REQUIRE(cut.error().code == "bad_image");
    }
    const TempFolder root;
    put_pets(root);
    root.put("pets/dog/y.jpg", ByteView(jpeg).first(jpeg.size() / 2));
    CHECK_THAT(image_refusal(root), Contains("bad_image") && Contains("dog/y.jpg"));
}

TEST_CASE("what cannot be one dataset says so: sizes, classes, empty folders, labels", "[unit][images]") {
    const TempFolder root;
    put_pets(root);
    CHECK_THAT(image_refusal(root, {.label = "last"}), Contains("bad_label") && Contains("folder"));
    CHECK_THAT(image_refusal(root, {.shape = {6, 5, 2}}), Contains("1 or 3 channels"));
    CHECK_THAT(image_refusal(root, {.shape = {6, 6, 3}}), Contains("image_size") && Contains("6x5"));
    DataOptions classes;
    classes.file.class_names = {"cat", "dgo"};
    CHECK_THAT(image_refusal(root, classes), Contains("did you mean \"dgo\"?"));
    classes.file.class_names = {"bird", "dog", "cat"};  // a class that this node lacks keeps its number
    const auto named = read_dataset(root / "pets", classes);
    REQUIRE(named);
    CHECK(named->classes == 3);
    CHECK(named->labels == std::vector<std::uint32_t>{2, 2, 1});
    ReadLimits few;
    few.values = 200;
    CHECK(read_dataset(root / "pets", {}, few).error().code == "too_large");
    root.put("pets/dog/z.png", png_bytes(gradient_image(5, 5, 3)));
    CHECK_THAT(image_refusal(root), Contains("image_size") && Contains("dog/z.png"));
    const TempFolder empty;
    folder(empty, "pets/cat");
    CHECK_THAT(image_refusal(empty), Contains("no_dataset"));
}

TEST_CASE("an image that would take too much memory is refused by its header", "[unit][images]") {
    auto png = png_bytes(gradient_image(4, 4, 1));
    png[16] = std::byte{0x7f};  // the width's highest byte, in the header; its check is not looked at before
    const auto huge = decode_png(png, 0);
    REQUIRE_FALSE(huge);
    auto jpeg = jpeg_bytes(gradient_image(8, 8, 1));
    const auto frame = std::ranges::search(jpeg, std::vector{std::byte{0xff}, std::byte{0xc0}});
    REQUIRE_FALSE(frame.empty());
    frame.begin()[5] = frame.begin()[7] = std::byte{0xf0};
    CHECK(decode_jpeg(jpeg, 0).error().code == "too_large");
}

}  // namespace causeway
