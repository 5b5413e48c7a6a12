// See head_file.h.
#include "coordinator/head_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crash_point.h"
#include "common/file.h"
#include "coordinator/row_sums.h"

namespace causeway {
namespace {

constexpr std::string_view magic = "CWHD";
constexpr std::uint16_t version = 1;
constexpr std::uint64_t longest_file = std::uint64_t{4} << 30;
constexpr std::size_t longest_name = 1 << 16;

void put_changes(ByteWriter& out, const std::vector<RowChange>& changes) {
    out.put(static_cast<std::uint32_t>(changes.size()));
    for (const auto& change : changes) {
        out.put_text(change.table);
        put_row(out, change.before);
        put_row(out, change.after);
    }
}

Result<std::vector<RowChange>> get_changes(ByteReader& in) {
    TRY_ASSIGN(const auto count, in.get<std::uint32_t>());
    std::vector<RowChange> changes;
    for (std::uint32_t i = 0; i < count; ++i) {
        RowChange change;
        TRY_ASSIGN(change.table, in.get_text(longest_name));
        TRY_ASSIGN(change.before, get_row(in));
        TRY_ASSIGN(change.after, get_row(in));
        changes.push_back(std::move(change));
    }
    return changes;
}

Result<HeadRecord> get_record(ByteView payload) {
    ByteReader in(payload);
    TRY_ASSIGN(const auto written_by, in.get<std::uint16_t>());
    if (written_by != version) {
        return fail(ErrorKind::unsupported, "newer_format", "another version of the format");
    }
    HeadRecord record;
    TRY_ASSIGN(record.kind, in.get<HeadRecord::Kind>());
    TRY_ASSIGN(record.sequence, in.get<std::uint64_t>());
    TRY_ASSIGN(record.chain, in.get<Digest>());
    TRY_ASSIGN(record.total, in.get<Digest>());
    TRY_ASSIGN(record.changes, get_changes(in));
    TRY_ASSIGN(const auto experiments, in.get<std::uint32_t>());
    for (std::uint32_t i = 0; i < experiments; ++i) {
        HeadExperiment one;
        TRY_ASSIGN(one.experiment, in.get<std::uint64_t>());
        TRY_ASSIGN(one.name, in.get_text(longest_name));
        TRY_ASSIGN(one.state, in.get_text(longest_name));
        TRY_ASSIGN(one.last_round, in.get<std::int64_t>());
        TRY_ASSIGN(one.model, in.get<Digest>());
        record.experiments.push_back(std::move(one));
    }
    return record;
}

/// The payload of a record that begins here; nothing where none does, or a damaged one.
std::optional<ByteView> payload_at(ByteView file) {
    ByteReader in(file.subspan(magic.size()));
    const auto size = in.get<std::uint32_t>();
    const auto payload = size ? in.get_bytes(*size) : Result<ByteView>(fail(size.error()));
    const auto check = payload ? in.get<Digest>() : Result<Digest>(fail(payload.error()));
    const bool whole = check && sha256(file.subspan(magic.size(), sizeof *size + *size)) == *check;
    return whole ? std::optional(*payload) : std::nullopt;
}

tl::unexpected<Error> write_failure(const std::filesystem::path& path, std::string_view doing) {
    const int reason = errno;
    return fail(ErrorKind::io, reason == ENOSPC || reason == EDQUOT ? "disk_full" : "io",
                path.string() + ": cannot " + std::string(doing) + ": " + std::strerror(reason));
}

}  // namespace

Bytes encode_head_record(const HeadRecord& record) {
    ByteWriter payload;
    payload.put(version);
    payload.put(record.kind);
    payload.put(record.sequence);
    payload.put(record.chain);
    payload.put(record.total);
    put_changes(payload, record.changes);
    payload.put(static_cast<std::uint32_t>(record.experiments.size()));
    for (const auto& one : record.experiments) {
        payload.put(one.experiment);
        payload.put_text(one.name);
        payload.put_text(one.state);
        payload.put(one.last_round);
        payload.put(one.model);
    }
    const auto body = payload.take();
    ByteWriter out;
    out.put(static_cast<std::uint32_t>(body.size()));
    out.put_bytes(body);
    const auto checked = out.take();
    ByteWriter whole;
    whole.put_bytes(as_bytes(magic));
    whole.put_bytes(checked);
    whole.put(sha256(checked));
    return whole.take();
}

HeadContents decode_head(ByteView file) {
    HeadContents contents;
    const auto text = as_text(file);
    std::size_t at = 0;      // where a record ought to begin
    std::size_t looked = 0;  // and where one is looked for
    while (at < file.size()) {
        looked = std::max(looked, at);
        const auto found = text.find(magic, looked);
        if (found == std::string_view::npos) {
            break;
        }
        const auto payload = payload_at(file.subspan(found));
        auto record = payload ? get_record(*payload) : Result<HeadRecord>(fail(ErrorKind::corrupt, "bad_record", ""));
        const bool follows = record && (contents.empty() || record->sequence > contents.last().sequence ||
                                        record->kind == HeadRecord::Kind::state);
        if (!follows) {
            looked = found + 1;
            continue;
        }
        contents.damaged = contents.damaged || found != at;
        contents.records.push_back(*std::move(record));
        at = found + magic.size() + sizeof(std::uint32_t) + payload->size() + sizeof(Digest);
    }
    contents.torn = at < file.size();
    return contents;
}

Digest head_chain(const Digest& before, const std::vector<RowChange>& changes) {
    ByteWriter body;
    put_changes(body, changes);
    ByteWriter both;
    both.put(before);
    both.put(sha256(body.take()));
    return sha256(both.take());
}

Result<HeadContents> read_head(const std::filesystem::path& state) {
    const auto bytes = read_file(state / "coordinator.head", longest_file);
    if (!bytes) {
        return bytes.error().kind == ErrorKind::not_found ? Result<HeadContents>(HeadContents{}) : fail(bytes.error());
    }
    return decode_head(*bytes);
}

HeadFile::~HeadFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

Status HeadFile::begin(const HeadRecord& record) {
    const auto bytes = encode_head_record(record);
    TRY(write_file_durably(path_, bytes, FileMode::secret));
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor_ < 0) {
        return write_failure(path_, "open");
    }
    size_ = bytes.size();
    appended_ = 0;
    return {};
}

// One write. What a full disk has let through of it is taken back, so that the next record follows the last one.
Status HeadFile::append(const HeadRecord& record) {
    const auto bytes = encode_head_record(record);
    ssize_t written = -1;
    do {
        written = descriptor_ < 0 ? -1 : ::write(descriptor_, bytes.data(), bytes.size());
    } while (written < 0 && descriptor_ >= 0 && errno == EINTR);
    if (written != static_cast<ssize_t>(bytes.size())) {
        errno = written < 0 ? errno : ENOSPC;
        auto failure = write_failure(path_, "write");
        (void)(descriptor_ >= 0 && ::ftruncate(descriptor_, static_cast<off_t>(size_)) == 0);
        return failure;
    }
    size_ += bytes.size();
    appended_ += bytes.size();
    crash_point("head.unflushed", path_);
    return {};
}

}  // namespace causeway
