// See text_stream.h.
#include "data/text_stream.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "common/system_error.h"
#include "data/gzip.h"

namespace causeway {
namespace {

constexpr std::size_t text_block_bytes = 256 * 1024;  // of the packed file

}  // namespace

struct TextStream::State {
    std::filesystem::path path;
    std::ifstream file;
    std::uint64_t limit = 0;
    std::uint64_t size = 0;   // of the file
    std::uint64_t taken = 0;  // of the file
    std::uint64_t given = 0;
    Bytes head;                        // the first two bytes of a plain file, which decided what it is
    std::optional<Inflater> inflater;  // of a packed one
    Bytes block;

    Result<std::size_t> take(std::span<std::byte> room) {
        file.read(reinterpret_cast<char*>(room.data()), static_cast<std::streamsize>(room.size()));
        if (file.bad()) {
            return fail(ErrorKind::io, "io", path.string() + ": cannot read");
        }
        const auto count = static_cast<std::size_t>(file.gcount());
        taken += count;
        return count;
    }

    Result<std::size_t> read_plain(std::span<std::byte> room) {
        if (!head.empty()) {
            const std::size_t count = std::min(head.size(), room.size());
            std::copy_n(head.begin(), count, room.begin());
            head.erase(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(count));
            return count;
        }
        return take(room);
    }

    Result<std::size_t> read_packed(std::span<std::byte> room) {
        for (;;) {
            TRY_ASSIGN(const std::size_t written, inflater->fill(room));
            if (written > 0) {
                return written;
            }
            block.resize(text_block_bytes);
            TRY_ASSIGN(const std::size_t count, take(block));
            if (count == 0) {
                TRY(inflater->end());
                return 0;
            }
            inflater->feed(ByteView(block).first(count));
        }
    }
};

TextStream::TextStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

Result<TextStream> TextStream::open(const std::filesystem::path& path, std::uint64_t limit) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->limit = limit;
    errno = 0;
    state->file.open(path, std::ios::binary);
    if (!state->file) {
        return fail(access_error(path, "open", errno));
    }
    std::error_code code;
    state->size = std::filesystem::file_size(path, code);
    if (code) {
        return fail(access_error(path, "read its size", code.value()));
    }
    state->head.resize(2);
    TRY_ASSIGN(const std::size_t count, state->take(state->head));
    state->head.resize(count);
    if (is_gzip(state->head)) {
        state->block = std::move(state->head);
        state->head.clear();
        state->inflater.emplace();
        state->inflater->feed(state->block);
    }
    return TextStream(std::move(state));
}

Result<std::size_t> TextStream::read(std::span<std::byte> room) {
    State& state = *state_;
    auto count = state.inflater ? state.read_packed(room) : state.read_plain(room);
    if (!count) {
        return fail(with_context(std::move(count).error(), state.path.string()));
    }
    state.given += *count;
    if (state.inflater) {
        TRY(check_inflated(state.given, state.taken, state.limit).map_error([&](Error error) {
            return with_context(std::move(error), state.path.string());
        }));
    } else if (state.given > state.limit) {
        return fail(ErrorKind::overloaded, "too_large",
                    fmt::format("{}: more than {} bytes", state.path.string(), state.limit));
    }
    return count;
}

double TextStream::progress() const {
    return state_->size == 0
               ? 1.0
               : std::clamp(static_cast<double>(state_->taken) / static_cast<double>(state_->size), 1e-9, 1.0);
}

}  // namespace causeway
