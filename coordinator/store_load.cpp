// Rows are our own writing, but the file could have been damaged or edited: what does not parse is `corrupt`, not a
// bug. Thread: the store thread.
#include "common/json_lists.h"
#include "coordinator/decisions.h"
#include "coordinator/store_load.h"

namespace causeway {
namespace {

using ById = std::map<ExperimentId, RecoveredExperiment>;

constexpr std::size_t longest_stored_json = 16 << 20;  // our own texts: cohorts of thousands of names

/// Calls `read` for each row of `sql`.
template <class Read>
Status each_row(Database& database, const std::string& sql, const Read& read) {
    TRY_ASSIGN(auto query, database.prepare(sql));
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return {};
        }
        TRY(Status(read(query)));
    }
}

ExperimentId id_of(const Statement& row, int column) {
    return static_cast<ExperimentId>(row.integer(column));
}
std::uint32_t round_of(const Statement& row, int column) {
    return static_cast<std::uint32_t>(row.integer(column));
}

Status load_experiments(Database& database, ById& experiments) {
    const auto* sql =
        "SELECT id, name, file, state, reason, submitted_by, parent, parent_round, build FROM experiments";
    return each_row(database, sql,
                    [&](const Statement& row) -> Status {
                        const auto id = id_of(row, 0);
                        experiments[id].saved = {id,          row.text(1), row.text(2),   row.text(3),     row.text(4),
                                                 row.text(5), id_of(row, 6), round_of(row, 7), row.text(8)};
                        return {};
                    });
}

// What each client's time went to is the larger part of a summary, and nobody who goes on or looks on needs it: it
// stays in the store.
constexpr const char* round_columns =
    "SELECT c.experiment, c.round, c.model, c.model_bytes, json_remove(c.summary, '$.member_times'), e.round, e.loss, "
    "e.accuracy, e.examples, e.detail FROM commits AS c LEFT JOIN evaluations AS e "
    "ON e.experiment = c.experiment AND e.round = c.round ";

Result<StoredRound> stored_round(const Statement& row) {
    StoredRound round;
    round.round = round_of(row, 1);
    TRY_ASSIGN(round.model, row.digest(2));
    round.model_bytes = static_cast<std::uint64_t>(row.integer(3));
    TRY_ASSIGN(round.summary, Json::parse(row.text(4), longest_stored_json));
    if (!row.is_null(5)) {
        TRY_ASSIGN(auto detail, Json::parse(row.text(9), longest_stored_json));
        round.evaluation = SaveEvaluation{.experiment = id_of(row, 0),
                                          .round = round.round,
                                          .loss = row.number(6),
                                          .accuracy = row.number(7),
                                          .examples = static_cast<std::uint64_t>(row.integer(8)),
                                          .detail = std::move(detail)};
    }
    return round;
}

// One after the other, in the order of rounds: what does not go on is forgotten at once.
Status load_commits(Database& database, ById& experiments) {
    const auto sql = std::string(round_columns) + "ORDER BY c.experiment, c.round";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        TRY_ASSIGN(const auto round, stored_round(row));
        experiments[id_of(row, 0)].add(round);
        return {};
    });
}

Status load_next_cohorts(Database& database, ById& experiments) {
    const auto* sql =
        "SELECT c.experiment, c.next_cohort FROM experiments AS x CROSS JOIN commits AS c ON c.experiment = x.id "
        "AND c.round = (SELECT MAX(round) FROM commits WHERE experiment = x.id)";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        TRY_ASSIGN(const auto cohort, Json::parse(row.text(1), longest_stored_json));
        experiments[id_of(row, 0)].next_cohort = texts_of(cohort);
        return {};
    });
}

// Ascending rounds: a later one overwrites an earlier one of the same node.
Status load_counted(Database& database, ById& experiments) {
    const auto* sql = "SELECT experiment, node, round, update_digest FROM participants ORDER BY experiment, round";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        TRY_ASSIGN(const auto update, row.digest(3));
        experiments[id_of(row, 0)].last_counted[row.text(1)] = {round_of(row, 2), update};
        return {};
    });
}

