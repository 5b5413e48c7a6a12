// Segments: a chain whose parts lie on several nodes computes what the whole one does, bit for bit.
#include <deque>
#include <map>

#include "model/segment.h"
#include "tests/model/fixtures.h"

namespace causeway {
namespace {

const std::vector<std::string> segment_mlp = {"flatten", "dense 24", "relu", "dense 16", "gelu", "dense 4"};

/// One cell's side of a set of in-memory lines: what was sent to a cell waits there by kind.
struct SegmentLines {
    std::map<std::pair<std::uint32_t, Payload>, std::deque<CellMessage>> waiting;
    std::map<Payload, std::uint64_t> sent;
};

struct CellIo : MemoryIo {
    CellIo(SegmentLines& all, std::uint32_t own, MemoryIo data) : MemoryIo(std::move(data)), lines(all), cell(own) {}
    Status send(std::uint32_t to, CellMessage message) override {
        ++lines.sent[message.payload];
        lines.waiting[{to, message.payload}].push_back(std::move(message));
        return {};
    }
    Result<std::optional<CellMessage>> receive(std::uint32_t, Payload payload) override {
        auto& queue = lines.waiting[{cell, payload}];
        if (queue.empty()) {
            return std::optional<CellMessage>{};
        }
        std::optional<CellMessage> message = std::move(queue.front());
        queue.pop_front();
        return message;
    }
    SegmentLines& lines;
    std::uint32_t cell;
};

struct CellWork {
    std::vector<LayerInterval> layers;
    std::string program;  // of one batch
};

TrainJob cell_job(const TrainJob& whole, const CellWork& work) {
    TrainJob job = whole;
    job.program = must(parse_program("repeat epochs { repeat batches { " + work.program + " } }"));
    job.segment = work.layers;
    job.start = must(Segment::make(whole.chain, work.layers)).cut(whole.start);
    return job;
}

/// Runs all cells in turns on one thread until they have all ended, and puts their parts together again.
ModelState run_cells(Trainer& trainer, const TrainJob& whole, const MemoryIo& io, const std::vector<CellWork>& cells,
                     SegmentLines& lines) {
    std::vector<std::unique_ptr<CellIo>> ios;
    std::vector<TrainingRun> runs;
    for (const CellWork& cell : cells) {
        ios.push_back(std::make_unique<CellIo>(lines, static_cast<std::uint32_t>(ios.size()), io));
        runs.push_back(must(trainer.begin(cell_job(whole, cell), *ios.back())));
    }
    std::size_t finished = 0;
    for (int turn = 0; finished < runs.size(); ++turn) {
        REQUIRE(turn < 10000);
        finished = 0;
        for (TrainingRun& run : runs) {
            finished += must(run.advance()) == TrainingRun::State::finished ? 1 : 0;
        }
    }
    ModelState end = whole.start;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        must(Segment::make(whole.chain, cells[i].layers)).paste(must(runs[i].result()).end, end);
    }
    return end;
}

std::string at(std::uint32_t cut, const std::string& text, std::uint32_t second = 0) {
    std::string out = text;
    for (const auto& [name, value] : {std::pair<std::string, std::uint32_t>{"CUT", cut}, {"SECOND", second}}) {
        for (std::size_t place; (place = out.find(name)) != std::string::npos;) {
            out.replace(place, name.size(), std::to_string(value));
        }
    }
    return out;
}

std::vector<CellWork> client_and_host(const Chain& chain, std::uint32_t cut) {
    const auto end = static_cast<std::uint32_t>(chain.layer_count());
    return {{{{0, cut}},
             at(cut,
                "load send labels to 1 forward [0, CUT) send activations to 1 recv gradients from 1 "
                "backward [0, CUT) step [0, CUT)")},
            {{{cut, end}},
             at(cut,
                "recv labels from 0 recv activations from 0 forward [CUT, SECOND) loss backward [CUT, SECOND) "
                "send gradients to 0 step [CUT, SECOND)",
                end)}};
}

TrainJob small_job(const Chain& chain, const std::string& optimizer) {
    TrainJob job = make_job(chain, 8, optimizer);
    job.batch = 8;
    job.local_epochs = 2;
    return job;
}

}  // namespace

