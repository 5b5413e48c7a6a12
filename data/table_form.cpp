// The words of a table's form, one list for all places that take them.
#include "data/table_form.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"

namespace causeway {
namespace {

constexpr std::string_view by_looking = "look";

constexpr std::array<std::pair<Encoding, std::string_view>, 6> encoding_words{{{Encoding::look, by_looking},
                                                                               {Encoding::utf8, "utf-8"},
                                                                               {Encoding::utf16le, "utf-16le"},
                                                                               {Encoding::utf16be, "utf-16be"},
                                                                               {Encoding::cp1252, "cp1252"},
                                                                               {Encoding::latin1, "latin-1"}}};

tl::unexpected<Error> wrong_word(std::string_view key, std::string_view known) {
    return fail(ErrorKind::invalid, "table_form", fmt::format("{}: {} is needed", key, known));
}

/// A sign that no number, name or line break needs.
bool can_separate(char c) {
    return c == '\t' ||
           (c >= ' ' && c < 127 && std::string_view(",;|:!/&~^ @$%*=<>").find(c) != std::string_view::npos);
}

Status set_separator(TableForm& form, std::string_view word) {
    if (word == by_looking) {
        form.separator.reset();
    } else if (word == "tab") {
        form.separator = '\t';
    } else if (word.size() == 1 && can_separate(word.front())) {
        form.separator = word.front();
    } else {
        return wrong_word("separator", "one sign such as \",\" or \";\", or \"tab\", or \"look\"");
    }
    return {};
}

Status set_encoding(TableForm& form, std::string_view word) {
    const auto found = std::ranges::find(encoding_words, word, [](const auto& entry) { return entry.second; });
    if (found == encoding_words.end()) {
        return wrong_word("encoding", "\"utf-8\", \"utf-16le\", \"utf-16be\", \"cp1252\", \"latin-1\" or \"look\"");
    }
    form.encoding = found->first;
    return {};
}

Status set_quote(TableForm& form, std::string_view word) {
    if (word == by_looking) {
        form.quote.reset();
    } else if (word == "none") {
        form.quote = '\0';
    } else if (word == "\"" || word == "'") {
        form.quote = word.front();
    } else {
        return wrong_word("quote", "'\"', \"'\", \"none\" or \"look\"");
    }
    return {};
}

}  // namespace

const std::vector<std::string>& table_form_keys() {
    static const std::vector<std::string> keys{"header", "separator", "encoding", "decimal", "quote"};
    return keys;
}

Status set_table_form(TableForm& form, std::string_view key, std::string_view word) {
    if (key == "separator") {
        return set_separator(form, word);
    }
    if (key == "encoding") {
        return set_encoding(form, word);
    }
    if (key == "quote") {
        return set_quote(form, word);
    }
    const bool look = word == by_looking;
    if (key == "header") {
        if (!look && word != "yes" && word != "no") {
            return wrong_word(key, "\"yes\", \"no\" or \"look\"");
        }
        form.header = look ? std::nullopt : std::optional(word == "yes");
        return {};
    }
    if (!look && word != "." && word != ",") {
        return wrong_word("decimal", "\".\", \",\" or \"look\"");
    }
    form.decimal = look ? std::nullopt : std::optional(word.front());
    return {};
}

std::string table_form_word(const TableForm& form, std::string_view key) {
    const auto sign = [](std::optional<char> c) { return c ? std::string(1, *c) : std::string(by_looking); };
    if (key == "header") {
        return form.header ? (*form.header ? "yes" : "no") : std::string(by_looking);
    }
    if (key == "separator") {
        return form.separator == '\t' ? "tab" : sign(form.separator);
    }
    if (key == "encoding") {
        return std::string(encoding_word(form.encoding));
    }
    if (key == "quote") {
        return form.quote == '\0' ? "none" : sign(form.quote);
    }
    return sign(form.decimal);
}

TableForm merged(TableForm form, const TableForm& over) {
    form.header = over.header ? over.header : form.header;
    form.separator = over.separator ? over.separator : form.separator;
    form.encoding = over.encoding != Encoding::look ? over.encoding : form.encoding;
    form.decimal = over.decimal ? over.decimal : form.decimal;
    form.quote = over.quote ? over.quote : form.quote;
    return form;
}

std::string table_form_fault(const TableForm& form) {
    if (form.separator && form.separator == form.decimal) {
        return fmt::format("separator and decimal are both {}: only one of them can be",
                           separator_word(*form.separator));
    }
    return {};
}

std::string_view encoding_word(Encoding encoding) {
    return std::ranges::find(encoding_words, encoding, [](const auto& entry) { return entry.first; })->second;
}

std::string separator_word(char separator) {
    return separator == '\t' ? "tab" : fmt::format("\"{}\"", separator);
}

}  // namespace causeway