// For draws by availability: only of experiments that draw again, and only their rows are opened.
Status load_drawn(Database& database, ById& experiments) {
    const auto* sql = R"sql(
        WITH unfinished AS (SELECT id FROM experiments WHERE state NOT IN ('succeeded', 'failed', 'cancelled'))
        SELECT experiment, node, MAX(round) FROM (
            SELECT c.experiment, value AS node, c.round + 1 AS round
                FROM unfinished JOIN commits AS c ON c.experiment = unfinished.id, json_each(c.next_cohort)
            UNION ALL SELECT d.experiment, value, d.round
                FROM unfinished JOIN decisions AS d ON d.experiment = unfinished.id, json_each(d.detail, '$.members')
                WHERE d.kind = 'cohort')
        GROUP BY experiment, node)sql";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        experiments[id_of(row, 0)].last_drawn[row.text(1)] = round_of(row, 2);
        return {};
    });
}

// Only those of the open round: earlier ones took effect in the commits. Which round that is, an index says: a count
// of commits for each line of the log made a start after 900 rounds and 150 restarts take 1.3 s. CROSS keeps the order.
Status load_decisions(Database& database, ById& experiments) {
    const auto* sql = R"sql(
        WITH open AS (SELECT id, COALESCE((SELECT MAX(round) + 1 FROM commits WHERE experiment = x.id), parent_round)
            AS round FROM experiments AS x)
        SELECT d.experiment, d.round, d.kind, d.detail, d.round = open.round
            FROM open CROSS JOIN decisions AS d ON d.experiment = open.id AND d.round >= open.round
            ORDER BY d.sequence)sql";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        TRY_ASSIGN(auto detail, Json::parse(row.text(3), longest_stored_json));
        const auto id = id_of(row, 0);
        if (row.text(2) == decisions::redo) {
            TRY_ASSIGN(experiments[id].redo[round_of(row, 1)], digest_from_hex(detail["model"].text()));
        } else if (row.integer(4) != 0) {
            experiments[id].decisions.push_back({id, round_of(row, 1), row.text(2), std::move(detail)});
        }
        return {};
    });
}

Status load_datasets(Database& database, Recovered& recovered) {
    const auto* sql = "SELECT node, name, digest, examples, shape, classes FROM datasets ORDER BY node, position";
    return each_row(database, sql, [&](const Statement& row) -> Status {
        DatasetDeclaration dataset;
        dataset.name = row.text(1);
        TRY_ASSIGN(dataset.digest, row.digest(2));
        dataset.examples = static_cast<std::uint64_t>(row.integer(3));
        TRY_ASSIGN(const auto shape, Json::parse(row.text(4)));
        for (const auto& dimension : shape.items()) {
            dataset.shape.push_back(dimension.integer());
        }
        dataset.classes = static_cast<std::uint32_t>(row.integer(5));
        recovered.declared[row.text(0)].push_back(std::move(dataset));
        return {};
    });
}

}  // namespace

Result<Recovered> load_recovered(Database& database) {
    ById experiments;
    Recovered recovered;
    TRY(load_experiments(database, experiments));
    TRY(load_commits(database, experiments));
    TRY(load_next_cohorts(database, experiments));
    TRY(load_counted(database, experiments));
    TRY(load_drawn(database, experiments));
    TRY(load_decisions(database, experiments));
    TRY(load_datasets(database, recovered));
    for (auto& [id, experiment] : experiments) {
        recovered.experiments.push_back(std::move(experiment));
    }
    return recovered;
}

Result<std::vector<StoredRound>> read_rounds(Database& database, ExperimentId experiment, std::uint32_t from,
                                             std::uint32_t count) {
    TRY_ASSIGN(auto query, database.prepare(std::string(round_columns) +
                                            "WHERE c.experiment = ? AND c.round >= ? ORDER BY c.round LIMIT ?"));
    query.bind(experiment, from, count);
    std::vector<StoredRound> rounds;
    for (;;) {
        TRY_ASSIGN(const auto found, query.next());
        if (!found) {
            return rounds;
        }
        TRY_ASSIGN(auto round, stored_round(query));
        rounds.push_back(std::move(round));
    }
}

}  // namespace causeway
