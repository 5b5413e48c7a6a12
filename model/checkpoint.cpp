// Writing and reading of safetensors. The reader trusts nothing: lengths are compared with what is there before use,
// and the data must be covered by the tensors exactly once, as the format demands.
#include "model/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "common/half.h"
#include "common/json.h"
#include "common/text.h"

namespace causeway {
namespace {

constexpr std::uint64_t max_header = 4 << 20;  // 1024 layers need about 300 KB
constexpr std::size_t max_named_mismatches = 8;
constexpr std::string_view metadata_key = "__metadata__";

tl::unexpected<Error> bad_file(std::string message) {
    return fail(ErrorKind::corrupt, "bad_safetensors", "not a safetensors file: " + std::move(message));
}

Json describe(const TensorInfo& tensor, std::uint64_t begin) {
    Json shape = Json::array();
    for (const std::int64_t extent : tensor.shape) {
        shape.push(extent);
    }
    Json offsets = Json::array();
    offsets.push(begin).push(begin + 4 * tensor.range().size());
    return Json::object().set("dtype", "F32").set("shape", std::move(shape)).set("data_offsets", std::move(offsets));
}

/// A std::map sorts the names; "__metadata__" comes first because '_' is before the lower-case letters.
std::string header_text(const Chain& chain, const Json& more) {
    std::map<std::string, Json> sorted;
    auto metadata = Json::object().set("architecture", chain.architecture());
    for (const auto& [name, text] : more.fields()) {
        metadata.set(name, text);
    }
    sorted[std::string(metadata_key)] = std::move(metadata);
    std::uint64_t begin = 0;
    for (const TensorInfo& tensor : chain.table().tensors) {
        sorted[tensor.name] = describe(tensor, begin);
        begin += 4 * tensor.range().size();
    }
    Json header = Json::object();
    for (auto& [name, value] : sorted) {
        header.set(name, std::move(value));
    }
    return header.dump();
}

/// A file taken apart; `data` is the part after the header.
struct File {
    SafetensorsListing listing;
    ByteView data;
};

Result<File> take_apart(ByteView bytes) {
    ByteReader reader(bytes);
    const auto length = reader.get<std::uint64_t>();
    if (!length || *length > reader.left() || *length > max_header) {
        return bad_file("its header is longer than the file or than 4 MiB");
    }
    TRY_ASSIGN(const ByteView header, reader.get_bytes(*length));
    auto json = Json::parse(as_text(header), max_header);
    if (!json || !json->is_object()) {
        return bad_file("its header is not a JSON object");
    }
    const auto data = bytes.subspan(sizeof(std::uint64_t) + *length);
    return File{{*std::move(json), data.size()}, data};
}

/// Bytes [begin, end) of the data.
struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// The two offsets of a tensor, when they lie inside the data.
std::optional<Span> offsets_of(const Json& tensor, std::uint64_t size) {
    const auto& offsets = tensor["data_offsets"].items();
    if (offsets.size() != 2) {
        return std::nullopt;
    }
    const std::int64_t begin = offsets[0].integer(-1);
    const std::int64_t end = offsets[1].integer(-1);
    if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > size) {
        return std::nullopt;
    }
    return Span{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
}

/// The tensors must tile the data: no hole, no overlap, nothing after the last.
Status check_layout(const SafetensorsListing& listing) {
    std::vector<Span> spans;
    for (const auto& [name, value] : listing.header.fields()) {
        if (name == metadata_key) {
            continue;
        }
        const auto span = offsets_of(value, listing.data_bytes);
        if (!span) {
            return bad_file(fmt::format("the offsets of tensor \"{}\" lie outside its data", name.substr(0, 80)));
        }
        spans.push_back(*span);
    }
    std::ranges::sort(spans, {}, [](const Span& span) { return std::pair(span.begin, span.end); });
    std::uint64_t covered = 0;
    for (const Span& span : spans) {
        if (span.begin != covered) {
            return bad_file(fmt::format("its tensors leave a hole or overlap at byte {}", covered));
        }
        covered = span.end;
    }
    if (covered != listing.data_bytes) {
        return bad_file(fmt::format("it has {} bytes that belong to no tensor", listing.data_bytes - covered));
    }
    return {};
}

Result<File> open_file(ByteView bytes) {
    TRY_ASSIGN(auto file, take_apart(bytes));
    TRY(check_layout(file.listing));
    return file;
}

bool same_shape(const Json& found, const Shape& shape) {
    return found.is_array() && std::ranges::equal(found.items(), shape, [](const Json& extent, std::int64_t wanted) {
               return extent.integer(-1) == wanted;
           });
}

/// Bytes of an element of the dtypes that are read; 0 for others.
std::uint64_t element_bytes(std::string_view dtype) {
    return dtype == "F32" ? 4 : dtype == "F16" || dtype == "BF16" ? 2 : dtype == "F64" ? 8 : 0;
}

/// Empty when the file's tensor is the chain's.
std::string mismatch(const TensorInfo& tensor, const Json& found, std::uint64_t size) {
    if (!found.is_object()) {
        return fmt::format("{} is missing", tensor.name);
    }
    const auto bytes = element_bytes(found["dtype"].text());
    if (bytes == 0) {
        return fmt::format("{} has dtype {}, not F32, F16, BF16 or F64", tensor.name,
                           found["dtype"].dump().substr(0, 40));
    }
    const auto span = offsets_of(found, size);
    if (!same_shape(found["shape"], tensor.shape) || span->end - span->begin != bytes * tensor.range().size()) {
        return fmt::format("{} has shape {}, not {}", tensor.name, found["shape"].dump().substr(0, 60),
                           to_string(tensor.shape));
    }
    return {};
}

std::map<std::string_view, const Json*> by_name(const Json& header) {
    std::map<std::string_view, const Json*> fields;
    for (const auto& [name, value] : header.fields()) {
        fields[name] = &value;
    }
    return fields;
}

template <class Stored, class Widen>
bool widen(ByteView bytes, std::span<float> values, Widen to_float) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        Stored stored;
        std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
        values[i] = to_float(stored);
    }
    return true;
}

