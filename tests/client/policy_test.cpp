// policy.toml: every mistake at its place, every rule enforced, every refusal with the file and line of its rule.
#include <fstream>

#include <catch2/catch.hpp>

#include "client/policy.h"
#include "configs/presets.h"
#include "split/flow.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

const LocalTime tuesday_noon{1, 12 * 60};

const std::string architecture = "input 8 8 1; flatten; dense 8; relu; dense 8; relu; dense 4; loss cross-entropy";

/// The program of a stage's cell, cut after those layers.
std::string program_of(const char* flow, std::uint32_t stage = 0, const std::vector<std::uint32_t>& cuts = {}) {
    const auto chain = *Chain::from_architecture(architecture);
    FlowInput input{.chain = chain, .stages = static_cast<std::uint32_t>(cuts.size()) + 1, .cuts = cuts};
    input.cell = cuts.empty() ? whole_chain(chain) : Cell{.stage = stage};
    return to_text(*compile_flow(flow, input));
}

std::string program_of_regime(const std::string& regime, std::uint32_t stage = 0) {
    const auto flow = flow_of_preset(regime);
    const auto stages = flow == "local-epochs" ? 1 : flow == "u-shaped" ? 3 : 2;
    return program_of(flow.c_str(), stage,
                      stages == 1   ? std::vector<std::uint32_t>{}
                      : stages == 2 ? std::vector<std::uint32_t>{3}
                                    : std::vector<std::uint32_t>{3, 5});
}

Assign digits(const std::string& regime = "fedavg", std::uint32_t stage = 0) {
    Assign assign;
    assign.architecture = architecture;
    assign.program = program_of_regime(regime, stage);
    assign.dataset = "digits";
    assign.regime = regime;
    assign.submitted_by = "alice";
    assign.cohort = 5;
    return assign;
}

Policy policy_of(std::string_view text) {
    auto parsed = parse_policy(text, "/etc/node/policy.toml");
    INFO((parsed ? "" : to_text(parsed.error())));
    REQUIRE(parsed.has_value());
    return *std::move(parsed);
}

/// "code: message", or "" when the assignment is taken.
std::string refusal(std::string_view text, const Assign& assign, const LocalTime& now = tuesday_noon) {
    const auto objection = judge(policy_of(text), assign, Asked::work, now);
    return objection ? objection->code + ": " + objection->message : "";
}

std::vector<ConfigError> mistakes(std::string_view text) {
    const auto parsed = parse_policy(text, "p.toml");
    return parsed ? std::vector<ConfigError>{} : parsed.error();
}

}  // namespace

TEST_CASE("without a policy a node does everything but split learning", "[client][policy]") {
    CHECK(refusal("", digits()).empty());
    for (const auto* regime : {"split", "u-shaped", "splitfed-v1", "splitfed-v2", "gsfl"}) {
        const auto assign = digits(regime);
        INFO(regime);
        CHECK(refusal("", assign).starts_with("policy_split: default policy: allow_split: "));
        CHECK(refusal("allow_split = true", assign).empty());
    }
}

TEST_CASE("each rule refuses what it does not name, with the file and line that say so", "[client][policy]") {
    auto assign = digits();
    CHECK(
        refusal("\ndatasets = [\"mnist\", \"cifar\"]", assign) ==
        "policy_dataset: policy.toml:2:1: datasets: the dataset \"digits\" is not allowed here; allowed: mnist, cifar");
    CHECK(refusal("regimes = [\"diloco\"]", assign).starts_with("policy_regime: policy.toml:1:1: "));
    CHECK(refusal("operators = [\"bob\"]", assign) ==
          "policy_operator: policy.toml:1:1: operators: the operator \"alice\" is not allowed here; allowed: bob");
    CHECK(refusal("# why\n\nmin_cohort = 6", assign) ==
          "policy_cohort: policy.toml:3:1: min_cohort: the round has 5 members, and this node needs at least 6");
    CHECK(refusal("hours = [\"20:00-06:00\"]", assign) ==
          "policy_hours: policy.toml:1:1: hours: it is tue 12:00 here, and this node works 20:00-06:00");
    CHECK(refusal("allow_split = false", digits("gsfl")).starts_with("policy_split: policy.toml:1:1: allow_split: "));
}

