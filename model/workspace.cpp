// The device side of training: allocation, preparation, and one layer after another.
#include "model/workspace.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace causeway {
namespace {

// Tensors that share an allocation start at multiples of 64 bytes, as allocations do.
constexpr std::uint64_t aligned_bytes(std::uint64_t elements) {
    return (elements + 15) / 16 * 16;
}

}  // namespace

Workspace::Workspace(Unfinished, std::shared_ptr<PlanCache> plans, const Chain& chain, Segment segment,
                     const MemoryPlan& plan, std::int64_t capacity)
    : plans_(std::move(plans)),
      chain_(chain),
      segment_(std::move(segment)),
      capacity_(capacity),
      plan_(plan),
      scratch_(plan.scratches),
      has_gradient_(chain.layer_count()),
      scratch_bytes_(plan.scratches),
      seen_(chain.layer_count()) {
    for (std::size_t layer = 0; layer < chain_.layer_count(); ++layer) {
        layer_ranges_.push_back(segment_.holds(layer) ? chain_.arena_range(ArenaKind::trainable, layer, layer + 1)
                                                      : Range{});
    }
}

Result<std::shared_ptr<Workspace>> Workspace::make(std::shared_ptr<PlanCache> plans, const Chain& chain,
                                                   const Segment& segment, std::int64_t capacity,
                                                   std::vector<LayerInterval> recomputed) {
    ASSERT(capacity > 0);
    auto made = std::make_shared<Workspace>(Unfinished{}, std::move(plans), chain, segment,
                                            MemoryPlan::make(chain, std::move(recomputed)), capacity);
    TRY(made->allocate_values());
    TRY(made->allocate_arenas());
    return made;
}

/// What a boundary's tensors take in one allocation when every row is used.
std::uint64_t Workspace::capacity_elements(const Boundary& boundary) const {
    std::uint64_t elements = 0;
    for (const BoundaryTensor& tensor : boundary) {
        elements += aligned_bytes(static_cast<std::uint64_t>(capacity_ * element_count(tensor.shape)));
    }
    return elements;
}

Status Workspace::allocate_values() {
    TRY(allocate_batch());
    return allocate_loss();
}

/// What each batch has of its own: values and labels.
Status Workspace::allocate_batch() {
    std::vector<std::uint64_t> elements(plan_.memories);
    for (std::size_t boundary = 0; boundary < plan_.memory.size(); ++boundary) {
        std::uint64_t& most = elements[plan_.memory[boundary]];
        most = segment_.touches(boundary) ? std::max(most, capacity_elements(chain_.boundary(boundary))) : most;
    }
    for (const std::uint64_t count : elements) {
        TRY_ASSIGN(auto memory, DeviceArray::make(device(), count, CW_F32));
        values_.push_back(std::move(memory));
    }
    const auto rows = static_cast<std::uint64_t>(capacity_);
    const auto outputs = static_cast<std::uint64_t>(chain_.classes());
    const bool numeric = chain_.loss().numeric();
    TRY_ASSIGN(targets_, DeviceArray::make(device(), numeric ? rows * outputs : rows, numeric ? CW_F32 : CW_I64));
    return {};
}

Status Workspace::allocate_loss() {
    const auto outputs = static_cast<std::uint64_t>(chain_.classes());
    TRY_ASSIGN(class_weights_, DeviceArray::make(device(), outputs, CW_F32));
    TRY_ASSIGN(loss_, DeviceArray::make(device(), 1, CW_F64));
    TRY_ASSIGN(correct_, DeviceArray::make(device(), 1, CW_I64));
    TRY_ASSIGN(squares_, DeviceArray::make(device(), 1, CW_F64));
    const auto& given = chain_.loss().weights;
    const std::vector<float> weights = given.empty() ? std::vector<float>(outputs, 1.0f) : given;
    TRY(class_weights_.upload(device(), std::span<const float>(weights)));
    const std::int64_t none = 0;  // a loss that does not count leaves it so
    return correct_.upload(device(), std::span(&none, 1));
}

