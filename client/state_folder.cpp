// Each file ends with the SHA-256 of what is before it: a disk that lost or changed bytes is found out before a
// residual of noise gets into an update. The format of the files is in the header.
#include "client/state_folder.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <system_error>

#include "client/state_migration.h"
#include "common/crash_point.h"
#include "common/log.h"
#include "common/spare_file.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

/// What a file begins with.
struct FileKind {
    std::string_view magic;
    std::uint16_t version;
};
constexpr FileKind base_kind{"CWBA", 1};
constexpr FileKind pending_kind{"CWPE", 2};
constexpr FileKind run_kind{"CWRU", 1};
constexpr std::size_t longest_name = 256;

void put_sections(ByteWriter& out, const StateSections& sections) {
    out.put(static_cast<std::uint32_t>(sections.size()));
    for (const auto& [name, bytes] : sections) {
        out.put_text(name);
        out.put(std::uint64_t{bytes.size()});
        out.put_bytes(bytes);
    }
}

Result<Bytes> get_sized(ByteReader& in) {
    TRY_ASSIGN(const auto size, in.get<std::uint64_t>());
    TRY_ASSIGN(const auto raw, in.get_bytes(size));
    return to_bytes(raw);
}

Result<StateSections> get_sections(ByteReader& in, std::uint32_t most) {
    TRY_ASSIGN(const auto count, in.get<std::uint32_t>());
    if (count > most) {
        return fail(ErrorKind::corrupt, "too_many_sections", "the state has more sections than it may");
    }
    StateSections sections;
    for (std::uint32_t i = 0; i < count; ++i) {
        TRY_ASSIGN(auto name, in.get_text(longest_name));
        TRY_ASSIGN(auto bytes, get_sized(in));
        sections.emplace(std::move(name), std::move(bytes));
    }
    return sections;
}

void put_held(ByteWriter& out, const HeldUpdate& held) {
    out.put(held.experiment);
    out.put(held.round);
    out.put(held.digest);
    out.put(held.bytes);
    out.put(held.weight);
    out.put(held.metrics.loss);
    out.put(held.metrics.examples);
    out.put(held.metrics.train_seconds);
    out.put(held.start_model);
}

Result<HeldUpdate> get_held(ByteReader& in) {
    HeldUpdate held;
    TRY_ASSIGN(held.experiment, in.get<std::uint64_t>());
    TRY_ASSIGN(held.round, in.get<std::uint32_t>());
    TRY_ASSIGN(held.digest, in.get<Digest>());
    TRY_ASSIGN(held.bytes, in.get<std::uint64_t>());
    TRY_ASSIGN(held.weight, in.get<std::int64_t>());
    TRY_ASSIGN(held.metrics.loss, in.get<double>());
    TRY_ASSIGN(held.metrics.examples, in.get<std::uint64_t>());
    TRY_ASSIGN(held.metrics.train_seconds, in.get<double>());
    TRY_ASSIGN(held.start_model, in.get<Digest>());
    return held;
}

/// For files whose staying does no harm: the next start finds and resolves them.
void remove_quietly(const fs::path& path) {
    std::error_code ignored;
    fs::remove(path, ignored);
}

ByteWriter begin_file(const FileKind& kind) {
    ByteWriter out;
    out.put_bytes(as_bytes(kind.magic));
    out.put(kind.version);
    return out;
}

/// `tail` follows the check and is not part of what it covers.
Status write_checked(const fs::path& path, const fs::path& spare, ByteWriter out, ByteView tail = {}) {
    auto bytes = out.take();
    const auto check = sha256(bytes);
    bytes.reserve(bytes.size() + check.bytes.size() + tail.size());
    bytes.insert(bytes.end(), check.bytes.begin(), check.bytes.end());
    bytes.insert(bytes.end(), tail.begin(), tail.end());
    return write_file_durably_over(spare, path, bytes, FileMode::secret);
}

