// `experiment explain`: why a run went as it did, in plain sentences from its decision log and its times.
//
// Everything said is read from what the coordinator recorded at the time; nothing is guessed. A sentence that is the
// same for several rounds is said once, with the rounds. Main thread.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_choice.h"
#include "cli/run_history.h"
#include "common/text.h"
#include "configs/reader.h"
#include "coordinator/decisions.h"

namespace causeway::cli {
namespace {

constexpr std::size_t most_slow = 3;    // rounds that are spoken of one by one
constexpr double slow = 1.5;            // times the median
constexpr std::size_t most_rounds = 8;  // named in a sentence

struct Sentence {
    std::string about;  // end | origin | time | slow_round | dropped | refused | left_out | attempt | engine
    std::set<std::uint32_t> rounds;
    std::string node;
    std::string text;
};
using Sentences = std::vector<Sentence>;

std::string took(double s) {
    return format_duration(from_seconds(s));
}

std::string rounds_text(const std::set<std::uint32_t>& rounds) {
    std::vector<std::string> words;
    for (auto at = rounds.begin(); at != rounds.end();) {
        const auto first = *at;
        auto last = first;
        for (++at; at != rounds.end() && *at == last + 1; ++at) {
            last = *at;
        }
        words.push_back(first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
    }
    const bool cut = words.size() > most_rounds;
    words.resize(std::min(words.size(), most_rounds));
    return fmt::format("{} {}{}", rounds.size() == 1 ? "round" : "rounds", join(words, ", "), cut ? ", ..." : "");
}

const char* words_of_part(const std::string& part) {
    static const std::map<std::string, const char*> words{{"select", "waiting for members"},
                                                          {"distribute", "handing out the model"},
                                                          {"train", "training"},
                                                          {"collect", "collecting updates"},
                                                          {"verify", "checking updates"},
                                                          {"aggregate", "adding updates"},
                                                          {"commit", "storing the model"},
                                                          {"evaluate", "waiting for the evaluation"}};
    const auto known = words.find(part);
    return known == words.end() ? "something else" : known->second;
}

/// Of times by part the longest, and how long it was.
std::pair<std::string, double> longest_part(const std::map<std::string, double>& parts) {
    const auto most = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
    return most == parts.end() ? std::pair<std::string, double>() : std::pair(most->first, most->second);
}

void add_times(const Json& time, std::map<std::string, double>& sum) {
    for (const auto& [name, value] : time.fields()) {
        if (name != "wall" && value.is_number()) {
            sum[name] += value.number();
        }
    }
}

double wall_of(const SaveCommit& commit) {
    return commit.summary["seconds"].number();
}

/// "training took most of it (4.8s), and client-2 came last".
std::string why_slow(const SaveCommit& commit) {
    std::map<std::string, double> parts;
    add_times(commit.summary["time"], parts);
    const auto [part, time] = longest_part(parts);
    if (part.empty()) {
        return "where it went was not recorded";
    }
    const auto last = commit.summary["time"]["last"].text();
    return fmt::format("{} took most of it ({}){}", words_of_part(part), took(time),
                       last.empty() ? "" : ", and " + last + " came last");
}

void explain_times(const std::vector<SaveCommit>& rounds, Sentences& all) {
    if (rounds.empty()) {
        return;
    }
    std::vector<const SaveCommit*> by_time;
    std::map<std::string, double> parts;
    double sum = 0;
    for (const auto& commit : rounds) {
        by_time.push_back(&commit);
        add_times(commit.summary["time"], parts);
        sum += wall_of(commit);
    }
    std::ranges::sort(by_time, std::greater(), [](const SaveCommit* commit) { return wall_of(*commit); });
    const auto median = wall_of(*by_time[by_time.size() / 2]);
    const auto [part, time] = longest_part(parts);
    all.push_back({"time",
                   {},
                   {},
                   fmt::format("{} rounds took {} in all, {} the one in the middle; {} took most: {}{}", rounds.size(),
                               took(sum), took(median), words_of_part(part), took(time),
                               sum > 0 ? fmt::format(", {:.0f} %", 100 * time / sum) : "")});
    for (std::size_t i = 0; i < std::min(most_slow, by_time.size()); ++i) {
        if (wall_of(*by_time[i]) > slow * median) {
            all.push_back({"slow_round",
                           {by_time[i]->round},
                           by_time[i]->summary["time"]["last"].text(),
                           fmt::format("round {} was slow, {}: {}", by_time[i]->round, took(wall_of(*by_time[i])),
                                       why_slow(*by_time[i]))});
        }
    }
}

const char* words_of_leaving(const std::string& why) {
    static const std::map<std::string, const char*> words{{"not_drawn", "the selection drew others"},
                                                          {"busy", "it worked for another experiment"},
                                                          {"away", "it had been dropped and was not back"},
                                                          {"late", "it had been too late, and is tried again in a "
                                                                   "later round without being waited for"},
                                                          {"other_build", "its engine is another build"}};
    const auto known = words.find(why);
    return known == words.end() ? why.c_str() : known->second;
}

std::string why(const Json& detail) {
    const auto code = detail["code"].text();
    const auto message = detail["message"].text();
    return message.empty() ? code : fmt::format("{} ({})", message, code);
}

/// Sentences by what they say, so that the rounds of equal ones come together; in the order of their first round.
class Collected {
public:
    void add(const std::string& about, const std::string& node, const std::string& before, std::uint32_t round,
             const std::string& after) {
        const auto key = before + after;
        const auto known = places_.find(key);
        if (known == places_.end()) {
            places_[key] = all_.size();
            all_.push_back({{about, {round}, node, {}}, before, after});
        } else {
            all_[known->second].sentence.rounds.insert(round);
        }
    }
    void move_to(Sentences& sentences) && {
        for (auto& each : all_) {
            each.sentence.text = each.before + rounds_text(each.sentence.rounds) + each.after;
            sentences.push_back(std::move(each.sentence));
        }
    }

private:
    struct Entry {
        Sentence sentence;
        std::string before;
        std::string after;
    };
    std::vector<Entry> all_;
    std::map<std::string, std::size_t> places_;
};

std::string place_in_model(const Json& detail) {
    const auto tensor = detail["tensor"].text();
    return tensor.empty() ? "" : fmt::format(", in {} at {}", tensor, detail["index"].integer());
}

/// A node's engine is logged when it is first drawn, and again when it is another: only that is news.
void explain_engine(const SaveDecision& decision, std::map<std::string, std::string>& engines, Collected& all) {
    const auto node = decision.detail["node"].text();
    const auto engine = decision.detail["software"].text() + ", " + decision.detail["signature"].text();
    if (const auto before = engines.find(node); before != engines.end() && before->second != engine) {
        all.add("engine", node, node + " works from ", decision.round, " on with another engine: " + engine);
    }
    engines[node] = engine;
}

void explain_decisions(const RunHistory& history, std::uint32_t only, Sentences& sentences) {
    Collected all;
    std::map<std::string, std::string> engines;
    for (const auto& decision : history.log.decisions) {
        if (only != 0 && decision.round != only) {
            continue;
        }
        const auto& detail = decision.detail;
        const auto node = detail["node"].text();
        if (decision.kind == decisions::dropped) {
            all.add("dropped", node, node + " was dropped from ", decision.round, ": " + why(detail));
        } else if (decision.kind == decisions::refused) {
            all.add("refused", node, "the update of " + node + " was refused in ", decision.round,
                    ": " + why(detail) + place_in_model(detail));
        } else if (decision.kind == decisions::next_attempt) {
            all.add("attempt", node, node + " came back and began again in ", decision.round, "");
        } else if (decision.kind == decisions::late) {
            for (const auto& [name, late] : detail["nodes"].fields()) {
                if (late["tried"].boolean(false)) {
                    all.add("tried", name, name + " was tried without being waited for in ", decision.round, "");
                }
            }
        } else if (decision.kind == decisions::compute) {
            explain_engine(decision, engines, all);
        } else if (decision.kind == decisions::selection) {
            for (const auto& [name, reason] : detail["left_out"].fields()) {
                all.add("left_out", name, name + " did not take part in ", decision.round,
                        fmt::format(": {}", words_of_leaving(reason.text())));
            }
        } else if (decision.kind == decisions::groups) {
            for (const auto& name : detail["without_labels"].items()) {
                all.add("labels", name.text(), name.text() + " shares no label histogram in ", decision.round,
                        ", and was grouped as if its labels were everybody's: join it with --share-labels");
            }
        }
    }
    std::move(all).move_to(sentences);
}

/// The word before a state.
const char* helps(const std::string& state) {
    return state == "succeeded" || state == "failed" ? "has" : state == "cancelled" ? "was" : "is";
}

void explain_end(const RunHistory& history, Sentences& all) {
    const auto& saved = history.log.saved;
    const auto config = read_experiment_or_fail(saved.file, saved.name);
    const auto rounds = history.log.commits.empty() ? 0 : history.log.commits.back().round;
    all.push_back({"end",
                   {},
                   {},
                   fmt::format("experiment {} ({}), submitted by {}, {} {} after {}{} rounds{}", saved.experiment,
                               saved.name, saved.submitted_by, helps(saved.state), saved.state, rounds,
                               config ? fmt::format(" of {}", config->experiment.rounds) : "",
                               saved.reason.empty() ? "" : ": " + saved.reason)});
    if (saved.parent != 0) {
        all.push_back({"origin",
                       {saved.parent_round},
                       {},
                       fmt::format("it goes on from round {} of experiment {}", saved.parent_round, saved.parent)});
    }
    for (const auto& decision : history.log.decisions) {
        const auto& detail = decision.detail;
        if (decision.kind == decisions::statistics) {
            all.push_back({"statistics",
                           {decision.round},
                           {},
                           fmt::format("its values are normalised by the sums of {} columns over {} examples, which "
                                       "came before round 1",
                                       detail["columns"].integer(), detail["examples"].integer())});
        }
        if (decision.kind == decisions::early_stop) {
            all.push_back({"early_stop",
                           {decision.round},
                           {},
                           fmt::format("it stopped early, before round {}: for {} evaluations no {} was better than "
                                       "{:.4f}, that of round {}",
                                       decision.round, detail["patience"].integer(), detail["metric"].text(),
                                       detail["best"].number(), detail["best_round"].integer())});
        }
    }
}

/// One round: whose updates count, and where its time went.
Status explain_round(const RunHistory& history, std::uint32_t round, Sentences& all) {
    const auto rounds = own_rounds(history);
    const auto found = std::ranges::find(rounds, round, &SaveCommit::round);
    const bool decided =
        std::ranges::find(history.log.decisions, round, &SaveDecision::round) != history.log.decisions.end();
    if (found == rounds.end() && !decided) {
        return fail(ErrorKind::not_found, "unknown_round",
                    rounds.empty() ? std::string("the experiment has no committed round yet")
                                   : fmt::format("nothing is recorded of round {}; there are rounds {} to {}", round,
                                                 rounds.front().round, rounds.back().round));
    }
    if (found == rounds.end()) {
        all.push_back({"time", {round}, {}, fmt::format("round {} is not committed", round)});
        return {};
    }
    std::vector<std::string> names;
    for (const auto& [node, update] : found->participants) {
        names.push_back(node);
    }
    all.push_back({"counted",
                   {round},
                   {},
                   fmt::format("the updates of {} of {} members count in round {}: {}", names.size(),
                               found->summary["cohort"].integer(), round, join(names, ", "))});
    all.push_back({"time",
                   {round},
                   found->summary["time"]["last"].text(),
                   fmt::format("round {} took {}: {}", round, took(wall_of(*found)), why_slow(*found))});
    return {};
}

/// What each member did with its time, the slowest first.
void show_members(const RunHistory& history, std::uint32_t round, Output output) {
    const auto found = std::ranges::find(history.log.commits, round, &SaveCommit::round);
    if (found == history.log.commits.end() || found->summary["member_times"].fields().empty()) {
        return;
    }
    std::vector<std::pair<double, std::vector<std::string>>> rows;
    for (const auto& [node, times] : found->summary["member_times"].fields()) {
        std::map<std::string, double> parts;
        add_times(times, parts);
        double sum = 0;
        std::vector<std::string> row{node};
        for (const char* part : {"distribute", "train", "collect", "verify", "aggregate"}) {
            row.push_back(took(parts[part]));
            sum += parts[part];
        }
        row.push_back(times["end"].text());
        rows.emplace_back(-sum, std::move(row));
    }
    std::ranges::sort(rows);
    std::vector<std::vector<std::string>> lines;
    for (auto& [sum, row] : rows) {
        lines.push_back(std::move(row));
    }
    output.line(table({"member", "distribute", "train", "collect", "verify", "aggregate", "end"}, lines));
}

void show_explanation(const Sentences& sentences, ExperimentId experiment, Output output) {
    for (const auto& sentence : sentences) {
        auto rounds = Json::array();
        for (const auto round : sentence.rounds) {
            rounds.push(round);
        }
        output.object(Json::object()
                          .set("event", "explanation")
                          .set("experiment", experiment)
                          .set("about", sentence.about)
                          .set("rounds", std::move(rounds))
                          .set("node", sentence.node.empty() ? Json() : Json(sentence.node))
                          .set("text", sentence.text));
        output.line(sentence.text + ".");
    }
}

Result<int> explain(const ExplainOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto id, choose_experiment_id(*session, options.experiment, options.state, output));
    TRY_ASSIGN(const auto history, fetch_history(*session, id));
    Sentences all;
    if (options.round != 0) {
        TRY(explain_round(history, options.round, all));
    } else {
        explain_end(history, all);
        explain_times(own_rounds(history), all);
    }
    const auto before = all.size();
    explain_decisions(history, options.round, all);
    if (all.size() == before) {
        all.push_back({"left_out", {}, {}, "nobody was dropped, refused or left out"});
    }
    show_explanation(all, id, output);
    if (options.round != 0) {
        show_members(history, options.round, output);
    }
    return exit_done;
}

}  // namespace

int run_experiment_explain(const ExplainOptions& options, Output output) {
    const auto code = explain(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
