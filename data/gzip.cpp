// The only file that sees zlib. Both directions go through its streaming interface: the whole-buffer one cannot stop
// at a limit, and its sizes are 32 bits on some machines.
#include "data/gzip.h"

#include <algorithm>

#include <zlib.h>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::size_t block_bytes = 256 * 1024;            // grows with the output, so a small file stays small
constexpr std::uint64_t bomb_free_bytes = 64ull << 20;     // below this any ratio is harmless
constexpr std::uint64_t bomb_ratio = 512;                  // deflate can reach 1032; CSV of zeros stays near 300
constexpr int gzip_window = 15 + 16;                       // 32 KiB window, gzip wrapper: zlib's own encoding
constexpr std::size_t slice_bytes = std::size_t{1} << 30;  // zlib counts in 32 bits

// zlib's input is not const in old headers; it never writes there.
Bytef* zlib_input(const std::byte* data) {
    return reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
}

class Inflater {
public:
    explicit Inflater(ByteView packed) : rest_(packed) { ASSERT(inflateInit2(&stream_, gzip_window) == Z_OK); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() { inflateEnd(&stream_); }

    /// Fills as much of `room` as it can; returns the bytes written, or zlib's error.
    Result<std::size_t> fill(std::span<std::byte> room) {
        refill();
        stream_.next_out = reinterpret_cast<Bytef*>(room.data());
        stream_.avail_out = static_cast<uInt>(room.size());
        const int code = inflate(&stream_, Z_NO_FLUSH);
        const std::size_t written = room.size() - stream_.avail_out;
        if (code == Z_STREAM_END) {
            return end_member(written);
        }
        if (code != Z_OK || (written == 0 && left() == 0)) {
            return fail(ErrorKind::corrupt, "bad_gzip",
                        left() == 0 ? "the gzip data end early" : "the gzip data are damaged");
        }
        return written;
    }
    [[nodiscard]] bool done() const { return done_; }
    [[nodiscard]] std::size_t left() const { return stream_.avail_in + rest_.size(); }

private:
    void refill() {
        if (stream_.avail_in == 0 && !rest_.empty()) {
            const auto slice = rest_.first(std::min(rest_.size(), slice_bytes));
            stream_.next_in = zlib_input(slice.data());
            stream_.avail_in = static_cast<uInt>(slice.size());
            rest_ = rest_.subspan(slice.size());
        }
    }
    // What follows a member must be another one; a wrong header shows at the next call.
    Result<std::size_t> end_member(std::size_t written) {
        done_ = left() == 0;
        ASSERT(inflateReset(&stream_) == Z_OK);
        return written;
    }

    z_stream stream_{};
    ByteView rest_;
    bool done_ = false;
};

Status check_size(std::uint64_t inflated, std::uint64_t packed, std::uint64_t limit) {
    if (inflated > limit) {
        return fail(ErrorKind::overloaded, "inflated_too_large",
                    fmt::format("the file unpacks to more than the limit of {} bytes", limit));
    }
    if (inflated > bomb_free_bytes && inflated / bomb_ratio > packed) {
        return fail(ErrorKind::overloaded, "inflated_too_large",
                    fmt::format("the file unpacks to more than {} times its size: this is not a dataset", bomb_ratio));
    }
    return {};
}

}  // namespace

bool is_gzip(ByteView bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

Result<Bytes> gunzip(ByteView packed, std::uint64_t limit) {
    Inflater inflater(packed);
    Bytes out;
    std::size_t used = 0;
    while (!inflater.done()) {
        if (used == out.size()) {
            out.resize(used + std::max(block_bytes, std::min(used, slice_bytes / 2)));
        }
        TRY_ASSIGN(const std::size_t written, inflater.fill(std::span(out).subspan(used)));
        used += written;
        TRY(check_size(used, packed.size(), limit));
    }
    out.resize(used);
    return out;
}

Bytes gzip(ByteView bytes) {
    z_stream stream{};
    constexpr int level = 6;
    constexpr int memory_level = 8;  // zlib's default
    ASSERT(deflateInit2(&stream, level, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) == Z_OK);
    Bytes out;
    std::size_t used = 0;
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (stream.avail_in == 0 && !bytes.empty()) {
            const auto slice = bytes.first(std::min(bytes.size(), slice_bytes));
            stream.next_in = zlib_input(slice.data());
            stream.avail_in = static_cast<uInt>(slice.size());
            bytes = bytes.subspan(slice.size());
        }
        out.resize(used + block_bytes);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
        stream.avail_out = static_cast<uInt>(block_bytes);
        code = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        ASSERT(code == Z_OK || code == Z_STREAM_END);
        used += block_bytes - stream.avail_out;
    }
    deflateEnd(&stream);
    out.resize(used);
    return out;
}

std::uint32_t zip_crc32(ByteView bytes) {
    return static_cast<std::uint32_t>(crc32_z(0, zlib_input(bytes.data()), bytes.size()));
}

}  // namespace causeway
