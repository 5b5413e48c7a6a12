// The resolved experiment: every key of an experiment file with its value, after presets, defaults and --set.
//
// A plain value that coordinator, clients, simulator and commands read; nothing here parses or checks. The initial
// values are the defaults. configs/fields.cpp describes each key (type, unit, bounds, doc) and points at its member
// here; reading, `show`, `--set` and docs/configuration.md are made from that table.
// configs/reader.h makes an Experiment from a file; configs/canonical.h prints one; configs/workload.h says what its
// nodes are sent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/time.h"
#include "kernels/tensor.h"

namespace causeway {

/// Members by number, or as a share of the cohort: `quorum = "70%"`, `cohort = 4`, `cohort = "all"` (a share of 1).
struct CountOrShare {
    enum class Kind { count, share };
    Kind kind = Kind::share;
    std::uint32_t count = 0;
    double share = 1;  // 0..1

    bool operator==(const CountOrShare&) const = default;
    /// How many of `members` this is: a count as it stands, a share rounded up; at least 1, may exceed `members`.
    [[nodiscard]] std::uint32_t of(std::uint32_t members) const;
};

/// Where a value came from; `show` says it and errors point to it.
struct Place {
    enum class Origin { defaulted, preset, file, command_line };
    Origin origin = Origin::defaulted;
    std::string name;        // the file's name, the preset's name, or the key of --set
    std::uint32_t line = 0;  // from 1, in a file only
    std::uint32_t column = 0;

    bool operator==(const Place&) const = default;
    /// `digits.toml:3:9`, `--set train.batch`, `preset fedavg`, `default`
    [[nodiscard]] std::string text() const;
};

/// How one process that holds all data hands it to clients (demo and simulate only).
struct PartitionOptions {
    std::string kind = "iid";  // iid | dirichlet | shards | quantity
    double alpha = 0.5;        // dirichlet: smaller is more skewed
    std::uint32_t labels = 2;  // shards: labels per client
    double power = 1;          // quantity: client i's share falls as i^-power
    bool operator==(const PartitionOptions&) const = default;
};

/// PyTorch's definitions; model/optimizer.h reads text().
struct OptimizerOptions {
    std::string kind = "sgd";  // sgd | adam | adamw | nadamw
    double learning_rate = 0.05;
    double momentum = 0;    // sgd
    bool nesterov = false;  // sgd
    double beta1 = 0.9;     // adam and its relatives, the rest too
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;  // all
    bool operator==(const OptimizerOptions&) const = default;
    /// "sgd learning_rate=0.05 momentum=0.9 ...": the keys of the kind, as model/optimizer.h reads them.
    [[nodiscard]] std::string text() const;
};

/// How the learning rate changes over the rounds; model/schedule.h.
struct ScheduleOptions {
    std::string kind = "constant";  // constant | cosine | step | two-phase
    double warmup = 0;              // rounds
    double every = 1;               // step: rounds
    double at = 0;                  // two-phase: round
    double factor = 0.1;            // cosine: at the end; step, two-phase: at each cut
    bool operator==(const ScheduleOptions&) const = default;
};

struct Experiment {
    struct Identity {
        std::string name;
        std::uint64_t seed = 1;
        std::uint32_t rounds = 20;
        std::uint32_t priority = 0;  // of those that wait in the queue the highest starts first
        bool operator==(const Identity&) const = default;
    } experiment;

    struct Data {
        std::string dataset;
        std::string label = "own";   // "last", a column's name or index; "own": the format's own labels
        Shape shape;                 // of one example, without the batch: [8, 8, 1]
        std::string scale = "none";  // "0..16 -> 0..1"
        double holdout = 0;          // share of the examples kept for evaluation, 0..0.9
        std::vector<std::string> categories;  // "sex: f, m": columns of words
        std::string missing = "refuse";       // refuse | drop | a number
        std::string header = "look";          // how tables are written, the words of data/table_form.h
        std::string separator = "look";
        std::string encoding = "look";
        std::string decimal = "look";
        std::string quote = "look";
        std::vector<std::string> augment;     // data/augment.h
        std::string normalise = "none";       // none | federated | federated MEANS DEVIATIONS: configs/statistics.h
        PartitionOptions partition;
        bool operator==(const Data&) const = default;
    } data;

