// See turn_work.h. Values travel as they lie in memory: f32 and i64, little-endian.
#include "client/turn_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "client/early_messages.h"
#include "common/random.h"
#include "split/exchanges.h"
#include "split/segment_file.h"
#include "split/smash_noise.h"

namespace causeway::node {
namespace {

constexpr unsigned microbatch_bits = 44;  // above any number of batches

constexpr std::uint32_t activations = 0, gradients = 1, labels = 2, targets = 3;  // StreamData::kind

std::uint32_t kind_of(const CellMessage& message) {
    switch (message.payload) {
        case Payload::activations:
            return activations;
        case Payload::gradients:
            return gradients;
        default:
            return message.labels.empty() ? targets : labels;
    }
}

template <class Value>
Result<std::vector<Value>> values_of(const StreamData& message) {
    if (message.payload.size() != message.total || message.total % sizeof(Value) != 0) {
        return fail(ErrorKind::invalid, "bad_stream_message",
                    fmt::format("a message of {} bytes holds no whole values", message.payload.size()));
    }
    std::vector<Value> values(message.total / sizeof(Value));
    std::ranges::copy(message.payload, std::as_writable_bytes(std::span(values)).begin());
    return values;
}

/// And the layers that the cell holds.
struct CellWork : AssignedWork {
    Segment segment;
};

Result<CellWork> parse_turn(const Assign& assign) {
    TRY_ASSIGN(auto work, parse_work(assign));
    TRY_ASSIGN(auto layers, parse_intervals(assign.segment));
    TRY_ASSIGN(auto segment, Segment::make(work.chain, std::move(layers)));
    return CellWork{std::move(work), std::move(segment)};
}

}  // namespace

struct TurnWork::Parts final : TrainerIo {
    Assign assign_;
    TurnHooks hooks;
    std::optional<Segment> segment;
    std::optional<TrainingBatches> batches;  // of the client's side
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<StreamData>> arrived;  // by cell and kind
    struct Waiting {
        std::size_t messages = 0;
        std::uint64_t bytes = 0;
    };
    std::map<std::uint32_t, Waiting> waiting;      // by cell
    std::optional<std::uint32_t> last_from;        // cell whose message came up last
    std::uint64_t sent = 0, received = 0;
    std::optional<TrainingRun> run;
    Duration begun{};

    [[nodiscard]] std::uint64_t examples() const override { return batches ? batches->examples() : assign_.examples; }
    Status load(const BatchPlace& place, std::span<float> features, std::span<std::int64_t> into) override {
        if (!batches) {
            return fail(ErrorKind::invalid, "no_examples", "this cell has no examples of its own");
        }
        return batches->load(place, features, into);
    }
    Status load_targets(const BatchPlace& place, std::span<float> features, std::span<float> into) override {
        if (!batches) {
            return fail(ErrorKind::invalid, "no_examples", "this cell has no examples of its own");
        }
        return batches->load_targets(place, features, into);
    }
    void progress(std::uint64_t step, std::uint64_t steps, double loss) override {
        if (hooks.progress) {
            hooks.progress(step, steps, loss);
        }
    }
    [[nodiscard]] bool stop_requested() const override { return hooks.stop_requested && hooks.stop_requested(); }

    /// On what leaves the segment that has read the examples: nothing else of a turn is smashed data.
    void blur(CellMessage& message) const {
        if (!batches || message.payload != Payload::activations) {
            return;
        }
        const auto size = assign_.batch == 0 ? batches->examples() : std::uint64_t{assign_.batch};
        const auto in_an_epoch = (batches->examples() + size - 1) / size;
        const SmashNoise noise{.scale = assign_.smash_noise,
                               .seed = assign_.seed,
                               .round = assign_.lease.round,
                               .node = node_key(assign_.data_node)};
        // A microbatch's draws are its own: those of a whole batch have the number 0 there.
        add_smash_noise(message.values, message.rows, noise,
                        message.epoch * in_an_epoch + message.batch + (message.microbatch << microbatch_bits));
    }
    Status send(std::uint32_t cell, CellMessage message) override {
        blur(message);
        StreamData data{.lease = assign_.lease,
                        .cell = assign_.cell,
                        .kind = kind_of(message),
                        .epoch = static_cast<std::uint32_t>(message.epoch),
                        .batch = static_cast<std::uint32_t>(message.batch),
                        .microbatch = static_cast<std::uint32_t>(message.microbatch),
                        .rows = message.rows};
        data.payload = to_bytes(data.kind == labels ? std::as_bytes(std::span(message.labels))
                                                    : std::as_bytes(std::span(message.values)));
        data.total = data.payload.size();
        sent += data.total;
        hooks.send(cell, std::move(data));
        return {};
    }