TEST_CASE("client and host segments give the bits of the whole chain, for every cut", "[property][segment]") {
    const std::string backend = GENERATE("reference", "cpu");
    const std::string optimizer = GENERATE("sgd learning_rate=0.05 momentum=0.9", "adamw learning_rate=0.003");
    const Chain chain = make_chain(segment_mlp, {3, 4});
    const MemoryIo io = clusters(37, 12, 4, 8);
    const TrainJob job = small_job(chain, optimizer);
    Trainer trainer = open_trainer(backend);
    MemoryIo plain = io;
    const TrainResult whole = must(trainer.train(job, plain));
    for (std::uint32_t cut = 2; cut < chain.layer_count(); ++cut) {
        CAPTURE(backend, optimizer, cut);
        SegmentLines lines;
        const ModelState end = run_cells(trainer, job, io, client_and_host(chain, cut), lines);
        REQUIRE(same_bits(end.trainable.values, whole.end.trainable.values));
        REQUIRE(lines.sent[Payload::activations] == 10);
        REQUIRE(lines.sent[Payload::gradients] == 10);
    }
}

TEST_CASE("both ends of the chain on one node give the same bits, and no label leaves it", "[property][segment]") {
    const Chain chain = make_chain(segment_mlp, {3, 4});
    const MemoryIo io = clusters(37, 12, 4, 8);
    const TrainJob job = small_job(chain, "sgd learning_rate=0.05 momentum=0.9");
    Trainer trainer = open_trainer("cpu");
    MemoryIo plain = io;
    const TrainResult whole = must(trainer.train(job, plain));
    for (std::uint32_t cut = 2; cut < 4; ++cut) {
        for (std::uint32_t second = cut + 1; second < 6; ++second) {
            CAPTURE(cut, second);
            SegmentLines lines;
            const std::vector<CellWork> cells = {
                {{{0, cut}, {second, 6}},
                 at(cut,
                    "load forward [0, CUT) send activations to 1 recv activations from 1 forward [SECOND, 6) loss "
                    "backward [SECOND, 6) send gradients to 1 recv gradients from 1 backward [0, CUT) step [0, CUT) "
                    "step [SECOND, 6)",
                    second)},
                {{{cut, second}},
                 at(cut,
                    "recv activations from 0 forward [CUT, SECOND) send activations to 0 recv gradients from 0 "
                    "backward [CUT, SECOND) send gradients to 0 step [CUT, SECOND)",
                    second)}};
            const ModelState end = run_cells(trainer, job, io, cells, lines);
            REQUIRE(same_bits(end.trainable.values, whole.end.trainable.values));
            REQUIRE(lines.sent[Payload::labels] == 0);
        }
    }
}

TEST_CASE("what a peer sends out of place or out of shape ends the run with its name", "[unit][segment]") {
    const Chain chain = make_chain(segment_mlp, {3, 4});
    const MemoryIo io = clusters(20, 12, 4, 8);
    const TrainJob job = small_job(chain, "sgd learning_rate=0.05");
    const CellWork host = client_and_host(chain, 3)[1];
    const auto answer = [&](const std::function<void(CellMessage & labels, CellMessage & values)>& spoil) {
        Trainer trainer = open_trainer("reference");
        SegmentLines lines;
        CellMessage labels{.payload = Payload::labels, .rows = 8, .labels = std::vector<std::int64_t>(8, 1)};
        CellMessage values{.payload = Payload::activations, .rows = 8, .values = std::vector<float>(8 * 24, 0.5f)};
        spoil(labels, values);
        lines.waiting[{1, Payload::labels}].push_back(labels);
        lines.waiting[{1, Payload::activations}].push_back(values);
        CellIo host_io(lines, 1, io);
        TrainingRun run = must(trainer.begin(cell_job(job, host), host_io));
        const auto state = run.advance();
        return state ? std::string(*state == TrainingRun::State::waiting ? "waiting" : "finished") : state.error().code;
    };
    REQUIRE(answer([](CellMessage&, CellMessage&) {}) == "waiting");  // for the second batch
    REQUIRE(answer([](CellMessage&, CellMessage& values) { values.rows = 7; }) == "wrong_rows");
    REQUIRE(answer([](CellMessage& labels, CellMessage&) { labels.labels.pop_back(); }) == "wrong_rows");
    REQUIRE(answer([](CellMessage& labels, CellMessage&) { labels.labels[3] = 4; }) == "label_out_of_range");
    REQUIRE(answer([](CellMessage&, CellMessage& values) { values.values.pop_back(); }) == "wrong_shape");
    REQUIRE(answer([](CellMessage&, CellMessage& values) { values.values.clear(); }) == "wrong_shape");
    REQUIRE(answer([](CellMessage&, CellMessage& values) { values.batch = 1; }) == "wrong_batch");
    REQUIRE(answer([](CellMessage& labels, CellMessage&) { labels.epoch = 1; }) == "wrong_batch");
}