Status Workspace::allocate_arenas() {
    for (const ArenaKind kind : {ArenaKind::trainable, ArenaKind::buffers, ArenaKind::frozen}) {
        TRY_ASSIGN(auto memory, DeviceArray::make(device(), segment_.arena_size(kind), CW_F32));
        arenas_.push_back(std::move(memory));
    }
    bind_tensors();
    return {};
}

/// Operands change only when a batch is taken up that went forward with older parameters: runs pass them on.
void Workspace::bind_tensors() {
    layer_parameters_.assign(chain_.layer_count(), {});
    layer_gradients_.assign(chain_.layer_count(), {});
    for (const TensorInfo& tensor : chain_.table().tensors) {
        if (!segment_.holds(tensor.layer)) {
            continue;
        }
        const Range range = segment_.local(tensor.arena, tensor.range());
        const bool older = bound_older_ && tensor.arena == ArenaKind::trainable && seen_[tensor.layer];
        const DeviceArray& memory = older ? older_parameters_ : arena(tensor.arena);
        layer_parameters_[tensor.layer].push_back(memory.part(range.begin, range.size()));
        if (training_ && tensor.arena == ArenaKind::trainable) {
            layer_gradients_[tensor.layer].push_back(gradient_.part(range.begin, range.size()));
        }
    }
}

Status Workspace::prepare_training(std::size_t moments) {
    const std::uint64_t parameters = segment_.arena_size(ArenaKind::trainable);
    if (!training_) {
        std::uint64_t most = 0;  // either of the two gradient buffers may have to hold any boundary
        for (std::size_t boundary = 0; boundary < plan_.storage.size(); ++boundary) {
            most = segment_.touches(boundary) ? std::max(most, capacity_elements(chain_.boundary(boundary))) : most;
        }
        TRY_ASSIGN(gradient_, DeviceArray::make(device(), parameters, CW_F32));
        turns_.resize(2);
        for (DeviceArray& turn : turns_) {
            TRY_ASSIGN(turn, DeviceArray::make(device(), most, CW_F32));
        }
        training_ = true;
        by_rows_.clear();  // prepared for inference
        now_ = nullptr;
        bind_tensors();
    }
    while (moments_.size() < moments) {
        TRY_ASSIGN(auto memory, DeviceArray::make(device(), parameters, CW_F32));
        moments_.push_back(std::move(memory));
    }
    moments_.resize(moments);
    std::fill(has_gradient_.begin(), has_gradient_.end(), false);
    return {};
}

Status Workspace::put_model(const ModelState& state) {
    version_ = state.trainable.version;
    ++values_version_;
    let_go();
    away_.clear();  // of a run that was given up
    spare_.clear();
    spare_parameters_.clear();
    for (DeviceArray& memory : arenas_) {
        const auto kind = static_cast<ArenaKind>(&memory - arenas_.data());
        ASSERT(state.arena(kind).values.size() == memory.count());
        TRY(memory.upload(device(), std::span<const float>(state.arena(kind).values)));
    }
    return {};
}

Result<ModelState> Workspace::get_model() const {
    ModelState state;
    for (Arena* arena : {&state.trainable, &state.buffers, &state.frozen}) {
        arena->values.resize(segment_.arena_size(arena->kind));
        TRY(this->arena(arena->kind).download(device(), std::span<float>(arena->values)));
    }
    state.trainable.version = version_ + 1;
    return state;
}

Status Workspace::put_moments(const std::vector<std::vector<float>>& moments) {
    ASSERT(moments.size() == moments_.size());
    for (std::size_t i = 0; i < moments.size(); ++i) {
        TRY(moments_[i].upload(device(), std::span<const float>(moments[i])));
    }
    return {};
}