    /// One client's NaN would be in everybody's segment, and nobody could say later whose it was.
    [[nodiscard]] Status check_finite(const CellMessage& message) const {
        const auto finite = [](float value) { return std::isfinite(value); };
        if (assign_.peers.size() == 1 || std::ranges::all_of(message.values, finite)) {
            return {};
        }
        return fail(ErrorKind::invalid, "not_finite", "values that are not finite came for everybody's segment");
    }

    Result<std::optional<CellMessage>> receive(std::uint32_t cell, Payload payload) override {
        for (const auto kind : {activations, gradients, labels, targets}) {
            const bool wanted = payload == Payload::activations ? kind == activations
                                : payload == Payload::gradients ? kind == gradients
                                                                : kind == labels || kind == targets;
            const auto found = arrived.find({cell, kind});
            if (!wanted || found == arrived.end() || found->second.empty()) {
                continue;
            }
            const auto message = std::move(found->second.front());
            found->second.pop_front();
            --waiting[cell].messages;
            waiting[cell].bytes -= message.payload.size();
            last_from = cell;
            CellMessage made{.payload = payload,
                             .epoch = message.epoch,
                             .batch = message.batch,
                             .microbatch = message.microbatch,
                             .rows = message.rows,
                             .values = {},
                             .labels = {}};
            if (kind == labels) {
                TRY_ASSIGN(made.labels, values_of<std::int64_t>(message));
            } else {
                TRY_ASSIGN(made.values, values_of<float>(message));
            }
            TRY(check_finite(made));
            return std::optional(std::move(made));
        }
        return std::optional<CellMessage>{};
    }
};

TurnWork::TurnWork(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TurnWork::~TurnWork() = default;

const Assign& TurnWork::assign() const {
    return parts_->assign_;
}

Result<std::unique_ptr<TurnWork>> TurnWork::begin(Trainer& trainer, const Assign& assign, ByteView segment,
                                                  const Dataset* dataset, TurnHooks hooks) {
    TRY_ASSIGN(auto work, parse_turn(assign));
    TRY_ASSIGN(auto start, decode_segment(work.segment, work.optimizer, work.chain.layer_count(), segment));
    auto parts = std::make_unique<Parts>();
    parts->assign_ = assign;
    parts->hooks = std::move(hooks);
    parts->segment = work.segment;
    const auto key = node_key(assign.data_node);
    if (dataset != nullptr) {
        TRY(check_dataset_fits(*dataset, work.chain));
        if (dataset->size() != assign.examples) {
            return fail(ErrorKind::invalid, "examples_changed",
                        fmt::format("{} examples of \"{}\" were declared, {} are here: join again", assign.examples,
                                    assign.dataset, dataset->size()));
        }
        const BatchKey order{.seed = assign.seed, .round = assign.lease.round, .node = key};
        parts->batches.emplace(*dataset, BatchPlan{.batch = assign.batch, .augment = work.data.augment}, order);
    }
    TrainJob job{.program = std::move(work.program),
                 .chain = std::move(work.chain),
                 .segment = work.segment.layers(),
                 .start = std::move(start.model),
                 .optimizer = std::move(work.optimizer),
                 .optimizer_state = std::move(start.optimizer),
                 .batch = assign.batch,
                 .local_epochs = assign.local_epochs,
                 .draws = {.seed = assign.seed, .round = assign.lease.round, .node = key},
                 .clock = parts->hooks.clock};
    for (const auto& peer : assign.peers) {
        if (works_for_clients(job.program)) {
            job.clients.push_back({.examples = peer.examples, .node = node_key(peer.node)});
        }
    }
    parts->begun = parts->hooks.clock ? parts->hooks.clock() : Duration{};
    TRY_ASSIGN(parts->run, trainer.begin(std::move(job), *parts));
    return std::make_unique<TurnWork>(std::move(parts));
}

Status TurnWork::deliver(const StreamData& message) {
    const auto& peers = parts_->assign_.peers;
    const bool known = std::ranges::any_of(peers, [&](const auto& peer) { return peer.cell == message.cell; });
    if (!known) {
        return fail(ErrorKind::invalid, "bad_stream_message",
                    fmt::format("cell {} is none that this turn exchanges anything with", message.cell));
    }
    auto& waiting = parts_->waiting[message.cell];
    const auto bytes = waiting.bytes + message.payload.size();
    if (waiting.messages >= most_waiting_messages || (waiting.messages > 0 && bytes > most_waiting_bytes)) {
        return fail(ErrorKind::overloaded, "stream_flood", "more messages wait than any turn leaves waiting");
    }
    waiting = {waiting.messages + 1, bytes};
    parts_->received += message.total;
    parts_->arrived[{message.cell, message.kind}].push_back(message);
    return {};
}

std::string TurnWork::blamed(const Error& error) const {
    const auto& peers = parts_->assign_.peers;
    const auto from =
        std::ranges::find_if(peers, [&](const auto& peer) { return peer.cell == parts_->last_from; });
    return error.kind == ErrorKind::invalid && from != peers.end() ? from->node : "";
}

Result<TurnWork::State> TurnWork::advance() {
    TRY_ASSIGN(const auto state, parts_->run->advance());
    return state == TrainingRun::State::finished ? State::finished : State::waiting;
}

Result<TurnOutput> TurnWork::finish() {
    TRY_ASSIGN(auto result, parts_->run->result());
    double computing = 0;
    for (const auto code : {OpCode::load, OpCode::forward, OpCode::loss, OpCode::backward, OpCode::step}) {
        computing += result.seconds[static_cast<std::size_t>(code)];
    }
    const auto& assign = parts_->assign_;
    TurnOutput output;
    output.file = encode_segment(*parts_->segment, {std::move(result.end), std::move(result.optimizer_state)});
    output.held = {
        .experiment = assign.lease.experiment,
        .round = assign.lease.round,
        .digest = sha256(output.file),
        .bytes = output.file.size(),
        .weight = static_cast<std::int64_t>(parts_->examples()),
        .metrics = {.loss = result.loss,
                    .examples = result.examples,
                    .train_seconds = parts_->hooks.clock ? seconds(parts_->hooks.clock() - parts_->begun) : 0,
                    .stream_sent = parts_->sent,
                    .stream_received = parts_->received,
                    .compute_seconds = computing},
        .start_model = assign.model};
    return output;
}

namespace {

/// The program's cells count up from the first client's: the peers are told in that order, each by its own examples.
/// What the program sends, it sends to them alone.
Status check_peers(const Assign& assign, const Program& program) {
    for (const auto cell : exchanges_of(program).cells) {
        if (assign.peers.empty() || cell != assign.peers.front().cell) {
            return fail(ErrorKind::invalid, "bad_cell",
                        fmt::format("the program exchanges values with cell {}, which is none of the peers", cell));
        }
    }
    std::uint64_t examples = 0;
    for (std::size_t place = 0; place < assign.peers.size(); ++place) {
        examples += assign.peers[place].examples;
        if (works_for_clients(program) && assign.peers[place].cell != assign.peers.front().cell + place) {
            return fail(ErrorKind::invalid, "bad_cell", "a host's clients are cells whose numbers count up");
        }
    }
    if (works_for_clients(program) ? examples != assign.examples : assign.peers.size() > 1) {
        return fail(ErrorKind::invalid, "bad_cell", "a cell has one peer, or clients with so many examples as it has");
    }
    return {};
}

}  // namespace

Status check_cell(const Assign& assign, const Status& bf16) {
    TRY_ASSIGN(const auto work, parse_turn(assign));
    TRY(check_compute(work, bf16));
    TRY(check_peers(assign, work.program));
    if (assign.examples == 0 || assign.examples > (std::uint64_t{1} << 31) || assign.peers.empty()) {
        return fail(ErrorKind::invalid, "bad_cell", "a cell of a mesh has peers, and 1 to 2^31 examples");
    }
    return {};
}

}  // namespace causeway::node
