// One function per kind of persist, all called inside one transaction. Statements are prepared anew each time: that is
// little beside the transaction's flush, and nothing has to be kept valid across migrations.
#include "coordinator/store.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "common/json_lists.h"
#include "common/log.h"
#include "coordinator/audit_store.h"
#include "coordinator/decisions.h"
#include "coordinator/schema.h"
#include "coordinator/store_check.h"
#include "coordinator/store_load.h"
#include "coordinator/store_repair.h"

namespace causeway {
namespace {

Result<std::int64_t> single_integer(Database& database, const std::string& sql) {
    TRY_ASSIGN(auto query, database.prepare(sql));
    TRY(query.next());
    return query.integer(0);
}

/// A step's name for crash points: that of its weightiest persist.
const char* kind_of_step(std::span<const Persist> persists) {
    constexpr const char* kinds[] = {"experiment", "decision", "commit", "evaluation", "declaration"};
    static_assert(std::variant_size_v<Persist> == std::size(kinds));
    const auto is_commit = [](const Persist& persist) { return std::holds_alternative<SaveCommit>(persist); };
    return std::ranges::any_of(persists, is_commit) ? "commit" : kinds[persists.front().index()];
}

bool is_terminal(std::string_view state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

tl::unexpected<Error> lost(const std::filesystem::path& path) {
    return fail(ErrorKind::corrupt, "store_lost",
                path.string() +
                    " is missing or empty, though this folder's federation has been running: restore the "
                    "folder from a backup (docs/service.md); to begin a new federation, name a new folder");
}

}  // namespace

Result<Store> Store::open(const std::filesystem::path& state, StoreOptions options) {
    const auto path = state / "coordinator.db";
    std::error_code ignored;
    if (options.must_exist && !std::filesystem::exists(path, ignored)) {
        return lost(path);
    }
    TRY_ASSIGN(auto database, Database::open(path, options.database));
    TRY_ASSIGN(const auto format, single_integer(database, "PRAGMA user_version"));
    if (options.must_exist && format == 0) {
        return lost(path);
    }
    const auto migrations = options.migrations.empty() ? store_migrations() : options.migrations;
    const auto present = static_cast<std::int64_t>(migrations.size());
    if (format < 0 || format > present) {
        return fail(ErrorKind::unsupported, "newer_format",
                    fmt::format("{} has format {}, this build knows {}: a newer release wrote it; install that release",
                                path.string(), format, present));
    }
    Store store(std::move(database), std::move(options.unix_now));
    TRY_ASSIGN(const auto beside, read_head(state));
    if (format > 0) {
        TRY(store.check(state, beside));
    }
    store.database_.at_close(Database::AtClose::fold);
    TRY(store.migrate(path, migrations));
    TRY(store.database_.fold_log());
    TRY_ASSIGN(store.journal_, StoreJournal::attach(store.database_, state));
    TRY(store.raise_epoch(beside));
    return store;
}

// A copy that a backup made is older on purpose: its mark stands for the head (restore_copy). What can be made from the
// rows alone is made anew, and said: indexes, sums.
Status Store::check(const std::filesystem::path& state, const HeadContents& beside) {
    const HeadContents nothing;
    TRY_ASSIGN(auto mark, database_.prepare("SELECT 1 FROM meta WHERE key = 'copied'"));
    TRY_ASSIGN(const auto copied, mark.next());
    TRY_ASSIGN(const auto found, look_at_store(database_, copied ? nothing : beside));
    TRY(require_whole(database_, state, found));
    TRY_ASSIGN(auto wrong, database_.integrity());
    if (!wrong.empty()) {
        TRY(database_.run_script("REINDEX"));
        TRY_ASSIGN(const auto still, database_.integrity());
        if (!still.empty()) {
            return fail(ErrorKind::corrupt, "database_corrupt",
                        (state / "coordinator.db").string() + " is damaged though its rows are whole (" + still +
                            "): `causeway doctor --repair --state " + state.string() + "` writes it anew");
        }
        log_warn("coordinator", "an index of the store was damaged (" + wrong + ") and has been made anew");
    }
    if (found.sums_damaged) {
        log_warn("coordinator", "the store's sums were damaged, its rows are whole: the sums have been made anew");
        TRY(database_.transaction("sums", [&] { return write_sums(database_, found.sums, found.head); }));
    }
    const auto lags = !beside.empty() && !copied && beside.last().sequence < found.head.sequence;
    if (beside.damaged || (beside.empty() && found.head.sequence > 0 && !copied)) {
        log_warn("coordinator", "coordinator.head was damaged or is missing, the store is whole: it begins anew");
    } else if (lags || beside.torn) {
        log_info("coordinator", "coordinator.head lagged behind the store, as after a power cut: it begins anew");
    }
    return {};
}

// The copy is taken before the transaction: whatever a migration does, the old folder can be had back.
Status Store::migrate(const std::filesystem::path& path, std::span<const char* const> migrations) {
    TRY_ASSIGN(const auto format, single_integer(database_, "PRAGMA user_version"));
    const auto present = static_cast<std::int64_t>(migrations.size());
    if (format > 0 && format < present) {
        TRY(database_.copy_to(path.string() + ".format-" + std::to_string(format)));
    }
    if (format == present) {
        return {};
    }
    return database_.transaction("migration", [&]() -> Status {
        for (auto n = format; n < present; ++n) {
            TRY(database_.run_script(migrations[static_cast<std::size_t>(n)]));
        }
        TRY(database_.run_script("PRAGMA user_version=" + std::to_string(present)));
        // Columns may have come to rows: all sums are new, and so is the chain.
        TRY_ASSIGN(const auto tables, summed_tables(database_));
        TRY_ASSIGN(const auto sums, read_sums(database_, tables));
        TRY_ASSIGN(const auto before, stored_head(database_));
        return write_sums(database_, sums, {before->sequence + 1, before->chain, total_of(sums)});
    });
}

// A transaction of its own, before anything is promised: no two processes ever speak under one epoch, even when the
// first died before it said a word.
Status Store::raise_epoch(const HeadContents& beside) {
    TRY(database_.transaction("epoch", [&] {
        const auto raised = database_.run_script("UPDATE meta SET value = value + 1 WHERE key = 'epoch'");
        return raised ? restore_copy(beside) : raised;
    }));
    TRY_ASSIGN(const auto epoch, single_integer(database_, "SELECT value FROM meta WHERE key = 'epoch'"));
    epoch_ = static_cast<std::uint64_t>(epoch);
    return {};
}

// Of a copy that a backup made (its mark: coordinator/backup.cpp), at its first start. What happened since is not known
// here. Epochs count starts, and there is less than one a second: the second of this start is above all of them, those
// of earlier starts from the same copy too. A token that was unused then may be used by now, and works no more. Where a
// head lies beside the copy, it has been put into its old folder: revocations that the head knows stay.
Status Store::restore_copy(const HeadContents& beside) {
    TRY_ASSIGN(auto query, database_.prepare("SELECT value FROM meta WHERE key = 'copied'"));
    TRY_ASSIGN(const auto copied, query.next());
    if (!copied) {
        return {};
    }
    const auto now_s = unix_now_();
    auto detail = Json::object().set("copied_at", query.integer(0));
    TRY_ASSIGN(const auto tokens, single_integer(database_, "SELECT COUNT(*) FROM tokens WHERE used_by IS NULL"));
    TRY_ASSIGN(auto raise, database_.prepare("UPDATE meta SET value = MAX(value, ?) WHERE key = 'epoch'"));
    TRY(raise.bind(now_s).run());
    TRY(database_.run_script("DELETE FROM tokens WHERE used_by IS NULL; DELETE FROM meta WHERE key = 'copied'"));
    TRY(apply_revocations(database_, beside));
    TRY(AuditStore(database_).add(audit_line(now_s, "federation.restored", detail.set("tokens_dropped", tokens))));
    return {};
}

Status Store::execute(std::span<const Persist> persists) {
    if (persists.empty()) {
        return {};
    }
    return database_.transaction(kind_of_step(persists), [&]() -> Status {
        for (const auto& persist : persists) {
            TRY(std::visit([&](const auto& one) { return save(one); }, persist));
        }
        return {};
    });
}

// Compare-and-set against terminal states: a late message of another thread cannot revive what is over.
Status Store::save(const SaveExperiment& experiment) {
    TRY_ASSIGN(auto query, database_.prepare("SELECT state FROM experiments WHERE id = ?"));
    TRY_ASSIGN(const auto exists, query.bind(experiment.experiment).next());
    const auto before = exists ? query.text(0) : std::string();
    if (is_terminal(before) && before != experiment.state) {
        return fail(ErrorKind::refused, "terminal_state",
                    "experiment " + std::to_string(experiment.experiment) + " is " + before +
                        " for good and cannot become " + experiment.state);
    }
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO experiments (id, name, file, state, reason, submitted_by, "
                                             "parent, parent_round, build) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                                             "ON CONFLICT (id) DO UPDATE SET name = excluded.name, "
                                             "file = excluded.file, state = excluded.state, "
                                             "reason = excluded.reason, submitted_by = excluded.submitted_by, "
                                             "build = excluded.build"));
    TRY(write
            .bind(experiment.experiment, experiment.name, experiment.file, experiment.state, experiment.reason,
                  experiment.submitted_by, experiment.parent, experiment.parent_round, experiment.build)
            .run());
    return audit(experiment, before);
}

/// Two lines of an experiment's life, each once: who asked for it, and how it ended.
Status Store::audit(const SaveExperiment& experiment, const std::string& before) {
    auto detail = Json::object().set("experiment", experiment.experiment).set("name", experiment.name);
    if (before.empty()) {
        detail.set("file_sha256", sha256(experiment.file).hex()).set("by", experiment.submitted_by);
        TRY(AuditStore(database_).add(audit_line(unix_now_(), "experiment.submitted", detail)));
    } else if (is_terminal(experiment.state) && before != experiment.state) {
        detail.set("state", experiment.state).set("reason", experiment.reason);
        TRY(AuditStore(database_).add(audit_line(unix_now_(), "experiment.ended", detail)));
    }
    return {};
}

Status Store::save(const SaveDecision& decision) {
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO decisions (experiment, round, kind, detail) "
                                             "VALUES (?, ?, ?, ?)"));
    return write.bind(decision.experiment, decision.round, decision.kind, decision.detail.dump()).run();
}

