// From a path to a dataset: which reader takes it, which files belong together, and shape and scale on top.
#include <cmath>

#include <catch2/catch.hpp>

#include "data/csv.h"
#include "data/gzip.h"
#include "data/inspect.h"
#include "data/reader.h"
#include "samples.h"

namespace causeway {
namespace {

const Bytes idx_images = idx_bytes(0x08, {4, 2, 2}, byte_values(16, 256));
const Bytes labels = idx_bytes(0x08, {4}, byte_values(4, 2));

void check_error(const Result<Dataset>& dataset, ErrorKind kind, std::string_view code) {
    CAPTURE(code);
    REQUIRE_FALSE(dataset);
    CHECK(dataset.error().kind == kind);
    CHECK(dataset.error().code == code);
}

}  // namespace

TEST_CASE("a path leads to its reader by name or by content", "[data][reader]") {
    const TempFolder folder;
    CHECK(read_dataset(folder.put("a.csv", "1,2,0\n"), {"last", {}, {}})->reader == "csv");
    CHECK(read_dataset(folder.put("a.csv.gz", gzip(as_bytes("1,2,0\n"))), {})->reader == "csv");
    CHECK(read_dataset(folder.put("numbers", "1,2,0\n"), {})->reader == "csv");
    CHECK(read_dataset(folder.put("b.npy", npy_array<float>("<f4", "(1,)", {1})), {})->reader == "npy");
    CHECK(read_dataset(folder.put("array", npy_array<float>("<f4", "(1,)", {1})), {})->reader == "npy");
    CHECK(read_dataset(folder / "a.csv", {})->name == "a");
    check_error(read_dataset(folder / "missing.csv", {}), ErrorKind::not_found, "no_such_file");
    check_error(read_dataset(folder.put("x.npy", "1,2\n"), {}), ErrorKind::corrupt, "bad_magic");
    check_error(read_dataset(folder.put("x-idx3-ubyte", "1,2\n"), {}), ErrorKind::not_found, "no_labels");
    check_error(read_dataset(folder.put("empty.csv", ""), {}), ErrorKind::corrupt, "empty");
    check_error(read_dataset(folder.put("x.bin", *from_hex("ff00ff00ff")), {}), ErrorKind::unsupported,
                "unknown_format");
    check_error(read_dataset(folder.put("x.csv.gz", ByteView(gzip(as_bytes("1,2\n"))).first(12)), {}),
                ErrorKind::corrupt, "bad_gzip");
}

TEST_CASE("IDX images find their labels, packed or not, alone or in a folder", "[data][reader]") {
    for (const bool packed : {false, true}) {
        const TempFolder folder;
        const std::string tail = packed ? ".gz" : "";
        const auto path = folder.put("t10k-images-idx3-ubyte" + tail, packed ? gzip(idx_images) : idx_images);
        check_error(read_dataset(path, {}), ErrorKind::not_found, "no_labels");
        folder.put("t10k-labels-idx1-ubyte", labels);
        const auto dataset = read_dataset(path, {});
        REQUIRE(dataset);
        CHECK(dataset->labels == std::vector<std::uint32_t>{0, 1, 0, 1});
        const auto whole = read_dataset(folder.path(), {"", {2, 2, 1}, Scale{{0, 255}, {0, 1}}});
        REQUIRE(whole);
        CHECK(whole->shape == std::vector<std::int64_t>{2, 2, 1});
        CHECK(whole->features[15] == static_cast<float>(15.0 / 255));
        folder.put("train-images-idx3-ubyte", idx_images);
        check_error(read_dataset(folder.path(), {}), ErrorKind::invalid, "several_datasets");
    }
}

TEST_CASE("a folder of features.npy and labels.npy is one dataset", "[data][reader]") {
    const TempFolder folder;
    folder.put("features.npy", npy_array<double>("<f8", "(2, 2, 1)", {1, 2, 3, 4}));
    folder.put("labels.npy", npy_array<std::int64_t>("<i8", "(2,)", {1, 0}));
    const auto dataset = read_dataset(folder.path(), {});
    REQUIRE(dataset);
    CHECK(dataset->shape == std::vector<std::int64_t>{2, 1});
    CHECK(dataset->labels == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("an empty folder is no dataset", "[data][reader]") {
    const TempFolder folder;
    check_error(read_dataset(folder.path(), {}), ErrorKind::not_found, "no_dataset");
}

TEST_CASE("a shape reorders nothing and must hold as many values", "[data][reader]") {
    const TempFolder folder;
    const auto path = folder.put("a.csv", "1,2,3,4,0\n5,6,7,8,1\n");
    const auto dataset = read_dataset(path, {"last", {2, 2, 1}, {}});
    REQUIRE(dataset);
    CHECK(dataset->features == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    const auto wrong = read_dataset(path, {"", {2, 2, 1}, {}});
    check_error(wrong, ErrorKind::invalid, "shape_mismatch");
    CHECK_THAT(wrong.error().message, Catch::Contains("which column is the label"));
}

TEST_CASE("a scale maps both ends exactly and the rest linearly", "[data][reader]") {
    const TempFolder folder;
    const auto path = folder.put("a.csv", "0,16\n8,4\n");
    CHECK(read_dataset(path, {"", {}, Scale{{0, 16}, {0, 1}}})->features == std::vector<float>{0, 1, 0.5f, 0.25f});
    CHECK(read_dataset(path, {"", {}, Scale{{0, 16}, {1, -1}}})->features == std::vector<float>{1, -1, 0, 0.5f});
    CHECK(read_raw_dataset(path, {"", {}, Scale{{0, 16}, {0, 1}}})->features == std::vector<float>{0, 16, 8, 4});
    check_error(read_dataset(path, {"", {}, Scale{{0, 1e-40}, {0, 1}}}), ErrorKind::invalid, "scale_overflow");
    check_error(read_dataset(path, {"", {}, Scale{{1, 0}, {0, 1}}}), ErrorKind::invalid, "scale");
}

TEST_CASE("limits on files hold", "[data][reader]") {
    const TempFolder folder;
    ReadLimits limits;
    limits.text_bytes = 10;
    check_error(read_dataset(folder.put("a.csv", "1,2,3,4,5,6,7\n"), {}, limits), ErrorKind::overloaded, "too_large");
    check_error(read_dataset(folder.put("b.csv.gz", gzip(as_bytes("1,2,3,4,5,6,7\n"))), {}, limits),
                ErrorKind::overloaded, "inflated_too_large");
    limits = {};
    limits.file_bytes = 10;
    const auto array = npy_array<float>("<f4", "(2, 1)", {1, 2});
    check_error(read_dataset(folder.put("c.npy", array), {}, limits), ErrorKind::overloaded, "file_too_large");
    limits = {};
    limits.inflated_bytes = 10;
    check_error(read_dataset(folder.put("d.npy", gzip(array)), {}, limits), ErrorKind::overloaded,
                "inflated_too_large");
}

TEST_CASE("a table that is read a block at a time is the table that is read at once", "[property][reader]") {
    const TempFolder folder;
    std::string text = "a,b,class\n";
    for (int row = 0; text.size() < 3'000'000; ++row) {  // rows of every length lie across the blocks' ends
        text += fmt::format("{},{:.{}f},{}\n", row, row / 7.0, row % 23, row % 3);
    }
    const DataOptions options{"class", {}, {}};
    const auto at_once = parse_csv(as_bytes(text), "set.csv", options, {});
    REQUIRE(at_once);
    for (const bool packed : {false, true}) {
        const auto path = packed ? folder.put("t.csv.gz", gzip(as_bytes(text))) : folder.put("t.csv", text);
        const auto streamed = read_dataset(path, options);
        REQUIRE(streamed);
        CHECK(dataset_digest(*streamed) == dataset_digest(*at_once));
        CHECK(streamed->features.capacity() < streamed->features.size() * 11 / 10);  // room was guessed, not doubled
    }
    auto bytes = gzip(as_bytes(text));
    bytes.resize(bytes.size() / 2);
    check_error(read_dataset(folder.put("cut.csv.gz", bytes), options), ErrorKind::corrupt, "bad_gzip");
    text.insert(text.size() / 2, "\n1,x,2");
    const auto wrong = read_dataset(folder.put("wrong.csv", text), options);
    check_error(wrong, ErrorKind::corrupt, "ragged");
}

TEST_CASE("the digest is of shape, features and labels, whatever the file was", "[data][reader]") {
    const TempFolder folder;
    const auto csv = read_dataset(folder.put("a.csv", "x,y,class\n1,2,0\n3,4,1\n"), {"class", {}, {}});
    const auto npy =
        read_dataset(folder.put("b.npy", npy_array<float>("<f4", "(2, 3)", {1, 2, 0, 3, 4, 1})), {"last", {}, {}});
    CHECK(dataset_digest(*csv) == dataset_digest(*npy));
    auto other = *csv;
    REQUIRE(reshape(other, {2, 1}));
    CHECK(dataset_digest(other) != dataset_digest(*csv));
    other = *csv;
    other.labels[0] = 1;
    CHECK(dataset_digest(other) != dataset_digest(*csv));
    // Fixed for ever: nodes of different versions compare it.
    CHECK(dataset_digest(*csv).hex() == "0fdc0c869a48de910f635c74c787bc675cbf0b11a1925b03ad6553fb7eedfeb1");
}

TEST_CASE("labels are checked against a model's outputs", "[data][reader]") {
    auto dataset = random_dataset(20, 4, {2}, 1);
    CHECK(require_labels_below(dataset, 4));
    const auto narrow = require_labels_below(dataset, 3);
    REQUIRE_FALSE(narrow);
    CHECK_THAT(narrow.error().message, Catch::Contains("example 4 of 'random' has label 3"));
    dataset.labels.clear();
    dataset.classes = 0;
    CHECK(require_labels_below(dataset, 4).error().code == "no_labels");
}

TEST_CASE("inspect says what there is", "[data][reader]") {
    const TempFolder folder;
    const auto summary = inspect(*read_dataset(folder.put("a.csv", "1,2,0\n3,-4,2\n5,6,2\n"), {"last", {}, {}}));
    CHECK(summary.per_class == std::vector<std::uint64_t>{1, 0, 2});
    CHECK(summary.least == -4);
    CHECK(summary.most == 6);
    CHECK_THAT(to_json(summary).dump(), Catch::StartsWith(R"({"name":"a","reader":"csv","examples":3,"shape":[2],)"
                                                          R"("classes":3,"per_class":[1,0,2],"min":-4)"));
}

}  // namespace causeway
