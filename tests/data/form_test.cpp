// How tables are written: quotes and line breaks, separators, encodings, decimal marks, headers, names; and what is
// refused because it can be two things.
#include <catch2/catch.hpp>

#include "data/columns.h"
#include "data/csv.h"
#include "data/gzip.h"
#include "data/names.h"
#include "data/text_decoder.h"
#include "data/write.h"
#include "samples.h"

namespace causeway {
namespace {

using Catch::Contains;
using Floats = std::vector<float>;
using Labels = std::vector<std::uint32_t>;

DataOptions labelled(const std::string& label, const TableForm& form = {}) {
    DataOptions options;
    options.label = label;
    options.form = form;
    return options;
}

TableForm form(std::initializer_list<std::pair<const char*, const char*>> words) {
    TableForm form;
    for (const auto& [key, word] : words) {
        REQUIRE(set_table_form(form, key, word));
    }
    return form;
}

Result<Dataset> parse(std::string_view text, const DataOptions& options = labelled("last")) {
    return parse_csv(as_bytes(text), "set.csv", options, {});
}

std::string refusal(std::string_view text, const DataOptions& options = labelled("last")) {
    CAPTURE(text);
    const auto dataset = parse(text, options);
    REQUIRE_FALSE(dataset);
    return dataset.error().code + ": " + dataset.error().message;
}

std::string in_utf16(std::string_view ascii, bool big, bool mark = true) {
    std::string text = !mark ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
    for (const char c : ascii) {
        text += big ? std::string({'\0', c}) : std::string({c, '\0'});
    }
    return text;
}

}  // namespace

TEST_CASE("a quoted cell with a line break is one cell, wherever it stands", "[unit][csv]") {
    DataOptions options = labelled("outcome");
    options.file.features = {"a", "b"};
    const Floats values{1, 2, 3, 4};
    for (const std::string end : {"\n", "\r\n", "\r"}) {
        for (const std::string inside : {"\n", "\r\n", "\r"}) {
            const auto note = "\"readings:" + inside + "120,80,1,at home" + inside + "\"\"well\"\"\"";
            for (const auto& text :
                 {"note,a,b,outcome" + end + note + ",1,2,0" + end + note + ",3,4,1" + end,
                  "a,note,b,outcome" + end + "1," + note + ",2,0" + end + "3," + note + ",4,1",
                  "a,b,outcome,note" + end + "1,2,0," + note + end + "3,4,1," + note + end,
                  "a,\"b\",outcome,\"two" + inside + "lines\"" + end + "1,2,0," + note + end + "3,4,1,x" + end}) {
                CAPTURE(text);
                const auto read = parse(text, options);
                REQUIRE(read);
                CHECK(read->features == values);
                CHECK(read->labels == Labels{0, 1});
            }
        }
    }
}

TEST_CASE("a message names the row and, behind a cell of several lines, the line", "[unit][csv]") {
    CHECK_THAT(refusal("a,note,c\n1,\"x\ny\nz\",0\n2,y,?\n"), Contains("row 2, column 2"));
    DataOptions options = labelled("c");
    options.file.features = {"a"};
    CHECK_THAT(refusal("a,note,c\n1,\"x\ny\nz\",0\ntwo,y,0\n", options), Contains("row 3 (line 5), column 1: 'two'"));
    CHECK_THAT(refusal("a,c\r1,0\rtwo,1\r3,0\r4,0\r5,0"), Contains("row 3, column 1: 'two'"));
}

TEST_CASE("quotes that no standard knows are refused with their place", "[unit][csv]") {
    CHECK_THAT(refusal("a,b,c\n1,5\" pipe,0\n"),
               Contains("bad_quote") && Contains("row 2, column 2") && Contains("quote = \"none\""));
    CHECK_THAT(refusal("a,b,c\n1,\"x\"y,0\n"), Contains("bad_quote") && Contains("behind the closing quote"));
    CHECK_THAT(refusal("a,b,c\n1,2,0\n1,\n\n2,\"x,0\n1,2,0\n"), Contains("row 3"));
    CHECK_THAT(refusal("a,b,c\n1,2,0\n3,\"x,0\n1,2,0\n"),
               Contains("bad_quote") && Contains("row 3, column 2") && Contains("never closed"));
    DataOptions options = labelled("c", form({{"quote", "none"}}));
    options.file.features = {"a"};
    CHECK(parse("a,b,c\n1,5\" pipe,0\n", options)->features == Floats{1});
    options.form = form({{"quote", "'"}});
    CHECK(parse("a,b,c\n1,'5\", 6',0\n", options)->labels == Labels{0});
}

TEST_CASE("the separator is what divides all rows evenly, and is said", "[unit][csv]") {
    const Floats values{1.5f, 2, 3, 4.25f};
    for (const char* text :
         {"a,b,c\n1.5,2,0\n3,4.25,1\n", "a;b;c\n1.5;2;0\n3;4.25;1\n", "a\tb\tc\n1.5\t2\t0\n3\t4.25\t1\n",
          "a|b|c\n1.5|2|0\n3|4.25|1\n", "a;b;c\n1,5;2;0\n3;4,25;1\n", "1,5;2;0\n3;4,25;1\n",
          "a,b,c\n\"1,5\",2,0\n3,\"4,25\",1\n", "a, x\tb\tc\n1,5\t2\t0\n3\t4,25\t1\n"}) {
        CAPTURE(text);
        const auto read = parse(text);
        REQUIRE(read);
        CHECK(read->features == values);
        CHECK(read->labels == Labels{0, 1});
    }
    CHECK(parse("a;b;c\n1,5;2;0\n")->notes ==
          std::vector<std::string>{"read as utf-8, separator \";\", decimal \",\", header"});
    CHECK_THAT(refusal("a;b,c;d\nx;y,u;v\np;q,r;s\n"), Contains("unclear_table") && Contains("separator = "));
    CHECK_THAT(refusal("a:b:c\n1:2:0\n", labelled("c")), Contains("1 columns with separator \",\""));
    CHECK_THAT(refusal("a:b:c\n1\n", labelled("c")), Contains("no_such_column") && Contains("separator \",\""));
    CHECK(parse("a:b:c\n1:2:0\n", labelled("c", form({{"separator", ":"}})))->features == Floats{1, 2});
    CHECK_THAT(refusal("a;b;c\n1;2;0\n3;4\n"), Contains("ragged") && Contains("separator \";\""));
}

TEST_CASE("a decimal mark that can be two things is refused with the remedy", "[unit][csv]") {
    CHECK_THAT(refusal("a;b;c\n1,5;2.5;0\n3;4;1\n"), Contains("unclear_table") && Contains("decimal = "));
    CHECK_THAT(refusal("a;b;c\n1,234;2;0\n3,100;4;1\n"), Contains("thousands"));
    CHECK_THAT(refusal("a;b;c\n1.234;2;0\n3.100;4;1\n"), Contains("thousands"));
    const auto comma = labelled("last", form({{"decimal", ","}}));
    CHECK(parse("a;b;c\n1,234;2;0\n3,100;4;1\n", comma)->features == Floats{1.234f, 2, 3.1f, 4});
    CHECK_THAT(refusal("a;b;c\n1.234,5;2;0\n", comma), Contains("not_a_number") && Contains("decimal \",\""));
    CHECK_THAT(refusal("a,b,c\n1,2,0\n\"3,5\",x,1\n", labelled("last", form({{"decimal", "."}}))),
               Contains("not_a_number") && Contains("decimal \".\""));
    CHECK(parse("a;b;c\n0,234;2;0\n3,100;4;1\n")->features == Floats{0.234f, 2, 3.1f, 4});
}

TEST_CASE("a byte-order mark is nobody's column, packed or not, and UTF-16 is read by its own", "[unit][csv]") {
    const TempFolder folder;
    const std::string text = "age,bmi,outcome\n1,2,0\n3,4,1\n";
    const auto plain = read_dataset(folder.put("plain.csv", text), labelled("outcome"));
    REQUIRE(plain);
    int number = 0;
    for (const auto& bytes : {"\xEF\xBB\xBF" + text, in_utf16(text, false), in_utf16(text, true)}) {
        CAPTURE(number);
        const auto name = fmt::format("{}.csv", ++number);
        for (const auto& path : {folder.put(name, bytes), folder.put(name + ".gz", gzip(as_bytes(bytes)))}) {
            auto options = labelled("outcome");
            options.file.features = {"age", "bmi"};
            const auto read = read_dataset(path, options);
            INFO((read ? "" : read.error().message));
            REQUIRE(read);
            CHECK(read->features == plain->features);
        }
    }
    CHECK(parse(in_utf16(text, true, false), labelled("outcome", form({{"encoding", "utf-16be"}})))->labels ==
          Labels{0, 1});
    CHECK_THAT(refusal(in_utf16(text, false, false)), Contains("encoding = \"utf-16le\""));
    CHECK_THAT(refusal(in_utf16(text, false).substr(0, 41)), Contains("bad_encoding") && Contains("ends inside"));
    CHECK_THAT(refusal("\xEF\xBB\xBF" + text, labelled("outcome", form({{"encoding", "cp1252"}}))),
               Contains("byte-order mark of utf-8"));
}

TEST_CASE("text that is not UTF-8 is refused until somebody says what it is", "[unit][csv]") {
    const std::string cp1252 =
        "gr\xF6\xDF"
        "e,\x80,outcome\n1,2,0\n3,4,1\n";
    CHECK_THAT(refusal(cp1252), Contains("bad_encoding") && Contains("line 1") && Contains("encoding = \"cp1252\""));
    CHECK_THAT(refusal("a,b,c\n1,2,0\nx,caf\xE9,0\n"), Contains("line 3"));
    const auto said = [](const char* label, const char* encoding) {
        return labelled(label, form({{"encoding", encoding}}));
    };
    CHECK(parse(cp1252, said("gr\xC3\xB6\xC3\x9F"
                             "e",
                             "cp1252"))
              ->labels == Labels{1, 3});
    CHECK(parse(cp1252, said("\xE2\x82\xAC", "cp1252"))->labels == Labels{2, 4});  // the euro sign
    CHECK(parse(cp1252, said("\xC2\x80", "latin-1"))->labels == Labels{2, 4});
    CHECK_THAT(refusal("\x81,b\n1,2\n", said("b", "cp1252")), Contains("81 is no text in cp1252"));
    for (const char* wrong : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
        CHECK_THAT(refusal(std::string("a,b\n") + wrong + ",2\n"), Contains("bad_encoding"));
    }
    CHECK_THAT(refusal(std::string("a,b\n1,2\n\0,3\n", 12)), Contains("zero byte"));
    for (const char* archive : {"PK\x03\x04 a workbook", "BZh91AY&SY",
                                "\xFD"
                                "7zXZ"}) {
        CHECK_THAT(refusal(archive), Contains("unknown_format"));
    }
}

TEST_CASE("a text comes out whole, into whatever pieces its bytes are cut", "[property][csv]") {
    const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80,b\r\n\xF0\x9D\x84\x9E";
    for (std::size_t piece = 1; piece < 12; ++piece) {
        TextDecoder decoder(Encoding::look, "set.csv");
        std::string out;
        for (std::size_t at = 0; at < text.size(); at += piece) {
            REQUIRE(decoder.decode(as_bytes(text).subspan(at, std::min(piece, text.size() - at)),
                                   at + piece >= text.size(), out));
        }
        CHECK(out == text);
    }
}

TEST_CASE("a header of numbers is a header when somebody says so, and doubt is an error", "[unit][csv]") {
    const std::string numbers = "0,1,2,3\n5.1,3.5,1.4,0\n4.9,3.0,1.3,1\n";
    const std::string years = "site,2019,2020,outcome\n1,5,6,1\n2,7,9,0\n";
    for (const auto& text :
         {numbers, years, std::string(",0,1,2\n0,5.5,4,1\n1,3.5,2,1\n"), std::string("400,410,420\n0.5,0.25,0.125\n"),
          std::string("f,m\nm,f\n"), std::string("NA,f,?\n1,m,0\n2,f,1\n")}) {
        CHECK_THAT(refusal(text), Contains("unclear_table") && Contains("header = \"yes\""));
    }
    const auto yes = labelled("last", form({{"header", "yes"}}));
    const auto no = labelled("last", form({{"header", "no"}}));
    CHECK(parse(numbers, yes)->features == Floats{5.1f, 3.5f, 1.4f, 4.9f, 3.0f, 1.3f});
    CHECK(parse(numbers, no)->features == Floats{0, 1, 2, 5.1f, 3.5f, 1.4f, 4.9f, 3.0f, 1.3f});
    CHECK(parse(years, yes)->labels == Labels{1, 0});
    CHECK(parse(years, labelled("outcome"))->labels == Labels{1, 0});  // the asked column is there: it is a header
    CHECK_THAT(refusal(years, no), Contains("'site' is not a number") && Contains("no header"));
    CHECK(parse("1,2,3\n4,5,6\n7,8,9\n")->labels == Labels{3, 6, 9});                   // rows that all count up
    CHECK(parse("\"0\",\"1\",\"2\"\n5.1,3.5,0\n4.9,3.0,1\n")->labels == Labels{0, 1});  // only the first is in quotes
    CHECK(parse("NA,K,CL\n140,4,1\n138,5,0\n")->labels == Labels{1, 0});                // sodium, not a missing name
}

TEST_CASE("a part keeps its own form, whatever its source was", "[unit][csv]") {
    DataOptions options = labelled(
        "\xC3\xA9tat", form({{"header", "yes"}, {"separator", ";"}, {"decimal", ","}, {"encoding", "cp1252"}}));
    const auto whole = parse(
        "2019;2020;\xE9"
        "tat\n1,5;2,5;0\n3,5;4,5;1\n",
        options);
    REQUIRE(whole);
    const auto part = parse_csv(*gunzip(encode_part(*whole), 1 << 20), "part-1.csv.gz", options, {});
    INFO((part ? "" : part.error().message));
    REQUIRE(part);
    CHECK(dataset_digest(*part) == dataset_digest(*whole));
    CHECK(part->layout == whole->layout);
    const auto counted = parse("1,2,3\n5,6,9\n", labelled("", form({{"header", "no"}})));
    CHECK(parse_csv(*gunzip(encode_part(*counted), 1 << 20), "part", {}, {})->size() == 2);
}

TEST_CASE("a name is found however its accents are written, and never when two columns look alike", "[unit][csv]") {
    const std::string composed = "\xC3\xA9tat", apart = "e\xCC\x81tat";
    CHECK(normal_name(apart) == composed);
    CHECK(normal_name("\xC2\xA0 " + apart + " ") == composed);
    for (const auto& [header, asked] :
         {std::pair(composed, apart), std::pair(apart, composed), std::pair(" " + apart, composed)}) {
        CHECK(parse("a," + header + "\n1,0\n3,1\n", labelled(asked))->labels == Labels{0, 1});
    }
    for (const auto& text : {std::string("age,Age,x\n1,2,0\n"), std::string("age, age ,x\n1,2,0\n"),
                             composed + "," + apart + ",x\n1,2,0\n",
                             std::string("\xC3\x84"
                                         "b,\xC3\xA4"
                                         "b,age\n1,2,0\n")}) {
        const auto asked = text.starts_with("age")        ? std::string("age")
                           : text.starts_with("\xC3\x84") ? "\xC3\xA4"
                                                            "b"
                                                          : composed;
        CHECK_THAT(refusal(text, labelled(asked)), Contains("ambiguous_column") && Contains("\"#1\""));
        CHECK(parse(text, labelled("#1"))->labels == Labels{2});
        DataOptions features = labelled("#2");
        features.file.features = {asked};
        CHECK_THAT(refusal(text, features), Contains("ambiguous_column"));
        DataOptions words = labelled("#2");
        words.categories = {{asked, {"1"}}};
        CHECK_THAT(refusal(text, words), Contains("ambiguous_column"));
    }
    const auto yes = form({{"header", "yes"}});
    CHECK_THAT(refusal("3,2,1,0\n10,20,30,1\n", labelled("3", yes)), Contains("ambiguous_column"));
    CHECK(parse("3,2,1,0\n10,20,30,1\n", labelled("#0", yes))->labels == Labels{10});
    CHECK(parse("0,1,2,3\n10,20,30,1\n", labelled("3", yes))->labels == Labels{1});  // name and index agree
    CHECK_THAT(refusal("last,x\n1,2\n", labelled("last")), Contains("ambiguous_column"));
    DataOptions twice = labelled("c");
    twice.categories = {{"a", {"x"}}, {"0", {"x"}}};
    CHECK_THAT(refusal("a,b,c\nx,1,0\n", twice), Contains("repeated_column"));
}

TEST_CASE("what is said of a table travels with the options, and nothing else is taken", "[unit][options]") {
    DataOptions options;
    options.form =
        form({{"header", "yes"}, {"separator", "tab"}, {"encoding", "latin-1"}, {"decimal", ","}, {"quote", "none"}});
    CHECK(to_text(options) == "header=yes separator=tab encoding=latin-1 decimal=%2C quote=none");
    CHECK(*parse_data_options(to_text(options)) == options);
    TableForm none;
    for (const auto& [key, word] :
         {std::pair("header", "maybe"), std::pair("separator", ""), std::pair("separator", "a"),
          std::pair("encoding", "utf-7"), std::pair("decimal", ";"), std::pair("quote", "x")}) {
        CHECK_FALSE(set_table_form(none, key, word));
    }
    CHECK_FALSE(parse_data_options("separator=%2C decimal=%2C"));
    CHECK_FALSE(parse_data_options("header=look"));
    CHECK(parse_data_options("separator=%3B decimal=%2C"));
}

}  // namespace causeway
