// See program_acts.h. One visitor that follows the repeats, with the batch's rows at hand.
#include "split/program_acts.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace causeway {
namespace {

double sum(const std::vector<double>& values, LayerInterval layers) {
    return std::accumulate(values.begin() + layers.begin, values.begin() + layers.end, 0.0);
}

class Walk {
public:
    Walk(const Program& program, const Chain& chain, const LayerTable& table, const CellData& data)
        : chain_(chain), table_(table), data_(data), stashed_(stashed_passes(program)) {
        all(program.instructions);
    }
    std::vector<CellAct> take() { return std::move(acts_); }

private:
    using Body = std::vector<Instruction>;

    [[nodiscard]] std::uint64_t examples() const {
        return data_.clients.empty() ? data_.examples : data_.clients[client_];
    }
    [[nodiscard]] static std::uint64_t parts(std::uint64_t whole, std::uint64_t part) {
        return part == 0 ? 1 : (whole + part - 1) / part;
    }
    [[nodiscard]] std::uint64_t most_batches() const {
        const auto most = data_.clients.empty() ? data_.examples : std::ranges::max(data_.clients);
        return most == 0 ? 0 : parts(most, data_.batch);
    }
    /// Of the batch at work; 0: this client has none of that number.
    [[nodiscard]] std::uint64_t batch_rows() const {
        const std::uint64_t size = data_.batch == 0 ? examples() : data_.batch;
        const std::uint64_t before = batch_ * size;
        return before >= examples() ? 0 : std::min(size, examples() - before);
    }

    void all(const Body& body) { range(body, 0, body.size()); }

    void range(const Body& body, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
            if (body[i].code == OpCode::repeat) {
                repeat(body[i]);
            } else if (body[i].code == OpCode::stash && stashed_ > 0) {
                put_away(body, i, to);
                return;
            } else {
                one(body[i]);
            }
        }
    }

    void repeat(const Instruction& repeat) {
        switch (repeat.over) {
            case RepeatOver::epochs:
                for (epoch_ = 0; epoch_ < data_.local_epochs; ++epoch_) {
                    all(repeat.body);
                }
                break;
            case RepeatOver::batches:
                for (batch_ = 0; batch_ < most_batches(); ++batch_) {
                    rows_ = batch_rows();
                    all(repeat.body);
                }
                if (epoch_ + 1 == data_.local_epochs) {
                    take_up_the_rest();
                }
                break;
            case RepeatOver::clients:
                for (client_ = 0; client_ < data_.clients.size(); ++client_) {
                    if (rows_ = batch_rows(); rows_ > 0) {
                        all(repeat.body);
                    }
                }
                client_ = 0;
                break;
            case RepeatOver::microbatches:
                microbatches(repeat.body);
                break;
        }
    }

    void microbatches(const Body& body) {
        const auto rows = batch_rows();
        const std::uint64_t part = data_.microbatch == 0 ? rows : data_.microbatch;
        for (std::uint64_t first = 0; first < rows; first += part) {
            rows_ = std::min(part, rows - first);
            all(body);
        }
        rows_ = rows;
    }

    /// What follows the stash is for the pass so many before this one, with that one's rows.
    void put_away(const Body& body, std::size_t stash, std::size_t end) {
        put_away_.push_back({&body, stash + 1, end, rows_});
        if (put_away_.size() > stashed_) {
            take_up();
        }
    }
    void take_up() {
        const auto pass = put_away_.front();
        put_away_.pop_front();
        const auto rows = std::exchange(rows_, pass.rows);
        range(*pass.body, pass.from, pass.to);
        rows_ = rows;
    }
    void take_up_the_rest() {
        while (!put_away_.empty()) {
            take_up();
        }
    }

    void one(const Instruction& instruction) {
        const auto& times = table_.times;
        const double share = static_cast<double>(rows_) / table_.batch;
        const auto cell = instruction.index + static_cast<std::uint32_t>(client_);
        switch (instruction.code) {
            case OpCode::forward:
                newest_value_ = instruction.layers.end;
                return work(share * sum(times.forward, instruction.layers));
            case OpCode::recompute:
                return work(share * sum(times.forward, instruction.layers));
            case OpCode::backward:
                newest_gradient_ = instruction.layers.begin;
                return work(share * sum(times.backward, instruction.layers));
            case OpCode::loss:
                return work(share * times.loss);
            case OpCode::step:
                return work(sum(times.step, instruction.layers));
            case OpCode::send:
                return acts_.push_back({CellAct::Kind::send, instruction.payload, cell, bytes_of(instruction.payload)});
            case OpCode::receive:
                return acts_.push_back({CellAct::Kind::receive, instruction.payload, cell});
            default:
                return;  // reading examples, marks and copies take no time
        }
    }
    /// As they travel (client/turn_work.cpp).
    [[nodiscard]] std::uint64_t bytes_of(Payload payload) const {
        if (payload == Payload::labels) {
            return rows_ * (chain_.loss().numeric() ? sizeof(float) * static_cast<std::uint64_t>(chain_.classes())
                                                    : sizeof(std::int64_t));
        }
        std::uint64_t elements = 0;
        for (const auto& tensor : chain_.boundary(payload == Payload::gradients ? newest_gradient_ : newest_value_)) {
            elements += static_cast<std::uint64_t>(element_count(tensor.shape));
        }
        return rows_ * elements * sizeof(float);
    }
    void work(double seconds) {
        if (!acts_.empty() && acts_.back().kind == CellAct::Kind::work) {
            acts_.back().seconds += seconds;
        } else if (seconds > 0) {
            acts_.push_back({.kind = CellAct::Kind::work, .seconds = seconds});
        }
    }

    /// A pass over a batch whose second half waits.
    struct Pass {
        const Body* body = nullptr;
        std::size_t from = 0, to = 0;
        std::uint64_t rows = 0;
    };

    const Chain& chain_;
    const LayerTable& table_;
    const CellData& data_;
    std::uint32_t stashed_;
    std::uint64_t epoch_ = 0, batch_ = 0, client_ = 0;
    std::uint64_t rows_ = 0;
    std::size_t newest_value_ = 0, newest_gradient_ = 0;  // boundaries
    std::deque<Pass> put_away_;
    std::vector<CellAct> acts_;
};

}  // namespace

double arithmetic_of(const Chain& chain, std::size_t layer) {
    double values = 0, places = 0;
    for (const auto& tensor : chain.boundary(layer + 1)) {
        const auto elements = static_cast<double>(element_count(tensor.shape));
        values += elements;
        places = std::max(places, elements / static_cast<double>(tensor.shape.back()));
    }
    const auto parameters = static_cast<double>(chain.arena_range(ArenaKind::trainable, layer, layer + 1).size());
    return values + places * parameters;
}

LayerTable layers_by_arithmetic(const Chain& chain, double seconds_per_example) {
    std::vector<double> each;
    for (std::size_t layer = 0; layer < chain.layer_count(); ++layer) {
        each.push_back(arithmetic_of(chain, layer));
    }
    const double all = std::accumulate(each.begin(), each.end(), 0.0);
    LayerTable table;
    for (const double one : each) {
        table.times.forward.push_back(seconds_per_example * one / all / 3);
        table.times.backward.push_back(seconds_per_example * one / all * 2 / 3);
    }
    table.times.step.assign(each.size(), 0.0);
    return table;
}

std::vector<CellAct> acts_of(const Program& program, const Chain& chain, const LayerTable& table,
                             const CellData& data) {
    return Walk(program, chain, table, data).take();
}

}  // namespace causeway