Result<std::vector<std::vector<float>>> Workspace::get_moments() const {
    std::vector<std::vector<float>> moments;
    for (const DeviceArray& memory : moments_) {
        moments.emplace_back(memory.count());
        TRY(memory.download(device(), std::span<float>(moments.back())));
    }
    return moments;
}

std::vector<Operand> Workspace::operands(const DeviceArray& memory, const Boundary& boundary, std::int64_t rows) const {
    std::vector<Operand> list;
    std::uint64_t offset = 0;
    for (const BoundaryTensor& tensor : boundary) {
        const std::int64_t elements = element_count(tensor.shape);
        list.push_back(memory.part(offset, static_cast<std::uint64_t>(rows * elements)));
        offset += aligned_bytes(static_cast<std::uint64_t>(capacity_ * elements));
    }
    return list;
}

/// A boundary and the one after its layer use different gradient buffers, except where the layer is a view: then its
/// two boundaries are the same memory in both directions.
void Workspace::set_operands(ForRows& made, std::int64_t rows) const {
    for (std::size_t boundary = 0; boundary < plan_.storage.size(); ++boundary) {
        const Boundary& shape = chain_.boundary(boundary);
        const bool here = segment_.touches(boundary);
        made.values.push_back(here ? operands(values_[plan_.memory[boundary]], shape, rows) : std::vector<Operand>{});
        made.gradients.push_back(here && training_ && chain_.gradient_needed(boundary)
                                     ? operands(turns_[plan_.storage[boundary] % 2], shape, rows)
                                     : std::vector<Operand>{});
    }
}

/// At least so many bytes; what was there is lost.
Status Workspace::provide(DeviceArray& memory, std::uint64_t bytes) const {
    if (memory.count() < bytes) {
        memory = {};  // before the new one, not beside it
        TRY_ASSIGN(memory, DeviceArray::make(device(), bytes, CW_U8));
    }
    return {};
}

Result<Workspace::ForRows> Workspace::prepare_rows(std::int64_t rows) {
    ForRows made;
    set_operands(made, rows);
    made.layers.resize(chain_.layer_count());
    for (std::size_t layer = 0; layer < chain_.layer_count(); ++layer) {
        if (!segment_.holds(layer)) {
            continue;
        }
        TRY_ASSIGN(auto plan, chain_.layer(layer).prepare(plans(), chain_.boundary(layer), rows,
                                                          training_ ? Purpose::training : Purpose::inference));
        auto& bytes = scratch_bytes_[plan_.scratch[layer]];
        bytes = std::max(bytes, plan->scratch_bytes());
        TRY(provide(scratch_[plan_.scratch[layer]], bytes));
        TRY(provide(temporary_, plan->temporary_bytes()));
        made.layers[layer] = std::move(plan);
    }
    TRY(prepare_fused(made, rows));
    if (!segment_.holds(chain_.layer_count() - 1)) {
        return made;
    }
    const LossPlan::Shape shape{rows, chain_.classes()};
    TRY_ASSIGN(made.evaluation, LossPlan::prepare(plans(), chain_.loss(), shape, ops::Gradient::absent));
    if (training_) {
        TRY_ASSIGN(made.loss, LossPlan::prepare(plans(), chain_.loss(), shape, ops::Gradient::present));
    }
    return made;
}

Status Workspace::use_rows(std::int64_t rows) {
    ASSERT(rows > 0 && rows <= capacity_);
    TRY(provide_values());
    auto found = by_rows_.find(rows);
    if (found == by_rows_.end()) {
        TRY_ASSIGN(ForRows made, prepare_rows(rows));
        found = by_rows_.emplace(rows, std::move(made)).first;
    }
    now_ = &found->second;
    bind_operands(*now_, rows);
    rows_ = rows;
    std::fill(seen_.begin(), seen_.end(), false);
    return {};
}

