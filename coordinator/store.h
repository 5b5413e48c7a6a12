// The coordinator's memory across restarts: experiments, the decision log, commits, enrolment, the audit chain.
//
// It executes the persists of one step of the machines in one transaction, so that after a kill at any instruction
// the folder holds the state after some step, never between two. Snapshots are files (coordinator/snapshots.h) and are
// durable before the commit that names them. coordinator/schema.cpp documents the tables.
// Thread: one store thread owns it. All functions: errors of coordinator/database.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>

#include "common/time.h"
#include "coordinator/database.h"
#include "coordinator/recovered.h"
#include "coordinator/store_journal.h"

namespace causeway {

struct StoreOptions {
    DatabaseOptions database;
    std::span<const char* const> migrations;                     // empty: this build's (coordinator/schema.h)
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;  // dates the audit log
    bool must_exist = false;  // the folder's identity has been used: an empty store would be a forgotten federation
};

class Store {
public:
    /// Opens STATE/coordinator.db (making it when there is none), migrates it and raises the epoch, durably.
    ///
    /// errors   unsupported `newer_format`: a newer release wrote it; refused `state_in_use`; corrupt `store_lost`: it
    ///          had to exist and does not, or is empty; `store_damaged`, `store_behind`: it is not what was written, or
    ///          older (store_check.h): nothing is changed then
    /// cost     reads the whole database; some flushes
    static Result<Store> open(const std::filesystem::path& state, StoreOptions options = {});

    /// All of it or nothing, durable when it returns. Executing a commit or a status again changes nothing, so a step
    /// that failed (disk full) may be tried again as it is.
    ///
    /// errors   refused `terminal_state`: the experiment is over, its state is final;
    ///          refused `commit_conflict`: the round is committed with another model, or rounds are missing before it
    /// cost     1 flush; none for an empty list
    Status execute(std::span<const Persist> persists);

    /// All that the machines need to go on. cost: reads every commit of every experiment, without its members' times;
    /// memory that does not depend on how many rounds there are
    Result<Recovered> load();
    /// Committed rounds from `from` on, ascending, `count` at most. cost: two look-ups a round
    Result<std::vector<StoredRound>> rounds(ExperimentId experiment, std::uint32_t from, std::uint32_t count);

    /// The models that must stay: of each experiment the last `keep` commits, the best by accuracy, by loss and by its
    /// metric; pinned ones.
    Result<std::set<Digest>> named_models(std::uint32_t keep = 3);
    Status pin_model(const Digest& model);

    /// Goes back to the commit of `to`, for the models behind it are damaged (coordinator/snapshot_check.h): their
    /// rounds are done again, and the decision log says with which model each was committed. One transaction, and a
    /// line of the audit log.
    Status rewind(ExperimentId experiment, std::uint32_t to, const std::string& why);

    /// Risen by one at each open; of a restored copy, beyond every one that was used since it was taken.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] std::uint64_t flushes() const { return database_.flushes(); }
    /// For coordinator/enrolment_store.h and coordinator/audit_store.h, which share the file and the thread.
    [[nodiscard]] Database& database() { return database_; }

private:
    Store(Database database, std::function<std::int64_t()> unix_now)
        : database_(std::move(database)), unix_now_(std::move(unix_now)) {}
    Status migrate(const std::filesystem::path& path, std::span<const char* const> migrations);
    Status check(const std::filesystem::path& state, const HeadContents& beside);
    Status raise_epoch(const HeadContents& beside);
    Status restore_copy(const HeadContents& beside);
    Status save(const SaveExperiment& experiment);
    Status audit(const SaveExperiment& experiment, const std::string& before);
    Status save(const SaveDecision& decision);
    Status save(const SaveCommit& commit);
    Status save(const SaveEvaluation& evaluation);
    Status save(const SaveDeclaration& declaration);
    Status save_participants(const SaveCommit& commit);
    /// True when this very commit is there already.
    Result<bool> is_repeated(const SaveCommit& commit);

    std::unique_ptr<StoreJournal> journal_;  // hears of changes until the database is closed
    Database database_;
    std::function<std::int64_t()> unix_now_;
    std::uint64_t epoch_ = 0;
};

}  // namespace causeway
