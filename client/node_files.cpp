// See node_files.h.
#include "client/node_files.h"

#include <algorithm>

#include "common/log.h"

namespace causeway::node {
namespace {

constexpr Duration model_stays = std::chrono::seconds(2);  // newest for so long: rounds are not that fast, or over
constexpr Duration update_stays = std::chrono::seconds(2);  // without a verdict for so long: it may wait for long
constexpr std::uint64_t of_turns = 0;  // no experiment's number: turns let their segments go one by one
constexpr double worth_a_file = 0.1;  // seconds of training: on a slow disk a file and its two flushes take as long

/// What lies half done and is not on its way will never be asked for. Files are named by digest, with or without
/// extensions.
void clear_downloads(const std::filesystem::path& folder, const std::vector<Digest>& under_way) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        const auto name = entry.path().filename().string();
        if (std::ranges::none_of(under_way, [&](const Digest& model) { return name.starts_with(model.hex()); })) {
            std::filesystem::remove_all(entry.path(), ignored);
        }
    }
}

}  // namespace

Result<std::unique_ptr<NodeFiles>> NodeFiles::open(const std::filesystem::path& state,
                                                   std::shared_ptr<NodeLimits> limits) {
    TRY_ASSIGN(auto folder, StateFolder::open(state));
    TRY_ASSIGN(auto cache, ModelCache::open(state));
    TRY_ASSIGN(auto heads, AuditHeads::open_or_begin(state));
    return std::make_unique<NodeFiles>(std::move(folder), std::move(cache), std::move(heads), std::move(limits));
}

NodeFiles::NodeFiles(StateFolder folder, ModelCache cache, AuditHeads heads, std::shared_ptr<NodeLimits> limits)
    : folder_(std::move(folder)),
      cache_(std::move(cache)),
      heads_(std::move(heads)),
      limits_(std::move(limits)),
      held_(std::make_shared<const Held>()),
      thread_(std::make_unique<WorkThread>()) {}

NodeFiles::~NodeFiles() {
    retry_.stop();
    thread_->post([this] {
        write_newest();
        write_unwritten(never);
    });
    thread_.reset();
}

Result<std::vector<HeldUpdate>> NodeFiles::load_held() {
    TRY_ASSIGN(auto all, folder_.held());
    for (const auto& held : all) {
        TRY_ASSIGN(auto bytes, folder_.update(held.digest));
        publish(held.experiment, held.digest, std::make_shared<const Bytes>(std::move(bytes)));
    }
    return all;
}

void NodeFiles::apply(std::vector<Persist> persists, std::function<void()> done) {
    thread_->post([this, persists = std::move(persists), done = std::move(done)] {
        for (const auto& persist : persists) {
            const auto applied = retry_.until_done("node", [&] {
                return with_room(
                    [&] { return std::visit([this](const auto& what) { return apply_one(what); }, persist); });
            });
            if (!applied) {
                log_error("node", applied.error().message);
            }
        }
        done();
    });
}

/// Cached models are worth less than what must be stored: on a full disk they go first.
Status NodeFiles::with_room(const std::function<Status()>& store) {
    auto stored = store();
    return !stored && stored.error().code == "disk_full" && cache_.make_room() ? store() : stored;
}

Status NodeFiles::apply_one(const ResolvePending& what) {
    const auto& update = what.update;
    if (unwritten_.erase({update.experiment, update.digest}) > 0) {  // there was no state to promote
        withdraw(update.experiment, update.digest);
        return {};
    }
    TRY(what.counted ? folder_.commit(update.experiment, update.digest)
                     : folder_.rollback(update.experiment, update.digest));
    withdraw(update.experiment, update.digest);
    return {};
}

Status NodeFiles::apply_one(const ForgetExperiment& what) {
    std::erase_if(unwritten_, [&](const auto& entry) { return entry.first.first == what.experiment; });
    withdraw_all(what.experiment);
    return folder_.forget(what.experiment);
}

void NodeFiles::note_audit_head(const std::string& federation, const Digest& head) {
    thread_->post([this, federation, head] {
        if (const auto noted = heads_.note(federation, head); !noted) {
            log_warn("node", "the audit log's head is not noted: " + noted.error().message);
        }
    });
}

void NodeFiles::find_model(const Digest& model, std::uint64_t bytes, std::function<void(Result<bool>)> done) {
    thread_->post([this, model, bytes, done = std::move(done)] {
        if ((newest_ && newest_->digest == model) || held_bytes(model) != nullptr || cache_.has(model)) {
            return done(true);
        }
        const auto room = cache_.expect(bytes, limits_->cache_quota);
        done(room ? Result<bool>(false) : fail(room.error()));
    });
}

void NodeFiles::start_evaluation(const Assign& assign, std::function<void(Result<TrainingStart>)> done) {
    thread_->post([this, assign, done = std::move(done)] {
        done([&]() -> Result<TrainingStart> {
            TRY_ASSIGN(auto model, model_bytes(assign.model));
            TRY_ASSIGN(auto base, folder_.base(assign.lease.experiment, assign.continues));
            return TrainingStart{std::move(model), std::move(base), std::nullopt};
        }());
    });
}

Result<SharedBytes> NodeFiles::model_bytes(const Digest& model) {
    if (newest_ && newest_->digest == model) {
        return newest_->bytes;
    }
    TRY_ASSIGN(auto bytes, cache_.read(model));
    return SharedBytes(std::move(bytes));
}

void NodeFiles::adopt_model(const Digest& model, const std::filesystem::path& file, std::vector<Digest> under_way,
                            std::function<void(Status)> done) {
    thread_->post([this, model, file, under_way = std::move(under_way), done = std::move(done)] {
        auto adopted = cache_.adopt(model, file);
        clear_downloads(file.parent_path(), under_way);
        done(std::move(adopted));
    });
}

