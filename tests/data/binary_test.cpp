// IDX, NPY and gzip: declared sizes are believed only as far as there are bytes.
#include <catch2/catch.hpp>

#include "data/gzip.h"
#include "data/idx.h"
#include "data/npy.h"
#include "samples.h"

namespace causeway {
namespace {

Result<Dataset> parse_images(ByteView images, ByteView labels, const DataOptions& options = {}) {
    return parse_idx({images, "images", labels, "labels"}, options, {});
}

Result<Dataset> parse_array(ByteView features, ByteView labels = {}, const DataOptions& options = {}) {
    return parse_npy({features, "features.npy", labels, "labels.npy"}, options, {});
}

void check_refusal(const Result<Dataset>& dataset, std::string_view code, std::string_view what) {
    CAPTURE(code, what);
    REQUIRE_FALSE(dataset);
    CHECK(dataset.error().code == code);
    CHECK_THAT(dataset.error().message, Catch::Contains(std::string(what)));
}

const Bytes good_labels = idx_bytes(0x08, {3}, byte_values(3, 3));

}  // namespace

TEST_CASE("IDX images and labels are read in every element type", "[data][idx]") {
    const auto dataset = parse_images(idx_bytes(0x08, {3, 2, 2}, byte_values(12, 256)), good_labels);
    REQUIRE(dataset);
    CHECK(dataset->shape == std::vector<std::int64_t>{2, 2});
    CHECK(dataset->features == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(dataset->labels == std::vector<std::uint32_t>{0, 1, 2});
    // -2 in each signed type and 1.5 in each real one, big-endian.
    const std::vector<std::pair<unsigned, std::string>> minus_two{
        {0x09, "fe"}, {0x0B, "fffe"}, {0x0C, "fffffffe"}, {0x0D, "c0000000"}, {0x0E, "c000000000000000"}};
    for (const auto& [type, hex] : minus_two) {
        CAPTURE(type);
        const auto one = parse_images(idx_bytes(type, {1, 1}, *from_hex(hex)), idx_bytes(0x08, {1}, byte_values(1, 2)));
        REQUIRE(one);
        CHECK(one->features == std::vector<float>{-2});
    }
}

TEST_CASE("damaged IDX files are refused", "[data][idx]") {
    const auto values = byte_values(12, 256);
    check_refusal(parse_images(to_bytes("PNG..."), good_labels), "bad_magic", "images: not an IDX file");
    check_refusal(parse_images(idx_bytes(0x0A, {3, 4}, values), good_labels), "bad_magic", "images");
    check_refusal(parse_images(ByteView(idx_bytes(0x08, {3, 4}, {})).first(7), good_labels), "truncated", "header");
    check_refusal(parse_images(idx_bytes(0x08, {3, 5}, values), good_labels), "truncated", "ends in row 3");
    check_refusal(parse_images(idx_bytes(0x08, {3, 3}, values), good_labels), "trailing_bytes", "3 bytes follow");
    check_refusal(parse_images(idx_bytes(0x08, {0, 4}, {}), good_labels), "bad_size", "images");
    check_refusal(parse_images(idx_bytes(0x08, {1u << 31, 1u << 31, 2}, values), good_labels), "bad_size",
                  "no array has this size");
    check_refusal(parse_images(idx_bytes(0x08, {1u << 30, 1u << 30}, values), good_labels), "too_large", "limit");
    check_refusal(parse_images(idx_bytes(0x0D, {1, 1}, *from_hex("7fc00000")), good_labels), "count_mismatch",
                  "labels");
}

TEST_CASE("IDX labels are one whole number from 0 for each image", "[data][idx]") {
    const auto images = idx_bytes(0x08, {3, 4}, byte_values(12, 256));
    check_refusal(parse_images(images, idx_bytes(0x08, {4}, byte_values(4, 3))), "count_mismatch", "4 labels for 3");
    check_refusal(parse_images(images, idx_bytes(0x08, {3, 2}, byte_values(6, 3))), "count_mismatch", "3x2");
    check_refusal(parse_images(images, idx_bytes(0x09, {3}, *from_hex("0001ff"))), "bad_label", "labels, row 3");
    check_refusal(parse_images(images, good_labels, {"last", {}, {}}), "no_such_column", "leave out `label`");
    const auto nan = idx_bytes(0x0D, {3, 1}, *from_hex("000000007fc0000000000000"));
    check_refusal(parse_images(nan, good_labels), "not_finite", "images, row 2, column 1");
}

TEST_CASE("NPY arrays are read in every element type and both byte orders", "[data][npy]") {
    const std::vector<std::pair<std::string, std::string>> minus_two{
        {"<f4", "000000c0"}, {">f4", "c0000000"}, {"<f8", "00000000000000c0"}, {"|i1", "fe"},
        {"<i2", "feff"},     {">i4", "fffffffe"}, {"<i8", "feffffffffffffff"}};
    for (const auto& [type, hex] : minus_two) {
        CAPTURE(type);
        const auto one = parse_array(npy_bytes(npy_header(type, "(1,)"), *from_hex(hex)));
        REQUIRE(one);
        CHECK(one->features == std::vector<float>{-2});
    }
    const auto bools = parse_array(npy_bytes(npy_header("|b1", "(2, 1)"), *from_hex("0001")));
    CHECK(bools->features == std::vector<float>{0, 1});
    const auto big = parse_array(npy_array<std::uint64_t>("<u8", "(1,)", {1ull << 63}));
    CHECK(big->features == std::vector<float>{9223372036854775808.0f});
}

TEST_CASE("NPY labels come from a column or from the file beside", "[data][npy]") {
    const auto table = npy_array<double>("<f8", "(2, 3)", {1, 2, 0, 3, 4, 5});
    const auto last = parse_array(table, {}, {"last", {}, {}});
    REQUIRE(last);
    CHECK(last->features == std::vector<float>{1, 2, 3, 4});
    CHECK(last->labels == std::vector<std::uint32_t>{0, 5});
    const auto middle = parse_array(table, {}, {"1", {}, {}});
    CHECK(middle->features == std::vector<float>{1, 0, 3, 5});
    const auto beside = parse_array(table, npy_array<std::int64_t>("<i8", "(2,)", {7, 3}));
    REQUIRE(beside);
    CHECK(beside->labels == std::vector<std::uint32_t>{7, 3});
    CHECK(beside->classes == 8);
    CHECK_FALSE(parse_array(table)->labelled());
    check_refusal(parse_array(npy_array<float>("<f4", "(2,)", {1, 2}), {}, {"last", {}, {}}), "no_such_column",
                  "rank 1");
    check_refusal(parse_array(table, npy_array<double>("<f8", "(2,)", {0.5, 1})), "bad_label", "labels.npy, row 1");
    check_refusal(parse_array(table, npy_array<double>("<f8", "(1,)", {1})), "count_mismatch", "1 labels for 2");
}

TEST_CASE("damaged NPY files are refused", "[data][npy]") {
    const Bytes four(16);
    check_refusal(parse_array(to_bytes("hello")), "bad_magic", "features.npy");
    check_refusal(parse_array(to_bytes("\x93NUMPY\x01")), "truncated", "features.npy");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(5,)"), four)), "truncated", "ends in row 5");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(3,)"), four)), "trailing_bytes", "4 bytes follow");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(1152921504606846976,)"), four)), "too_large", "limit");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(4294967296, 4294967296)"), four)), "bad_size", "no array");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(99999999999999999999,)"), four)), "bad_header", "shape");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(-4,)"), four)), "bad_header", "shape");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "()"), four)), "bad_header", "shape");
    check_refusal(parse_array(npy_bytes(npy_header("<f4", "(0, 4)"), {})), "bad_size", "no array");
    check_refusal(parse_array(npy_bytes(npy_header("<c8", "(2,)"), four)), "element_type", "astype");
    check_refusal(parse_array(npy_bytes(npy_header("|O", "(2,)"), four)), "element_type", "astype");
    check_refusal(parse_array(npy_bytes("{'descr': '<f4'}", four)), "bad_header", "must have");
    check_refusal(parse_array(npy_bytes("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,), }", four)),
                  "bad_header", "True or False");
    check_refusal(parse_array(npy_array<float>("<f4", "(2, 2)", {1, 2, 3, NAN})), "not_finite", "row 2, column 2");
    check_refusal(parse_array(npy_array<double>("<f8", "(1, 1)", {1e39})), "not_finite", "row 1, column 1");
}

