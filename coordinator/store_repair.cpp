// See store_repair.h.
#include "coordinator/store_repair.h"

#include <algorithm>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "common/file.h"
#include "common/text.h"
#include "configs/reader.h"
#include "coordinator/audit_store.h"
#include "coordinator/schema.h"
#include "coordinator/store_check.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t revoked_column = 7;  // of certificates

Result<std::vector<std::string>> key_columns(Database& database, const std::string& table) {
    TRY_ASSIGN(auto query, database.prepare("SELECT name, cid FROM pragma_table_info(?) WHERE pk > 0 ORDER BY cid"));
    query.bind(table);
    std::vector<std::string> names;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return names;
        }
        names.push_back(query.text(0) + " " + std::to_string(query.integer(1)));
    }
}

/// The row as it is after the change, whatever it is now.
Status apply(Database& database, const RowChange& change) {
    if (!change.before.empty()) {
        TRY_ASSIGN(const auto keys, key_columns(database, change.table));
        std::vector<std::string> terms;
        std::vector<std::size_t> columns;
        for (const auto& key : keys) {
            const auto space = key.find(' ');
            terms.push_back(key.substr(0, space) + " IS ?");
            columns.push_back(std::stoul(key.substr(space + 1)));
        }
        TRY_ASSIGN(auto drop, database.prepare("DELETE FROM \"" + change.table + "\" WHERE " + join(terms, " AND ")));
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (columns[i] < change.before.size()) {
                drop.bind_value(static_cast<int>(i) + 1, change.before[columns[i]]);
            }
        }
        TRY(drop.run());
    }
    if (!change.after.empty()) {
        std::vector<std::string> places(change.after.size(), "?");
        TRY_ASSIGN(auto write, database.prepare("INSERT OR REPLACE INTO \"" + change.table + "\" VALUES (" +
                                                join(places, ", ") + ")"));
        for (std::size_t i = 0; i < change.after.size(); ++i) {
            write.bind_value(static_cast<int>(i) + 1, change.after[i]);
        }
        TRY(write.run());
    }
    return {};
}

bool is_revocation(const RowChange& change) {
    return change.table == "certificates" && change.after.size() > revoked_column &&
           !std::holds_alternative<std::monostate>(change.after[revoked_column]);
}

/// Epochs only rise.
Status apply_epoch(Database& database, const RowChange& change) {
    const auto* key = change.after.size() == 2 ? std::get_if<std::string>(&change.after[0]) : nullptr;
    const auto* value = key != nullptr && *key == "epoch" ? std::get_if<std::int64_t>(&change.after[1]) : nullptr;
    if (value == nullptr || change.table != "meta") {
        return {};
    }
    TRY_ASSIGN(auto raise, database.prepare("UPDATE meta SET value = MAX(value, ?) WHERE key = 'epoch'"));
    return raise.bind(*value).run();
}

Status copy_damaged(const fs::path& state) {
    TRY(make_private_folder(state / "damaged"));
    for (const auto* name : {"coordinator.db", "coordinator.db-wal", "coordinator.head"}) {
        std::error_code error;
        if (fs::exists(state / name, error) &&
            !fs::copy_file(state / name, state / "damaged" / name, fs::copy_options::overwrite_existing, error)) {
            return fail(ErrorKind::io, error == std::errc::no_space_on_device ? "disk_full" : "io",
                        (state / "damaged" / name).string() + ": cannot copy: " + error.message());
        }
    }
    return {};
}

/// One repair of one database, inside one transaction.
class Repair {
public:
    Repair(Database& database, const HeadContents& head, const StoreCheck& check)
        : database_(database), head_(head), check_(check) {}

    Status mend() {
        if (!check_.damaged.empty()) {
            TRY(mend_rows());
        }
        if (check_.behind) {
            TRY_ASSIGN(const auto acts, lost_acts(database_, check_));
            lost_ = acts;
            TRY(check_.exact && check_.damaged.empty() ? redo() : apply_what_is_known());
        }
        return settle();
    }
    [[nodiscard]] const std::vector<std::string>& said() const { return said_; }
    [[nodiscard]] Json detail() const {
        return Json::object().set("what", join(said_, "; ")).set("behind", listed(lost_));
    }

private:
    Status redo() {
        for (const auto* record : check_.lost) {
            for (const auto& change : record->changes) {
                TRY(apply(database_, change));
            }
        }
        said_.push_back(fmt::format("made again from coordinator.head, to the last row: {}", listed(lost_)));
        return {};
    }

