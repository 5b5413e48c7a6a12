// See replay.h.
#include "simulation/replay.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/json_lists.h"
#include "configs/canonical.h"
#include "configs/reader.h"
#include "configs/statistics.h"
#include "coordinator/assignment.h"
#include "coordinator/decisions.h"
#include "simulation/replay_relays.h"

namespace causeway::simulation {
namespace {

Status bad_log(std::uint32_t round, const std::string& why) {
    return fail(ErrorKind::invalid, "bad_log",
                fmt::format("the decision log is inconsistent in round {}: {}", round, why));
}

/// Who could count in a round, by the log: the cohort less those who left.
struct RoundMembers {
    std::set<std::string> cohort;
    std::set<std::string> left;
};

/// The commit before it names the cohort, unless one was drawn later, after waiting for members.
RoundMembers members_of(const RunLog& log, std::uint32_t round) {
    RoundMembers members;
    if (round > log.saved.parent_round) {
        const auto& next = log.commits[round - 1 - log.saved.parent_round].next_cohort;
        members.cohort = {next.begin(), next.end()};
    }
    for (const auto& decision : log.decisions) {
        if (decision.round != round) {
            continue;
        }
        if (decision.kind == decisions::cohort) {
            const auto names = texts_of(decision.detail["members"]);
            members.cohort = {names.begin(), names.end()};
        } else if (decision.kind == decisions::dropped || decision.kind == decisions::refused) {
            members.left.insert(decision.detail["node"].text());
        }
    }
    return members;
}

Status check_commit(const SaveCommit& commit, const RoundMembers& members, const CountOrShare& quorum) {
    const std::string* before = nullptr;
    for (const auto& [node, update] : commit.participants) {
        if (before != nullptr && *before >= node) {
            return bad_log(commit.round, "its participants are not sorted, or one is in it twice");
        }
        if (!members.cohort.contains(node)) {
            return bad_log(commit.round, node + " took part without being in the cohort");
        }
        if (members.left.contains(node)) {
            return bad_log(commit.round, node + " took part although it had been dropped or refused");
        }
        before = &node;
    }
    const auto needed = quorum.of(static_cast<std::uint32_t>(members.cohort.size()));
    if (commit.participants.empty() || commit.participants.size() < needed) {
        return bad_log(commit.round, fmt::format("{} of {} members took part and the quorum is {}",
                                                 commit.participants.size(), members.cohort.size(), needed));
    }
    return {};
}

/// A job's answer when it is the one that was asked for; else the error that came instead.
template <class Answer>
Result<Answer> answer_of(CoordinatorEvent event) {
    if (auto* answer = std::get_if<Answer>(&event)) {
        return std::move(*answer);
    }
    const auto* failed = std::get_if<JobFailed>(&event);
    ASSERT(failed != nullptr);
    return fail(with_context(failed->error, fmt::format("round {}: {}", failed->round, failed->job)));
}

class Replayer {
public:
    Replayer(const RunLog& log, CoordinatorWork& work, const FindClient& client)
        : log_(log), work_(work), client_(client) {}

    Result<ReplayedRound> first_model() {
        TRY_ASSIGN(auto config, read_experiment_or_fail(log_.saved.file, log_.saved.name));
        TRY_ASSIGN(assign_, assignment_of(config, log_.saved.submitted_by));
        assign_.continues = log_.ancestors;
        const auto& first = log_.commits.front();
        if (!first.participants.empty()) {
            return statistics(std::move(config));
        }
        MakeModel job{.experiment = log_.saved.experiment, .from = {}};
        if (log_.saved.parent != 0) {
            job.from = first.model;  // in the work's hands since the parent's replay, if that came to the same bits
            TRY(work_.read_model(job.from));
        }
        TRY_ASSIGN(const auto made, answer_of<ModelMade>(work_.make_model(job, log_.saved)));
        model_ = made.model;
        model_bytes_ = made.bytes;
        return ReplayedRound{first.round, model_, first.model, {}};
    }

    /// Round 0 with its sums: the file says what they came to.
    Result<ReplayedRound> statistics(Experiment config) {
        const auto& first = log_.commits.front();
        const auto recorded = found_statistics(config);
        config.data.normalise = normalise_federated;
        auto unknown = log_.saved;
        unknown.file = canonical_toml(config);
        work_.know(unknown);
        const auto ready = std::exchange(assign_, {});
        TRY_ASSIGN(assign_, assignment_of(config, log_.saved.submitted_by));
        assign_.lease = {.epoch = 0, .experiment = log_.saved.experiment, .round = 0, .attempt = 1};
        assign_.program = statistics_program;
        assign_.cohort = static_cast<std::uint32_t>(members_of(log_, 0).cohort.size());
        ReplayedRound round{.round = 0, .model = {}, .recorded = first.model, .differs = {}};
        work_.open_round({log_.saved.experiment, 0, {}, assign_.cohort});
        TRY(add_all(first, round));
        TRY_ASSIGN(const auto written, answer_of<SnapshotWritten>(work_.finish_round({log_.saved.experiment, 0})));
        if (written.normalise != recorded) {
            round.differs.emplace_back("data.normalise");
        }
        assign_ = ready;
        model_ = written.model;
        model_bytes_ = written.bytes;
        round.model = model_;
        return round;
    }

