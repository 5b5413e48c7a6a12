// NPZ archives, taken apart again by the format's own rules.
#include "data/npz.h"

#include <catch2/catch.hpp>

#include "data/gzip.h"
#include "data/npy.h"

namespace causeway {
namespace {

template <class T>
T at(ByteView bytes, std::size_t offset) {
    ByteReader reader(bytes.subspan(offset));
    return *reader.get<T>();
}

/// The data of the entry whose local header is at `offset`.
ByteView entry_data(ByteView zip, std::size_t offset) {
    return zip.subspan(offset + 30 + at<std::uint16_t>(zip, offset + 26), at<std::uint32_t>(zip, offset + 22));
}

TEST_CASE("the checksum is the published one", "[unit]") {
    CHECK(zip_crc32(as_bytes("123456789")) == 0xcbf43926);
    CHECK(zip_crc32({}) == 0);
}

TEST_CASE("each array is an NPY file that the directory at the end finds, with its checksum", "[unit]") {
    const std::vector<float> weight{1, -2, 3.5F, 4, 0, 6};
    const std::vector<float> bias{7, 8};
    const std::vector<NamedArray> arrays{{"dense1.weight", {2, 3}, weight}, {"dense1.bias", {2}, bias}};
    const auto written = encode_npz(arrays);
    REQUIRE(written);
    const ByteView zip = *written;
    const auto end = zip.size() - 22;
    REQUIRE(at<std::uint32_t>(zip, end) == 0x06054b50);
    CHECK(at<std::uint16_t>(zip, end + 10) == 2);
    std::size_t central = at<std::uint32_t>(zip, end + 16);
    CHECK(central + at<std::uint32_t>(zip, end + 12) == end);
    for (const auto& array : arrays) {
        INFO(array.name);
        REQUIRE(at<std::uint32_t>(zip, central) == 0x02014b50);
        const auto local = at<std::uint32_t>(zip, central + 42);
        REQUIRE(at<std::uint32_t>(zip, local) == 0x04034b50);
        const auto name_bytes = at<std::uint16_t>(zip, central + 28);
        CHECK(as_text(zip.subspan(central + 46, name_bytes)) == array.name + ".npy");
        const auto npy = entry_data(zip, local);
        CHECK(at<std::uint32_t>(zip, central + 16) == zip_crc32(npy));
        const auto read = parse_npy({.features = npy, .features_file = "a.npy"}, {}, {});
        REQUIRE(read);
        CHECK(std::ranges::equal(read->features, array.values));
        central += 46 + name_bytes;
    }
}

TEST_CASE("values start on a multiple of 64 bytes within an NPY file, and a scalar's shape is an empty tuple",
          "[unit]") {
    const std::vector<float> one{1};
    const auto zip = *encode_npz(std::vector<NamedArray>{{"x", {}, one}});
    const auto npy = entry_data(zip, 0);
    CHECK((npy.size() - 4) % 64 == 0);
    CHECK(as_text(npy).find("'shape': (), }") != std::string_view::npos);
}

TEST_CASE("equal arrays give equal archives, and what does not fit is refused", "[unit]") {
    const std::vector<float> values{1, 2};
    const std::vector<NamedArray> arrays{{"x", {2}, values}};
    CHECK(*encode_npz(arrays) == *encode_npz(arrays));
    const std::vector<NamedArray> many(0xffff, {"x", {2}, values});
    const auto refused = encode_npz(many);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "too_large_for_npz");
}

TEST_CASE("an array that numpy would not read is refused by its name's length and its dimensions", "[unit]") {
    const std::vector<float> one{1};
    const auto refusal = [&](std::size_t name, std::size_t rank) {
        const NamedArray array{std::string(name, 'x'), std::vector<std::int64_t>(rank, 1), one};
        const auto zip = encode_npz({&array, 1});
        return zip ? "" : zip.error().code;
    };
    CHECK(refusal(1024, 32) == "");
    CHECK(refusal(1025, 1) == "array_not_for_npz");
    CHECK(refusal(1, 33) == "array_not_for_npz");
}

}  // namespace
}  // namespace causeway
