// What happens at a step: the optimizers against PyTorch's own numbers, schedules, and the bound on the gradient.
#include <cmath>

#include <fmt/format.h>

#include "tests/model/fixtures.h"

namespace causeway {
namespace {

/// Three steps of two parameters on given gradients: what torch 1.13 gives was written down once.
std::vector<float> three_steps(const std::string& optimizer) {
    const auto spec = must(parse_optimizer(optimizer));
    PlanCache plans(must(Device::open("cpu")));
    std::vector<float> theta{1, -2};
    std::vector<std::vector<float>> moments(spec.kind->moments(spec), std::vector<float>(2));
    std::uint64_t step = 0;
    for (const float g : {0.5f, -0.3f, 0.2f}) {
        const std::vector<float> gradient{g, 2 * g};
        std::vector<Operand> operands(moments.begin(), moments.end());
        must(spec.kind->step(spec, plans,
                             {.parameters = theta, .gradient = gradient, .moments = operands, .step = ++step}));
    }
    return theta;
}

void check_close(const std::vector<float>& found, double first, double second) {
    REQUIRE(found[0] == Approx(first).epsilon(2e-6));
    REQUIRE(found[1] == Approx(second).epsilon(2e-6));
}

double length_of_step(const TrainResult& result, const ModelState& start) {
    double squares = 0;
    for (std::size_t i = 0; i < start.trainable.values.size(); ++i) {
        const double moved = result.end.trainable.values[i] - start.trainable.values[i];
        squares += moved * moved;
    }
    return std::sqrt(squares);
}

}  // namespace

TEST_CASE("each optimizer's third step is where PyTorch's is", "[unit][optimizer]") {
    check_close(three_steps("adam learning_rate=0.1 weight_decay=0.1"), 0.80787462, -2.10018492);
    check_close(three_steps("adamw learning_rate=0.1 weight_decay=0.1"), 0.818588018, -2.09230924);
    // foreach=True: the other path of 1.13 multiplies one momentum too many into its second denominator.
    check_close(three_steps("nadamw learning_rate=0.1 weight_decay=0"), 0.904304385, -2.0956955);
    check_close(three_steps("sgd learning_rate=0.1 momentum=0.9 nesterov=1 weight_decay=0.1"), 0.796275616, -2.0910244);
}

TEST_CASE("nadamw's weight decay is apart from the gradient, and its rate scales both", "[unit][optimizer]") {
    const auto decayed = three_steps("nadamw learning_rate=0.1 weight_decay=0.5");
    const auto plain = three_steps("nadamw learning_rate=0.1 weight_decay=0");
    REQUIRE(std::abs(decayed[0]) < std::abs(plain[0]));
    REQUIRE(std::abs(decayed[1]) < std::abs(plain[1]));
}

TEST_CASE("a schedule's text comes back, and a plain optimizer's has no word of it", "[unit][optimizer]") {
    for (const char* text : {"sgd learning_rate=0.1 clip_norm=1", "adamw schedule=cosine rounds=20 warmup=2 factor=0.1",
                             "sgd schedule=step every=5 factor=0.5", "adam schedule=two-phase at=10 factor=0.1"}) {
        const auto spec = must(parse_optimizer(text));
        REQUIRE(must(parse_optimizer(to_text(spec))) == spec);
    }
    REQUIRE(to_text(must(parse_optimizer("sgd"))).find("schedule") == std::string::npos);
    for (const char* text : {"sgd schedule=sine", "sgd clip_norm=-1", "sgd every=0 schedule=step", "sgd warmup=nan"}) {
        CAPTURE(text);
        REQUIRE(parse_optimizer(text).error().code == "bad_optimizer");
    }
}

TEST_CASE("schedules rise, fall and cut where they say", "[unit][optimizer]") {
    const Schedule constant{.warmup = 4};
    REQUIRE(constant.share(0) == 0);
    REQUIRE(constant.share(1) == 0.25);
    REQUIRE(constant.share(9) == 1);
    const Schedule cosine{.kind = ScheduleKind::cosine, .rounds = 10, .factor = 0.1};
    REQUIRE(cosine.share(0) == 1);
    REQUIRE(cosine.share(5) == Approx(0.55));
    REQUIRE(cosine.share(10) == Approx(0.1));
    REQUIRE(cosine.share(11) == Approx(0.1));
    const Schedule step{.kind = ScheduleKind::step, .every = 3, .factor = 0.5};
    REQUIRE(step.share(2.9) == 1);
    REQUIRE(step.share(3) == 0.5);
    REQUIRE(step.share(6) == 0.25);
    const Schedule phases{.kind = ScheduleKind::two_phase, .at = 3, .factor = 0.2};
    REQUIRE(phases.share(2.9) == 1);
    REQUIRE(phases.share(3) == 0.2);
}

TEST_CASE("the learning rate follows the round and the share of its steps", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 3"}, {5});
    MemoryIo io = clusters(20, 5, 3, 1);
    TrainJob job = make_job(chain, 1, "sgd learning_rate=0.1 schedule=step every=1 factor=0.5");
    Trainer trainer = open_trainer("cpu");
    const auto moved = [&](std::uint64_t round) {
        job.draws.round = round;
        return length_of_step(must(trainer.train(job, io)), job.start);
    };
    const double first = moved(1);
    REQUIRE(moved(2) == Approx(first / 2).epsilon(1e-5));
    REQUIRE(moved(3) == Approx(first / 4).epsilon(1e-5));
}

TEST_CASE("a gradient longer than the bound is scaled to it, a shorter one is left", "[unit][trainer]") {
    const Chain chain = make_chain({"dense 8", "relu", "dense 3"}, {5});
    MemoryIo io = clusters(20, 5, 3, 1);
    Trainer trainer = open_trainer("cpu");
    const auto moved = [&](const std::string& clip) {
        const TrainJob job = make_job(chain, 1, "sgd learning_rate=1" + clip);
        return length_of_step(must(trainer.train(job, io)), job.start);
    };
    const double free = moved("");
    REQUIRE(moved(" clip_norm=0.01") == Approx(0.01).epsilon(1e-3));
    REQUIRE(moved(fmt::format(" clip_norm={}", free / 2)) == Approx(free / 2).epsilon(1e-3));
    REQUIRE(moved(fmt::format(" clip_norm={}", 2 * free)) == free);
}

TEST_CASE("with clipping a chain cut anywhere gives the bits of the whole one", "[property][trainer]") {
    const Chain chain = make_chain({"dense 24", "relu", "dropout 0.3", "dense 16", "gelu", "dense 4"}, {12});
    const MemoryIo io = clusters(37, 12, 4, 8);
    TrainJob job = make_job(chain, 8, "adamw learning_rate=0.05 clip_norm=0.3 schedule=cosine rounds=3 warmup=0.5");
    job.batch = 8;
    job.draws = {.seed = 1, .round = 2, .node = 3};
    Trainer trainer = open_trainer("cpu");
    MemoryIo first = io;
    const TrainResult whole = must(trainer.train(job, first));
    for (std::uint32_t cut = 1; cut < chain.layer_count(); ++cut) {
        CAPTURE(cut);
        job.program = cut_program(chain, cut);
        MemoryIo again = io;
        REQUIRE(same_bits(must(trainer.train(job, again)).end.trainable.values, whole.end.trainable.values));
    }
}

}  // namespace causeway