Status Store::save(const SaveCommit& commit) {
    TRY_ASSIGN(const auto repeated, is_repeated(commit));
    if (repeated) {
        return {};
    }
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)"));
    TRY(write
            .bind(commit.experiment, commit.round, commit.model, commit.model_bytes, json_of(commit.next_cohort).dump(),
                  commit.summary.dump())
            .run());
    return save_participants(commit);
}

// Commits are numbered without gaps, from 0 or from the parent's round, so the last one says which may come next.
Result<bool> Store::is_repeated(const SaveCommit& commit) {
    TRY_ASSIGN(auto query, database_.prepare("SELECT model FROM commits WHERE experiment = ? AND round = ?"));
    TRY_ASSIGN(const auto exists, query.bind(commit.experiment, commit.round).next());
    if (exists) {
        TRY_ASSIGN(const auto model, query.digest(0));
        if (model == commit.model) {
            return true;
        }
    }
    TRY_ASSIGN(auto next, database_.prepare("SELECT COALESCE((SELECT MAX(round) + 1 FROM commits WHERE experiment = "
                                            "?1), (SELECT parent_round FROM experiments WHERE id = ?1), 0)"));
    TRY(next.bind(commit.experiment).next());
    if (exists || next.integer(0) != static_cast<std::int64_t>(commit.round)) {
        return fail(ErrorKind::refused, "commit_conflict",
                    "round " + std::to_string(commit.round) + " of experiment " + std::to_string(commit.experiment) +
                        " cannot be committed: the next one is " + std::to_string(next.integer(0)));
    }
    return false;
}

