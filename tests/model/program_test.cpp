// Programs: one text for one program, total parsing, and a checker that knows what follows what.
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

const std::string everything =
    "repeat epochs {\n"
    "    repeat batches {\n"
    "        load\n"
    "        send labels to 1\n"
    "        forward [0, 2)\n"
    "        send activations to 1\n"
    "        recv gradients from 1\n"
    "        backward [0, 2)\n"
    "        gradient_final 1\n"
    "        sync 3 trainable [0, 10) [20, 30)\n"
    "        wait 3\n"
    "        stash\n"
    "        step [0, 2)\n"
    "    }\n"
    "}\n"
    "snapshot 0 trainable [0, 5)\n"
    "recv parameters from 2\n";

Chain small_chain() {
    return make_chain({"flatten", "dense 8", "relu", "dense 4"}, {3, 2});
}

Error check_error(const std::string& text) {
    const auto status = check_program(must(parse_program(text)), small_chain());
    REQUIRE_FALSE(status);
    return status.error();
}

std::string in_batches(const std::string& body) {
    return "repeat epochs { repeat batches { " + body + " } }";
}

}  // namespace

TEST_CASE("every instruction has a text, and the text gives the program back", "[unit][program]") {
    const Program program = must(parse_program(everything));
    REQUIRE(to_text(program) == everything);
    REQUIRE(must(parse_program(to_text(program))) == program);
    REQUIRE(count_instructions(program, OpCode::forward) == 1);
    REQUIRE(count_executions(program, OpCode::forward, {.epochs = 3, .batches = 7}) == 21);
    REQUIRE(count_executions(program, OpCode::snapshot, {.epochs = 3, .batches = 7}) == 1);
}

TEST_CASE("blanks are free, but the canonical text is one", "[unit][program]") {
    const auto program = must(parse_program("repeat  batches{load forward[ 0,2 )}"));
    REQUIRE(to_text(program) == "repeat batches {\n    load\n    forward [0, 2)\n}\n");
}

TEST_CASE("a wrong program text is refused with its line", "[unit][program]") {
    for (const char* text : {"lod",
                             "load\nforward",
                             "forward [0 2)",
                             "forward [2, 2)",
                             "forward [3, 2)",
                             "forward [0, 99999999999)",
                             "repeat",
                             "repeat days { }",
                             "repeat epochs { load",
                             "repeat epochs load",
                             "}",
                             "load }",
                             "send",
                             "send x to 1",
                             "send labels from 1",
                             "recv labels to 1",
                             "gradient_final x",
                             "sync 3",
                             "sync 999 trainable [0, 1)",
                             "sync 3 trainable",
                             "sync 3 weights [0, 1)",
                             "sync 3 trainable [5, 9) [0, 2)",
                             "sync 3 trainable [0, 99999999999999999999)",
                             "wait -1",
                             "step",
                             "\xff\x00",
                             "step [0, 2"}) {
        CAPTURE(text);
        const auto program = parse_program(text);
        REQUIRE_FALSE(program);
        REQUIRE(program.error().kind == ErrorKind::invalid);
        REQUIRE_THAT(program.error().message, Catch::Contains("line "));
    }
    REQUIRE_THAT(parse_program("load\nforwrd [0, 1)").error().message,
                 Catch::Contains("line 2") && Catch::Contains("'forward'"));
}

TEST_CASE("limits on size, depth and number hold", "[unit][program]") {
    const auto refused = [](const std::string& text) {
        const auto program = parse_program(text);
        return !program && program.error().code == "program_limit";
    };
    std::string deep;
    for (int i = 0; i < 5; ++i) {
        deep += "repeat epochs { ";
    }
    REQUIRE(refused(deep + "load } } } } }"));
    REQUIRE(refused(std::string(max_program_text + 1, ' ')));
    std::string many, ranges = "sync 0 trainable";
    for (std::size_t i = 0; i <= max_program_instructions; ++i) {
        many += "load ";
        ranges += " [" + std::to_string(2 * i) + "," + std::to_string(2 * i + 1) + ")";
    }
    REQUIRE(refused(many));
    REQUIRE(refused(ranges));
}

TEST_CASE("ten thousand mutated texts give a program or an error, and a program survives its text", "[fuzz][program]") {
    const std::uint64_t seed = 5;
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = "test-mutate"});
    const std::string alphabet = "loadfrwstepbc []{}(),0123456789\n_";
    const Chain chain = small_chain();
    int accepted = 0;
    for (int i = 0; i < 10000; ++i) {
        std::string text = everything;
        for (std::uint64_t changes = random.below(3) + 1; changes > 0; --changes) {
            const std::size_t at = random.below(text.size());
            switch (random.below(4)) {
                case 0:
                    text.erase(at, random.below(12));
                    break;
                case 1:
                    text.insert(at, everything, random.below(everything.size()), random.below(40));
                    break;
                case 2:
                    text[at] = alphabet[random.below(alphabet.size())];
                    break;
                default:
                    text[at] = static_cast<char>(random.below(256));
            }
        }
        CAPTURE(text);
        const auto program = parse_program(text);
        if (program) {
            ++accepted;
            REQUIRE(must(parse_program(to_text(*program))) == *program);
            static_cast<void>(check_program(*program, chain));
        }
    }
    REQUIRE(accepted > 100);  // the mutations reach past the parser
}

