// Runs that are kept in the middle and gone on with elsewhere: bit for bit what they would have been.
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

/// Keeps every snapshot that the program offers.
struct KeepingIo : MemoryIo {
    std::vector<Bytes> kept;
    bool wants_snapshot() override { return true; }
    void keep(RunSnapshot snapshot) override { kept.push_back(encode_run(snapshot)); }
};

KeepingIo keeping(const MemoryIo& io) {
    KeepingIo made;
    static_cast<MemoryIo&>(made) = io;
    return made;
}

/// The plain program in microbatches, with a snapshot behind every step.
Program snapshot_program(const Chain& chain) {
    Program program = plain_program(chain);
    auto& batch = program.instructions[0].body[0].body;
    const Instruction step = batch.back();
    batch.pop_back();
    batch = {make_repeat(RepeatOver::microbatches, batch), step, {.code = OpCode::snapshot}};
    return program;
}

TrainJob snapshot_job_of(const Chain& chain, const std::string& optimizer) {
    TrainJob job = make_job(chain, 51, optimizer);
    job.program = snapshot_program(chain);
    job.batch = 6;
    job.microbatch = 4;
    job.local_epochs = 3;
    job.draws = {.seed = 3, .round = 4, .node = 5};
    return job;
}

const std::vector<std::string> snapshot_layers = {"conv 4 3x3", "batchnorm", "relu",   "dropout 0.3",
                                                  "residual 4", "flatten",   "dense 3"};

std::string snapshot_code_of(const Result<TrainResult>& result) {
    return result ? "ok" : result.error().code;
}

}  // namespace

TEST_CASE("a run that goes on from any of its snapshots ends with the bits of one that never stopped",
          "[property][snapshot]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::string optimizer = GENERATE("sgd learning_rate=0.05 momentum=0.9 clip_norm=0.4",
                                           "adamw learning_rate=0.01 schedule=cosine rounds=6 factor=0.1");
    CAPTURE(backend, optimizer);
    const Chain chain = make_chain(snapshot_layers, {5, 5, 1});
    KeepingIo io = keeping(clusters(20, 25, 3, 51));
    const TrainJob job = snapshot_job_of(chain, optimizer);
    Trainer trainer = open_trainer(backend);
    const TrainResult undisturbed = must(trainer.train(job, io));
    REQUIRE(io.kept.size() == 12);  // three epochs of 6, 6, 6 and 2 examples
    for (std::size_t i = 0; i < io.kept.size(); ++i) {
        CAPTURE(i);
        TrainJob rest = job;
        rest.resume = must(decode_run(io.kept[i]));
        MemoryIo again = io;
        again.asked.clear();
        again.losses.clear();
        Trainer other = open_trainer(backend);  // as another process has it
        const TrainResult result = must(other.train(rest, again));
        REQUIRE(again.losses.size() == io.kept.size() - i - 1);
        REQUIRE(result.end == undisturbed.end);
        REQUIRE(result.optimizer_state == undisturbed.optimizer_state);
        REQUIRE(result.loss == undisturbed.loss);
        REQUIRE(result.examples == undisturbed.examples);
        REQUIRE(result.steps == undisturbed.steps);
    }
}

TEST_CASE("snapshots that nobody wants cost nothing and change nothing", "[unit][snapshot]") {
    const Chain chain = make_chain(snapshot_layers, {5, 5, 1});
    MemoryIo io = clusters(20, 25, 3, 51);
    TrainJob job = snapshot_job_of(chain, "sgd momentum=0.9");
    Trainer trainer = open_trainer("cpu");
    const TrainResult with = must(trainer.train(job, io));
    job.program.instructions[0].body[0].body.pop_back();
    REQUIRE(with.end == must(trainer.train(job, io)).end);
}

