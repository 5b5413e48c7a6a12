// Codecs: how the values of an update part become bytes. Start here; update_format.h has the frame around them.
//
// A codec is one file with one CodecEntry and one line in the table of codec.cpp. An entry is a struct, not just a
// function: what a configuration may say of it (name, aliases, summary) lies beside how it is parsed. A lossless codec
// sends theta_local and the delta is formed in the exact domain of the sum; a lossy one sends the delta itself.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.h"
#include "common/result.h"
#include "compression/update.h"

namespace causeway {

enum class Fidelity { lossless, lossy };

/// A codec with its parameters, as parsed from "dense" or, later, "topk 1% + int8".
///
/// threads  reentrant: encode and decode keep nothing between calls
struct Codec {
    std::string text;  // canonical spelling: parse_codec(text) gives this codec again
    Fidelity fidelity = Fidelity::lossless;
    /// Appends the part's payload to `out`.
    std::function<void(const UpdatePart& part, Bytes& out)> encode;
    /// Fills part.values (ranges.element_count() of them) from a payload; the other fields are set. Total.
    ///
    /// errors   corrupt: any payload that encode cannot have made
    /// cost     allocates no more than the payload's bytes justify, or `elements` where a codec expands; nothing where
    ///          the values can stay in a payload that may be shared
    std::function<Status(const SharedBytes& payload, UpdatePart& part)> decode;
};

struct CodecEntry {
    std::string_view name;
    std::vector<std::string_view> aliases;
    std::string_view summary;
    Fidelity fidelity;
    /// errors  invalid: arguments that this codec does not take
    Result<Codec> (*parse)(std::string_view arguments);
};

/// All codecs of this build, in the order of the documentation.
std::span<const CodecEntry> codec_entries();

/// errors  invalid `unknown_codec`: no codec has that name (the message gives the nearest); or its own arguments
Result<Codec> parse_codec(std::string_view text);

}  // namespace causeway