TEST_CASE("gzip gives back what it took, with equal bytes each time", "[data][gzip]") {
    for (const std::size_t size : {0, 1, 1000, 300'000, 3'000'000}) {
        const auto bytes = byte_values(size, 251);
        const auto packed = gzip(bytes);
        CHECK(packed == gzip(bytes));
        CHECK(gunzip(packed, 4'000'000) == bytes);
    }
    auto twice = gzip(as_bytes("ab"));
    const auto second = gzip(as_bytes("cd"));
    twice.insert(twice.end(), second.begin(), second.end());
    CHECK(gunzip(twice, 100) == to_bytes("abcd"));
}

TEST_CASE("a gzip bomb stops at the limit, damage is damage", "[data][gzip]") {
    const auto packed = gzip(Bytes(10'000'000));
    const auto limited = gunzip(packed, 1'000'000);
    REQUIRE_FALSE(limited);
    CHECK(limited.error().kind == ErrorKind::overloaded);
    const auto bomb = gzip(Bytes(100u << 20));
    const auto refused = gunzip(bomb, std::uint64_t{1} << 40);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == "inflated_too_large");
    for (std::size_t size = 2; size < packed.size(); size += 101) {
        const auto cut = gunzip(ByteView(packed).first(size), 100'000'000);
        REQUIRE_FALSE(cut);
        CHECK(cut.error().code == "bad_gzip");
    }
    auto trailing = gzip(as_bytes("ab"));
    trailing.push_back(std::byte{7});
    CHECK_FALSE(gunzip(trailing, 100));
}