tl::unexpected<Error> damaged_state(const fs::path& path, std::string_view what) {
    return fail(ErrorKind::corrupt, "state_damaged",
                path.string() + ": " + std::string(what) +
                    ". It holds what this node keeps from round to round, which nobody else has: put the file back "
                    "from a copy, and the model's bits stay. Without one, have the experiment cancelled; to go on all "
                    "the same move the file away, and the model will be another than that of an undisturbed run");
}

/// The contents between magic and a check of `tail` bytes before the end; empty when there is no such file.
Result<std::optional<Bytes>> read_checked(const fs::path& path, const FileKind& kind, std::uint64_t limit,
                                          const std::function<Result<std::size_t>(ByteView)>& tail_size) {
    auto bytes = read_file(path, limit);
    if (!bytes && bytes.error().kind == ErrorKind::not_found) {
        return std::optional<Bytes>{};
    }
    TRY(bytes);
    const auto head = kind.magic.size() + sizeof kind.version;
    if (bytes->size() < head + sizeof(Digest) || as_text(*bytes).substr(0, kind.magic.size()) != kind.magic) {
        return damaged_state(path, "not a state file");
    }
    const auto tail = tail_size(ByteView(*bytes).subspan(head));
    if (!tail || *tail > bytes->size() - head - sizeof(Digest)) {
        return damaged_state(path, "the contents are not what was written");
    }
    const auto body = ByteView(*bytes).first(bytes->size() - *tail - sizeof(Digest));
    if (!std::ranges::equal(sha256(body).bytes, ByteView(*bytes).subspan(body.size(), sizeof(Digest)))) {
        return damaged_state(path, "the contents are not what was written");
    }
    if (as_text(*bytes).substr(kind.magic.size(), sizeof kind.version) !=
        as_text(std::as_bytes(std::span(&kind.version, 1)))) {
        return damaged_state(path, "another version of the format");
    }
    auto contents = to_bytes(body.subspan(head));
    contents.insert(contents.end(), bytes->end() - static_cast<std::ptrdiff_t>(*tail), bytes->end());
    return std::optional(std::move(contents));
}

/// Whether a damaged pending file has no sections, so that the training that it came from makes it again. Its head may
/// be what is damaged: then the update, which is the rest of the file, still has the digest that the head names, or one
/// of which a byte was changed there.
bool is_bare(const fs::path& path, std::uint64_t limit) {
    ByteWriter held;
    put_held(held, HeldUpdate{});
    const auto begin = pending_kind.magic.size() + sizeof pending_kind.version;
    const auto digest_at = begin + sizeof(std::uint64_t) + sizeof(std::uint32_t);
    const auto sections_at = begin + held.size();
    const auto update_at = sections_at + sizeof(std::uint32_t) + sizeof(Digest);
    const auto file = read_file(path, limit);
    if (!file || file->size() < update_at) {
        return false;
    }
    const auto all = ByteView(*file);
    const auto head = all.first(sections_at + sizeof(std::uint32_t));
    if (std::ranges::equal(sha256(head).bytes, all.subspan(head.size(), sizeof(Digest)))) {
        const auto count = all.subspan(sections_at, sizeof(std::uint32_t));
        return std::ranges::all_of(count, [](std::byte byte) { return byte == std::byte{0}; });
    }
    const auto digest = sha256(all.subspan(update_at));
    const auto named = all.subspan(digest_at, sizeof(Digest));
    std::size_t differing = 0;
    for (std::size_t i = 0; i < sizeof(Digest); ++i) {
        differing += digest.bytes[i] != named[i] ? 1U : 0U;
    }
    return differing <= 1;
}

/// Evidence stays beside; the update is made again.
void set_damaged_aside(const fs::path& path) {
    std::error_code error;
    fs::rename(path, path.string() + ".damaged", error);
    log_warn("node", path.string() + ": an update that was waiting here was damaged; no state goes with it, and it is "
                                     "made again (the damaged one is beside it as .damaged)");
}

}  // namespace