/// False when a double is beyond f32.
bool take_values(std::string_view dtype, ByteView bytes, std::span<float> values) {
    if (dtype == "F16") {
        return widen<std::uint16_t>(bytes, values, float_of_half);
    }
    if (dtype == "BF16") {
        return widen<std::uint16_t>(bytes, values, float_of_bf16);
    }
    if (dtype == "F64") {
        bool fits = true;
        widen<double>(bytes, values, [&](double value) {
            const auto rounded = static_cast<float>(value);
            fits = fits && std::isfinite(value) == std::isfinite(rounded);
            return rounded;
        });
        return fits;
    }
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return true;
}

/// Nothing is allocated before the sizes are known to be those of bytes that are there.
Result<ModelState> read_tensors(const Chain& chain, const File& file) {
    auto wrong = find_mismatches(chain, file.listing);
    if (!wrong.empty()) {
        const auto count = wrong.size();
        wrong.resize(std::min(count, max_named_mismatches));
        return fail(ErrorKind::corrupt, "model_mismatch",
                    fmt::format("the checkpoint is not of this model: {}{}", join(wrong, "; "),
                                count > wrong.size() ? fmt::format(" and {} more", count - wrong.size()) : ""));
    }
    const auto fields = by_name(file.listing.header);
    ModelState state = ModelState::zeros(chain.table());
    for (const TensorInfo& tensor : chain.table().tensors) {
        const auto span = offsets_of(*fields.at(tensor.name), file.data.size());
        const auto values = state.arena(tensor.arena).view(tensor);
        if (!take_values((*fields.at(tensor.name))["dtype"].text(),
                         file.data.subspan(span->begin, span->end - span->begin), values)) {
            return fail(ErrorKind::corrupt, "model_mismatch",
                        fmt::format("{} has a value that is too large for F32", tensor.name));
        }
    }
    return state;
}

}  // namespace

Bytes to_safetensors(const Chain& chain, const ModelState& state, const Json& more) {
    const std::string header = header_text(chain, more);
    ByteWriter writer;
    writer.put(static_cast<std::uint64_t>(header.size()));
    writer.put_bytes(as_bytes(header));
    for (const TensorInfo& tensor : chain.table().tensors) {
        writer.put_bytes(std::as_bytes(state.arena(tensor.arena).view(tensor)));
    }
    return writer.take();
}

Digest model_digest(const Chain& chain, const ModelState& state) {
    return sha256(to_safetensors(chain, state));
}

Result<ModelState> from_safetensors(const Chain& chain, ByteView bytes) {
    TRY_ASSIGN(const File file, open_file(bytes));
    return read_tensors(chain, file);
}

Result<SafetensorsListing> list_safetensors(ByteView bytes) {
    TRY_ASSIGN(auto file, open_file(bytes));
    return std::move(file.listing);
}

std::vector<std::string> find_mismatches(const Chain& chain, const SafetensorsListing& listing) {
    const auto found = by_name(listing.header);
    std::vector<std::string> wrong;
    for (const TensorInfo& tensor : chain.table().tensors) {
        const auto entry = found.find(tensor.name);
        const Json absent;
        auto text = mismatch(tensor, entry == found.end() ? absent : *entry->second, listing.data_bytes);
        if (!text.empty()) {
            wrong.push_back(std::move(text));
        }
    }
    for (const auto& [name, value] : found) {
        if (name != metadata_key && chain.table().find(name) == nullptr) {
            wrong.push_back(fmt::format("{} is not part of the model", name.substr(0, 80)));
        }
    }
    return wrong;
}

Result<SavedModel> load_safetensors(ByteView bytes) {
    TRY_ASSIGN(const File file, open_file(bytes));
    const Json& architecture = file.listing.header[metadata_key]["architecture"];
    if (!architecture.is_text()) {
        return bad_file("its metadata does not say the architecture");
    }
    TRY_ASSIGN(Chain chain, Chain::from_architecture(architecture.text()));
    TRY_ASSIGN(ModelState state, read_tensors(chain, file));
    return SavedModel{std::move(chain), std::move(state), file.listing.header[metadata_key]};
}

}  // namespace causeway
