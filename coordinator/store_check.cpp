// See store_check.h.
#include "coordinator/store_check.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/log.h"
#include "common/text.h"

namespace causeway {
namespace {

constexpr std::size_t most_listed = 12;

// Columns, as coordinator/schema.cpp has them.
constexpr std::size_t meta_key = 0, experiment_name = 1, experiment_state = 3, certificate_name = 1;
constexpr std::size_t certificate_revoked = 7, commit_experiment = 0, commit_round = 1, token_name = 1;

std::string text_of(const StoredRow& row, std::size_t column) {
    const auto* text = column < row.size() ? std::get_if<std::string>(&row[column]) : nullptr;
    return text == nullptr ? std::string() : *text;
}

std::int64_t integer_of(const StoredRow& row, std::size_t column) {
    const auto* integer = column < row.size() ? std::get_if<std::int64_t>(&row[column]) : nullptr;
    return integer == nullptr ? 0 : *integer;
}

bool is_null(const StoredRow& row, std::size_t column) {
    return column >= row.size() || std::holds_alternative<std::monostate>(row[column]);
}

bool is_over(std::string_view state) {
    return state == "succeeded" || state == "failed" || state == "cancelled";
}

/// Acts in the order in which they happened, rounds gathered.
class Acts {
public:
    void note(const RowChange& change) {
        const auto& row = change.after.empty() ? change.before : change.after;
        if (change.table == "commits" && change.before.empty()) {
            round(integer_of(row, commit_experiment), integer_of(row, commit_round));
        } else if (change.table == "certificates") {
            certificate(change);
        } else if (change.table == "experiments" && !change.after.empty()) {
            experiment(change);
        } else if (change.table == "meta" && text_of(row, meta_key) == "epoch") {
            ++starts_;
        } else if (change.table == "tokens" && (change.before.empty() || change.after.empty())) {
            add((change.before.empty() ? "the token of " : "the end of the token of ") + text_of(row, token_name));
        }
    }
    void round(std::int64_t experiment, std::int64_t round) {
        const auto [entry, added] = rounds_.try_emplace(experiment, round, round);
        entry->second.second = std::max(entry->second.second, round);
    }
    void add(std::string act) {
        if (std::ranges::find(acts_, act) == acts_.end()) {
            acts_.push_back(std::move(act));
        }
    }
    void start() { ++starts_; }
    std::vector<std::string> take() {
        std::vector<std::string> all;
        for (const auto& [experiment, rounds] : rounds_) {
            all.push_back(
                rounds.first == rounds.second
                    ? fmt::format("round {} of experiment {}", rounds.first, experiment)
                    : fmt::format("rounds {} to {} of experiment {}", rounds.first, rounds.second, experiment));
        }
        std::ranges::move(acts_, std::back_inserter(all));
        if (starts_ > 0) {
            all.push_back(starts_ == 1 ? "the epoch of a start" : fmt::format("the epochs of {} starts", starts_));
        }
        return all;
    }

private:
    void certificate(const RowChange& change) {
        const bool revoked = !change.after.empty() && !is_null(change.after, certificate_revoked);
        if (change.before.empty()) {
            add("the enrolment of " + text_of(change.after, certificate_name));
        }
        if (revoked && (change.before.empty() || is_null(change.before, certificate_revoked))) {
            add("the revocation of " + text_of(change.after, certificate_name));
        }
    }
    void experiment(const RowChange& change) {
        const auto name = text_of(change.after, experiment_name);
        const auto state = text_of(change.after, experiment_state);
        if (change.before.empty()) {
            add("the submission of " + name);
        }
        if (is_over(state) && (change.before.empty() || !is_over(text_of(change.before, experiment_state)))) {
            add(fmt::format("the end of {} ({})", name, state));
        }
    }

    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> rounds_;
    std::vector<std::string> acts_;
    int starts_ = 0;
};

/// What a state has that this database has not.
Status compare_with(Database& database, const HeadRecord& state, Acts& acts) {
    for (const auto& change : state.changes) {
        if (change.table == "certificates" && !change.after.empty()) {
            const auto* fingerprint = std::get_if<Bytes>(&change.after[0]);
            TRY_ASSIGN(auto query,
                       database.prepare("SELECT 1 FROM certificates WHERE fingerprint = ? AND revoked IS NOT NULL"));
            TRY_ASSIGN(const auto known, query.bind(fingerprint == nullptr ? Bytes{} : *fingerprint).next());
            if (!known) {
                acts.add("the revocation of " + text_of(change.after, certificate_name));
            }
        } else if (change.table == "meta") {
            acts.start();
        }
    }
    for (const auto& one : state.experiments) {
        TRY_ASSIGN(auto query, database.prepare("SELECT x.state, COALESCE((SELECT MAX(round) FROM commits WHERE "
                                                "experiment = x.id), -1) FROM experiments AS x WHERE x.id = ?"));
        TRY_ASSIGN(const auto known, query.bind(one.experiment).next());
        if (!known) {
            acts.add("the submission of " + one.name);
        }
        if (is_over(one.state) && !(known && is_over(query.text(0)))) {
            acts.add(fmt::format("the end of {} ({})", one.name, one.state));
        }
        if (const auto last = known ? query.integer(1) : -1; last < one.last_round) {
            acts.round(static_cast<std::int64_t>(one.experiment), last + 1);
            acts.round(static_cast<std::int64_t>(one.experiment), one.last_round);
        }
    }
    return {};
}

std::string name_of(const Part& part) {
    return part.second == 0 ? part.first : fmt::format("{} of experiment {}", part.first, part.second);
}

std::vector<Part> different(const PartSums& found, const PartSums& written) {
    std::vector<Part> parts;
    for (const auto& [part, sum] : found) {
        const auto known = written.find(part);
        if (known == written.end() || known->second != sum) {
            parts.push_back(part);
        }
    }
    for (const auto& [part, sum] : written) {
        if (!found.contains(part)) {
            parts.push_back(part);
        }
    }
    return parts;
}

/// Records behind this one; empty where the head says nothing else.
void compare_with_head(const HeadContents& head, StoreCheck& check) {
    if (head.empty()) {
        return;
    }
    for (const auto& record : head.records) {
        if (record.sequence > check.head.sequence) {
            check.lost.push_back(&record);
        }
    }
    check.behind = !check.lost.empty();
    if (!check.behind && head.last().sequence == check.head.sequence && head.last().total != check.head.total) {
        check.behind = true;  // as many transactions, but others
        check.lost.push_back(&head.last());
        return;
    }
    auto next = check.head.sequence + 1;
    check.exact = check.behind;
    for (const auto* record : check.lost) {
        check.exact = check.exact && record->kind == HeadRecord::Kind::transaction && record->sequence == next++;
    }
}

/// Rows that come to what a head says, here or beside, are whole; then what is written about them is damaged. Several
/// transactions may come to the same (a node declares again what it had declared): the last of them counts.
void settle(const HeadContents& head, const StoredHead& stored, StoreCheck& check) {
    const auto total = total_of(check.sums);
    const auto here = stored.total == total;
    const auto beside = std::find_if(head.records.rbegin(), head.records.rend(),
                                     [&](const HeadRecord& record) { return record.total == total; });
    if (here && check.damaged.empty() && (head.empty() || stored.sequence >= head.last().sequence)) {
        return;
    }
    if (beside != head.records.rend() &&
        (!here || !check.damaged.empty() || beside->sequence == head.last().sequence)) {
        check.head = {beside->sequence, beside->chain, total};
        check.sums_damaged = true;
    } else if (here != check.damaged.empty()) {
        check.head.total = total;
        check.sums_damaged = true;
    }
    if (check.sums_damaged) {
        check.damaged.clear();
    }
}

}  // namespace

std::string listed(const std::vector<std::string>& items) {
    const auto shown = std::min(items.size(), most_listed);
    auto text = join(std::vector<std::string>(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown)), ", ");
    return shown == items.size() ? text : text + fmt::format(" and {} more", items.size() - shown);
}

