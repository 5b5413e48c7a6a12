// See run_history.h. A round's lines are made anew for each page that has some of them: what a page ended with is told
// by (round, part), and rows are only added behind those that were told before.
#include "coordinator/run_history.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "coordinator/decisions.h"

namespace causeway {
namespace {

constexpr std::size_t longest_history_json = 16 << 20;  // our own texts: cohorts of thousands of names
constexpr std::size_t longest_page = 200 << 10;
constexpr std::size_t names_a_line = 256;  // of 64 bytes at most, with a digest of 64 more: below 48 KiB

struct Found {
    std::int64_t id = 0;
    Json line;
};

constexpr const char* columns =
    "SELECT id, name, file, state, reason, submitted_by, parent, parent_round, build FROM experiments ";

Found found_in(const Statement& row) {
    return {row.integer(0), Json::object()
                                .set("line", "experiment")
                                .set("id", row.integer(0))
                                .set("name", row.text(1))
                                .set("file", row.text(2))
                                .set("state", row.text(3))
                                .set("reason", row.text(4))
                                .set("submitted_by", row.text(5))
                                .set("parent", row.integer(6))
                                .set("parent_round", row.integer(7))
                                .set("build", row.text(8))};
}

/// By number first, then the newest of that name, as everywhere.
Result<Found> find_experiment(Database& database, const Json& body) {
    const auto& wanted = body["experiment"];
    if (wanted.is_null()) {
        return fail(ErrorKind::invalid, "missing_argument", "the request names no experiment");
    }
    const auto text = wanted.is_number() ? std::to_string(wanted.integer()) : wanted.text();
    TRY_ASSIGN(auto numbered, database.prepare(std::string(columns) + "WHERE CAST(id AS TEXT) = ?"));
    TRY_ASSIGN(const auto by_number, numbered.bind(text).next());
    if (by_number) {
        return found_in(numbered);
    }
    TRY_ASSIGN(auto named, database.prepare(std::string(columns) + "WHERE name = ? ORDER BY id DESC LIMIT 1"));
    TRY_ASSIGN(const auto by_name, named.bind(text).next());
    if (by_name) {
        return found_in(named);
    }
    return fail(ErrorKind::not_found, "unknown_experiment",
                "there is no experiment \"" + text + "\"; `causeway experiment list` has them all");
}

/// A list as lines of so many items each; `base` is what every line has besides.
void add_chunks(std::vector<Json>& lines, const Json& base, const std::string& field, const Json::Array& items) {
    for (std::size_t at = 0; at < items.size(); at += names_a_line) {
        const auto end = std::min(items.size(), at + names_a_line);
        auto line = base;
        lines.push_back(line.set(field, Json::Array(items.begin() + static_cast<std::ptrdiff_t>(at),
                                                    items.begin() + static_cast<std::ptrdiff_t>(end))));
    }
}

Json line_of_decision(const char* kind, std::int64_t round) {
    return Json::object().set("line", kind).set("round", round);
}

Status add_decisions(Database& database, std::int64_t id, std::int64_t round, std::vector<Json>& lines) {
    TRY_ASSIGN(auto query, database.prepare("SELECT kind, detail FROM decisions WHERE experiment = ? AND round = ? "
                                            "ORDER BY sequence"));
    query.bind(id, round);
    for (;;) {
        TRY_ASSIGN(const auto more, query.next());
        if (!more) {
            return {};
        }
        TRY_ASSIGN(auto detail, Json::parse(query.text(1), longest_history_json));
        auto line = line_of_decision("decision", round).set("kind", query.text(0));
        if (query.text(0) == decisions::cohort) {
            lines.push_back(line.set("detail", decisions::cohort_detail({})));
            add_chunks(lines, line_of_decision("members", round), "members", detail["members"].items());
        } else {
            lines.push_back(line.set("detail", std::move(detail)));
        }
    }
}

Result<Json> evaluation_of(Database& database, std::int64_t id, std::int64_t round) {
    TRY_ASSIGN(auto query, database.prepare("SELECT loss, accuracy, examples, detail FROM evaluations "
                                            "WHERE experiment = ? AND round = ? AND examples > 0"));
    TRY_ASSIGN(const auto evaluated, query.bind(id, round).next());
    if (!evaluated) {
        return Json();
    }
    TRY_ASSIGN(auto detail, Json::parse(query.text(3), longest_history_json));
    return Json::object()
        .set("loss", query.number(0))
        .set("accuracy", query.number(1))
        .set("examples", query.integer(2))
        .set("detail", std::move(detail));
}

Result<Json::Array> participants_of(Database& database, std::int64_t id, std::int64_t round) {
    TRY_ASSIGN(auto query, database.prepare("SELECT node, update_digest FROM participants "
                                            "WHERE experiment = ? AND round = ? ORDER BY node"));
    query.bind(id, round);
    Json::Array all;
    for (;;) {
        TRY_ASSIGN(const auto more, query.next());
        if (!more) {
            return all;
        }
        TRY_ASSIGN(const auto update, query.digest(1));
        all.push_back(Json::array().push(query.text(0)).push(update.hex()));
    }
}

Status add_commit(Database& database, std::int64_t id, std::int64_t round, std::vector<Json>& lines) {
    TRY_ASSIGN(auto query, database.prepare("SELECT model, model_bytes, next_cohort, summary FROM commits "
                                            "WHERE experiment = ? AND round = ?"));
    TRY_ASSIGN(const auto committed, query.bind(id, round).next());
    if (!committed) {
        return {};
    }
    TRY_ASSIGN(const auto model, query.digest(0));
    TRY_ASSIGN(const auto cohort, Json::parse(query.text(2), longest_history_json));
    TRY_ASSIGN(auto summary, Json::parse(query.text(3), longest_history_json));
    TRY_ASSIGN(auto evaluation, evaluation_of(database, id, round));
    TRY_ASSIGN(const auto participants, participants_of(database, id, round));
    lines.push_back(line_of_decision("commit", round)
                        .set("model_sha256", model.hex())
                        .set("model_bytes", query.integer(1))
                        .set("summary", std::move(summary))
                        .set("evaluation", std::move(evaluation)));
    add_chunks(lines, line_of_decision("participants", round), "participants", participants);
    add_chunks(lines, line_of_decision("next_cohort", round), "next_cohort", cohort.items());
    return {};
}

/// The rounds of which there is anything; none: nothing was decided yet.
Result<std::optional<std::pair<std::int64_t, std::int64_t>>> rounds_of(Database& database, std::int64_t id) {
    TRY_ASSIGN(auto query, database.prepare("SELECT MIN(round), MAX(round) FROM (SELECT round FROM commits WHERE "
                                            "experiment = ? UNION ALL SELECT round FROM decisions WHERE "
                                            "experiment = ?)"));
    TRY(query.bind(id, id).next());
    if (query.is_null(0)) {
        return std::optional<std::pair<std::int64_t, std::int64_t>>();
    }
    return std::optional(std::pair(query.integer(0), query.integer(1)));
}

/// Lines up to the bound; the first always fits, so that every page gets on.
class Page {
public:
    bool add(Json line) {
        const auto size = line.dump().size() + 1;
        if (!lines_.empty() && size_ + size > longest_page) {
            return false;
        }
        size_ += size;
        lines_.push_back(std::move(line));
        return true;
    }
    Json reply(std::int64_t id, Json next) && {
        return Json::object().set("id", id).set("lines", std::move(lines_)).set("next", std::move(next));
    }

private:
    Json::Array lines_;
    std::size_t size_ = 0;
};

}  // namespace

Result<Json> history_page(Database& database, const Json& body) {
    TRY_ASSIGN(auto found, find_experiment(database, body));
    TRY_ASSIGN(const auto rounds, rounds_of(database, found.id));
    Page page;
    if (!body.has("from")) {
        page.add(std::move(found.line));
    }
    if (!rounds) {
        return std::move(page).reply(found.id, {});
    }
    const auto from = std::max(body["from"].integer(), rounds->first);
    for (auto round = from; round <= rounds->second; ++round) {
        std::vector<Json> lines;
        TRY(add_decisions(database, found.id, round, lines));
        TRY(add_commit(database, found.id, round, lines));
        const auto first = round == from ? std::max<std::int64_t>(body["part"].integer(), 0) : 0;
        for (auto part = static_cast<std::size_t>(first); part < lines.size(); ++part) {
            if (!page.add(std::move(lines[part]))) {
                const auto next = Json::object().set("from", round).set("part", std::uint64_t{part});
                return std::move(page).reply(found.id, next);
            }
        }
    }
    return std::move(page).reply(found.id, {});
}

}  // namespace causeway
