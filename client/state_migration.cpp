// Bytes only: what they mean is state_folder.h's.
#include "client/state_migration.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/bytes.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_migrated_file = std::uint64_t{8} << 30;
constexpr std::size_t magic_bytes = 4;
constexpr std::size_t update_digest_at = magic_bytes + 2 + 8 + 4;  // after version, experiment, round
constexpr std::size_t update_size_at = update_digest_at + sizeof(Digest);
constexpr std::uint16_t old_version = 1;
constexpr std::uint16_t new_version = 2;

tl::unexpected<Error> damaged_format(const fs::path& path) {
    return fail(ErrorKind::corrupt, "state_damaged",
                path.string() + ": the contents are not what was written; move it away and join the next round afresh");
}

tl::unexpected<Error> io(const fs::path& path, const std::error_code& error) {
    return fail(ErrorKind::io, error == std::errc::no_space_on_device ? "disk_full" : "io",
                path.string() + ": " + error.message());
}

/// Linked where the disk can do that, copied elsewhere. Complete under its name, or not there.
Status keep_copy(const fs::path& from, const fs::path& to) {
    std::error_code error;
    if (fs::exists(to, error)) {
        return {};
    }
    const fs::path unfinished = to.string() + ".tmp";
    fs::remove_all(unfinished, error);
    TRY(make_private_folder(unfinished));
    for (const auto& entry : fs::directory_iterator(from, error)) {
        const auto name = unfinished / entry.path().filename();
        fs::create_hard_link(entry.path(), name, error);
        if (error) {
            error.clear();
            fs::copy_file(entry.path(), name, error);
        }
        if (error) {
            break;
        }
    }
    if (error) {
        return io(unfinished, error);
    }
    return rename_durably(unfinished, to);
}

/// The part that the check covers, and the update; none where the check does not hold.
struct PendingParts {
    ByteView head;
    ByteView update;
};

bool holds(ByteView covered, ByteView check) {
    return std::ranges::equal(sha256(covered).bytes, check);
}

/// With the update behind the check, as it is now.
std::optional<PendingParts> read_split(ByteView file, std::size_t update) {
    if (file.size() < update_size_at + sizeof update + sizeof(Digest) + update) {
        return std::nullopt;
    }
    const auto head = file.first(file.size() - update - sizeof(Digest));
    return holds(head, file.subspan(head.size(), sizeof(Digest))) ? std::optional(PendingParts{head, file.last(update)})
                                                                  : std::nullopt;
}

/// With the update's size and bytes before it, as it was.
std::optional<PendingParts> read_joined(ByteView file, std::size_t update) {
    const auto size_bytes = sizeof(std::uint64_t);
    if (file.size() < update_size_at + size_bytes + size_bytes + update + sizeof(Digest)) {
        return std::nullopt;
    }
    const auto covered = file.first(file.size() - sizeof(Digest));
    const auto head = covered.first(covered.size() - update - size_bytes);
    return holds(covered, file.last(sizeof(Digest))) ? std::optional(PendingParts{head, covered.last(update)})
                                                     : std::nullopt;
}

Status migrate_pending(const fs::path& path) {
    TRY_ASSIGN(const auto file, read_file(path, largest_migrated_file));
    ByteReader in(file);
    const auto magic = in.get_bytes(magic_bytes);
    const auto version = in.get<std::uint16_t>();
    ByteReader sizes(ByteView(file).subspan(std::min(file.size(), update_size_at)));
    const auto update = sizes.get<std::uint64_t>();
    if (!magic || as_text(*magic) != "CWPE" || !version || !update || *update > file.size()) {
        return damaged_format(path);
    }
    if (*version == new_version) {
        return {};  // before a kill
    }
    auto parts = read_split(file, static_cast<std::size_t>(*update));
    parts = parts ? parts : read_joined(file, static_cast<std::size_t>(*update));
    if (!parts || *version != old_version ||
        !holds(parts->update, parts->head.subspan(update_digest_at, sizeof(Digest)))) {
        return damaged_format(path);
    }
    ByteWriter out;
    out.put_bytes(parts->head.first(magic_bytes));
    out.put(new_version);
    out.put_bytes(parts->head.subspan(magic_bytes + sizeof new_version));
    auto bytes = out.take();
    const auto check = sha256(bytes);
    bytes.insert(bytes.end(), check.bytes.begin(), check.bytes.end());
    bytes.insert(bytes.end(), parts->update.begin(), parts->update.end());
    return write_file_durably(path, bytes, FileMode::secret);
}

Status from_1_to_2(const fs::path& state) {
    const auto folder = state / "experiments";
    TRY(keep_copy(folder, state / "experiments.format-1"));
    std::error_code error;
    std::vector<fs::path> pending;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() == ".pending") {
            pending.push_back(entry.path());
        }
    }
    if (error) {
        return io(folder, error);
    }
    for (const auto& path : pending) {
        TRY(migrate_pending(path));
    }
    log_info("node", fmt::format("{}: format 1 is now format 2; a copy of the old one is experiments.format-1",
                                 state.string()));
    return {};
}

}  // namespace

// The number is written durably when the folder is new; that flush also makes the folders made before it durable.
Status bring_up_to_date(const fs::path& state) {
    const auto path = state / "format";
    const auto bytes = read_file(path, 64);
    if (!bytes && bytes.error().kind != ErrorKind::not_found) {
        return fail(bytes.error());
    }
    const auto found = bytes ? std::string(trim(as_text(*bytes))) : std::string();
    if (found == state_format) {
        return {};
    }
    if (found == "1") {
        TRY(from_1_to_2(state));
    } else if (bytes) {
        return fail(ErrorKind::unsupported, "newer_format",
                    fmt::format("{}: the state folder has format {}, this build knows {}: install the release that "
                                "wrote it",
                                path.string(), found, state_format));
    }
    return write_file_durably(path, as_bytes(state_format));
}

}  // namespace causeway::node