/// The labels are checked here, once, because a kernel could only answer a wrong one with a loss of NaN.
Status Workspace::check_labels(std::span<const std::int64_t> labels) const {
    const auto wrong =
        std::ranges::find_if(labels, [&](std::int64_t label) { return label < 0 || label >= chain_.classes(); });
    if (wrong != labels.end()) {
        return fail(ErrorKind::invalid, "label_out_of_range",
                    fmt::format("the model has {} classes, but an example has the label {}", chain_.classes(), *wrong));
    }
    return {};
}

Status Workspace::check_targets(std::span<const float> targets) const {
    const auto wrong = std::ranges::find_if(targets, [](float target) { return !std::isfinite(target); });
    if (wrong != targets.end()) {
        return fail(ErrorKind::invalid, "label_out_of_range", fmt::format("an example has the target {}", *wrong));
    }
    return {};
}

Status Workspace::load(std::span<const float> features, std::span<const std::int64_t> labels) {
    TRY(check_labels(labels));
    TRY(put_features(features, static_cast<std::int64_t>(labels.size())));
    return targets_.upload(device(), labels);
}

Status Workspace::load_targets(std::span<const float> features, std::span<const float> targets) {
    TRY(check_targets(targets));
    TRY(put_features(features, static_cast<std::int64_t>(targets.size()) / chain_.classes()));
    return targets_.upload(device(), targets);
}

Status Workspace::put_features(std::span<const float> features, std::int64_t rows) {
    TRY(use_rows(rows));
    ASSERT(static_cast<std::int64_t>(features.size()) == batch_elements(chain_.boundary(0), rows_));
    return values_[plan_.memory.front()].upload(device(), features);
}

/// What comes from another cell is a peer's: its size is not believed.
Status Workspace::begin_or_match(std::int64_t rows) {
    if (rows <= 0 || rows > capacity_ || (rows_ != 0 && rows != rows_)) {
        return fail(ErrorKind::invalid, "wrong_rows",
                    fmt::format("{} rows came for a batch of {}", rows, rows_ != 0 ? rows_ : capacity_));
    }
    return rows_ == 0 ? use_rows(rows) : Status{};
}

Status Workspace::put_operands(const std::vector<Operand>& operands, std::span<const float> values) const {
    std::uint64_t wanted = 0;
    for (const Operand& operand : operands) {
        wanted += operand.count;
    }
    if (values.size() != wanted) {
        return fail(ErrorKind::invalid, "wrong_shape",
                    fmt::format("{} values came for {} rows where the model has {}", values.size(), rows_, wanted));
    }
    for (const Operand& operand : operands) {
        TRY(device().copy(const_cast<void*>(operand.data), values.data(), operand.count * sizeof(float), CW_TO_DEVICE));
        values = values.subspan(operand.count);
    }
    return {};
}

Status Workspace::get_operands(const std::vector<Operand>& operands, std::vector<float>& into) const {
    std::size_t count = 0;
    for (const Operand& operand : operands) {
        count += operand.count;
    }
    into.resize(count);
    std::span<float> rest(into);
    for (const Operand& operand : operands) {
        TRY(device().copy(rest.data(), operand.data, operand.count * sizeof(float), CW_FROM_DEVICE));
        rest = rest.subspan(operand.count);
    }
    return {};
}

Status Workspace::receive_values(std::size_t boundary, std::int64_t rows, std::span<const float> values) {
    ASSERT(segment_.touches(boundary));
    TRY(begin_or_match(rows));
    return put_operands(now_->values[boundary], values);
}

Status Workspace::receive_gradients(std::size_t boundary, std::int64_t rows, std::span<const float> gradients) {
    ASSERT(segment_.touches(boundary));
    TRY(begin_or_match(rows));
    return put_operands(now_->gradients[boundary], gradients);
}

Status Workspace::receive_labels(std::span<const std::int64_t> labels) {
    TRY(check_labels(labels));
    TRY(begin_or_match(static_cast<std::int64_t>(labels.size())));
    return targets_.upload(device(), labels);
}

