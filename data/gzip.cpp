// The only file that sees zlib. Both directions go through its streaming interface: the whole-buffer one cannot stop
// at a limit, and its sizes are 32 bits on some machines.
#include "data/gzip.h"

#include <algorithm>

#include <zlib.h>

#include <fmt/format.h>

namespace causeway {
namespace {

constexpr std::size_t gzip_block_bytes = 256 * 1024;       // grows with the output, so a small file stays small
constexpr std::uint64_t bomb_free_bytes = 64ull << 20;     // below this any ratio is harmless
constexpr std::uint64_t bomb_ratio = 512;                  // deflate can reach 1032; CSV of zeros stays near 300
constexpr int gzip_window = 15 + 16;                       // 32 KiB window, gzip wrapper: zlib's own encoding
constexpr std::size_t slice_bytes = std::size_t{1} << 30;  // zlib counts in 32 bits

// zlib's input is not const in old headers; it never writes there.
Bytef* zlib_input(const std::byte* data) {
    return reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
}

}  // namespace

struct Inflater::State {
    z_stream stream{};
    ByteView rest;
    bool inside = false;  // of a member
    bool padding = false;  // behind one: zeros may follow

    State() { ASSERT(inflateInit2(&stream, gzip_window) == Z_OK); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { inflateEnd(&stream); }

    void refill() {
        if (stream.avail_in == 0 && !rest.empty()) {
            const auto slice = rest.first(std::min(rest.size(), slice_bytes));
            stream.next_in = zlib_input(slice.data());
            stream.avail_in = static_cast<uInt>(slice.size());
            rest = rest.subspan(slice.size());
        }
    }
};

Inflater::Inflater() : state_(std::make_unique<State>()) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

void Inflater::feed(ByteView packed) {
    ASSERT(state_->stream.avail_in == 0 && state_->rest.empty());
    state_->rest = packed;
}

/// What follows a member is padding of zeros, or another one; a wrong header shows at the next turn.
Result<std::size_t> Inflater::fill(std::span<std::byte> room) {
    State& state = *state_;
    for (;;) {
        state.refill();
        while (state.padding && state.stream.avail_in > 0 && *state.stream.next_in == 0) {
            ++state.stream.next_in;
            --state.stream.avail_in;
            state.refill();
        }
        if (state.stream.avail_in == 0 && !state.inside) {
            return 0;
        }
        state.inside = true;
        state.padding = false;
        state.stream.next_out = reinterpret_cast<Bytef*>(room.data());
        state.stream.avail_out = static_cast<uInt>(std::min(room.size(), slice_bytes));
        const auto offered = state.stream.avail_out;
        const int code = inflate(&state.stream, Z_NO_FLUSH);
        const std::size_t written = offered - state.stream.avail_out;
        if (code == Z_STREAM_END) {
            ASSERT(inflateReset(&state.stream) == Z_OK);
            state.inside = false;
            state.padding = true;
        } else if (code == Z_BUF_ERROR && state.stream.avail_in == 0) {
            return written;  // it needs more
        } else if (code != Z_OK) {
            return fail(ErrorKind::corrupt, "bad_gzip", "the gzip data are damaged");
        }
        if (written > 0 || (state.stream.avail_in == 0 && state.rest.empty())) {
            return written;
        }
    }
}

Status Inflater::end() const {
    return state_->inside ? fail(ErrorKind::corrupt, "bad_gzip", "the gzip data end early") : Status{};
}

Status check_inflated(std::uint64_t inflated, std::uint64_t packed, std::uint64_t limit) {
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

bool is_gzip(ByteView bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

Result<Bytes> gunzip(ByteView packed, std::uint64_t limit) {
    Inflater inflater;
    inflater.feed(packed);
    Bytes out;
    for (std::size_t used = 0;;) {
        if (used == out.size()) {
            out.resize(used + std::max(gzip_block_bytes, std::min(used, slice_bytes / 2)));
        }
        TRY_ASSIGN(const std::size_t written, inflater.fill(std::span(out).subspan(used)));
        if (written == 0) {
            TRY(inflater.end());
            out.resize(used);
            return out;
        }
        used += written;
        TRY(check_inflated(used, packed.size(), limit));
    }
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
        out.resize(used + gzip_block_bytes);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
        stream.avail_out = static_cast<uInt>(gzip_block_bytes);
        code = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        ASSERT(code == Z_OK || code == Z_STREAM_END);
        used += gzip_block_bytes - stream.avail_out;
    }
    deflateEnd(&stream);
    out.resize(used);
    return out;
}

std::uint32_t zip_crc32(ByteView bytes) {
    return static_cast<std::uint32_t>(crc32_z(0, zlib_input(bytes.data()), bytes.size()));
}

}  // namespace causeway