TEST_CASE("an array stored by columns, of halves or big-endian, is the array that numpy reads", "[unit][npy]") {
    const auto values = [](const Result<Dataset>& read) {
        INFO((read ? "" : read.error().message));
        REQUIRE(read);
        return read->features;
    };
    const std::vector<float> rows{1, 2, 3, 4, 5, 6};
    const std::vector<float> columns{1, 4, 2, 5, 3, 6};
    const auto header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    const auto read = parse_npy({npy_bytes(header, std::as_bytes(std::span(columns))), "f", {}, ""}, {}, {});
    CHECK(values(read) == rows);
    CHECK(read->shape == std::vector<std::int64_t>{3});
    std::vector<float> cube;  // 2x3x2 by columns: the element (i, j, k) is 100 i + 10 j + k
    for (int k = 0; k < 2; ++k) {
        for (int j = 0; j < 3; ++j) {
            for (int i = 0; i < 2; ++i) {
                cube.push_back(static_cast<float>(100 * i + 10 * j + k));
            }
        }
    }
    const auto deep = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 2), }\n";
    CHECK(values(parse_npy({npy_bytes(deep, std::as_bytes(std::span(cube))), "f", {}, ""}, {}, {})) ==
          std::vector<float>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121});
    const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001, 0x7bff};  // 1, -2, 2^-24, 65504
    CHECK(values(parse_npy({npy_array("<f2", "(4,)", halves), "f", {}, ""}, {}, {})) ==
          std::vector<float>{1, -2, std::ldexp(1.0f, -24), 65504});
    const std::vector<std::uint8_t> big{0x3c, 0x00, 0xc0, 0x00};
    CHECK(values(parse_npy({npy_array(">f2", "(2,)", big), "f", {}, ""}, {}, {})) == std::vector<float>{1, -2});
    const std::vector<std::uint16_t> infinite{0x7c00};
    CHECK(parse_npy({npy_array("<f2", "(1,)", infinite), "f", {}, ""}, {}, {}).error().code == "not_finite");
}

TEST_CASE("gzip members and the zeros behind them are one text, and other bytes are damage", "[unit][gzip]") {
    const auto one = gzip(as_bytes("1,2,0\n")), two = gzip(as_bytes("3,4,1\n"));
    Bytes padded = one;
    padded.resize(padded.size() + 512);
    padded.insert(padded.end(), two.begin(), two.end());
    padded.resize(padded.size() + 1024);
    const auto text = gunzip(padded, 1 << 20);
    REQUIRE(text);
    CHECK(as_text(*text) == "1,2,0\n3,4,1\n");
    padded.push_back(std::byte{7});
    CHECK(gunzip(padded, 1 << 20).error().code == "bad_gzip");
    Bytes zeros(16);
    CHECK(gunzip(zeros, 1 << 20).error().code == "bad_gzip");
}

}  // namespace causeway
