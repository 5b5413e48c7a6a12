// A chain on a device: its arenas, their mirrors, the values at its boundaries, and prepared work per number of rows.
//
// Memory is planned from the chain: values at every boundary live from the forward to the backward, gradients at
// boundaries only until the layer below has used them, so two buffers take turns. Views share their input's memory.
// Plans are made once per number of rows and kept from round to round: a set for full batches, one for the short last.
//
// A batch may be put away with the memory of its values while others are worked on, and taken up later; the parameters
// of the layers that it went through are then those of that time (weight stashing: Narayanan et al. 2019, PipeDream).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "model/arena.h"
#include "model/chain.h"
#include "model/device_array.h"
#include "model/memory_plan.h"
#include "model/optimizer.h"
#include "model/program.h"
#include "model/segment.h"

namespace causeway {

struct BatchLoss {
    double loss = 0;            // sum over the rows, divided by the divisor
    std::uint64_t correct = 0;  // rows whose largest score is the label's
};

/// threads  bound to the trainer thread
class Workspace {
    struct Unfinished {};  // only make() constructs

public:
    Workspace(Unfinished, std::shared_ptr<PlanCache> plans, const Chain& chain, Segment segment, const MemoryPlan& plan,
              std::int64_t capacity);
    /// Room for `capacity` rows of the layers that `segment` holds; `recomputed` blocks share one block's memory.
    /// Forward only, until prepare_training.
    ///
    /// errors   overloaded: the device has no memory for it
    static Result<std::shared_ptr<Workspace>> make(std::shared_ptr<PlanCache> plans, const Chain& chain,
                                                   const Segment& segment, std::int64_t capacity,
                                                   std::vector<LayerInterval> recomputed = {});

    [[nodiscard]] const Chain& chain() const { return chain_; }
    [[nodiscard]] const Segment& segment() const { return segment_; }
    [[nodiscard]] std::int64_t capacity() const { return capacity_; }
    [[nodiscard]] const std::vector<LayerInterval>& recomputed() const { return plan_.recomputed; }
    [[nodiscard]] std::size_t prepared_row_counts() const { return by_rows_.size(); }

    /// Makes gradient and moment mirrors.
    Status prepare_training(std::size_t moments);
    /// The packed arenas of the segment.
    Status put_model(const ModelState& state);
    Result<ModelState> get_model() const;
    Status put_moments(const std::vector<std::vector<float>>& moments);
    Result<std::vector<std::vector<float>>> get_moments() const;

    /// The next batch: what the runs below work on.
    ///
    /// shapes   features f32[rows, input...], labels i64[rows]; rows <= capacity
    /// errors   invalid `label_out_of_range`
    Status load(std::span<const float> features, std::span<const std::int64_t> labels);
    /// The same for a loss that wants numbers. shapes   targets f32[rows, outputs]
    Status load_targets(std::span<const float> features, std::span<const float> targets);
    /// Values that came from another cell begin a batch of `rows`, or go on with it.
    ///
    /// shapes   values f32[rows, boundary...]; a boundary that the segment touches
    /// errors   invalid `wrong_rows`: more than the capacity, or other than the values that are there already;
    ///          `wrong_shape`: another number of values
    Status receive_values(std::size_t boundary, std::int64_t rows, std::span<const float> values);
    Status receive_gradients(std::size_t boundary, std::int64_t rows, std::span<const float> gradients);
    /// errors   invalid `label_out_of_range`, `wrong_rows`
    Status receive_labels(std::span<const std::int64_t> labels);
    Status receive_targets(std::span<const float> targets);
    /// Copies of what is at a boundary, for another cell. shapes   f32[rows, boundary...]
    Status values_at(std::size_t boundary, std::vector<float>& into) const;
    Status gradients_at(std::size_t boundary, std::vector<float>& into) const;
    [[nodiscard]] std::int64_t rows() const { return rows_; }
    /// The next values begin a batch of their own.
    void end_batch() { rows_ = 0; }
    /// `draws` decides the random choices of training, in this forward and its backward.
    Status forward(LayerInterval layers, Purpose purpose, const Draws& draws = {});
    /// A block's forward again, as its last one was: what its layers keep inside is there for their backward.
    Status recompute(LayerInterval layers);
    /// The batch in progress waits, with its values and a copy of the parameters.
    Status put_away();
    /// The oldest batch that waits is the one in progress; nothing of another one is. Until let_go() the layers that it
    /// has gone through see the parameters of that time; steps act on today's.
    Status take_up();
    void let_go();
    /// Loss of the loaded rows; `training` also writes the gradient at the last boundary.
    Result<BatchLoss> loss(Purpose purpose, double divisor);
    /// The last boundary's values after a forward. shapes   f32[rows, classes]
    Status scores(std::span<float> into) const;
    /// Adds to the gradients of layers that have some since their last step, sets those of the others.
    Status backward(LayerInterval layers);
    /// One optimizer step of a range of the trainable arena, at a share of the learning rate; the gradients stay.
    struct StepTime {
        std::uint64_t step = 1;
        double share = 1;
    };
    Status step(const OptimizerSpec& spec, Range range, const StepTime& time);
    /// The sum of squares of the gradients of all layers that have one: per layer in double, added in chain order, so
    /// it is the same under any cut. cost   reads the gradient once
    Result<double> gradient_squares();
    /// Multiplies the gradients of all layers that have one.
    Status scale_gradients(double factor);
    /// Whether a backward has come since the last call. The layer's next backward sets its gradients anew.
    bool take_gradient(std::size_t layer) {
        const bool had = has_gradient_[layer];
        has_gradient_[layer] = false;
        return had;
    }