Result<StoreCheck> look_at_store(Database& database, const HeadContents& head) {
    StoreCheck check;
    TRY_ASSIGN(const auto stored, stored_head(database));
    if (!stored) {  // of a format before there were sums: only a head could say more
        compare_with_head(head, check);
        return check;
    }
    check.head = *stored;
    TRY_ASSIGN(const auto tables, summed_tables(database));
    TRY_ASSIGN(check.sums, read_sums(database, tables));
    TRY_ASSIGN(const auto written, stored_sums(database));
    check.damaged = different(check.sums, written);
    settle(head, *stored, check);
    compare_with_head(head, check);
    return check;
}

Result<std::vector<std::string>> lost_acts(Database& database, const StoreCheck& check) {
    Acts acts;
    for (const auto* record : check.lost) {
        if (record->kind == HeadRecord::Kind::state) {
            TRY(compare_with(database, *record, acts));
        } else {
            std::ranges::for_each(record->changes, [&](const RowChange& change) { acts.note(change); });
        }
    }
    return acts.take();
}

Status require_whole(Database& database, const std::filesystem::path& state, const StoreCheck& check) {
    const auto path = (state / "coordinator.db").string();
    if (!check.damaged.empty()) {
        std::vector<std::string> parts;
        std::ranges::transform(check.damaged, std::back_inserter(parts), name_of);
        return fail(ErrorKind::corrupt, "store_damaged",
                    fmt::format("{} is damaged: its rows are not what was written ({}). Nothing was changed. `causeway "
                                "doctor --repair --state {}` mends what can be mended; else restore the folder from a "
                                "backup (docs/service.md)",
                                path, listed(parts), state.string()));
    }
    if (check.behind) {
        TRY_ASSIGN(const auto acts, lost_acts(database, check));
        return fail(
            ErrorKind::corrupt, "store_behind",
            fmt::format("{} is older than coordinator.head beside it says, because it or its log was damaged or "
                        "replaced; lost are: {}. Nothing was changed. `causeway doctor --repair --state {}` {}; "
                        "or restore the folder from a backup (docs/service.md)",
                        path, acts.empty() ? "transactions without a name" : listed(acts), state.string(),
                        check.exact ? "makes all of it again from coordinator.head"
                                    : "applies the revocations and epochs that coordinator.head knows"));
    }
    return {};
}

}  // namespace causeway
