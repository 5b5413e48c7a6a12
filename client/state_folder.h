// What a client remembers between rounds, in two phases: `base`, and `pending` until the coordinator has spoken.
//
// Residuals, control variates, moments and the data cursor advance with each update, but only if that update counts.
// So a finished training writes its new sections beside the base, together with the encoded update, and keeps both
// until `committed` names the update: counted, pending becomes base; otherwise pending goes and base stays. Every step
// is one rename or one removal, so a kill at any instruction leaves the state before or after it.
//
//   STATE/format                        "2": an older one is brought up to date (state_migration.h), a newer refused
//   STATE/experiments/<id>.base         what the last counted update left
//   STATE/experiments/<id>.pending      the held update with the state that goes with it
//   STATE/experiments/<id>.ended        the base of an experiment that is over: one that is resumed goes on with it
//   STATE/experiments/<id>.spare        a pending file that is over, to be written over; without meaning
//   STATE/experiments/<id>.running      a training under way, to go on with after a restart, until its update is held
//
//   base     := "CWBA" u16 1, u32 round, digest update, sections, check
//   pending  := "CWPE" u16 2, held, sections, check, update[held.bytes]
//   running  := "CWRU" u16 1, u32 round, digest start_model, digest job, u64 size, bytes[size], check
//   held     := u64 experiment, u32 round, digest, u64 bytes, i64 weight, f64 loss, u64 examples, f64 seconds,
//               digest start_model
//   sections := u32 count, (text name, u64 size, bytes[size])[count]          check := SHA-256 of all before it
//
// The update is checked by its own digest, so it is hashed once in its life here. Where an experiment keeps no sections
// there is nothing to promote: no base is written, and the word about an update costs one removal.
//
// Update and state are one file, so they appear at the same instant. Promotion writes the new base, then removes
// pending; a kill between the two leaves a pending that the base already names: the next start removes it. A removal
// that a power cut undoes does no harm: the client asks again and gets the same answer.
// Thread: one owner at a time.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/file.h"
#include "wire/message.h"

namespace causeway::node {

/// Named pieces of client state: "residual", "control_variate", "momentum", "data_cursor".
using StateSections = std::map<std::string, Bytes>;

/// A training under way as it was at a snapshot, and which training that is.
struct KeptRun {
    std::uint32_t round = 0;
    Digest start_model;
    Digest job;  // of all that decides its bits: training_work.h
    Bytes run;   // model/run_snapshot.h
    bool operator==(const KeptRun&) const = default;
};

struct StateLimits {
    std::uint64_t file_bytes = std::uint64_t{8} << 30;
    std::uint32_t sections = 64;
    std::size_t ended_bases = 8;  // a person resumes one of the last few, if any
};

/// errors of all its functions: io (`disk_full`): nothing has changed; corrupt `state_damaged`: a file is damaged that
/// nobody can make again. One that can is set aside or removed, and said in the log: a waiting update without sections.
class StateFolder {
public:
    /// Makes the folder if need be, checks its format and clears what a kill left half done.
    ///
    /// errors   refused: others can read it; unsupported `newer_format`; corrupt: of an older format, and damaged
    static Result<StateFolder> open(const std::filesystem::path& state, StateLimits limits = {});

    /// The sections with which the next training of this experiment starts; empty before the first counted update.
    /// Before that a resumed one starts with those of the first of `continues` that has any.
    [[nodiscard]] Result<StateSections> base(std::uint64_t experiment,
                                             const std::vector<std::uint64_t>& continues = {}) const;
    /// Experiments with a base, not those that are over; ascending.
    [[nodiscard]] std::vector<std::uint64_t> kept() const;
    /// Whether there is a base, or an update that waits for the coordinator's word.
    [[nodiscard]] bool keeps(std::uint64_t experiment) const;

    /// Keeps an update and the state that goes with it, durably, in place of an earlier pending one.
    ///
    /// `held.digest` must be the update's SHA-256: it is what will be verified when the update is read again.
    ///
    /// errors   invalid `digest_mismatch`: not of the size that is described
    /// cost     2 flushes
    Status hold(const HeldUpdate& held, const StateSections& sections, ByteView update);

    /// pending becomes base. Without effect unless exactly this update is pending.
    ///
    /// cost     2 flushes; none without sections
    Status commit(std::uint64_t experiment, const Digest& update);
    /// pending goes, base stays. Without effect unless exactly this update is pending.
    Status rollback(std::uint64_t experiment, const Digest& update);

    /// Keeps a training under way, durably, in place of an earlier snapshot; an update that is held replaces it.
    ///
    /// cost     2 flushes
    Status keep_run(std::uint64_t experiment, const KeptRun& run);
    /// What was kept of the training of this round from this model. Of any other, or damaged: nothing, and it goes.
    [[nodiscard]] std::optional<KeptRun> kept_run(std::uint64_t experiment, std::uint32_t round,
                                                  const Digest& start_model);

    /// The updates that wait for the coordinator's word; for Hello.
    [[nodiscard]] Result<std::vector<HeldUpdate>> held() const;
    /// The bytes of a held update, verified. errors: not_found
    [[nodiscard]] Result<Bytes> update(const Digest& digest) const;

    /// The experiment is over: its state goes, but for the base, of the newest `ended_bases` experiments that have one
    /// with sections.
    Status forget(std::uint64_t experiment);

private:
    StateFolder(std::filesystem::path folder, StateLimits limits) : folder_(std::move(folder)), limits_(limits) {}
    struct Base;
    struct Pending;
    Status clear_leftovers() const;
    /// Experiments with a file of this extension, ascending.
    [[nodiscard]] std::vector<std::uint64_t> experiments(std::string_view extension) const;
    [[nodiscard]] std::filesystem::path ended_path(std::uint64_t experiment) const;
    Status keep_ended(std::uint64_t experiment);
    [[nodiscard]] Result<std::optional<KeptRun>> read_run(const std::filesystem::path& path) const;
    [[nodiscard]] std::filesystem::path run_path(std::uint64_t experiment) const;
    [[nodiscard]] std::filesystem::path base_path(std::uint64_t experiment) const;
    [[nodiscard]] std::filesystem::path pending_path(std::uint64_t experiment) const;
    [[nodiscard]] Result<std::optional<Pending>> read_pending(std::uint64_t experiment) const;
    [[nodiscard]] Result<Base> read_base(const std::filesystem::path& path) const;
    void set_aside_pending(std::uint64_t experiment) const;
    [[nodiscard]] std::filesystem::path spare_path(std::uint64_t experiment) const;
    [[nodiscard]] bool resolve_bare(std::uint64_t experiment, const Digest& update);

    std::filesystem::path folder_;
    StateLimits limits_;
    std::map<std::uint64_t, Digest> bare_;  // pending without sections, by experiment: written by this process
};

}  // namespace causeway::node