void NodeFiles::adopt_model(const Digest& model, SharedBytes bytes) {
    thread_->post([this, model, bytes = std::move(bytes)]() mutable {
        newest_ = NewestModel{model, std::move(bytes), real_now(), false};
    });
}

void NodeFiles::settle() {
    thread_->post([this] {
        if (newest_ && real_now() - newest_->since > model_stays) {
            write_newest();
        }
        write_unwritten(real_now() - update_stays);
    });
}

/// A failure costs a transfer after a restart, no more.
void NodeFiles::write_newest() {
    if (newest_ && !newest_->written) {
        newest_->written = true;
        if (const auto put = cache_.put(newest_->digest, newest_->bytes); !put) {
            log_warn("node", put.error().message);
        }
    }
}

void NodeFiles::make_room() {
    thread_->post([this] { cache_.make_room(); });
}

void NodeFiles::start_training(const Assign& assign, std::function<void(Result<TrainingStart>)> done) {
    thread_->post([this, assign, done = std::move(done)] {
        done([&]() -> Result<TrainingStart> {
            auto model = assign.model.empty() ? Result<SharedBytes>(SharedBytes()) : model_bytes(assign.model);
            if (!model) {
                return fail(model.error().kind, "model_lost", model.error().message);
            }
            const auto experiment = assign.lease.experiment;
            TRY_ASSIGN(auto base, folder_.base(experiment, assign.continues));
            return TrainingStart{*std::move(model), std::move(base),
                                 folder_.kept_run(experiment, assign.lease.round, assign.model)};
        }());
    });
}

void NodeFiles::keep_run(std::uint64_t experiment, KeptRun run, std::function<void()> done) {
    auto shared = std::make_shared<const KeptRun>(std::move(run));
    thread_->post([this, experiment, shared, done = std::move(done)] {
        if (const auto kept = with_room([&] { return folder_.keep_run(experiment, *shared); }); !kept) {
            log_warn("node", "the round under way is not kept for a restart: " + kept.error().message);
        }
        done();
    });
}

/// Quickly made, with no state beside it or before it.
bool NodeFiles::is_made_again(const TrainingOutput& output) const {
    return output.sections.empty() && output.held.metrics.train_seconds < worth_a_file &&
           !folder_.keeps(output.held.experiment);
}

Status NodeFiles::write(const TrainingOutput& output, ByteView update) {
    return with_room([&] { return folder_.hold(output.held, output.sections, update); });
}

/// Those that have waited since before then. What cannot be written now is tried again at the next call.
void NodeFiles::write_unwritten(Instant until) {
    std::erase_if(unwritten_, [&](const auto& entry) {
        return entry.second.since <= until && write(entry.second.output, *entry.second.bytes).has_value();
    });
}

void NodeFiles::hold(TrainingOutput output, std::function<void(Status)> done) {
    auto shared = std::make_shared<TrainingOutput>(std::move(output));
    thread_->post([this, shared, done = std::move(done)] {
        const bool waits = is_made_again(*shared);
        auto held = waits ? Status()
                          : retry_.until_done("node", [&] { return write(*shared, shared->update); });
        if (held) {
            const auto digest = shared->held.digest;
            auto bytes = std::make_shared<const Bytes>(std::exchange(shared->update, {}));
            const auto experiment = shared->held.experiment;
            publish(experiment, digest, bytes);
            if (waits) {
                unwritten_[{experiment, digest}] = {std::move(*shared), std::move(bytes), real_now()};
            }
        }
        done(std::move(held));
    });
}

// Both on the files thread, where the table is written.
void NodeFiles::hold_segment(const Digest& segment, Bytes file) {
    auto shared = std::make_shared<const Bytes>(std::move(file));
    thread_->post([this, segment, shared = std::move(shared)] { publish(of_turns, segment, shared); });
}

void NodeFiles::let_go(const Digest& segment) {
    thread_->post([this, segment] { withdraw(of_turns, segment); });
}

void NodeFiles::start_turn(const Assign& assign, std::function<void(Result<TrainingStart>)> done) {
    thread_->post([this, model = assign.model, done = std::move(done)] {
        done([&]() -> Result<TrainingStart> {
            if (auto own = held_bytes(model)) {
                return TrainingStart{std::move(own), {}};
            }
            if (newest_ && newest_->digest == model) {
                return TrainingStart{newest_->bytes, {}};
            }
            TRY_ASSIGN(auto bytes, cache_.read(model));
            return TrainingStart{std::move(bytes), {}};
        }());
    });
}

std::shared_ptr<const Bytes> NodeFiles::held_bytes(const Digest& update) const {
    const auto held = held_.load();
    const auto known = held->find(update);
    return known == held->end() ? nullptr : known->second.bytes;
}

void NodeFiles::publish(std::uint64_t experiment, const Digest& update, std::shared_ptr<const Bytes> bytes) {
    auto next = std::make_shared<Held>(*held_.load());
    auto& held = (*next)[update];
    held.bytes = std::move(bytes);
    held.experiments.insert(experiment);
    held_.store(std::move(next));
}

void NodeFiles::withdraw(std::uint64_t experiment, const Digest& update) {
    auto next = std::make_shared<Held>(*held_.load());
    if (const auto held = next->find(update); held != next->end()) {
        held->second.experiments.erase(experiment);
        if (held->second.experiments.empty()) {
            next->erase(held);
        }
    }
    held_.store(std::move(next));
}

void NodeFiles::withdraw_all(std::uint64_t experiment) {
    const auto before = held_.load();  // each withdrawal makes another
    for (const auto& [update, held] : *before) {
        if (held.experiments.contains(experiment)) {
            withdraw(experiment, update);
        }
    }
}

}  // namespace causeway::node
