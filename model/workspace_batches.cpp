// Batches that wait while others are worked on: each keeps the memory of its values. Part of Workspace (workspace.h).
//
// Arrays change hands, nothing of a batch is copied but the parameters that it went forward with. Memory for the next
// batch is taken when it comes, so a program that puts N batches away has N + 1 of them at most. Thread: the trainer's.
#include <utility>

#include "model/workspace.h"

namespace causeway {

void Workspace::bind_operands(ForRows& made, std::int64_t rows) const {
    made.values.clear();
    made.gradients.clear();
    set_operands(made, rows);
}

/// Memory for the next batch, where the last one was put away with its own.
Status Workspace::provide_values() {
    if (values_.empty() && spare_.empty()) {
        scratch_.resize(plan_.scratches);
        TRY(allocate_batch());
    } else if (values_.empty()) {
        values_ = std::move(spare_.back().values);
        scratch_ = std::move(spare_.back().scratch);
        targets_ = std::move(spare_.back().targets);
        spare_.pop_back();
    }
    for (std::size_t i = 0; i < scratch_.size(); ++i) {
        TRY(provide(scratch_[i], scratch_bytes_[i]));
    }
    return {};
}

Status Workspace::put_away() {
    const DeviceArray& today = arena(ArenaKind::trainable);
    DeviceArray copy;
    if (spare_parameters_.empty()) {
        TRY_ASSIGN(copy, DeviceArray::make(device(), today.count(), CW_F32));
    } else {
        copy = std::move(spare_parameters_.back());
        spare_parameters_.pop_back();
    }
    TRY(device().copy(copy.data(), today.data(), today.count() * sizeof(float), CW_ON_DEVICE));
    away_.push_back({.values = std::exchange(values_, {}),
                     .scratch = std::exchange(scratch_, {}),
                     .targets = std::exchange(targets_, {}),
                     .parameters = std::move(copy),
                     .seen = seen_,
                     .now = now_,
                     .rows = rows_,
                     .purpose = purpose_,
                     .draws = draws_});
    rows_ = 0;
    return {};
}

Status Workspace::take_up() {
    ASSERT(!away_.empty());
    if (!values_.empty()) {
        spare_.push_back(
            {.values = std::move(values_), .scratch = std::move(scratch_), .targets = std::move(targets_)});
    }
    Away& oldest = away_.front();
    values_ = std::move(oldest.values);
    scratch_ = std::move(oldest.scratch);
    targets_ = std::move(oldest.targets);
    older_parameters_ = std::move(oldest.parameters);
    seen_ = std::move(oldest.seen);
    now_ = oldest.now;
    rows_ = oldest.rows;
    purpose_ = oldest.purpose;
    draws_ = oldest.draws;
    away_.pop_front();
    bind_operands(*now_, rows_);
    bound_older_ = true;
    ++values_version_;  // what is packed of today's parameters does not serve
    bind_tensors();
    return {};
}

void Workspace::let_go() {
    if (bound_older_) {
        bound_older_ = false;
        spare_parameters_.push_back(std::exchange(older_parameters_, {}));
        ++values_version_;
        bind_tensors();
    }
}

}  // namespace causeway