TEST_CASE("a node is not given a program for layers that it does not hold", "[unit][segment]") {
    const Chain chain = make_chain(segment_mlp, {3, 4});
    const TrainJob job = small_job(chain, "sgd learning_rate=0.05");
    Trainer trainer = open_trainer("reference");
    MemoryIo io = clusters(20, 12, 4, 8);
    for (const auto& layers : std::vector<std::vector<LayerInterval>>{{{0, 3}}, {{1, 6}}, {{0, 3}, {4, 6}}}) {
        TrainJob part = job;
        part.segment = layers;
        part.start = must(Segment::make(chain, layers)).cut(job.start);
        REQUIRE(trainer.begin(std::move(part), io).error().code == "bad_segment");
    }
    TrainJob waits = cell_job(job, client_and_host(chain, 3)[1]);
    SegmentLines lines;
    CellIo host_io(lines, 1, io);
    REQUIRE(trainer.train(waits, host_io).error().code == "program_waits");
    REQUIRE(trainer.train(waits, io).error().code == "no_cells");
}

TEST_CASE("a bound on the whole gradient is refused before a part of the model trains", "[unit][segment]") {
    const Chain chain = make_chain(segment_mlp, {3, 4});
    const TrainJob job = small_job(chain, "sgd learning_rate=0.05 clip_norm=1");
    Trainer trainer = open_trainer("reference");
    MemoryIo io = clusters(20, 12, 4, 8);
    for (const CellWork& cell : client_and_host(chain, 3)) {
        const auto begun = trainer.begin(cell_job(job, cell), io);
        REQUIRE_FALSE(begun);
        REQUIRE(begun.error().code == "clip_unsupported");
    }
    CellWork unstepped = client_and_host(chain, 3)[0];
    unstepped.program.resize(unstepped.program.find("step"));
    REQUIRE(trainer.begin(cell_job(job, unstepped), io));  // nothing to bound
    REQUIRE(trainer.begin(job, io));
}

TEST_CASE("a segment's text is read back, and what is none is refused", "[unit][segment]") {
    const Chain chain = make_chain(segment_mlp, {3, 4});
    for (const std::string text : {"[0, 6)", "[2, 4)", "[0, 1) [3, 6)"}) {
        REQUIRE(to_text(must(parse_intervals(text))) == text);
        REQUIRE(Segment::make(chain, must(parse_intervals(text))));
    }
    for (const std::string text : {"", "[", "[0, 6", "[0,6)", "[0, 6) ", "[-1, 6)", "[0, 99999999999999)", "x[0, 6)"}) {
        CAPTURE(text);
        REQUIRE(parse_intervals(text).error().code == "bad_segment");
    }
    for (const std::string text : {"[0, 7)", "[3, 3)", "[4, 2)", "[0, 3) [3, 6)", "[3, 6) [0, 2)"}) {
        CAPTURE(text);
        REQUIRE(Segment::make(chain, must(parse_intervals(text))).error().code == "bad_segment");
    }
}

}  // namespace causeway
