// The ZIP around the arrays: a header before each, and the same facts once more in the directory at the end.
#include "data/npz.h"

#include <limits>

#include <fmt/format.h>

#include "data/gzip.h"

namespace causeway {
namespace {

constexpr std::size_t npy_alignment = 64;  // numpy pads its header so that values start on such a multiple
constexpr std::uint32_t local_mark = 0x04034b50;
constexpr std::uint32_t central_mark = 0x02014b50;
constexpr std::uint32_t end_mark = 0x06054b50;
constexpr std::uint16_t zip_version = 20;       // 2.0, as plain archives say
constexpr std::uint16_t first_day = 0x0021;     // 1980-01-01 in DOS form
constexpr std::size_t max_npz_name = 1024;
constexpr std::size_t max_npz_rank = 32;        // as numpy's
constexpr std::uint64_t entry_overhead = 4096;  // more than all that is written for an array besides its values

std::string shape_tuple(const std::vector<std::int64_t>& shape) {
    std::string text = "(";
    for (const auto extent : shape) {
        text += fmt::format("{}{},", text.size() > 1 ? " " : "", extent);
    }
    if (shape.size() > 1) {
        text.pop_back();  // only a tuple of one needs the comma
    }
    return text + ")";
}

Bytes encode_npy(const NamedArray& array) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape_tuple(array.shape));
    constexpr std::size_t before = 10;  // mark, version, length
    const auto whole = (before + header.size() + 1 + npy_alignment - 1) / npy_alignment * npy_alignment;
    header.resize(whole - before - 1, ' ');
    header += '\n';
    ByteWriter writer;
    writer.put_bytes(as_bytes("\x93NUMPY"));
    writer.put(std::uint8_t{1});
    writer.put(std::uint8_t{0});
    writer.put(static_cast<std::uint16_t>(header.size()));
    writer.put_bytes(as_bytes(header));
    writer.put_bytes(std::as_bytes(array.values));
    return writer.take();
}

struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    std::uint32_t bytes = 0;
    std::uint32_t offset = 0;  // of the local header
};

/// What local header and directory have in common: from "version needed" to "extra length".
void put_facts(ByteWriter& writer, const Entry& entry) {
    writer.put(zip_version);
    writer.put(std::uint16_t{0});  // flags
    writer.put(std::uint16_t{0});  // stored
    writer.put(std::uint16_t{0});  // midnight
    writer.put(first_day);
    writer.put(entry.crc);
    writer.put(entry.bytes);  // packed
    writer.put(entry.bytes);  // and unpacked
    writer.put(static_cast<std::uint16_t>(entry.name.size()));
    writer.put(std::uint16_t{0});  // no extra fields
}

void put_local(ByteWriter& writer, const Entry& entry, ByteView npy) {
    writer.put(local_mark);
    put_facts(writer, entry);
    writer.put_bytes(as_bytes(entry.name));
    writer.put_bytes(npy);
}

void put_central(ByteWriter& writer, const Entry& entry) {
    writer.put(central_mark);
    writer.put(zip_version);  // made by
    put_facts(writer, entry);
    writer.put(std::uint16_t{0});  // comment
    writer.put(std::uint16_t{0});  // disk
    writer.put(std::uint16_t{0});  // internal attributes
    writer.put(std::uint32_t{0});  // external attributes
    writer.put(entry.offset);
    writer.put_bytes(as_bytes(entry.name));
}

void put_end(ByteWriter& writer, std::uint16_t entries, std::uint32_t bytes, std::uint32_t offset) {
    writer.put(end_mark);
    writer.put(std::uint32_t{0});  // this disk, and the directory's
    writer.put(entries);
    writer.put(entries);
    writer.put(bytes);
    writer.put(offset);
    writer.put(std::uint16_t{0});  // comment
}

Status check_sizes(std::span<const NamedArray> arrays) {
    std::uint64_t bytes = 0;
    for (const auto& array : arrays) {
        if (array.name.size() > max_npz_name || array.shape.size() > max_npz_rank) {
            return fail(ErrorKind::unsupported, "array_not_for_npz",
                        fmt::format("an array with a name of {} bytes and {} dimensions does not fit an NPZ, which "
                                    "takes up to {} bytes and {} dimensions; use safetensors",
                                    array.name.size(), array.shape.size(), max_npz_name, max_npz_rank));
        }
        bytes += array.values.size_bytes() + entry_overhead;
    }
    if (bytes >= std::numeric_limits<std::uint32_t>::max() || arrays.size() >= 0xffff) {
        return fail(ErrorKind::unsupported, "too_large_for_npz",
                    fmt::format("{} arrays of {} bytes together do not fit an NPZ of 4 GiB; use safetensors",
                                arrays.size(), bytes));
    }
    return {};
}

}  // namespace

Result<Bytes> encode_npz(std::span<const NamedArray> arrays) {
    TRY(check_sizes(arrays));
    ByteWriter writer;
    std::vector<Entry> entries;
    for (const auto& array : arrays) {
        const Bytes npy = encode_npy(array);
        entries.push_back({array.name + ".npy", zip_crc32(npy), static_cast<std::uint32_t>(npy.size()),
                           static_cast<std::uint32_t>(writer.size())});
        put_local(writer, entries.back(), npy);
    }
    const auto offset = static_cast<std::uint32_t>(writer.size());
    for (const auto& entry : entries) {
        put_central(writer, entry);
    }
    const auto bytes = static_cast<std::uint32_t>(writer.size()) - offset;
    put_end(writer, static_cast<std::uint16_t>(entries.size()), bytes, offset);
    return writer.take();
}

}  // namespace causeway
