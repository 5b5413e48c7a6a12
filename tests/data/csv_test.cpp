// CSV: what is read, and that every way of being wrong is refused with its file, row and column.
#include <catch2/catch.hpp>

#include "data/csv.h"
#include "samples.h"

namespace causeway {
namespace {

Result<Dataset> parse_table(std::string_view text, const DataOptions& options = {"last", {}, {}}) {
    return parse_csv(as_bytes(text), "set.csv", options, {});
}

void refuses(std::string_view text, std::string_view code, std::string_view where,
             const DataOptions& options = {"last", {}, {}}) {
    CAPTURE(text);
    const auto dataset = parse_table(text, options);
    REQUIRE_FALSE(dataset);
    CHECK(dataset.error().code == code);
    CHECK_THAT(dataset.error().message, Catch::Contains(std::string(where)));
    CHECK_THAT(dataset.error().message, Catch::Contains("set.csv"));
}

}  // namespace

TEST_CASE("rows of numbers become features and labels", "[data][csv]") {
    const auto dataset = parse_table("1,2.5,0\n-3,1e-2,2\n");
    REQUIRE(dataset);
    CHECK(dataset->features == std::vector<float>{1, 2.5f, -3, 0.01f});
    CHECK(dataset->labels == std::vector<std::uint32_t>{0, 2});
    CHECK(dataset->classes == 3);
    CHECK(dataset->shape == std::vector<std::int64_t>{2});
    CHECK(dataset->size() == 2);
}

TEST_CASE("a header, quotes, spaces, a byte order mark and CRLF change nothing", "[data][csv]") {
    const auto plain = parse_table("1,2,0\n3,4,1\n");
    for (const auto* text :
         {"a,b,class\n1,2,0\n3,4,1\n", "\"a,x\",\"b\"\"\",class\r\n1,2,0\r\n3,4,1", "1, 2 ,0\n 3,4,1\n\n\n",
          "\xEF\xBB\xBF"
          "1,2,0\n3,4,1\n",
          "# a remark\n1,2,0\n3,4,1\n", "+1,\"2\",0\n3,4.0,1.0\n"}) {
        CAPTURE(text);
        const auto dataset = parse_table(text);
        REQUIRE(dataset);
        CHECK(dataset_digest(*dataset) == dataset_digest(*plain));
    }
}

TEST_CASE("the label column is the last, a named or a numbered one", "[data][csv]") {
    const std::string text = "class,x,last\n1,5,6\n0,7,8\n";
    CHECK(parse_table(text, {"class", {}, {}})->labels == std::vector<std::uint32_t>{1, 0});
    CHECK(parse_table(text, {"0", {}, {}})->labels == std::vector<std::uint32_t>{1, 0});
    CHECK(parse_table(text, {"1", {}, {}})->labels == std::vector<std::uint32_t>{5, 7});
    CHECK(parse_table(text, {"last", {}, {}})->labels == std::vector<std::uint32_t>{6, 8});
    const auto unlabelled = parse_table(text, {});
    CHECK_FALSE(unlabelled->labelled());
    CHECK(unlabelled->example_size() == 3);
    refuses(text, "no_such_column", "did you mean 'class'", {"clas", {}, {}});
    refuses(text, "no_such_column", "no column '3' among 3", {"3", {}, {}});
    refuses("1\n2\n", "no_features", "only column");
}

TEST_CASE("a wrong value is refused with its row and column", "[data][csv]") {
    refuses("1,2,0\n3,x4,1\n", "not_a_number", "row 2, column 2: 'x4'");
    refuses("1,2,0\n3,,1\n", "not_a_number", "row 2, column 2: the value is missing");
    refuses("a,b,c\n1,2,0\n3,nan,1\n", "not_finite", "row 3, column 2");
    refuses("inf,2,0\n", "not_finite", "row 1, column 1");
    refuses("1,1e39,0\n", "not_finite", "row 1, column 2");
    refuses("1,0x10,0\n", "not_a_number", "row 1, column 2");
    refuses("1,2,0\n\n3,4,1\n", "not_a_number", "row 2, column 1");
    refuses("1,two,0\n", "not_a_number", "row 1, column 2");
}

TEST_CASE("a wrong label is refused with its row", "[data][csv]") {
    refuses("1,2,0\n3,4,-1\n", "bad_label", "row 2, column 3: the label -1");
    refuses("1,2,0\n3,4,1.5\n", "bad_label", "row 2, column 3: the label 1.5");
    refuses("1,2,1048576\n", "bad_label", "row 1, column 3");
    refuses("1,2,nan\n", "bad_label", "row 1, column 3");
    refuses("1,2,setosa\n", "bad_label", "'setosa' is not a class number");
    refuses("1,2,\n", "bad_label", "row 1, column 3");
    refuses("# causeway classes=2\n1,2,0\n3,4,2\n", "label_out_of_range", "row 3, column 3: label 2 of 2 classes");
}

TEST_CASE("ragged and empty files are refused", "[data][csv]") {
    refuses("1,2,0\n3,4\n", "ragged", "row 2: 2 values, but the rows before have 3");
    refuses("1,2,0\n3,4,1,5\n", "ragged", "row 2: 4 values");
    refuses("1,2,0\n3,4,1,\n", "ragged", "row 2: 4 values");
    refuses("", "empty", "no example");
    refuses("\n \r\n", "empty", "no example");
    refuses("a,b,c\n", "empty", "no example");
    refuses("# only a remark", "empty", "no example");
}

TEST_CASE("limits on columns and values hold", "[data][csv]") {
    ReadLimits limits;
    limits.columns = 3;
    limits.values = 4;
    const auto wide = parse_csv(as_bytes("1,2,3,4\n"), "set.csv", {}, limits);
    REQUIRE_FALSE(wide);
    CHECK(wide.error().kind == ErrorKind::overloaded);
    const auto many = parse_csv(as_bytes("1,2\n3,4\n5,6\n"), "set.csv", {}, limits);
    REQUIRE_FALSE(many);
    CHECK(many.error().code == "too_large");
}

TEST_CASE("a terminal is not sent what a file holds", "[data][csv]") {
    const auto dataset = parse_table("1,\x1b[31m" + std::string(1000, 'z') + ",0\n");
    REQUIRE_FALSE(dataset);
    CHECK(dataset.error().message.find('\x1b') == std::string::npos);
    CHECK(dataset.error().message.size() < 200);
}

TEST_CASE("a part's note gives label, classes and shape, and options go first", "[data][csv]") {
    const std::string text = "# causeway label=0 classes=10 shape=2x1 later=x\n3,1,2\n4,5,6\n";
    const auto noted = parse_table(text, {});
    REQUIRE(noted);
    CHECK(noted->labels == std::vector<std::uint32_t>{3, 4});
    CHECK(noted->classes == 10);
    CHECK(noted->shape == std::vector<std::int64_t>{2, 1});
    CHECK(parse_table(text, {"last", {}, {}})->labels == std::vector<std::uint32_t>{2, 6});
    refuses("# causeway label=5\n1,2\n", "no_such_column", "set.csv", {});
    refuses("# causeway label=x\n1,2\n", "bad_note", "row 1", {});
    refuses("# causeway classes=0\n1,2\n", "bad_note", "row 1");
    refuses("# causeway classes=99999999999\n1,2\n", "bad_note", "row 1");
    refuses("# causeway label=1 shape=7x7\n1,2\n", "shape_mismatch", "shape 7x7", {});
    refuses("# causeway shape=0\n1,2\n", "shape", "row 1", {});
}

}  // namespace causeway