struct StateFolder::Base {
    std::uint32_t round = 0;
    Digest update;
    StateSections sections;
};

struct StateFolder::Pending {
    HeldUpdate held;
    StateSections sections;
    Bytes update;
};

Result<StateFolder> StateFolder::open(const fs::path& state, StateLimits limits) {
    TRY(make_private_folder(state));
    TRY(make_private_folder(state / "experiments"));
    StateFolder folder(state, limits);
    TRY(bring_up_to_date(state));
    TRY(folder.clear_leftovers());
    return folder;
}

Status StateFolder::clear_leftovers() const {
    std::error_code ignored;
    std::vector<fs::path> unfinished;
    for (const auto& entry : fs::directory_iterator(folder_ / "experiments", ignored)) {
        if (entry.path().extension() == ".tmp" || entry.path().extension() == ".spare") {
            unfinished.push_back(entry.path());
        }
    }
    for (const auto& path : unfinished) {
        fs::remove(path, ignored);
    }
    for (const auto experiment : experiments(".pending")) {
        TRY_ASSIGN(const auto base, read_base(base_path(experiment)));
        auto pending = read_pending(experiment);
        if (!pending && pending.error().kind == ErrorKind::corrupt && base.sections.empty() &&
            is_bare(pending_path(experiment), limits_.file_bytes)) {
            set_damaged_aside(pending_path(experiment));
            continue;
        }
        TRY(pending);
        if (*pending && (*pending)->held.digest == base.update && (*pending)->held.round == base.round) {
            remove_quietly(pending_path(experiment));
        }
    }
    return {};
}

std::vector<std::uint64_t> StateFolder::experiments(std::string_view extension) const {
    std::vector<std::uint64_t> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_ / "experiments", ignored)) {
        const auto name = entry.path().stem().string();
        std::uint64_t id = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
        if (entry.path().extension() == extension && error == std::errc{} && end == name.data() + name.size()) {
            found.push_back(id);
        }
    }
    std::ranges::sort(found);
    return found;
}

fs::path StateFolder::base_path(std::uint64_t experiment) const {
    return folder_ / "experiments" / (std::to_string(experiment) + ".base");
}

fs::path StateFolder::pending_path(std::uint64_t experiment) const {
    return folder_ / "experiments" / (std::to_string(experiment) + ".pending");
}

fs::path StateFolder::ended_path(std::uint64_t experiment) const {
    return folder_ / "experiments" / (std::to_string(experiment) + ".ended");
}

Result<StateFolder::Base> StateFolder::read_base(const fs::path& path) const {
    const auto nothing = [](ByteView) { return Result<std::size_t>(0); };
    TRY_ASSIGN(const auto bytes, read_checked(path, base_kind, limits_.file_bytes, nothing));
    Base base;
    if (bytes) {
        ByteReader in(*bytes);
        TRY_ASSIGN(base.round, in.get<std::uint32_t>());
        TRY_ASSIGN(base.update, in.get<Digest>());
        TRY_ASSIGN(base.sections, get_sections(in, limits_.sections));
    }
    return base;
}

Result<std::optional<StateFolder::Pending>> StateFolder::read_pending(std::uint64_t experiment) const {
    const auto path = pending_path(experiment);
    const auto update_size = [](ByteView contents) -> Result<std::size_t> {
        ByteReader in(contents);
        TRY_ASSIGN(const auto held, get_held(in));
        return static_cast<std::size_t>(held.bytes);
    };
    TRY_ASSIGN(const auto bytes, read_checked(path, pending_kind, limits_.file_bytes, update_size));
    if (!bytes) {
        return std::optional<Pending>{};
    }
    ByteReader in(*bytes);
    Pending pending;
    TRY_ASSIGN(pending.held, get_held(in));
    TRY_ASSIGN(pending.sections, get_sections(in, limits_.sections));
    TRY_ASSIGN(const auto update, in.get_bytes(in.left()));
    pending.update = to_bytes(update);
    if (pending.update.size() != pending.held.bytes || sha256(pending.update) != pending.held.digest) {
        return damaged_state(path, "the update in it is not what was written");
    }
    return std::optional(std::move(pending));
}

