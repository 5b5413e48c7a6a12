// The log of an experiment as operators get it: every line once and in order, in pages that fit a reply.
#include "coordinator/run_history.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "coordinator/decisions.h"
#include "coordinator/store.h"
#include "tests/temporary_folder.h"

namespace causeway {
namespace {

constexpr std::size_t longest_reply = 240 << 10;

SaveExperiment history_experiment(ExperimentId id, const std::string& name, ExperimentId parent = 0,
                                  std::uint32_t round = 0) {
    return {id, name, "[experiment]\n", "running", "", "operator", parent, round, "build"};
}

SaveCommit history_commit(ExperimentId id, std::uint32_t round, const std::vector<std::string>& nodes) {
    SaveCommit history_commit{id, round, sha256(std::to_string(round)),     100,
                              {}, nodes, Json::object().set("seconds", 2.5)};
    for (const auto& node : nodes) {
        history_commit.participants.emplace_back(node, sha256(node + std::to_string(round)));
    }
    return history_commit;
}

struct Folder {
    TemporaryFolder folder;
    Store store = *Store::open(folder.path, {});

    void save(const std::vector<Persist>& persists) { REQUIRE(store.execute(persists)); }
    Json page(const Json& body) {
        const auto reply = history_page(store.database(), body);
        REQUIRE(reply);
        CHECK(reply->dump().size() <= longest_reply);
        return *reply;
    }
    /// All pages' lines; counts the pages.
    std::vector<Json> lines(const Json& wanted, int& pages) {
        std::vector<Json> all;
        auto body = Json::object().set("experiment", wanted);
        for (pages = 1;; ++pages) {
            const auto reply = page(body);
            for (const auto& line : reply["lines"].items()) {
                all.push_back(line);
            }
            if (!reply["next"].is_object()) {
                return all;
            }
            body.set("from", reply["next"]["from"]).set("part", reply["next"]["part"]);
        }
    }
};

std::string code_of(Store& store, const Json& body) {
    const auto reply = history_page(store.database(), body);
    return reply ? "" : reply.error().code;
}

}  // namespace

TEST_CASE("an experiment's log has its decisions, commits and participants in order, and no other's", "[unit][store]") {
    Folder folder;
    const auto dropped = decisions::dropped_detail("bob", 1, "silent", "nothing was heard");
    folder.save({history_experiment(1, "digits"),
                 SaveDecision{1, 0, decisions::cohort, decisions::cohort_detail({"ann"})}, history_commit(1, 0, {}),
                 SaveDecision{1, 1, decisions::dropped, dropped}, history_commit(1, 1, {"ann", "bob"}),
                 SaveEvaluation{1, 1, 0.5, 0.75, 360}, SaveDecision{1, 2, decisions::dropped, dropped}});
    folder.save({history_experiment(2, "digits", 1, 1), history_commit(2, 1, {}), history_commit(2, 2, {"ann"})});

    int pages = 0;
    const auto lines = folder.lines(1, pages);
    std::string order;
    for (const auto& line : lines) {
        order += fmt::format("{} {},", line["line"].text(), line["round"].integer(-1));
    }
    CHECK(pages == 1);
    CHECK(order ==
          "experiment -1,decision 0,members 0,commit 0,decision 1,commit 1,participants 1,next_cohort 1,"
          "decision 2,");
    CHECK(lines[0]["file"].text() == "[experiment]\n");
    CHECK(lines[2]["members"].items()[0].text() == "ann");
    CHECK(lines[4]["detail"]["code"].text() == "silent");
    CHECK(lines[5]["model_sha256"].text() == sha256("1").hex());
    CHECK(lines[5]["summary"]["seconds"].number() == 2.5);
    CHECK(lines[5]["evaluation"]["accuracy"].number() == 0.75);
    CHECK(lines[6]["participants"].items()[1].items()[0].text() == "bob");
    CHECK(lines[6]["participants"].items()[1].items()[1].text() == sha256("bob1").hex());

    const auto newest = folder.lines("digits", pages);  // a name means the newest
    CHECK(newest[0]["id"].integer() == 2);
    CHECK(newest[0]["parent"].integer() == 1);
    CHECK(newest[1]["round"].integer() == 1);
}

TEST_CASE("a long log comes in pages that fit a reply, each line once, whatever the size of a cohort",
          "[unit][store]") {
    Folder folder;
    std::vector<std::string> nodes;
    for (int i = 0; i < 3000; ++i) {
        nodes.push_back(fmt::format("a-node-with-a-name-that-is-as-long-as-a-name-may-be-{:012}", i));
    }
    folder.save({history_experiment(1, "wide"), SaveDecision{1, 1, decisions::cohort, decisions::cohort_detail(nodes)},
                 history_commit(1, 0, {})});
    for (std::uint32_t round = 1; round <= 3; ++round) {
        folder.save({history_commit(1, round, nodes)});
    }
    int pages = 0;
    std::size_t members = 0;
    std::size_t participants = 0;
    std::size_t drawn = 0;
    std::string before;
    for (const auto& line : folder.lines(1, pages)) {
        members += line["members"].items().size();
        drawn += line["next_cohort"].items().size();
        for (const auto& pair : line["participants"].items()) {
            const auto name = fmt::format("{} {}", line["round"].integer(), pair.items()[0].text());
            CHECK(before < name);
            before = name;
            ++participants;
        }
    }
    CHECK(pages > 5);
    CHECK(members == 3000);
    CHECK(participants == 9000);
    CHECK(drawn == 9000);
}

TEST_CASE("what is no place in a log is no harm, and what is no experiment is said to be none", "[unit][store]") {
    Folder folder;
    folder.save({history_experiment(1, "new")});
    const auto about = [] { return Json::object().set("experiment", 1); };
    CHECK(folder.page(about())["lines"].items().size() == 1);
    folder.save({history_commit(1, 0, {}), history_commit(1, 1, {"ann"})});
    CHECK(folder.page(about().set("from", 7))["lines"].items().empty());
    CHECK(folder.page(about().set("from", 1).set("part", 99))["lines"].items().empty());
    CHECK(folder.page(about().set("from", -5).set("part", -5))["lines"].items().size() == 4);
    CHECK(folder.page(about().set("from", "x").set("part", Json::array()))["lines"].items().size() == 4);
    CHECK(code_of(folder.store, Json::object()) == "missing_argument");
    CHECK(code_of(folder.store, Json::object().set("experiment", 9)) == "unknown_experiment");
    CHECK(code_of(folder.store, Json::object().set("experiment", "x' OR 1")) == "unknown_experiment");
}

}  // namespace causeway