    Status apply_what_is_known() {
        TRY(apply_revocations(database_, head_));
        for (const auto& record : head_.records) {
            for (const auto& change : record.changes) {
                TRY(apply_epoch(database_, change));
            }
        }
        TRY(database_.run_script("DELETE FROM tokens WHERE used_by IS NULL"));
        for (const auto* record : check_.lost) {
            for (const auto& one : record->experiments) {
                TRY(settle_experiment(one));
            }
        }
        said_.push_back(
            fmt::format("given up: {}; epochs and revocations that coordinator.head knows are applied, unused "
                        "tokens work no more",
                        listed(lost_)));
        return {};
    }

    /// Of an experiment that the head knows further.
    Status settle_experiment(const HeadExperiment& one) {
        TRY_ASSIGN(auto query, database_.prepare("SELECT file, state, COALESCE((SELECT MAX(round) FROM commits WHERE "
                                                 "experiment = x.id), -1) FROM experiments AS x WHERE id = ?"));
        TRY_ASSIGN(const auto known, query.bind(one.experiment).next());
        if (!known) {
            TRY_ASSIGN(auto write, database_.prepare("INSERT INTO experiments (id, name, file, state, reason, "
                                                     "submitted_by) VALUES (?, ?, '', 'failed', ?, '')"));
            TRY(write.bind(one.experiment, one.name, std::string("store_behind: the store has lost it")).run());
            said_.push_back(
                fmt::format("experiment {} ({}) is kept as failed: its file is lost", one.experiment, one.name));
            return {};
        }
        const auto file = query.text(0);
        const auto last = query.integer(2);
        if (last >= one.last_round && query.text(1) == one.state) {
            return {};
        }
        const auto config = read_experiment_or_fail(file, one.name);
        if (!config || config->train.optimizer_state == "keep") {
            return fail_experiment(
                static_cast<std::int64_t>(one.experiment),
                fmt::format("store_behind: rounds {} to {} are lost, and its members keep state from "
                            "round to round",
                            last + 1, one.last_round));
        }
        said_.push_back(
            fmt::format("experiment {} goes on from round {} instead of {}; its model of that round is "
                        "snapshots/{}.safetensors",
                        one.experiment, std::max<std::int64_t>(last, 0), one.last_round, one.model.hex()));
        return {};
    }

    Status fail_experiment(std::int64_t id, const std::string& reason) {
        TRY_ASSIGN(auto write, database_.prepare(
                                   "UPDATE experiments SET state = 'failed', reason = ? WHERE id = ? AND state NOT IN "
                                   "('succeeded', 'failed', 'cancelled') RETURNING 1"));
        TRY_ASSIGN(const auto failed, write.bind(reason, id).next());
        said_.push_back(failed ? fmt::format("experiment {} has failed: {}", id, reason)
                               : fmt::format("experiment {} is over; of what is shown of it some is damaged", id));
        return {};
    }

    /// From the head first: then everything may be whole.
    Status mend_rows() {
        const std::set<Part> damaged(check_.damaged.begin(), check_.damaged.end());
        TRY_ASSIGN(const auto tables, summed_tables(database_));
        for (const auto& record : head_.records) {
            for (const auto& change : record.changes) {
                const auto& row = change.after.empty() ? change.before : change.after;
                if (damaged.contains(part_of(tables, change.table, row)) && record.sequence <= check_.head.sequence) {
                    TRY(apply(database_, change));
                }
            }
        }
        TRY_ASSIGN(const auto now, read_sums(database_, tables));
        TRY_ASSIGN(const auto written, stored_sums(database_));
        std::set<std::int64_t> experiments;
        for (const auto& part : damaged) {
            const auto found = now.find(part);
            const auto wanted = written.find(part);
            const bool none = found == now.end() && wanted == written.end();
            if (none || (found != now.end() && wanted != written.end() && found->second == wanted->second)) {
                said_.push_back("taken again from coordinator.head: rows of " + part.first);
            } else if (part.second != 0) {
                experiments.insert(part.second);
            } else {
                TRY(drop(part.first));
            }
        }
        for (const auto id : experiments) {
            TRY(fail_experiment(id, "store_damaged: rows of it were damaged on the coordinator's disk"));
        }
        return {};
    }

