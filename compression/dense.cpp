// payload := f32[n], little-endian, n = elements of the part's range set. Any bits travel unchanged, NaN included: it
// is the firewall that refuses them, naming the tensor and the index.
#include "compression/dense.h"

namespace causeway {
namespace {

void encode_dense(const UpdatePart& part, Bytes& out) {
    const auto raw = std::as_bytes(part.values.view());
    out.insert(out.end(), raw.begin(), raw.end());
}

Status decode_dense(const SharedBytes& payload, UpdatePart& part) {
    const auto count = part.ranges.element_count();
    if (payload.size() % sizeof(float) != 0 || payload.size() / sizeof(float) != count) {
        return fail(ErrorKind::corrupt, "payload_size",
                    "a dense part of " + std::to_string(count) + " elements has " + std::to_string(payload.size()) +
                        " bytes of values");
    }
    const auto* first = payload.view().data();
    if (payload && reinterpret_cast<std::uintptr_t>(first) % alignof(float) == 0) {
        part.values = PartValues(payload);
        return {};
    }
    auto& values = part.values.own();
    values.resize(count);
    if (count > 0) {
        std::memcpy(values.data(), first, payload.size());
    }
    return {};
}

Result<Codec> parse_dense(std::string_view arguments) {
    if (!arguments.empty()) {
        return fail(ErrorKind::invalid, "codec_arguments",
                    "the codec dense takes no arguments, not '" + std::string(arguments) + "'");
    }
    return Codec{"dense", Fidelity::lossless, encode_dense, decode_dense};
}

}  // namespace

CodecEntry dense_codec() {
    return {"dense", {"none"}, "every value as f32: 4 bytes an element, no loss", Fidelity::lossless, parse_dense};
}

}  // namespace causeway