    [[nodiscard]] Operand parameters(Range range) const {
        const Range local = segment_.local(ArenaKind::trainable, range);
        return arena(ArenaKind::trainable).part(local.begin, local.size());
    }
    [[nodiscard]] Operand gradient(Range range) const {
        const Range local = segment_.local(ArenaKind::trainable, range);
        return gradient_.part(local.begin, local.size());
    }
    /// The trainable elements of a layer, in places of the whole chain; empty for a layer that is not held.
    [[nodiscard]] Range layer_range(std::size_t layer) const { return layer_ranges_[layer]; }
    [[nodiscard]] PlanCache& plans() const { return *plans_; }
    [[nodiscard]] const std::shared_ptr<PlanCache>& shared_plans() const { return plans_; }

private:
    /// All that depends on the number of rows.
    struct ForRows {
        std::vector<std::unique_ptr<LayerPlan>> layers;
        std::vector<std::unique_ptr<LayerPlan>> fused;  // per layer: it and the next in one; null: each by itself
        std::vector<std::vector<Operand>> values;     // per boundary
        std::vector<std::vector<Operand>> gradients;  // per boundary; empty where nobody needs them
        LossPlan loss;                                // with gradient
        LossPlan evaluation;                          // without
    };

    /// A batch that waits.
    struct Away {
        std::vector<DeviceArray> values, scratch;
        DeviceArray targets, parameters;
        std::vector<bool> seen;  // layers that it has gone through
        ForRows* now = nullptr;
        std::int64_t rows = 0;
        Purpose purpose = Purpose::training;
        Draws draws;
    };

    Status allocate_values();
    Status provide_values();
    Status allocate_batch();
    Status allocate_arenas();
    Result<ForRows> prepare_rows(std::int64_t rows);
    Status prepare_fused(ForRows& made, std::int64_t rows);
    [[nodiscard]] bool runs_fused(std::size_t layer, std::size_t end) const;
    Status forward_fused(std::size_t layer);
    Status backward_fused(std::size_t layer);
    Status provide(DeviceArray& memory, std::uint64_t bytes) const;
    void set_operands(ForRows& made, std::int64_t rows) const;
    Status use_rows(std::int64_t rows);
    Status begin_or_match(std::int64_t rows);
    Status check_labels(std::span<const std::int64_t> labels) const;
    Status check_targets(std::span<const float> targets) const;
    Status put_operands(const std::vector<Operand>& operands, std::span<const float> values) const;
    Status get_operands(const std::vector<Operand>& operands, std::vector<float>& into) const;
    [[nodiscard]] std::vector<Operand> operands(const DeviceArray& memory, const Boundary& boundary,
                                                std::int64_t rows) const;
    [[nodiscard]] std::uint64_t capacity_elements(const Boundary& boundary) const;
    Status allocate_loss();
    Status put_features(std::span<const float> features, std::int64_t rows);
    void bind_tensors();
    void bind_operands(ForRows& made, std::int64_t rows) const;
    [[nodiscard]] LayerForward forward_call(std::size_t layer, Pass pass = Pass::first) const;
    [[nodiscard]] const DeviceArray& arena(ArenaKind kind) const { return arenas_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] const Device& device() const { return plans_->device(); }

    std::shared_ptr<PlanCache> plans_;  // first: all that is prepared refers to it
    Chain chain_;
    Segment segment_;
    std::int64_t capacity_;
    bool training_ = false;
    MemoryPlan plan_;
    std::vector<Range> layer_ranges_;   // per layer, trainable arena
    std::vector<DeviceArray> values_;   // by MemoryPlan::memory
    std::vector<DeviceArray> turns_;    // two: gradients at boundaries, by parity of their values' storage
    std::vector<DeviceArray> scratch_;  // by MemoryPlan::scratch, for the most rows so far: one batch is under way
    DeviceArray temporary_;             // of whichever layer runs
    std::vector<DeviceArray> arenas_;  // by ArenaKind
    std::uint64_t version_ = 0;        // of the trainable arena that was put
    std::uint64_t values_version_ = 0;  // counts its changes here, steps too
    DeviceArray gradient_;
    std::vector<DeviceArray> moments_;
    DeviceArray targets_;        // i64[capacity] classes, or f32[capacity, outputs]
    DeviceArray class_weights_;  // f32[outputs]
    DeviceArray loss_, correct_;
    DeviceArray squares_;  // f64[1]
    std::vector<std::vector<Operand>> layer_parameters_;  // per layer
    std::vector<std::vector<Operand>> layer_gradients_;   // per layer
    std::vector<bool> has_gradient_;                      // per layer
    std::map<std::int64_t, ForRows> by_rows_;
    std::vector<std::uint64_t> scratch_bytes_;  // by MemoryPlan::scratch, what the most rows so far need
    std::vector<bool> seen_;                    // layers that the batch in progress has gone through
    std::deque<Away> away_;                     // oldest first
    std::vector<Away> spare_;                   // memory of batches that are over
    DeviceArray older_parameters_;              // of the batch that was taken up
    std::vector<DeviceArray> spare_parameters_;
    bool bound_older_ = false;
    ForRows* now_ = nullptr;
    std::int64_t rows_ = 0;
    Purpose purpose_ = Purpose::training;  // of the last forward
    Draws draws_;
};

}  // namespace causeway