Status Store::save_participants(const SaveCommit& commit) {
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO participants VALUES (?, ?, ?, ?)"));
    for (const auto& [node, update] : commit.participants) {
        TRY(write.bind(commit.experiment, commit.round, node, update).run());
    }
    return {};
}

// Replaced when repeated: evaluation is a pure function of the model, done again after a restart.
Status Store::save(const SaveEvaluation& evaluation) {
    TRY_ASSIGN(auto write, database_.prepare("INSERT OR REPLACE INTO evaluations (experiment, round, loss, accuracy, "
                                             "examples, detail, worth) VALUES (?, ?, ?, ?, ?, ?, ?)"));
    return write
        .bind(evaluation.experiment, evaluation.round, evaluation.loss, evaluation.accuracy, evaluation.examples,
              evaluation.detail.dump(), evaluation.worth)
        .run();
}

// A declaration replaces the node's earlier one as a whole: a dataset that it no longer holds must not be scheduled.
Status Store::save(const SaveDeclaration& declaration) {
    TRY_ASSIGN(auto forget, database_.prepare("DELETE FROM datasets WHERE node = ?"));
    TRY(forget.bind(declaration.node).run());
    TRY_ASSIGN(auto write, database_.prepare("INSERT INTO datasets VALUES (?, ?, ?, ?, ?, ?, ?)"));
    std::uint32_t position = 0;
    for (const auto& dataset : declaration.datasets) {
        auto shape = Json::array();
        for (const auto dimension : dataset.shape) {
            shape.push(dimension);
        }
        TRY(write
                .bind(declaration.node, position++, dataset.name, dataset.digest, dataset.examples, shape.dump(),
                      dataset.classes)
                .run());
    }
    return {};
}