Status Workspace::receive_targets(std::span<const float> targets) {
    TRY(check_targets(targets));
    TRY(begin_or_match(static_cast<std::int64_t>(targets.size()) / chain_.classes()));
    return targets_.upload(device(), targets);
}

Status Workspace::values_at(std::size_t boundary, std::vector<float>& into) const {
    ASSERT(now_ != nullptr && segment_.touches(boundary));
    return get_operands(now_->values[boundary], into);
}

Status Workspace::gradients_at(std::size_t boundary, std::vector<float>& into) const {
    ASSERT(now_ != nullptr && segment_.touches(boundary));
    return get_operands(now_->gradients[boundary], into);
}

/// The two copies are where the host waits for the device: once per batch.
Result<BatchLoss> Workspace::loss(Purpose purpose, double divisor) {
    const Operand scores = now_->values.back().front();
    const auto targets = static_cast<std::uint64_t>(chain_.loss().numeric() ? rows_ * chain_.classes() : rows_);
    const bool with_gradient = purpose == Purpose::training && !now_->gradients.back().empty();
    LossPlan& plan = with_gradient ? now_->loss : now_->evaluation;
    TRY(plan.run({.scores = scores,
                  .targets = targets_.part(0, targets),
                  .weights = class_weights_.all(),
                  .loss = loss_.all(),
                  .correct = correct_.all(),
                  .gradient = with_gradient ? now_->gradients.back().front() : scores},
                 divisor));
    double loss = 0;
    std::int64_t correct = 0;
    TRY(loss_.download(device(), std::span(&loss, 1)));
    TRY(correct_.download(device(), std::span(&correct, 1)));
    return BatchLoss{loss, static_cast<std::uint64_t>(correct)};
}

Status Workspace::scores(std::span<float> into) const {
    ASSERT(static_cast<std::int64_t>(into.size()) == batch_elements(chain_.boundary(chain_.layer_count()), rows_));
    return device().copy(into.data(), now_->values.back().front().data, into.size_bytes(), CW_FROM_DEVICE);
}

Status Workspace::step(const OptimizerSpec& spec, Range range, const StepTime& time) {
    ++values_version_;
    std::array<Operand, 4> moments{parameters({}), parameters({}), parameters({}), parameters({})};
    ASSERT(moments_.size() <= moments.size());
    for (std::size_t i = 0; i < moments_.size(); ++i) {
        const Range local = segment_.local(ArenaKind::trainable, range);
        moments[i] = moments_[i].part(local.begin, local.size());
    }
    return spec.kind->step(spec, plans(),
                           {.parameters = parameters(range),
                            .gradient = gradient(range),
                            .moments = std::span(moments).first(moments_.size()),
                            .step = time.step,
                            .share = time.share});
}

Result<double> Workspace::gradient_squares() {
    TRY_ASSIGN(Plan * plan, plans_->get(ops::sum_of_squares()));
    double sum = 0;
    for (std::size_t layer = 0; layer < chain_.layer_count(); ++layer) {
        if (!has_gradient_[layer] || layer_ranges_[layer].size() == 0) {
            continue;
        }
        TRY(plan->run({gradient(layer_ranges_[layer]), squares_.all()}));
        double squares = 0;
        TRY(squares_.download(device(), std::span(&squares, 1)));
        sum += squares;
    }
    return sum;
}

Status Workspace::scale_gradients(double factor) {
    TRY_ASSIGN(Plan * plan, plans_->get(ops::scale()));
    for (std::size_t layer = 0; layer < chain_.layer_count(); ++layer) {
        if (has_gradient_[layer] && layer_ranges_[layer].size() > 0) {
            TRY(plan->run({gradient(layer_ranges_[layer])}, {factor}));
        }
    }
    return {};
}

}  // namespace causeway
