// Ten thousand damaged files per format: each gives a sound dataset or a named error, never a crash or a huge
// allocation (the sanitizer build runs the same).
#include <cmath>

#include <catch2/catch.hpp>

#include "data/csv.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/npy.h"
#include "samples.h"

namespace causeway {
namespace {

constexpr int files = 10'000;

void check_outcome(const Result<Dataset>& dataset) {
    REQUIRE((dataset ? is_sound(*dataset) : !dataset.error().code.empty() && !dataset.error().message.empty()));
}

}  // namespace

TEST_CASE("damaged CSV files are datasets or errors", "[data][fuzz]") {
    const std::vector<Bytes> starts{to_bytes("# causeway label=2 classes=3 shape=2x1\n1,2.5,0\n-3,4e2,2\n"),
                                    to_bytes("\"a,b\",c,last\r\n1,2,0\r\n3,4,1\r\n")};
    std::mt19937 random(21);
    for (int i = 0; i < files; ++i) {
        CAPTURE(i);
        const auto bytes = mutated(starts[i % starts.size()], random);
        check_outcome(parse_csv(bytes, "set.csv", {i % 3 == 0 ? "last" : "", {}, {}}, {}));
    }
}

TEST_CASE("damaged IDX files are datasets or errors", "[data][fuzz]") {
    const auto images = idx_bytes(0x08, {3, 2, 2}, byte_values(12, 256));
    const auto labels = idx_bytes(0x08, {3}, byte_values(3, 3));
    std::mt19937 random(22);
    for (int i = 0; i < files; ++i) {
        CAPTURE(i);
        const auto wrong = mutated(i % 4 == 0 ? labels : images, random);
        check_outcome(
            parse_idx(i % 4 == 0 ? IdxFiles{images, "i", wrong, "l"} : IdxFiles{wrong, "i", labels, "l"}, {}, {}));
    }
}

TEST_CASE("damaged NPY files are datasets or errors", "[data][fuzz]") {
    const auto features = npy_array<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
    const auto labels = npy_array<std::int64_t>("<i8", "(2,)", {0, 1});
    std::mt19937 random(23);
    for (int i = 0; i < files; ++i) {
        CAPTURE(i);
        const auto wrong = mutated(i % 4 == 0 ? labels : features, random);
        const DataOptions options{i % 3 == 0 ? "last" : "", {}, {}};
        check_outcome(parse_npy(i % 4 == 0 ? NpyFiles{features, "f", wrong, "l"} : NpyFiles{wrong, "f", labels, "l"},
                                options, {}));
    }
}

TEST_CASE("damaged gzip files unpack or are errors", "[data][fuzz]") {
    const auto packed = gzip(as_bytes("1,2,0\n3,4,1\n5,6,0\n7,8,1\n"));
    std::mt19937 random(24);
    for (int i = 0; i < files; ++i) {
        CAPTURE(i);
        const auto bytes = gunzip(mutated(packed, random), 1 << 20);
        REQUIRE((bytes || bytes.error().code == "bad_gzip" || bytes.error().code == "inflated_too_large"));
    }
}

}  // namespace causeway