TEST_CASE("a kept run of another job is refused before its first step", "[unit][snapshot]") {
    const Chain chain = make_chain(snapshot_layers, {5, 5, 1});
    KeepingIo io = keeping(clusters(20, 25, 3, 51));
    const TrainJob job = snapshot_job_of(chain, "sgd momentum=0.9");
    Trainer trainer = open_trainer("cpu");
    must(trainer.train(job, io));
    const RunSnapshot kept = must(decode_run(io.kept.at(6)));
    const auto refused = [&](auto change) {
        TrainJob other = job;
        other.resume = kept;
        change(other);
        MemoryIo fresh = io;
        fresh.asked.clear();
        const auto result = trainer.train(other, fresh);
        REQUIRE(fresh.asked.empty());
        return snapshot_code_of(result);
    };
    REQUIRE(refused([](TrainJob& other) { other.resume->place.batch = 4; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.batch = UINT64_MAX; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.epoch = 3; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.next = {}; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.next = {1, 1, 2}; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.next = {1, 1, 9}; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->place.next = {2, 1, 3}; }) == "snapshot_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->model.trainable.values.pop_back(); }) == "model_mismatch");
    REQUIRE(refused([](TrainJob& other) { other.resume->optimizer.moments.pop_back(); }) == "optimizer_mismatch");
    TrainJob other_program = job;
    other_program.program = plain_program(chain);
    other_program.resume = kept;
    REQUIRE(snapshot_code_of(trainer.train(other_program, io)) == "snapshot_mismatch");
}

TEST_CASE("bytes of a kept run are read whole or refused", "[fuzz][snapshot]") {
    const Chain chain = make_chain({"dense 3"}, {4});
    KeepingIo io = keeping(clusters(8, 4, 3, 52));
    TrainJob job = snapshot_job_of(chain, "sgd momentum=0.9");
    Trainer trainer = open_trainer("cpu");
    must(trainer.train(job, io));
    const Bytes whole = io.kept.at(1);
    REQUIRE(encode_run(must(decode_run(whole))) == whole);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        REQUIRE(decode_run(ByteView(whole).first(size)).error().kind == ErrorKind::corrupt);
    }
    Bytes longer = whole;
    longer.push_back(std::byte{0});
    REQUIRE(decode_run(longer).error().code == "bad_run");
    RandomStream random({.seed = 53, .purpose = "test-mutation"});
    for (int i = 0; i < 2000; ++i) {
        Bytes changed = whole;
        changed[random.below(changed.size())] = static_cast<std::byte>(random.below(256));
        if (auto run = decode_run(changed)) {
            TrainJob rest = job;
            rest.resume = *std::move(run);
            MemoryIo again = io;
            (void)trainer.train(rest, again);  // refused, or a run from other numbers; never worse
        }
    }
}

TEST_CASE("a program may be kept only where nothing waits for its use", "[unit][snapshot]") {
    const Chain chain = make_chain({"dense 3"}, {4});
    const auto code = [&](const std::string& batch) -> std::string {
        const Status checked = check_runnable(must(parse_program("repeat batches { " + batch + " }")), chain);
        return checked ? "ok" : checked.error().code;
    };
    REQUIRE(code("load forward [0, 1) loss backward [0, 1) step [0, 1) snapshot") == "ok");
    REQUIRE(code("snapshot load forward [0, 1) loss backward [0, 1) step [0, 1)") == "ok");
    REQUIRE(code("load snapshot forward [0, 1) loss backward [0, 1) step [0, 1)") == "program_order");
    REQUIRE(code("load forward [0, 1) snapshot loss backward [0, 1) step [0, 1)") == "program_order");
    REQUIRE(code("load forward [0, 1) loss snapshot backward [0, 1) step [0, 1)") == "program_order");
    REQUIRE(code("load forward [0, 1) loss backward [0, 1) snapshot step [0, 1)") == "program_order");
    REQUIRE(code("load forward [0, 1) loss backward [0, 1) step [0, 1) snapshot 0 trainable [0, 2)") ==
            "program_unsupported");
}

}  // namespace causeway