Result<Recovered> Store::load() {
    TRY_ASSIGN(auto recovered, load_recovered(database_));
    recovered.epoch = epoch_;
    return recovered;
}

Result<std::vector<StoredRound>> Store::rounds(ExperimentId experiment, std::uint32_t from, std::uint32_t count) {
    return read_rounds(database_, experiment, from, count);
}

Result<std::set<Digest>> Store::named_models(std::uint32_t keep) {
    // Per experiment and by an index each (format 5), so a commit costs the same after ten thousand evaluations. CROSS
    // keeps the order: the planner would walk through all commits.
    TRY_ASSIGN(auto query, database_.prepare(R"sql(
        SELECT c.model FROM experiments AS x CROSS JOIN commits AS c ON c.experiment = x.id
            AND c.round > (SELECT MAX(round) FROM commits WHERE experiment = x.id) - ?
        UNION SELECT model FROM pins
        UNION SELECT c.model FROM experiments AS x CROSS JOIN commits AS c ON c.experiment = x.id AND c.round IN (
            (SELECT round FROM evaluations WHERE experiment = x.id AND accuracy IS NOT NULL
                ORDER BY accuracy DESC, COALESCE(loss, 9e999) ASC, round ASC LIMIT 1),
            (SELECT round FROM evaluations WHERE experiment = x.id AND accuracy IS NOT NULL
                ORDER BY COALESCE(loss, 9e999) ASC, accuracy DESC, round ASC LIMIT 1),
            (SELECT round FROM evaluations WHERE experiment = x.id AND worth IS NOT NULL
                ORDER BY worth DESC, COALESCE(loss, 9e999) ASC, round ASC LIMIT 1)))sql"));
    query.bind(keep);
    std::set<Digest> models;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return models;
        }
        TRY_ASSIGN(const auto model, query.digest(0));
        models.insert(model);
    }
}

Status Store::pin_model(const Digest& model) {
    return database_.transaction("pin", [&]() -> Status {
        TRY_ASSIGN(auto write, database_.prepare("INSERT OR IGNORE INTO pins VALUES (?)"));
        return write.bind(model).run();
    });
}

// Decisions of the first round that is done again stay: they say who takes part. Those of later ones are made again.
Status Store::rewind(ExperimentId experiment, std::uint32_t to, const std::string& why) {
    return database_.transaction("rewind", [&]() -> Status {
        TRY_ASSIGN(auto query,
                   database_.prepare("SELECT round, model FROM commits WHERE experiment = ? AND round > ?"));
        query.bind(experiment, to);
        std::vector<SaveDecision> redo;
        for (;;) {
            TRY_ASSIGN(const auto found, query.next());
            if (!found) {
                break;
            }
            TRY_ASSIGN(const auto model, query.digest(1));
            redo.push_back({experiment, static_cast<std::uint32_t>(query.integer(0)), decisions::redo,
                            Json::object().set("model", model.hex()).set("why", why)});
        }
        for (const auto* sql : {"DELETE FROM evaluations WHERE experiment = ? AND round > ?",
                                "DELETE FROM participants WHERE experiment = ? AND round > ?",
                                "DELETE FROM commits WHERE experiment = ? AND round > ?",
                                "DELETE FROM decisions WHERE experiment = ? AND round > ? + 1 AND kind <> 'redo'"}) {
            TRY_ASSIGN(auto drop, database_.prepare(sql));
            TRY(drop.bind(experiment, to).run());
        }
        for (const auto& decision : redo) {
            TRY(save(decision));
        }
        auto detail = Json::object().set("experiment", experiment).set("to_round", to).set("why", why);
        TRY(AuditStore(database_).add(audit_line(unix_now_(), "experiment.rewound", detail)));
        return {};
    });
}

}  // namespace causeway