Result<StateSections> StateFolder::base(std::uint64_t experiment, const std::vector<std::uint64_t>& continues) const {
    std::vector<fs::path> places{base_path(experiment)};
    for (const auto before : continues) {
        places.push_back(base_path(before));  // its end has not been heard of here
        places.push_back(ended_path(before));
    }
    std::error_code ignored;
    for (const auto& place : places) {
        if (fs::exists(place, ignored)) {
            TRY_ASSIGN(auto base, read_base(place));
            return std::move(base.sections);
        }
    }
    return StateSections{};
}

std::vector<std::uint64_t> StateFolder::kept() const {
    return experiments(".base");
}

bool StateFolder::keeps(std::uint64_t experiment) const {
    std::error_code ignored;
    return fs::exists(base_path(experiment), ignored) || fs::exists(pending_path(experiment), ignored);
}

// One durable rename makes the update and its state appear together; an offer may be sent after it.
Status StateFolder::hold(const HeldUpdate& held, const StateSections& sections, ByteView update) {
    if (update.size() != held.bytes) {
        return fail(ErrorKind::invalid, "digest_mismatch", "the update to hold is not the one that is described");
    }
    ASSERT(sections.size() <= limits_.sections);
    auto out = begin_file(pending_kind);
    put_held(out, held);
    put_sections(out, sections);
    bare_.erase(held.experiment);
    TRY(write_checked(pending_path(held.experiment), spare_path(held.experiment), std::move(out), update));
    if (sections.empty()) {
        bare_[held.experiment] = held.digest;
    }
    remove_quietly(run_path(held.experiment));  // left over it would be asked for another round, and go then
    return {};
}

fs::path StateFolder::run_path(std::uint64_t experiment) const {
    return folder_ / "experiments" / (std::to_string(experiment) + ".running");
}

Status StateFolder::keep_run(std::uint64_t experiment, const KeptRun& run) {
    auto out = begin_file(run_kind);
    out.put(run.round);
    out.put(run.start_model);
    out.put(run.job);
    out.put(std::uint64_t{run.run.size()});
    out.put_bytes(run.run);
    const auto path = run_path(experiment);
    return write_checked(path, path.string() + ".tmp", std::move(out));
}

Result<std::optional<KeptRun>> StateFolder::read_run(const fs::path& path) const {
    const auto nothing = [](ByteView) { return Result<std::size_t>(0); };
    TRY_ASSIGN(const auto bytes, read_checked(path, run_kind, limits_.file_bytes, nothing));
    if (!bytes) {
        return std::optional<KeptRun>{};
    }
    ByteReader in(*bytes);
    KeptRun run;
    TRY_ASSIGN(run.round, in.get<std::uint32_t>());
    TRY_ASSIGN(run.start_model, in.get<Digest>());
    TRY_ASSIGN(run.job, in.get<Digest>());
    TRY_ASSIGN(run.run, get_sized(in));
    return std::optional(std::move(run));
}

/// It only saves work, so what is wrong with it is no failure: the round is trained from its start.
std::optional<KeptRun> StateFolder::kept_run(std::uint64_t experiment, std::uint32_t round, const Digest& start_model) {
    auto run = read_run(run_path(experiment));
    if (run && *run && (*run)->round == round && (*run)->start_model == start_model) {
        return *std::move(run);
    }
    if (!run && run.error().kind == ErrorKind::corrupt) {
        log_warn("node", run_path(experiment).string() + ": a training under way was damaged, and begins anew");
    }
    remove_quietly(run_path(experiment));
    return std::nullopt;
}

fs::path StateFolder::spare_path(std::uint64_t experiment) const {
    return folder_ / "experiments" / (std::to_string(experiment) + ".spare");
}