    Status drop(const std::string& table) {
        if (table == "datasets" || table == "requests") {
            said_.push_back(table == "datasets"
                                ? "declarations of datasets are gone: nodes declare again when they connect"
                                : "requests for certificates are gone: their nodes ask again");
            return database_.run_script("DELETE FROM " + table);
        }
        if (table == "pins") {
            said_.push_back("exported models: some may not be kept any more");
            return {};
        }
        return fail(
            ErrorKind::corrupt, "store_damaged",
            fmt::format("rows of {} are damaged, and nothing here has them a second time: restore the folder from "
                        "a backup (docs/service.md). Nothing was changed",
                        table));
    }

    /// What the rows come to now.
    Status settle() {
        TRY_ASSIGN(const auto tables, summed_tables(database_));
        TRY_ASSIGN(const auto sums, read_sums(database_, tables));
        StoredHead head{check_.head.sequence, check_.head.chain, total_of(sums)};
        if (check_.behind && head_.last().sequence >= head.sequence) {
            head.sequence = head_.last().sequence;
            head.chain = head_.last().chain;
            if (check_.exact && check_.damaged.empty() && head_.last().total != head.total) {
                return fail(ErrorKind::corrupt, "store_damaged",
                            "the head's transactions do not lead to the state that it names: restore the folder from a "
                            "backup (docs/service.md). Nothing was changed");
            }
        }
        return write_sums(database_, sums, head);
    }

    Database& database_;
    const HeadContents& head_;
    const StoreCheck& check_;
    std::vector<std::string> said_;
    std::vector<std::string> lost_;
};

/// Rows that are whole in a file whose pages are not: written anew.
Result<Database> rewrite(Database database, const fs::path& path) {
    const auto anew = path.string() + ".new";
    TRY(database.copy_to(anew));
    { auto closing = std::move(database); }
    std::error_code ignored;
    fs::remove(path.string() + "-wal", ignored);
    TRY(rename_durably(anew, path));
    return Database::open(path, {});
}

Result<Database> open_present(const fs::path& path) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        return fail(ErrorKind::corrupt, "store_lost",
                    path.string() + " is missing: restore the folder from a backup (docs/service.md)");
    }
    TRY_ASSIGN(auto database, Database::open(path, {}));
    TRY_ASSIGN(auto format, database.prepare("PRAGMA user_version"));
    TRY(format.next());
    if (format.integer(0) != static_cast<std::int64_t>(store_migrations().size())) {
        return fail(
            ErrorKind::unsupported, "newer_format",
            fmt::format("{} has format {}, and only format {} can be repaired: start the coordinator that wrote "
                        "it, or restore the folder from a backup",
                        path.string(), format.integer(0), store_migrations().size()));
    }
    return database;
}

}  // namespace

Status apply_revocations(Database& database, const HeadContents& head) {
    for (const auto& record : head.records) {
        for (const auto& change : record.changes) {
            if (is_revocation(change)) {
                TRY(apply(database, {.table = change.table, .before = change.after, .after = change.after}));
            }
        }
    }
    return {};
}

Result<std::vector<std::string>> repair_store(const fs::path& state, std::int64_t now_unix_s) {
    const auto path = state / "coordinator.db";
    TRY_ASSIGN(const auto head, read_head(state));
    TRY(copy_damaged(state));
    TRY_ASSIGN(auto database, open_present(path));
    TRY_ASSIGN(const auto check, look_at_store(database, head));
    TRY_ASSIGN(const auto wrong, database.integrity());
    Repair repair(database, head, check);
    const bool whole = check.damaged.empty() && !check.behind && !check.sums_damaged;
    if (whole && wrong.empty()) {
        return std::vector<std::string>{};
    }
    std::vector<std::string> said;
    auto detail = Json::object();
    if (!whole) {
        TRY(database.run_script("PRAGMA foreign_keys=OFF"));
        TRY(database.transaction("repair", [&] { return repair.mend(); }));
        said = repair.said();
        detail = repair.detail();
    }
    if (!wrong.empty()) {
        TRY_ASSIGN(auto anew, rewrite(std::move(database), path));
        database = std::move(anew);
        said.push_back("coordinator.db is written anew: its rows are whole, its pages were not (" + wrong + ")");
        detail.set("rewritten", wrong);
    }
    TRY(database.fold_log());
    TRY_ASSIGN(const auto journal, StoreJournal::attach(database, state));
    TRY(AuditStore(database).append(audit_line(now_unix_s, "federation.repaired", detail)));
    database.set_watch(nullptr);
    database.at_close(Database::AtClose::fold);
    return said;
}

}  // namespace causeway
