// A coordinator that lies about what it asks for: once for each thing that can leave a node. The node reads it off the
// program; no name that the coordinator gives changes what is refused.
#include <fstream>

#include <catch2/catch.hpp>

#include "client/declarations.h"
#include "client/policy.h"
#include "configs/presets.h"
#include "split/exchanges.h"
#include "tests/temporary_folder.h"

namespace causeway::node {
namespace {

const LocalTime any_time{1, 12 * 60};
const std::string chain_text = "input 4; flatten; dense 8; relu; dense 8; relu; dense 3; relu; loss cross-entropy";

std::string body(const std::string& lines) {
    return "repeat epochs {\nrepeat batches {\n" + lines + "}\n}\n";
}

Assign named(const std::string& regime, const std::string& program) {
    Assign assign;
    assign.architecture = chain_text;
    assign.program = program;
    assign.regime = regime;
    assign.dataset = "digits";
    assign.cohort = 5;
    return assign;
}

/// The client's side of split learning, cut after the first relu.
const std::string split_client = body(
    "load\nsend labels to 1\nforward [0, 3)\nsend activations to 1\nrecv gradients from 1\nbackward [0, 3)\n"
    "step [0, 3)\n");
std::string u_shaped_client(int last) {
    const auto from = std::to_string(last);
    return body("load\nforward [0, 3)\nsend activations to 1\nrecv activations from 1\nforward [" + from +
                ", 7)\nloss\nbackward [" + from + ", 7)\nsend gradients to 1\nstep [" + from +
                ", 7)\nrecv gradients from 1\nbackward [0, 3)\nstep [0, 3)\n");
}
const std::string local = body("load\nforward [0, 7)\nloss\nbackward [0, 7)\nstep [0, 7)\n");

std::string code(const std::string& policy, const Assign& assign, Asked asked = Asked::work) {
    const auto read = parse_policy(policy, "policy.toml");
    REQUIRE(read.has_value());
    const auto objection = judge(*read, assign, asked, any_time);
    return objection ? objection->code : "";
}

/// Every name that a coordinator could choose: all presets, one that no build knows, none.
std::vector<std::string> all_names() {
    std::vector<std::string> names{"", "of-next-year"};
    for (const auto& preset : all_presets()) {
        names.push_back(preset.name);
    }
    return names;
}

}  // namespace

TEST_CASE("activations, gradients and labels go to no other node without allow_split, under whatever name",
          "[client][leaves]") {
    const auto only_activations = body(
        "load\nforward [0, 3)\nsend activations to 1\nrecv activations from 1\nforward [3, 7)\nloss\n"
        "backward [3, 7)\nstep [3, 7)\nbackward [0, 3)\nstep [0, 3)\n");
    const auto only_labels = body(
        "load\nsend labels to 1\nload\nforward [0, 7)\nloss\nbackward [0, 7)\nstep [0, 7)\nforward [0, 7)\n"
        "recv labels from 1\nloss\nbackward [0, 7)\nstep [0, 7)\n");
    const auto only_gradients = body(
        "recv activations from 1\nforward [3, 7)\nrecv labels from 1\nloss\n"
        "backward [3, 7)\nsend gradients to 1\nstep [3, 7)\n");
    for (const auto& program : {split_client, u_shaped_client(5), only_activations, only_labels, only_gradients}) {
        for (const auto& name : all_names()) {
            INFO(name << ": " << program);
            const auto refused = code("", named(name, program));
            CHECK((refused == "policy_split" || refused == "regime_mismatch"));
            CHECK(code("allow_split = false", named("", program)) == "policy_split");
        }
    }
    CHECK(code("allow_split = true", named("split", split_client)).empty());
}

TEST_CASE("a name that the program belies is refused, and a list of regimes is about the program", "[client][leaves]") {
    CHECK(code("allow_split = true", named("fedavg", split_client)) == "regime_mismatch");
    CHECK(code("allow_split = true", named("u-shaped", split_client)) == "regime_mismatch");
    CHECK(code("allow_split = true", named("split", local)) == "regime_mismatch");
    CHECK(code("allow_split = true\nregimes = [\"fedavg\"]", named("fedavg", split_client)) == "regime_mismatch");
    CHECK(code("allow_split = true\nregimes = [\"fedavg\"]", named("of-next-year", split_client)) == "policy_regime");
    CHECK(code("allow_split = true\nregimes = [\"diloco\"]", named("diloco", split_client)) == "policy_regime");
    CHECK(code("allow_split = true\nregimes = [\"split\"]", named("split", split_client)).empty());
    CHECK(code("regimes = [\"fedavg\"]", named("fedavg", local)).empty());
}

TEST_CASE("every available preset's programs are known as its own, and no other flow's", "[client][leaves]") {
    const auto chain = *Chain::from_architecture(chain_text);
    const std::vector<std::vector<std::uint32_t>> cuts{{}, {3}, {3, 5}};
    for (const Flow* flow : flows()) {
        for (const auto& at : cuts) {
            for (std::uint32_t stage = 0; stage <= at.size(); ++stage) {
                FlowInput input{.chain = chain, .stages = static_cast<std::uint32_t>(at.size()) + 1, .cuts = at};
                input.cell = at.empty() ? whole_chain(chain) : Cell{.stage = stage};
                input.overlap = 1;
                input.batch = {.parts = BatchRule::Parts::microbatches, .recompute = 1, .step_deadline_ms = 5};
                const auto program = flow->compile(input);
                if (program) {
                    INFO(flow->name << " " << stage);
                    const auto known = flows_with(*program, chain);
                    CHECK(std::ranges::find(known, flow) != known.end());
                    CHECK((flow->name == "local-epochs") == exchanges_of(*program).alone());
                }
            }
        }
    }
}

TEST_CASE("parameters go to the coordinator alone", "[client][leaves]") {
    const auto program = body("load\nforward [0, 7)\nloss\nbackward [0, 7)\nstep [0, 7)\nsend parameters to 1\n");
    CHECK(code("", named("", program)) == "policy_split");
    CHECK(code("allow_split = true", named("", program)) == "policy_parameters");
    CHECK(code("", named("fedavg", local)).empty());
}

TEST_CASE("the examples themselves never leave as activations, whatever the policy allows", "[client][leaves]") {
    const std::string two = "forward [0, 1)\nsend activations to 1\nrecv gradients from 1\nbackward [0, 1)\n";
    for (const auto& rest : {std::string("send activations to 1\n"), two}) {
        const auto program = body("load\nsend labels to 1\n" + rest);
        INFO(program);
        for (const auto& name : {"", "split", "of-next-year"}) {
            const auto refused = code("allow_split = true", named(name, program));
            CHECK((refused == "raw_inputs" || refused == "regime_mismatch"));
        }
    }
}

TEST_CASE("labels stay where keep_labels says so, also those that gradients would tell", "[client][leaves]") {
    CHECK(code("allow_split = true\nkeep_labels = true", named("split", split_client)) == "policy_labels");
    CHECK(code("allow_split = true\nkeep_labels = true", named("", split_client)) == "policy_labels");
    CHECK(code("allow_split = true\nkeep_labels = true", named("u-shaped", u_shaped_client(5))).empty());
    // Behind the last layer that learns a gradient is the difference of the scores and the label.
    CHECK(code("allow_split = true\nkeep_labels = true", named("u-shaped", u_shaped_client(6))) == "policy_labels");
    CHECK(code("allow_split = true", named("u-shaped", u_shaped_client(6))).empty());
}

TEST_CASE("sums of columns and figures leave only where the policy says so, under whatever name", "[client][leaves]") {
    for (const auto& name : all_names()) {
        INFO(name);
        CHECK(code("", named(name, "statistics")) == "policy_statistics");
        CHECK(code("share_statistics = true", named(name, "statistics")).empty());
        CHECK(code("share_figures = false", named(name, ""), Asked::figures) == "policy_figures");
        CHECK(code("share_figures = false", named(name, local), Asked::figures) == "policy_figures");
        CHECK(code("", named(name, ""), Asked::figures).empty());
    }
}

TEST_CASE("counts of labels are declared only where the policy shares them", "[client][leaves]") {
    const TemporaryFolder folder;
    const auto path = folder.path / "part.csv";
    std::ofstream(path) << "a,b,label\n1,2,0\n3,4,1\n5,6,1\n";
    const auto manifest = folder.path / "part.toml";
    std::ofstream(manifest) << "file = \"part.csv\"\nlabel = \"label\"\n";
    Policy policy;
    policy.allow_split = true;
    for (const bool share : {false, true}) {
        policy.share_labels = share;
        const auto told = declarations_of({{"digits", manifest}}, policy);
        REQUIRE(told.has_value());
        CHECK(told->front().labels.empty() != share);
    }
}

TEST_CASE("a program that cannot be read is refused: nobody knows what it sends", "[client][leaves]") {
    CHECK(code("", named("fedavg", "launder")) == "program_syntax");
    CHECK(code("", named("fedavg", body("forward [0, 9)\n"))) == "program_bounds");
}

TEST_CASE("cells are clients' and hosts': whoever else a roster names is given nothing", "[client][leaves]") {
    CHECK(streams_with(Role::client, "host"));
    CHECK(streams_with(Role::host, "client"));
    for (const auto* other : {"client", "coordinator", "operator", "aggregator", "", "hosts"}) {
        CHECK_FALSE(streams_with(Role::client, other));
    }
    CHECK_FALSE(streams_with(Role::host, "host"));
}

}  // namespace causeway::node