/// The next hold writes over it. One that stays pending instead does no harm either.
void StateFolder::set_aside_pending(std::uint64_t experiment) const {
    std::error_code ignored;
    fs::rename(pending_path(experiment), spare_path(experiment), ignored);
    crash_point("state.set_aside", spare_path(experiment));
}

/// When this update is pending and neither it nor the base has sections, there is nothing to promote or to undo: it is
/// set aside, whatever the verdict.
bool StateFolder::resolve_bare(std::uint64_t experiment, const Digest& update) {
    const auto bare = bare_.find(experiment);
    std::error_code ignored;
    if (bare == bare_.end() || bare->second != update || fs::exists(base_path(experiment), ignored)) {
        return false;
    }
    set_aside_pending(experiment);
    bare_.erase(bare);
    return true;
}

// Base first, then pending goes: killed in between, the next start sees that the base is this pending's.
Status StateFolder::commit(std::uint64_t experiment, const Digest& update) {
    if (resolve_bare(experiment, update)) {
        return {};
    }
    TRY_ASSIGN(const auto pending, read_pending(experiment));
    if (!pending || pending->held.digest != update) {
        return {};
    }
    auto out = begin_file(base_kind);
    out.put(pending->held.round);
    out.put(update);
    put_sections(out, pending->sections);
    TRY(write_checked(base_path(experiment), base_path(experiment).string() + ".tmp", std::move(out)));
    crash_point("state.promoted", base_path(experiment));
    set_aside_pending(experiment);
    return {};
}

// Base was never touched, so one removal undoes the round.
Status StateFolder::rollback(std::uint64_t experiment, const Digest& update) {
    if (resolve_bare(experiment, update)) {
        return {};
    }
    TRY_ASSIGN(const auto pending, read_pending(experiment));
    if (pending && pending->held.digest == update) {
        remove_quietly(pending_path(experiment));
    }
    return {};
}

Result<std::vector<HeldUpdate>> StateFolder::held() const {
    std::vector<HeldUpdate> held;
    for (const auto experiment : experiments(".pending")) {
        TRY_ASSIGN(const auto pending, read_pending(experiment));
        if (pending) {
            held.push_back(pending->held);
        }
    }
    return held;
}

Result<Bytes> StateFolder::update(const Digest& digest) const {
    for (const auto experiment : experiments(".pending")) {
        TRY_ASSIGN(auto pending, read_pending(experiment));
        if (pending && pending->held.digest == digest) {
            return std::move(pending->update);
        }
    }
    return fail(ErrorKind::not_found, "unknown_update", "no update with digest " + digest.short_hex() + " is held");
}

Status StateFolder::forget(std::uint64_t experiment) {
    // The base first: a kill in between leaves a pending update, whose experiment the coordinator will end again.
    remove_quietly(spare_path(experiment));
    remove_quietly(run_path(experiment));
    TRY(keep_ended(experiment));
    crash_point("state.half_forgotten", base_path(experiment));
    std::error_code error;
    fs::remove(pending_path(experiment), error);
    return error ? fail(ErrorKind::io, "io", pending_path(experiment).string() + ": cannot remove: " + error.message())
                 : Status{};
}

/// Not flushed: after a power cut the base is there under one of its two names, and the end is heard again.
Status StateFolder::keep_ended(std::uint64_t experiment) {
    const auto from = base_path(experiment);
    std::error_code error;
    const auto base = read_base(from);
    if (base && !base->sections.empty()) {
        fs::rename(from, ended_path(experiment), error);
    } else {
        fs::remove(from, error);  // nothing that a resumed experiment would need, or damaged
    }
    if (error) {
        return fail(ErrorKind::io, "io", from.string() + ": cannot remove: " + error.message());
    }
    const auto ended = experiments(".ended");
    for (std::size_t i = 0; i + limits_.ended_bases < ended.size(); ++i) {
        remove_quietly(ended_path(ended[i]));
    }
    return {};
}

}  // namespace causeway::node