TEST_CASE("each rule takes what it names", "[client][policy]") {
    CHECK(refusal("datasets = [\"mnist\", \"digits\"]", digits()).empty());
    CHECK(refusal("regimes = [\"fedavg\"]", digits()).empty());
    CHECK(refusal("operators = [\"alice\"]", digits()).empty());
    CHECK(refusal("min_cohort = 5", digits()).empty());
    CHECK(refusal("hours = [\"mon 00:00-01:00\", \"tue 12:00-12:01\"]", digits()).empty());
}

TEST_CASE("an older coordinator that names no regime or operator is refused only by a rule about them",
          "[client][policy]") {
    auto assign = digits();
    assign.regime.clear();
    assign.submitted_by.clear();
    CHECK(refusal("datasets = [\"digits\"]", assign).empty());
    CHECK(refusal("operators = [\"alice\"]", assign).find("does not name its operator") != std::string::npos);
    CHECK(refusal("regimes = [\"fedavg\"]", assign).find("does not name its regime") != std::string::npos);
}

TEST_CASE("the first rule in the order of the keys is the one that is named", "[client][policy]") {
    const auto* all = "min_cohort = 9\noperators = [\"bob\"]\ndatasets = [\"x\"]\n";
    CHECK(refusal(all, digits()).starts_with("policy_dataset: policy.toml:3:1"));
}

TEST_CASE("sums of columns leave only where the policy says so, and updates are another matter", "[client][policy]") {
    auto sums = digits();
    sums.program = "statistics";
    CHECK(refusal("", sums).starts_with("policy_statistics: default policy: share_statistics: it asks for the sums"));
    CHECK(refusal("\nshare_statistics = false", sums).starts_with("policy_statistics: policy.toml:2:1: "));
    CHECK(refusal("share_statistics = true", sums).empty());
    CHECK(refusal("", digits()).empty());
    Policy typed;
    typed.allow("share_statistics", "--share-statistics");
    CHECK_FALSE(judge(typed, sums, Asked::work, tuesday_noon));
    CHECK_FALSE(typed.share_labels);
}

TEST_CASE("every mistake is told at its place, in the order of the file", "[client][policy]") {
    const auto errors = mistakes(
        "datasets = \"digits\"\n"
        "regimes = [\"fedavg\", \"fedavgg\"]\n"
        "operator = [\"alice\"]\n"
        "hours = [\"25:00-26:00\"]\n"
        "min_cohort = 0\n"
        "allow_split = 1\n"
        "share_labels = \"yes\"\n");
    REQUIRE(errors.size() == 7);
    CHECK(errors[0].text() == "p.toml:1:12: error: datasets: a list of texts is needed, this is a text");
    CHECK(errors[1].text().starts_with(
        "p.toml:2:22: error: regimes: unknown regime \"fedavgg\"; did you mean \"fedavg\"?"));
    CHECK(errors[2].text().starts_with("p.toml:3:1: error: unknown key \"operator\"; did you mean \"operators\"?"));
    CHECK(errors[3].text().starts_with("p.toml:4:10: error: hours: \"25:00-26:00\" is not a window of hours; write"));
    CHECK(errors[4].text() == "p.toml:5:14: error: min_cohort: a whole number from 1 to 1000000 is needed, this is 0");
    CHECK(errors[5].text() == "p.toml:6:15: error: allow_split: true or false is needed, this is a whole number");
    CHECK(errors[6].text() == "p.toml:7:16: error: share_labels: true or false is needed, this is a text");
}

TEST_CASE("a list that is empty, repeats itself or holds something else is a mistake", "[client][policy]") {
    CHECK(mistakes("datasets = []").at(0).message.find("would refuse everything") != std::string::npos);
    CHECK(mistakes("datasets = [\"a\", \"a\"]").at(0).message == "datasets: \"a\" stands here twice");
    CHECK(mistakes("operators = [3]").at(0).message == "operators: a text is needed, this is a whole number");
    CHECK(mistakes("datasets = [\"a/b\"]").size() == 1);
    CHECK(mistakes("datasets = [\n\"a\"").size() >= 1);
    CHECK(mistakes(std::string(max_policy_bytes + 1, '#')).size() == 1);
}

