// Split presets in experiment files: what they expand to, the mistakes, and the plan that others work from.
#include "configs/split_plan.h"

#include <catch2/catch.hpp>

#include "configs/canonical.h"
#include "split/flow.h"
#include "tests/configs/texts.h"

namespace causeway {

using Catch::Contains;

namespace {

/// Layers by index: conv 0, relu 1, maxpool 2, conv 3, relu 4, flatten 5, dense 6, relu 7, dense 8.
std::string cnn(const std::string& more) {
    return with(
               R"(["flatten", "dense 16", "relu", "dense 10"])",
               R"(["conv 4 3x3", "relu", "maxpool 2", "conv 8 3x3", "relu", "flatten", "dense 16", "relu", "dense 10"])") +
           more;
}
std::string regime(const std::string& lines) {
    return cnn("[regime]\n" + lines);
}

SplitPlan split_plan_of(const std::string& text) {
    CAPTURE(text, all_errors(text));
    const auto read = read_experiment(text, "e.toml");
    REQUIRE(read.has_value());
    const auto plan = split_plan_of(*read, *chain_of(*read));
    REQUIRE(plan.has_value());
    REQUIRE(plan->has_value());
    return **plan;
}

}  // namespace

TEST_CASE("each split preset expands to a mesh and a flow, and gives the plan that they stand for", "[configs][unit]") {
    const auto gsfl = split_plan_of(regime("preset = \"gsfl\"\ncut = \"maxpool\"\ngroups = 3\n"));
    CHECK(gsfl.flow == "split");
    CHECK(gsfl.cuts == std::vector<std::uint32_t>{3});
    CHECK(gsfl.stages == 2);
    CHECK(gsfl.groups == 3);
    CHECK(gsfl.relays(12) == 3);
    CHECK(gsfl.grouping == "time");
    CHECK(gsfl.regroup == SplitPlan::Regroup::once);
    CHECK(gsfl.lost_client == RelayPlan::LostClient::wait);
    CHECK(gsfl.handover_copy == RelayPlan::Copy::coordinator);

    CHECK(split_plan_of(regime("preset = \"split\"\ncut = \"relu:2\"\n")).cuts == std::vector<std::uint32_t>{5});
    CHECK(split_plan_of(regime("preset = \"split\"\ncut = 4\n")).groups == 1);
    CHECK(split_plan_of(regime("preset = \"splitfed-v1\"\ncut = \"4\"\n")).relays(12) == 12);

    const auto v2 = split_plan_of(regime("preset = \"splitfed-v2\"\ncut = \"4\"\noverlap = 2\n"));
    CHECK(v2.flow == "batch-major");
    CHECK(v2.relays(12) == 12);
    CHECK(v2.turns == RelayPlan::Turns::together);
    CHECK(v2.overlap == 2);
    CHECK(gsfl.turns == RelayPlan::Turns::one_by_one);
    CHECK(gsfl.overlap == 0);

    const auto u_shaped = split_plan_of(regime("preset = \"u-shaped\"\ncut = [\"maxpool\", 8]\n"));
    CHECK(u_shaped.flow == "u-shaped");
    CHECK(u_shaped.cuts == std::vector<std::uint32_t>{3, 8});
    CHECK(u_shaped.stages == 3);

    const auto rules =
        split_plan_of(regime("preset = \"gsfl\"\ncut = 3\nregroup = \"every-round\"\ngrouping = \"labels\"\n") +
                      "[sync]\nlost_client = \"skip\"\nhandover_copy = \"none\"\n");
    CHECK(rules.regroup == SplitPlan::Regroup::every_round);
    CHECK(rules.grouping == "labels");
    CHECK(rules.lost_client == RelayPlan::LostClient::skip);
    CHECK(rules.handover_copy == RelayPlan::Copy::none);
}

TEST_CASE("an experiment of one stage has no plan, and one of two no single program", "[configs][unit]") {
    const auto whole = read_experiment(right_text, "e.toml");
    CHECK_FALSE(split_plan_of(*whole, *chain_of(*whole))->has_value());
    const auto cut = read_experiment(regime("preset = \"split\"\ncut = 3\n"), "e.toml");
    REQUIRE(cut.has_value());
    REQUIRE_FALSE(work_texts(*cut).has_value());
    CHECK(work_texts(*cut).error().code == "bad_flow");
    const auto plan = **split_plan_of(*cut, *chain_of(*cut));
    CHECK_THAT(work_texts(*cut, plan, 0)->program, Contains("load") && !Contains("loss"));
    CHECK_THAT(work_texts(*cut, plan, 1)->program, Contains("loss") && !Contains("load"));
    CHECK(layers_of(*stage_program(plan, *chain_of(*cut), 1)) == std::vector<LayerInterval>{{3, 9}});
}

TEST_CASE("show prints what a split preset filled in, and it re-reads to the same experiment", "[configs][property]") {
    for (const auto* lines :
         {"preset = \"gsfl\"\ncut = \"maxpool\"\n", "preset = \"split\"\ncut = 6\n",
          "preset = \"splitfed-v1\"\ncut = \"relu\"\n", "preset = \"u-shaped\"\ncut = [\"maxpool\", \"relu:3\"]\n",
          "preset = \"gsfl\"\ncut = 3\ngrouping = \"fixed\"\ngroup_lists = [[\"a\"], [\"b\", \"c\"]]\n"}) {
        const auto text = regime(lines);
        CAPTURE(lines, all_errors(text));
        const auto read = read_experiment(text, "e.toml");
        REQUIRE(read.has_value());
        const auto shown = show_toml(*read);
        CHECK_THAT(shown, Contains("# preset " + read->regime.preset) && Contains("lost_client = \"wait\""));
        const auto again = read_experiment(canonical_toml(*read), "canonical.toml");
        REQUIRE(again.has_value());
        CHECK(*again == *read);
    }
}

TEST_CASE("a cut that does not exist, or would send raw inputs, is refused with those that are possible",
          "[configs][unit]") {
    const auto cut = [](const std::string& value) {
        return all_errors(regime("preset = \"gsfl\"\ncut = " + value + "\n"));
    };
    const auto* all = "possible: conv, relu, maxpool, conv:2, relu:2, flatten, dense, relu:3";
    CHECK_THAT(cut("\"maxpol\""), Contains("e.toml:19:7") && Contains("did you mean \"maxpool\"") && Contains(all));
    CHECK_THAT(cut("\"relu:4\""), Contains("there is no relu:4") && Contains(all));
    CHECK_THAT(cut("9"), Contains("leaves one side without a layer") && Contains(all));
    CHECK_THAT(cut("0"), Contains("leaves one side without a layer"));
    CHECK_THAT(cut("\"dense:2\""), Contains("leaves one side without a layer"));
    CHECK_THAT(cut("true"), Contains("a text, or a list of up to 2, not"));
    CHECK_THAT(cut("[3, 6]"), Contains("2 cuts; the flow split has one"));
    CHECK_THAT(cut("[3, 6, 8]"), Contains("has 3 elements"));
    CHECK_THAT(all_errors(regime("preset = \"gsfl\"\n")),
               Contains("[regime] lacks cut; for example cut = \"maxpool\""));

    const auto dense = std::string(right_text) + "[regime]\npreset = \"split\"\ncut = \"flatten\"\n";
    CHECK_THAT(all_errors(dense), Contains("raw inputs; possible: dense, relu"));
    const auto last =
        with("\"dense 10\"", "\"dense 10\", \"relu\"") + "[regime]\npreset = \"split\"\ncut = \"dense:2\"\n";
    CHECK_THAT(all_errors(last), Contains("no layer of the host learns") && Contains("possible: dense, relu"));
}

TEST_CASE("the two cuts of a u-shaped model are judged one by one", "[configs][unit]") {
    const auto cut = [](const std::string& value) {
        return all_errors(regime("preset = \"u-shaped\"\ncut = " + value + "\n"));
    };
    CHECK_THAT(cut("3"), Contains("u-shaped needs two cuts"));
    CHECK_THAT(cut("[\"nope\", \"never\"]"), Contains("e.toml:19:8") && Contains("e.toml:19:16"));
    CHECK_THAT(cut("[6, 3]"), Contains("e.toml:19:11") && Contains("does not lie behind the first one, after flatten"));
    CHECK_THAT(cut("[2, 3]"), Contains("no layer of the host learns"));
    CHECK_THAT(cut("[3, 3]"), Contains("does not lie behind"));
}

TEST_CASE("keys of another preset say which one they need, unless --set changed the preset", "[configs][unit]") {
    CHECK_THAT(all_errors(regime("cut = \"relu\"\n")),
               Contains("e.toml:18:7") && Contains("choose preset = \"split\""));
    CHECK_THAT(all_errors(regime("groups = 3\n")), Contains("choose preset = \"gsfl\""));
    CHECK_THAT(all_errors(regime("preset = \"split\"\ncut = 3\ngroups = 3\n")), Contains("regime.groups applies only"));
    CHECK_THAT(all_errors(regime("preset = \"fedavg\"\nsmash_noise = 0.5\n")),
               Contains("regime.smash_noise applies only"));
    CHECK_THAT(all_errors(regime("preset = \"split\"\ncut = 3\nsmash_noise = -1\n")), Contains("regime.smash_noise"));
    CHECK_THAT(all_errors(regime("preset = \"gsfl\"\ncut = 3\ngroup_lists = [[\"a\"]]\n")),
               Contains("regime.grouping = \"fixed\""));
    CHECK_THAT(all_errors(cnn("[sync]\nlost_client = \"skip\"\n")), Contains("sync.lost_client applies only"));
    // A preset that does not exist is one mistake, not one for each of its keys.
    CHECK(errors_of(regime("preset = \"gsfll\"\ncut = 3\ngroups = 3\n")).size() == 1);

    const auto text = regime("preset = \"gsfl\"\ncut = 3\ngrouping = \"fixed\"\ngroup_lists = [[\"a\"], [\"b\"]]\n");
    for (const auto* other : {"regime.preset=fedavg", "regime.preset=splitfed-v1"}) {
        CAPTURE(other, all_errors(text, {other}));
        const auto read = read_experiment(text, "e.toml", std::vector<std::string>{other});
        REQUIRE(read.has_value());
        CHECK(read->regime.group_lists.empty());
        CHECK(read->regime.grouping == "time");
    }
}

TEST_CASE("groups are never more than the clients of a round", "[configs][unit]") {
    const auto gsfl = [](const std::string& groups, const std::string& sync) {
        return regime("preset = \"gsfl\"\ncut = 3\n" + groups + "[sync]\n" + sync);
    };
    CHECK_THAT(all_errors(gsfl("groups = 4\n", "cohort = 3\n")), Contains("4 groups of a cohort of 3"));
    CHECK_THAT(all_errors(gsfl("groups = 4\n", "min_clients = 3\n")), Contains("need at least 4 clients in session"));
    CHECK_THAT(all_errors(gsfl("groups = 3\n", "min_clients = 4\ncohort = \"50%\"\n")), Contains("at least 5 clients"));
    const auto default_of = [&](const std::string& groups, const std::string& sync) {
        return read_experiment(gsfl(groups, sync), "e.toml")->sync.min_clients;
    };
    CHECK(default_of("groups = 3\n", "") == 3);
    CHECK(default_of("groups = 3\n", "cohort = \"50%\"\n") == 5);
    CHECK(default_of("", "") == 2);
    CHECK(read_experiment(right_text, "e.toml")->sync.min_clients == 1);
}

TEST_CASE("fixed groups are as many as their lists, and name nobody twice", "[configs][unit]") {
    const auto fixed = [](const std::string& lines) {
        return regime("preset = \"gsfl\"\ncut = 3\ngrouping = \"fixed\"\n" + lines);
    };
    const auto plan = split_plan_of(fixed("group_lists = [[\"ann\", \"bob\"], [\"carol\"], [\"dan\"]]\n"));
    CHECK(plan.groups == 3);
    CHECK(plan.group_lists.at(0) == std::vector<std::string>{"ann", "bob"});
    CHECK_THAT(all_errors(fixed("")), Contains("[regime] lacks group_lists"));
    CHECK_THAT(all_errors(fixed("group_lists = [[\"ann\"], [\"bob\", \"ann\"]]\n")),
               Contains("e.toml:21:25") && Contains("\"ann\" is in the lists twice"));
    CHECK_THAT(all_errors(fixed("groups = 3\ngroup_lists = [[\"ann\"], [\"bob\"]]\n")), Contains("has 2 lists"));
    CHECK_THAT(
        all_errors(regime("preset = \"split\"\ncut = 3\ngrouping = \"fixed\"\ngroup_lists = [[\"a\"], [\"b\"]]\n")),
        Contains("one relay"));
}

TEST_CASE("what a cut model cannot do is refused: all of it at once", "[configs][unit]") {
    const auto text = regime("preset = \"gsfl\"\ncut = \"nope\"\n") + "[evaluation]\nwhere = \"clients\"\n";
    const auto lines = errors_of(text, {"train.optimizer_state=keep", "train.clip_norm=1"});
    CAPTURE(lines);
    REQUIRE(lines.size() == 4);
    CHECK_THAT(lines[0], Contains("no layer \"nope\""));
    CHECK_THAT(lines[1], Contains("clients hold their segment only"));
    CHECK_THAT(lines[2], Contains("train.optimizer_state"));
    CHECK_THAT(lines[3], Contains("train.clip_norm"));
    CHECK_THAT(all_errors(regime("preset = \"gsfl\"\ncut = 3\n"), {"mesh.stages=3", "mesh.replicas=one"}),
               Contains("the flow split has 2 stages, not 3"));
    CHECK_THAT(all_errors(right_text, {"mesh.replicas=groups"}), Contains("has the replicas cohort"));
    CHECK_THAT(all_errors(right_text, {"flow.kind=split", "regime.cut=relu"}), Contains("has 2 stages, not 1"));
}

}  // namespace causeway
