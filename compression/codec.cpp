// The table of codecs and the lookup by name. Parsing is total: any text gives a codec or says which exist. Thread:
// any; the table never changes.
#include "compression/codec.h"

#include <algorithm>

#include "common/text.h"
#include "compression/dense.h"

namespace causeway {
namespace {

bool answers_to(const CodecEntry& entry, std::string_view name) {
    return entry.name == name || std::ranges::find(entry.aliases, name) != entry.aliases.end();
}

std::vector<std::string> known_names() {
    std::vector<std::string> names;
    for (const auto& entry : codec_entries()) {
        names.emplace_back(entry.name);
    }
    return names;
}

tl::unexpected<Error> unknown_codec(std::string_view name) {
    const auto names = known_names();
    std::string message = "no codec is called '" + std::string(name) + "'; known: " + join(names, ", ");
    if (const auto nearest = nearest_name(name, names)) {
        message += "; did you mean '" + *nearest + "'?";
    }
    return fail(ErrorKind::invalid, "unknown_codec", std::move(message));
}

}  // namespace

std::span<const CodecEntry> codec_entries() {
    // One line per codec.
    static const std::vector<CodecEntry> entries{
        dense_codec(),
    };
    return entries;
}

Result<Codec> parse_codec(std::string_view text) {
    const auto words = trim(text);
    const auto name = words.substr(0, words.find(' '));
    for (const auto& entry : codec_entries()) {
        if (answers_to(entry, name)) {
            return entry.parse(trim(words.substr(name.size())));
        }
    }
    return unknown_codec(name);
}

}  // namespace causeway