TEST_CASE("windows of hours cross midnight and belong to the day on which they begin", "[client][policy]") {
    const auto window = [](std::string_view text) {
        auto parsed = parse_time_window(text);
        REQUIRE(parsed.has_value());
        return *parsed;
    };
    const auto nights = window("mon-fri 20:00-06:00");
    CHECK(nights.contains({0, 20 * 60}));
    CHECK_FALSE(nights.contains({0, 20 * 60 - 1}));
    CHECK_FALSE(nights.contains({0, 0}));  // Sunday's night is none
    CHECK(nights.contains({5, 6 * 60 - 1}));
    CHECK_FALSE(nights.contains({5, 6 * 60}));
    CHECK_FALSE(nights.contains({6, 22 * 60}));
    const auto weekend = window("sat,sun 00:00-24:00");
    CHECK(weekend.contains({6, 1439}));
    CHECK_FALSE(weekend.contains({0, 0}));
    CHECK(window("sun-mon 08:00-09:00").contains({0, 8 * 60}));
    CHECK(window("08:00-18:00").contains({2, 9 * 60}));
    for (const auto* wrong : {"", "08:00", "8:00-9:00", "08:00-08:00", "24:00-01:00", "08:60-09:00", "mond 08:00-09:00",
                              "mon- 08:00-09:00", "08:00-24:01", "-", "mon-fri", "08:00 - 09:00"}) {
        INFO(wrong);
        const auto parsed = parse_time_window(wrong);
        REQUIRE_FALSE(parsed.has_value());
        CHECK(parsed.error().code == "bad_hours");
    }
}

TEST_CASE("at every minute of the week a window and its complement disagree", "[client][policy]") {
    const auto day = *parse_time_window("07:30-19:15");
    const auto night = *parse_time_window("19:15-07:30");
    for (std::uint32_t minute = 0; minute < 7 * 1440; ++minute) {
        const LocalTime time{minute / 1440, minute % 1440};
        if (day.contains(time) == night.contains(time)) {
            FAIL(time.text());
        }
    }
}

TEST_CASE("the effective policy lists every key with where it comes from", "[client][policy]") {
    auto policy = policy_of("min_cohort = 3\ndatasets = [\"digits\"]");
    policy.allow("allow_split", "--allow split");
    std::string all;
    for (const auto& line : describe(policy)) {
        all += line.key + " " + line.value + " " + line.where + "\n";
    }
    CHECK(all ==
          "datasets [\"digits\"] /etc/node/policy.toml:2:1\n"
          "regimes any default\n"
          "operators any default\n"
          "hours always default\n"
          "min_cohort 3 /etc/node/policy.toml:1:1\n"
          "allow_split true --allow split\n"
          "share_labels false default\n"
          "keep_labels false default\n"
          "share_log false default\n"
          "share_statistics false default\n"
          "share_figures true default\n");
    CHECK(to_json(policy).dump() ==
          R"({"event":"policy","datasets":["digits"],"regimes":null,"operators":null,"hours":null,"min_cohort":3,)"
          R"("allow_split":true,"share_labels":false,"keep_labels":false,"share_log":false,)"
          R"("share_statistics":false,"share_figures":true})");
}

TEST_CASE("the state folder's policy is used where there is one, and a file that is named must exist",
          "[client][policy]") {
    const TemporaryFolder temporary;
    CHECK(load_policy(temporary.path, "")->min_cohort == 1);
    std::ofstream(temporary.path / "policy.toml") << "min_cohort = 4\n";
    CHECK(load_policy(temporary.path, "")->min_cohort == 4);
    CHECK(load_policy(temporary.path, temporary.path / "no.toml").error().kind == ErrorKind::not_found);
    std::ofstream(temporary.path / "bad.toml") << "min_cohort = 4\nhour = 3\n";
    const auto bad = load_policy(temporary.path, temporary.path / "bad.toml");
    REQUIRE_FALSE(bad.has_value());
    CHECK(bad.error().code == "bad_policy");
    CHECK(bad.error().message.find("bad.toml:2:1: error: unknown key \"hour\"") != std::string::npos);
}

TEST_CASE("every key of the policy is explained in docs/policy.md", "[client][policy]") {
    std::ifstream file(std::string(CAUSEWAY_SOURCE_ROOT) + "/docs/policy.md");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (const auto& line : describe(Policy{})) {
        INFO(line.key);
        CHECK(text.find("| `" + line.key + "` |") != std::string::npos);
    }
}

}  // namespace causeway::node