    struct Model {
        std::vector<std::string> layers;  // as spelt in the file, checked by model/chain.h
        std::string loss = "cross-entropy";
        std::string batch_norm = "average";  // average | local | group: model/batch_norm_rule.h
        std::string init_from = "none";  // a model's name at the coordinator: configs/initial_model.h
        bool operator==(const Model&) const = default;
    } model;

    struct Train {
        OptimizerOptions optimizer;
        std::uint32_t batch = 32;  // examples; 0: full
        std::uint32_t local_epochs = 1;
        std::string optimizer_state = "reset";  // reset | keep
        double clip_norm = 0;                   // of the whole gradient; 0: no bound
        std::string compute = "f32";            // f32 | bf16 | winograd
        ScheduleOptions schedule;
        std::uint32_t microbatch = 0;          // examples at once, whose gradients add up to the batch's; 0: the batch
        std::uint32_t recompute = 0;           // layers of a block whose activations are computed again; 0: none
        std::string snapshot_every = "auto";   // model/snapshot_rule.h
        Duration step_deadline = Duration{0};  // 0: none
        bool operator==(const Train&) const = default;
    } train;

    struct Regime {
        std::string preset = "fedavg";
        std::vector<std::string> cut;   // a layer, "relu:2" or an index each; u-shaped: two. configs/split_plan.h
        std::uint32_t groups = 2;       // relays side by side
        std::string grouping = "time";  // split/grouping.h
        std::vector<std::vector<std::string>> group_lists;  // of `fixed`: nodes' names in the tour's order
        std::string regroup = "once";                       // once | every-round
        std::uint32_t overlap = 0;  // batches that a client sends before it has the gradient of an earlier one
        double smash_noise = 0;  // standard deviation of the noise on smashed data; 0: none
        bool operator==(const Regime&) const = default;
    } regime;

    // The four tables that a preset fills in.
    struct Mesh {
        std::uint32_t stages = 1;
        std::string replicas = "cohort";  // cohort: one per member of the round | groups | one
        bool operator==(const Mesh&) const = default;
    } mesh;
    struct Flow {
        std::string kind = "local-epochs";  // split/flow.h
        bool operator==(const Flow&) const = default;
    } flow;
    struct Sync {
        std::string aggregator = "mean";                      // aggregation/
        CountOrShare cohort;                                  // of the members with a session when a round is drawn
        std::string selection = "uniform";                    // who, when not all: uniform | weighted | availability
        CountOrShare quorum{.share = 0.7};                    // of the cohort as drawn
        std::uint32_t min_clients = 1;                        // sessions that must be there before a round is drawn
        Duration start_timeout = std::chrono::minutes(10);    // waiting for min_clients no longer than this
        Duration straggler_deadline = std::chrono::hours(1);  // per round, 0: none
        Duration rejoin = std::chrono::seconds(60);  // a silent member may come back within it, 0: dropped at once
        std::string lost_client = "wait";            // wait | skip: what a relay does about a client that fell silent
        std::string handover_copy = "coordinator";   // coordinator | none: who else holds a host's segment
        bool operator==(const Sync&) const = default;
    } sync;
    struct Codec {
        std::string uplink = "dense";  // compression/
        std::string downlink = "dense";
        bool operator==(const Codec&) const = default;
    } codec;

    struct Evaluation {
        std::string where = "coordinator";  // coordinator | clients | both | none
        std::string dataset;                // resolved: data.dataset unless the file names another
        std::uint32_t every = 1;            // rounds
        double holdout = 0.2;               // share that clients keep from training, to evaluate on
        std::string metric = "accuracy";    // configs/figures.h: by which a model is the best
        std::uint32_t patience = 0;         // rounds without a better model before the end; 0: never
        [[nodiscard]] bool at_coordinator() const { return where == "coordinator" || where == "both"; }
        [[nodiscard]] bool at_clients() const { return where == "clients" || where == "both"; }
        bool operator==(const Evaluation&) const = default;
    } evaluation;

    /// By key path ("train.batch"): where the value came from. Every field of the table has one after reading.
    std::map<std::string, Place> places;

    /// Equal values; where they came from does not count.
    bool operator==(const Experiment& other) const;
};

}  // namespace causeway
