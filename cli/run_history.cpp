// See run_history.h. The coordinator is trusted no further than its words parse: what does not fit together is an
// error with its round, never an assertion.
#include "cli/run_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "common/json_lists.h"
#include "coordinator/decisions.h"

namespace causeway::cli {
namespace {

Error bad_log(const std::string& what) {
    return {ErrorKind::corrupt, "bad_log", "the coordinator's log of the experiment does not fit together: " + what};
}

std::uint32_t round_of(const Json& line) {
    return static_cast<std::uint32_t>(line["round"].integer());
}

SaveExperiment experiment_of(const Json& line) {
    return {.experiment = static_cast<ExperimentId>(line["id"].integer()),
            .name = line["name"].text(),
            .file = line["file"].text(),
            .state = line["state"].text(),
            .reason = line["reason"].text(),
            .submitted_by = line["submitted_by"].text(),
            .parent = static_cast<ExperimentId>(line["parent"].integer()),
            .parent_round = static_cast<std::uint32_t>(line["parent_round"].integer()),
            .build = line["build"].text()};
}

/// Takes the lines one by one; lists that were cut continue what came last.
class HistoryReader {
public:
    explicit HistoryReader(RunHistory& history) : history_(history) {}

    Status take(const Json& line) {
        const auto what = line["line"].text();
        if (what == "experiment") {
            history_.log.saved = experiment_of(line);
        } else if (what == "decision") {
            history_.log.decisions.push_back({id(), round_of(line), line["kind"].text(), line["detail"]});
        } else if (what == "commit") {
            return commit(line);
        } else if (what == "members") {
            return members(line);
        } else if (what == "participants" || what == "next_cohort") {
            return more_of_commit(line);
        }
        return {};  // a newer coordinator tells more
    }

private:
    [[nodiscard]] ExperimentId id() const { return history_.log.saved.experiment; }

    Status commit(const Json& line) {
        SaveCommit commit{.experiment = id(), .round = round_of(line)};
        TRY_ASSIGN(commit.model, digest_from_hex(line["model_sha256"].text()));
        commit.model_bytes = static_cast<std::uint64_t>(line["model_bytes"].integer());
        commit.summary = line["summary"];
        if (const auto& evaluation = line["evaluation"]; evaluation.is_object()) {
            constexpr auto none = std::numeric_limits<double>::quiet_NaN();
            history_.evaluations[commit.round] = {
                .experiment = id(),
                .round = commit.round,
                .loss = evaluation["loss"].number(none),
                .accuracy = evaluation["accuracy"].number(none),
                .examples = static_cast<std::uint64_t>(evaluation["examples"].integer()),
                .detail = evaluation["detail"]};
        }
        history_.log.commits.push_back(std::move(commit));
        return {};
    }

    Status members(const Json& line) {
        auto& all = history_.log.decisions;
        if (all.empty() || all.back().kind != decisions::cohort || all.back().round != round_of(line)) {
            return fail(bad_log(fmt::format("members of no cohort in round {}", round_of(line))));
        }
        auto names = all.back().detail["members"];
        for (const auto& name : line["members"].items()) {
            names.push(name);
        }
        all.back().detail.set("members", std::move(names));
        return {};
    }

    Status more_of_commit(const Json& line) {
        auto& all = history_.log.commits;
        if (all.empty() || all.back().round != round_of(line)) {
            return fail(bad_log(fmt::format("participants of no commit in round {}", round_of(line))));
        }
        for (const auto& entry : line["participants"].items()) {
            const auto& pair = entry.items();
            if (pair.size() != 2) {
                return fail(bad_log(fmt::format("a participant without an update in round {}", round_of(line))));
            }
            TRY_ASSIGN(const auto update, digest_from_hex(pair[1].text()));
            all.back().participants.emplace_back(pair[0].text(), update);
        }
        std::ranges::move(texts_of(line["next_cohort"]), std::back_inserter(all.back().next_cohort));
        return {};
    }

    RunHistory& history_;
};

}  // namespace

Result<RunHistory> fetch_history(OperatorSession& session, ExperimentId id) {
    RunHistory history;
    HistoryReader reader(history);
    auto request = Json::object().set("experiment", id);
    for (;;) {
        TRY_ASSIGN(const auto page, session.ask("experiment.log", request));
        for (const auto& line : page["lines"].items()) {
            TRY(reader.take(line));
        }
        const auto& next = page["next"];
        if (!next.is_object()) {
            return history;
        }
        if (page["lines"].items().empty()) {
            return fail(bad_log("a page without lines that is not the last"));
        }
        request.set("from", next["from"]).set("part", next["part"]);
    }
}

Result<std::vector<RunHistory>> fetch_lineage(OperatorSession& session, ExperimentId id) {
    std::vector<RunHistory> lineage;
    TRY_ASSIGN(auto last, fetch_history(session, id));
    lineage.push_back(std::move(last));
    while (lineage.front().log.saved.parent != 0) {
        const auto& child = lineage.front().log.saved;
        if (child.parent >= child.experiment) {
            return fail(bad_log(fmt::format("experiment {} goes on from a later one", child.experiment)));
        }
        TRY_ASSIGN(auto parent, fetch_history(session, child.parent));
        std::erase_if(parent.log.commits, [&](const SaveCommit& commit) { return commit.round > child.parent_round; });
        lineage.insert(lineage.begin(), std::move(parent));
    }
    std::vector<ExperimentId> before;
    for (auto& each : lineage) {
        each.log.ancestors = before;
        before.insert(before.begin(), each.log.saved.experiment);
    }
    return lineage;
}

std::vector<SaveCommit> own_rounds(const RunHistory& history) {
    const auto& all = history.log.commits;
    return all.empty() ? all : std::vector<SaveCommit>(all.begin() + 1, all.end());
}

}  // namespace causeway::cli