TEST_CASE("the checker accepts the programs of the regimes", "[unit][program]") {
    const Chain chain = small_chain();
    const std::vector<std::string> good = {
        in_batches("load forward [0, 4) loss backward [0, 4) step [0, 4)"),
        in_batches("load forward [0, 2) forward [2, 4) loss backward [2, 4) backward [0, 2) step [0, 4)"),
        // the client's side and the host's side of a cut
        in_batches("load send labels to 1 forward [0, 2) send activations to 1 recv gradients from 1 backward [0, 2) "
                   "step [0, 2)"),
        in_batches("recv labels from 0 recv activations from 0 forward [2, 4) loss backward [2, 4) send gradients to 0 "
                   "step [2, 4)"),
        // gpipe on one stage, and 1f1b with one batch of warm-up
        in_batches(
            "repeat microbatches { load forward [0, 4) loss } repeat microbatches { backward [0, 4) } step [0, 4)"),
        in_batches("load forward [0, 4) loss repeat microbatches { load forward [0, 4) loss backward [0, 4) } "
                   "backward [0, 4) step [0, 4)"),
        in_batches("load forward [0, 4) loss backward [0, 4) gradient_final 3 step trainable [0, 20)"),
    };
    for (const std::string& text : good) {
        CAPTURE(text);
        const auto status = check_program(must(parse_program(text)), chain);
        INFO((status ? "" : status.error().message));
        REQUIRE(status);
    }
}

TEST_CASE("the checker names what is out of order or out of bounds", "[unit][program]") {
    const std::vector<std::string> order = {
        in_batches("forward [0, 4) loss backward [0, 4) step [0, 4)"),                    // nothing loaded
        in_batches("load loss forward [0, 4) backward [0, 4) step [0, 4)"),               // loss too early
        in_batches("load forward [0, 4) backward [0, 4) loss step [0, 4)"),               // backward before loss
        in_batches("load forward [0, 4) loss step [0, 4) backward [0, 4)"),               // step before backward
        in_batches("load forward [0, 3) loss backward [0, 3) step [0, 3)"),               // not at the end
        in_batches("load forward [1, 4) loss backward [1, 4) step [1, 4)"),               // starts inside
        in_batches("load forward [0, 4) loss backward [2, 4) step [0, 4)"),               // step of [0, 2)
        in_batches("load forward [0, 4) loss"),                                           // never backward
        "load forward [0, 4) loss backward [0, 4) repeat epochs { step [0, 4) }",         // no new gradient
        "load repeat epochs { forward [0, 4) loss backward [0, 4) step [0, 4) }",         // used up
        "repeat batches { repeat epochs { load forward [0, 4) loss backward [0, 4) } }",  // inside out
        "repeat epochs { repeat epochs { load forward [0, 4) loss backward [0, 4) } }",
        "wait 1",
        "send activations to 1",
        "send gradients to 1",
        "send labels to 1",
        "gradient_final 1",
        "recv activations from 1",
    };
    for (const std::string& text : order) {
        CAPTURE(text);
        REQUIRE(check_error(text).code == "program_order");
    }
    for (const std::string& text : {in_batches("load forward [0, 5) loss backward [0, 5) step [0, 5)"),
                                    std::string("gradient_final 4"), std::string("sync 0 trainable [0, 1000)"),
                                    std::string("snapshot 0 frozen [0, 1)"), std::string("step frozen [0, 1)")}) {
        CAPTURE(text);
        REQUIRE(check_error(text).code == "program_bounds");
    }
}

TEST_CASE("passes are put away and clients repeated inside a repeat over batches, and nowhere else",
          "[unit][program]") {
    const std::string front = "load forward [0, 4) loss ", back = " backward [0, 4) step [0, 4)";
    const auto error = [](const std::string& text) {
        const auto status = check_runnable(must(parse_program(text)), small_chain());
        return status ? std::string() : status.error().code;
    };
    const auto halves =
        "load send labels to 1 forward [0, 2) send activations to 1 stash 2 recv gradients from 1 backward [0, 2) step "
        "[0, 2)";
    CHECK(error("repeat epochs { repeat batches { " + std::string(halves) + " } }").empty());
    CHECK(error(halves) == "program_order");
    CHECK(error("repeat batches { repeat microbatches { " + std::string(halves) + " } }") == "program_order");
    CHECK(error("repeat batches { " + std::string(halves) + " stash 1 }") == "program_order");
    CHECK(error("repeat batches { " + std::string(halves) + " snapshot }") == "program_order");
    CHECK(error("repeat batches { " + front + "stash 1" + back + " }") == "program_order");  // a gradient waits
    CHECK(error("repeat clients { " + front + back + " }") == "program_order");
    CHECK(error("repeat batches { repeat clients { " + front + back + " } }").empty());
    CHECK(error("repeat batches { repeat clients { " + front + back + " snapshot } }") == "program_order");
    for (const char* text : {"repeat batches { stash 0 }", "repeat batches { stash 17 }"}) {
        CHECK(parse_program(text).error().code == "program_syntax");
    }
}

TEST_CASE("the trainer refuses what it does not run, by name", "[unit][program]") {
    const Chain chain = small_chain();
    const auto refusal = [&](const std::string& text) {
        const auto status = check_runnable(must(parse_program(text)), chain);
        REQUIRE_FALSE(status);
        REQUIRE(status.error().kind == ErrorKind::unsupported);
        return status.error().message;
    };
    for (const char* text : {"send parameters to 1", "recv parameters from 1", "sync 0 trainable [0, 1)", "wait 0",
                             "stash", "snapshot 0 trainable [0, 1)"}) {
        const std::string all = text;
        REQUIRE_THAT(refusal(text), Catch::EndsWith(all.substr(0, all.find(' '))));
    }
    REQUIRE_THAT(
        refusal(in_batches("load forward [0, 4) loss load forward [0, 4) loss backward [0, 4) backward [0, 4)")),
        Catch::Contains("in flight"));
}

}  // namespace causeway
