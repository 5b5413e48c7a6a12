// See store_journal.h. Only parts that a transaction has touched are written anew.
#include "coordinator/store_journal.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/log.h"

namespace causeway {
namespace {

constexpr std::uint64_t longest_tail = 256 << 10;  // bytes of the head beyond which a folded log lets it begin anew

Result<StoredRow> values_of(const Statement& query) {
    StoredRow row;
    for (int i = 0; i < query.columns(); ++i) {
        row.push_back(query.value(i));
    }
    return row;
}

/// Every row of the query, as if it had been added.
Status add_rows(Database& database, const std::string& table, const std::string& condition,
                std::vector<RowChange>& changes) {
    TRY_ASSIGN(auto query, database.prepare("SELECT * FROM " + table + " WHERE " + condition));
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return {};
        }
        TRY_ASSIGN(auto row, values_of(query));
        changes.push_back({.table = table, .before = {}, .after = std::move(row)});
    }
}

Status write_part(Database& database, const Part& part, const PartSum& sum) {
    if (sum == PartSum{}) {
        TRY_ASSIGN(auto drop, database.prepare("DELETE FROM sums WHERE part = ? AND experiment = ?"));
        return drop.bind(part.first, part.second).run();
    }
    TRY_ASSIGN(auto write, database.prepare("INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?)"));
    return write.bind(part.first, part.second, sum.rows, sum.sum.value()).run();
}

Status write_head(Database& database, const StoredHead& head) {
    TRY_ASSIGN(auto write, database.prepare("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)"));
    return write.bind(head.sequence, head.chain, head.total).run();
}

}  // namespace

Result<std::optional<StoredHead>> stored_head(Database& database) {
    TRY_ASSIGN(auto there, database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'head'"));
    TRY_ASSIGN(const auto known, there.next());
    if (!known) {
        return std::optional<StoredHead>{};
    }
    TRY_ASSIGN(auto query, database.prepare("SELECT sequence, chain, total FROM head"));
    TRY_ASSIGN(const auto found, query.next());
    StoredHead head;
    if (found) {
        head.sequence = static_cast<std::uint64_t>(query.integer(0));
        TRY_ASSIGN(head.chain, query.digest(1));
        TRY_ASSIGN(head.total, query.digest(2));
    }
    return std::optional(head);
}

Result<PartSums> stored_sums(Database& database) {
    TRY_ASSIGN(auto query, database.prepare("SELECT part, experiment, rows, sum FROM sums"));
    PartSums sums;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return sums;
        }
        auto& part = sums[{query.text(0), query.integer(1)}];
        part.rows = query.integer(2);
        TRY_ASSIGN(const auto sum, query.digest(3));
        part.sum.add(sum);
    }
}

Status write_sums(Database& database, const PartSums& sums, const StoredHead& head) {
    TRY(database.run_script("DELETE FROM sums"));
    for (const auto& [part, sum] : sums) {
        TRY(write_part(database, part, sum));
    }
    return write_head(database, head);
}

Result<HeadRecord> state_record(Database& database, const StoredHead& head) {
    HeadRecord record{.kind = HeadRecord::Kind::state,
                      .sequence = head.sequence,
                      .chain = head.chain,
                      .total = head.total,
                      .changes = {}};
    TRY(add_rows(database, "meta", "key = 'epoch'", record.changes));
    TRY(add_rows(database, "certificates", "revoked IS NOT NULL", record.changes));
    TRY_ASSIGN(auto query, database.prepare("SELECT x.id, x.name, x.state, c.round, c.model FROM experiments AS x "
                                            "LEFT JOIN commits AS c ON c.experiment = x.id AND c.round = (SELECT "
                                            "MAX(round) FROM commits WHERE experiment = x.id)"));
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return record;
        }
        HeadExperiment one{static_cast<std::uint64_t>(query.integer(0)), query.text(1), query.text(2), -1, {}};
        if (!query.is_null(3)) {
            one.last_round = query.integer(3);
            TRY_ASSIGN(one.model, query.digest(4));
        }
        record.experiments.push_back(std::move(one));
    }
}

Result<std::unique_ptr<StoreJournal>> StoreJournal::attach(Database& database, const std::filesystem::path& head_of) {
    auto journal = std::make_unique<StoreJournal>();
    TRY_ASSIGN(journal->tables_, summed_tables(database));
    TRY_ASSIGN(journal->sums_, stored_sums(database));
    TRY_ASSIGN(const auto head, stored_head(database));
    ASSERT(head.has_value());  // checked and migrated before
    journal->head_ = *head;
    if (!head_of.empty()) {
        journal->file_ = std::make_unique<HeadFile>(head_of);
        TRY_ASSIGN(const auto record, state_record(database, journal->head_));
        TRY(journal->file_->begin(record));
    }
    database.set_watch(journal.get());
    return journal;
}

void StoreJournal::changed(RowChange change) {
    if (!tables_.contains(change.table)) {
        return;
    }
    const auto sum_of = [this](const StoredRow& row, const std::string& table) -> PartSum& {
        const auto part = part_of(tables_, table, row);
        const auto known = sums_.find(part);
        return next_sums_.try_emplace(part, known == sums_.end() ? PartSum{} : known->second).first->second;
    };
    if (!change.before.empty()) {
        auto& sum = sum_of(change.before, change.table);
        --sum.rows;
        sum.sum.subtract(row_digest(change.table, change.before));
    }
    if (!change.after.empty()) {
        auto& sum = sum_of(change.after, change.table);
        ++sum.rows;
        sum.sum.add(row_digest(change.table, change.after));
    }
    changes_.push_back(std::move(change));
}

Status StoreJournal::before_commit(Database& database) {
    if (changes_.empty()) {
        return {};
    }
    RowSum total;
    total.add(head_.total);
    for (const auto& [part, sum] : next_sums_) {
        if (const auto known = sums_.find(part); known != sums_.end()) {
            total.subtract(known->second.sum.value());
        }
        total.add(sum.sum.value());
        TRY(write_part(database, part, sum));
    }
    next_ = {head_.sequence + 1, head_chain(head_.chain, changes_), total.value()};
    return write_head(database, next_);
}

void StoreJournal::committed(Database& database) {
    if (changes_.empty()) {
        return;
    }
    for (const auto& [part, sum] : next_sums_) {
        if (sum == PartSum{}) {
            sums_.erase(part);
        } else {
            sums_[part] = sum;
        }
    }
    head_ = next_;
    HeadRecord record{.kind = HeadRecord::Kind::transaction,
                      .sequence = head_.sequence,
                      .chain = head_.chain,
                      .total = head_.total,
                      .changes = std::exchange(changes_, {})};
    next_sums_.clear();
    if (!file_) {
        return;
    }
    if (lags_) {
        return catch_up(database);
    }
    if (const auto written = file_->append(record); !written) {
        log_warn("coordinator", written.error().message +
                                    "; until it can be written, a store that is older than it "
                                    "was would not be noticed");
        lags_ = true;
    }
}

void StoreJournal::catch_up(Database& database) {
    const auto record = state_record(database, head_);
    lags_ = !record || !file_->begin(*record);
}

void StoreJournal::rolled_back() {
    changes_.clear();
    next_sums_.clear();
}

/// What is in the database file itself needs no transactions beside it.
void StoreJournal::folded(Database& database) {
    if (file_ && (lags_ || file_->appended() > longest_tail)) {
        catch_up(database);
    }
}

}  // namespace causeway
