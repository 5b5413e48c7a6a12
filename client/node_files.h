// The node's disk on its own thread: state folder and model cache, and the updates that the coordinator may pull.
//
// Every call posts; answers come through callbacks from the files thread. An update that is held is also kept in
// memory, published as an immutable map, so that the transfer thread serves it without asking. A small model comes and
// is used in memory; it reaches the cache on disk, where it only matters after a restart, when nothing newer has come
// for a while. So does an update that was made in less time than a disk takes for it and that no state goes with:
// whoever has lost it makes the same one again, so flushing it would only hold up each round by two flushes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "client/audit_heads.h"
#include "client/cache.h"
#include "client/effects.h"
#include "client/node_limits.h"
#include "client/training_work.h"
#include "common/published.h"
#include "common/retry.h"
#include "common/work_thread.h"

namespace causeway::node {

class NodeFiles {
public:
    static Result<std::unique_ptr<NodeFiles>> open(const std::filesystem::path& state,
                                                   std::shared_ptr<NodeLimits> limits);
    NodeFiles(StateFolder folder, ModelCache cache, AuditHeads heads, std::shared_ptr<NodeLimits> limits);
    ~NodeFiles();
    NodeFiles(const NodeFiles&) = delete;
    NodeFiles& operator=(const NodeFiles&) = delete;

    /// Before anything is posted: what waits for the coordinator's word. errors: corrupt, io
    Result<std::vector<HeldUpdate>> load_held();
    /// Likewise: the experiments whose state is kept.
    [[nodiscard]] std::vector<std::uint64_t> kept() const { return folder_.kept(); }

    void apply(std::vector<Persist> persists, std::function<void()> done);
    /// Whether it is here; where it is not, there is room for it now. errors of the answer: io `cache_full`
    void find_model(const Digest& model, std::uint64_t bytes, std::function<void(Result<bool>)> done);
    /// A cached model, and the base to go with it; no run under way.
    ///
    /// errors of the answer  not_found `not_cached`; corrupt; io
    void start_evaluation(const Assign& assign, std::function<void(Result<TrainingStart>)> done);
    /// Takes a fetched and verified file into the cache. Downloads beside it that are not `under_way` go: nobody will
    /// ask for them again.
    void adopt_model(const Digest& model, const std::filesystem::path& file, std::vector<Digest> under_way,
                     std::function<void(Status)> done);
    /// Takes a fetched and verified model that is in memory: what is posted after it finds it.
    void adopt_model(const Digest& model, SharedBytes bytes);
    /// Now and then: writes the model that came in memory, unless a newer one is about to replace it, and updates whose
    /// verdict does not come.
    void settle();
    /// The disk is full where the cache cannot see it: all models but the last used go.
    void make_room();
    void start_training(const Assign& assign, std::function<void(Result<TrainingStart>)> done);
    /// A training under way, for a restart. A full disk loses it: `done` is called all the same.
    void keep_run(std::uint64_t experiment, KeptRun run, std::function<void()> done);
    /// Durable when `done` is called without an error, where there is state or work to be lost; until then tried again
    /// while the disk is full.
    void hold(TrainingOutput output, std::function<void(Status)> done);

    /// A turn's segment: in memory until it is let go; the coordinator pulls it, and the next turn may start from it.
    ///
    /// threads  any
    void hold_segment(const Digest& segment, Bytes file);
    void let_go(const Digest& segment);
    void start_turn(const Assign& assign, std::function<void(Result<TrainingStart>)> done);

    /// What came with `committed`. A full disk loses it; the next one brings it again.
    void note_audit_head(const std::string& federation, const Digest& head);

    /// threads  thread-safe. nullptr: no such update is held
    [[nodiscard]] std::shared_ptr<const Bytes> held_bytes(const Digest& update) const;

private:
    /// Equal updates of two experiments are one, until neither holds it.
    struct HeldBytes {
        std::shared_ptr<const Bytes> bytes;
        std::set<std::uint64_t> experiments;
    };
    using Held = std::map<Digest, HeldBytes>;

    Result<SharedBytes> model_bytes(const Digest& model);
    Status with_room(const std::function<Status()>& store);
    Status apply_one(const ResolvePending& what);
    Status apply_one(const ForgetExperiment& what);
    void write_newest();
    [[nodiscard]] Status write(const TrainingOutput& output, ByteView update);
    [[nodiscard]] bool is_made_again(const TrainingOutput& output) const;
    void write_unwritten(Instant until);
    void publish(std::uint64_t experiment, const Digest& update, std::shared_ptr<const Bytes> bytes);
    void withdraw(std::uint64_t experiment, const Digest& update);
    void withdraw_all(std::uint64_t experiment);

    StateFolder folder_;  // files thread
    ModelCache cache_;    // files thread
    AuditHeads heads_;    // files thread
    std::shared_ptr<NodeLimits> limits_;
    struct NewestModel {
        Digest digest;
        SharedBytes bytes;
        Instant since{};
        bool written = false;
    };
    std::optional<NewestModel> newest_;  // files thread
    struct UnwrittenUpdate {
        TrainingOutput output;  // its update is in `bytes`
        std::shared_ptr<const Bytes> bytes;
        Instant since{};
    };
    std::map<std::pair<std::uint64_t, Digest>, UnwrittenUpdate> unwritten_;  // files thread; by experiment
    Published<Held> held_;
    Retry retry_;
    std::unique_ptr<WorkThread> thread_;
};

}  // namespace causeway::node