    Result<ReplayedRound> next(const SaveCommit& commit) {
        ReplayedRound round{.round = commit.round, .model = {}, .recorded = commit.model, .differs = {}};
        assign_.lease = {.epoch = 0, .experiment = log_.saved.experiment, .round = commit.round, .attempt = 1};
        assign_.model = model_;
        assign_.model_bytes = model_bytes_;
        const OpenRound open{log_.saved.experiment, commit.round, model_};
        work_.open_round(open);
        FinishRound finish{log_.saved.experiment, commit.round};
        const auto opened = work_.opened(open);
        if (opened) {
            TRY_ASSIGN(auto relays, replay_relays(log_, work_, client_, assign_, *opened));
            finish.groups = std::move(relays.groups);
            round.differs = std::move(relays.differs);
        }
        if (!opened) {
            TRY(add_all(commit, round));
        }
        TRY_ASSIGN(const auto written,
                   answer_of<SnapshotWritten>(work_.finish_round(finish)));
        model_ = written.model;
        model_bytes_ = written.bytes;
        round.model = model_;
        return round;
    }

private:
    Status add_all(const SaveCommit& commit, ReplayedRound& round) {
        for (const auto& [node, recorded] : commit.participants) {
            auto added = add(node, commit.round);
            if (!added) {
                return fail(with_context(added.error(), fmt::format("round {}, {}", commit.round, node)));
            }
            if (*added != recorded) {
                round.differs.push_back(node);
            }
        }
        return {};
    }

    /// One participant: fetch, train, offer, counted. Its client state moves on as it did.
    Result<Digest> add(const std::string& node, std::uint32_t number) {
        TRY_ASSIGN(auto* client, client_(node));
        if (!assign_.model.empty() && !client->has_model(model_)) {
            TRY_ASSIGN(const auto model, work_.read_model(model_));
            client->keep_model(model_, model);
        }
        const auto trained = client->train(assign_);
        if (trained.error) {
            return fail(*trained.error);
        }
        TRY_ASSIGN(const auto bytes, client->read_update(trained.update.digest));
        const auto absorbed = work_.absorb({log_.saved.experiment, number, 1, node, 0, trained.update}, bytes);
        if (absorbed.refusal) {
            return fail(ErrorKind::refused, absorbed.refusal->code, absorbed.refusal->message);
        }
        client->resolve({trained.update, true});
        return trained.update.digest;
    }

    const RunLog& log_;
    CoordinatorWork& work_;
    const FindClient& client_;
    Assign assign_;
    Digest model_;
    std::uint64_t model_bytes_ = 0;
};

}  // namespace

Status check_log(const RunLog& log) {
    TRY_ASSIGN(const auto config, read_experiment_or_fail(log.saved.file, log.saved.name));
    std::uint32_t stopped_after = config.experiment.rounds;
    for (const auto& decision : log.decisions) {
        if (decision.kind == decisions::early_stop && decision.round > 0) {
            stopped_after = std::min(stopped_after, decision.round - 1);  // logged on the round that is not opened
        }
    }
    for (std::size_t i = 0; i < log.commits.size(); ++i) {
        const auto& commit = log.commits[i];
        if (commit.round != log.saved.parent_round + i) {
            return bad_log(commit.round, "rounds are missing before it");
        }
        if (commit.round > stopped_after) {
            return bad_log(commit.round, "the run had ended before it");
        }
        if (i > 0 || !commit.participants.empty()) {
            TRY(check_commit(commit, members_of(log, commit.round), config.sync.quorum));
        }
    }
    return {};
}

Result<std::vector<ReplayedRound>> replay(const RunLog& log, CoordinatorWork& work, const FindClient& client,
                                          const OnReplayed& on_round) {
    TRY(check_log(log));
    std::vector<ReplayedRound> rounds;
    if (log.commits.empty()) {
        return rounds;
    }
    Replayer replayer(log, work, client);
    for (const auto& commit : log.commits) {
        TRY_ASSIGN(auto round, &commit == &log.commits.front() ? replayer.first_model() : replayer.next(commit));
        rounds.push_back(std::move(round));
        if (on_round && !on_round(rounds.back())) {
            break;
        }
    }
    work.release({log.saved.experiment});
    return rounds;
}

}  // namespace causeway::simulation
