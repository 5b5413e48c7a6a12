// The rows. Bounds are wide enough for any sensible use and narrow enough that a slip of the keyboard (a learning rate
// of 50, a million local epochs) or an overflow shows at once. A default is the member's initial value in experiment.h.
//
// The names that a text may take (optimizers, partitions, flows, codecs, aggregators) come from the registries of their
// folders, so a new entry there needs no change here. A parameter of an optimizer or a partition does need a row; a
// test compares these rows with the registries.
#include "configs/fields.h"

#include <algorithm>
#include <iterator>

#include "common/text.h"
#include "configs/checks.h"
#include "configs/figures.h"
#include "configs/presets.h"
#include "model/schedule.h"

// The member of an Experiment as a function, because pointers to nested members do not compose.
#define MEMBER(member) (+[](Experiment& e) -> auto& { return e.member; })

namespace causeway {

namespace {

constexpr double max_count = 1'000'000;   // rounds, members, epochs: 1e6 of anything is a mistake
constexpr double max_groups = 1024;         // a host's copies of its segment: far beyond any memory's worth
constexpr double max_seconds = 30 * 86400;  // a month: longer than any wait that is meant
constexpr std::size_t longest_numbers = 40 * 1024;  // two for each of 1024 columns
constexpr double max_seed = 9007199254740991.0;  // the whole numbers that a double, and so JSON, holds exactly

std::vector<Field> experiment_fields() {
    return {
        {.path = "experiment.name", .access = MEMBER(experiment.name), .presence = Presence::required,
         .check = check_name, .doc = "What people call it; letters, digits, dots, dashes, underscores.",
         .example = R"("digits-fedavg")"},
        {.path = "experiment.seed", .access = MEMBER(experiment.seed), .most = max_seed,
         .doc = "Every random choice follows from it: initial model, batch order, cohorts, partition.",
         .example = "7"},
        {.path = "experiment.rounds", .access = MEMBER(experiment.rounds), .least = 1, .most = max_count,
         .unit = "rounds", .doc = "How many rounds are committed before the experiment has succeeded.",
         .example = "20"},
        {.path = "experiment.priority", .access = MEMBER(experiment.priority), .most = 1000,
         .doc = "Of the experiments that wait in the queue the one with the highest starts first, equals in the order "
                "of submission.",
         .example = "10"},
    };
}

/// Only the label, shape and scale travel to clients; holdout and partition matter where one process has all data.
std::vector<Field> data_fields() {
    return {
        {.path = "data.dataset", .access = MEMBER(data.dataset), .presence = Presence::required, .check = check_name,
         .doc = "The name that nodes map to a path with `--data NAME=PATH`.", .example = R"("digits")"},
        {.path = "data.label", .access = MEMBER(data.label), .takes_number = true,
         .doc = "The column that holds the label: `last`, a column's name, or its index from 0; `own`: the labels that "
                "the format keeps apart (IDX, NPY).",
         .example = R"("last")"},
        {.path = "data.shape", .access = MEMBER(data.shape), .presence = Presence::required, .least = 1, .most = 8,
         .doc = "The shape of one example: height, width, channels for images.", .example = "[8, 8, 1]"},
        {.path = "data.scale", .access = MEMBER(data.scale), .check = check_scale,
         .doc = "How raw values become inputs, `none` or `LOW..HIGH -> LOW..HIGH`.", .example = R"("0..16 -> 0..1")"},
        {.path = "data.categories", .access = MEMBER(data.categories), .most = 1024, .check = check_category,
         .doc = "Columns of a table that hold words, each as `COLUMN: WORD, WORD`: such a column becomes one value per "
                "word, 1 for the word that stands there; a word that is not listed is an error.",
         .example = R"(["sex: f, m"])"},
        {.path = "data.missing", .access = MEMBER(data.missing), .check = check_missing,
         .doc = "What becomes of a cell that is empty, NA, N/A, NaN, null or ?: `refuse` is an error with its place, "
                "`drop` leaves the row out, a number stands there instead (before `scale`; of words none).",
         .example = R"("drop")"},
        {.path = "data.header", .access = MEMBER(data.header), .choices = {"look", "yes", "no"},
         .doc = "Whether a table's first row has the columns' names; `look`: as the rows show, and doubt is an error. "
                "A manifest's own words go first, here and in the next four.",
         .example = R"("yes")"},
        {.path = "data.separator", .access = MEMBER(data.separator), .check = check_separator,
         .doc = "What stands between a table's cells: `,`, `;`, `|`, `tab` or another sign; `look`: as the rows "
                "show.",
         .example = R"(";")"},
        {.path = "data.encoding", .access = MEMBER(data.encoding),
         .choices = {"look", "utf-8", "utf-16le", "utf-16be", "cp1252", "latin-1"},
         .doc = "How a table's text is encoded; `look`: by its byte-order mark, or UTF-8.", .example = R"("cp1252")"},
        {.path = "data.decimal", .access = MEMBER(data.decimal), .choices = {"look", ".", ","},
         .doc = "The decimal mark of a table's numbers; `look`: as the numbers show, and doubt is an error.",
         .example = R"(",")"},
        {.path = "data.quote", .access = MEMBER(data.quote), .choices = {"look", "\"", "'", "none"},
         .doc = "What a table's cells are quoted with; `look` is the double quote.", .example = R"("none")"},
        {.path = "data.augment", .access = MEMBER(data.augment), .most = 4, .longest = longest_numbers,
         .check = check_augment,
         .doc = "What is done to examples, in this order: `crop N` (moved by up to N pixels, in training), `flip` "
                "(every second one mirrored, in training), `normalise MEAN DEVIATION` (everywhere, after `scale`; one "
                "number, or one for each of the last dimension: `0.5,0.4,0.4`).",
         .example = R"(["crop 4", "flip"])"},
        {.path = "data.normalise", .access = MEMBER(data.normalise), .longest = longest_numbers,
         .check = check_normalise,
         .doc = "`federated`: before round 1 the clients send exact sums of their columns (of an image's channels), "
                "whose mean and deviation over all of them bring every value to mean 0 and deviation 1, after `scale`; "
                "their policies must allow it (`share_statistics`). `none`: values stay as they are. A stored "
                "experiment has the numbers here: `federated MEANS DEVIATIONS`.",
         .example = R"("federated")"},
        {.path = "data.holdout", .access = MEMBER(data.holdout), .style = NumberStyle::share, .most = 0.9,
         .doc = "The share of the examples kept for evaluation, drawn by the seed; only in `demo` and `simulate`, "
                "where one process hands out the data.",
         .example = R"("20%")"},
        {.path = "data.partition.kind", .access = MEMBER(data.partition.kind),
         .choices = known_partitions(),
         .doc = "How `demo` and `simulate` hand the examples to clients.", .example = R"("dirichlet")"},
        {.path = "data.partition.alpha", .access = MEMBER(data.partition.alpha), .least = 1e-3, .most = 1e6,
         .only_with = "data.partition.kind=dirichlet",
         .doc = "Concentration of each label's shares over the clients: 0.1 is very skewed, 100 nearly even.",
         .example = "0.5"},
        {.path = "data.partition.labels", .access = MEMBER(data.partition.labels), .least = 1, .most = 65536,
         .only_with = "data.partition.kind=shards", .unit = "labels", .doc = "How many labels each client sees.",
         .example = "2"},
        {.path = "data.partition.power", .access = MEMBER(data.partition.power), .most = 10,
         .only_with = "data.partition.kind=quantity",
         .doc = "Client i holds a share that falls as i to the minus this power; 0 is even.", .example = "1.5"},
    };
}

/// What a layer's text may say is known to model/ alone; find_inconsistencies asks it.
std::vector<Field> model_fields() {
    return {
        {.path = "model.layers", .access = MEMBER(model.layers), .presence = Presence::required, .least = 1,
         .most = 1024, .doc = "The chain of layers, from the input to the scores of the loss.",
         .example = R"(["flatten", "dense 64", "relu", "dense 10"])"},
        {.path = "model.loss", .access = MEMBER(model.loss), .check = check_loss,
         .doc = "What training makes small: `cross-entropy` (a class per example; options `smoothing=SHARE` and "
                "`weights=W,W,...`, one a class), `mean-squared-error` (numbers) or `binary-cross-entropy` (several "
                "yes-or-no labels an example).",
         .example = R"("cross-entropy smoothing=0.1")"},
        {.path = "model.batch_norm", .access = MEMBER(model.batch_norm), .choices = {"average", "local", "group"},
         .doc = "What becomes of `batchnorm`, also in `residual`: scale, shift and statistics are averaged like all "
                "parameters (`average`), stay with each client and never travel (`local`; the model is then evaluated "
                "at the clients), or group norms take its place (`group`: at most 32 groups of at least 4 channels). "
                "Layers that say `local` or `groupnorm` themselves are left as they are.",
         .example = R"("local")"},
        {.path = "model.init_from", .access = MEMBER(model.init_from), .check = check_init_from,
         .doc = "The model to start from: a name that the coordinator maps to a safetensors file with `--model "
                "NAME=PATH`, or `none`: from the seed. `NAME@SHA256` accepts that file only.",
         .example = R"("digits-2025")"},
    };
}

constexpr auto whole_models = "flow.kind=local-epochs";  // a flow that orders a batch in these ways

/// The optimizer is a table in the file, so that each of its numbers has a place of its own for errors and --set.
std::vector<Field> train_fields() {
    return {
        {.path = "train.optimizer.kind", .access = MEMBER(train.optimizer.kind), .choices = known_optimizers(),
         .doc = "The clients' optimizer, by PyTorch's definition.", .example = R"("sgd")"},
        {.path = "train.optimizer.learning_rate", .access = MEMBER(train.optimizer.learning_rate), .least = 1e-9,
         .most = 10, .doc = "The step size; when left out, 0.05 for sgd and 0.001 for the others.", .example = "0.1"},
        {.path = "train.optimizer.momentum", .access = MEMBER(train.optimizer.momentum), .most = 0.999999,
         .only_with = "train.optimizer.kind=sgd", .doc = "How much of the last step is carried on; 0 is plain SGD.",
         .example = "0.9"},
        {.path = "train.optimizer.nesterov", .access = MEMBER(train.optimizer.nesterov),
         .only_with = "train.optimizer.kind=sgd", .doc = "Look ahead along the momentum.", .example = "true"},
        {.path = "train.optimizer.beta1", .access = MEMBER(train.optimizer.beta1), .most = 0.999999,
         .only_with = "train.optimizer.kind=adam|adamw|nadamw", .doc = "Decay of the mean of gradients.",
         .example = "0.9"},
        {.path = "train.optimizer.beta2", .access = MEMBER(train.optimizer.beta2), .most = 0.999999,
         .only_with = "train.optimizer.kind=adam|adamw|nadamw", .doc = "Decay of the mean of squared gradients.",
         .example = "0.999"},
        {.path = "train.optimizer.epsilon", .access = MEMBER(train.optimizer.epsilon), .least = 1e-12, .most = 1,
         .only_with = "train.optimizer.kind=adam|adamw|nadamw", .doc = "Added to the root before dividing.",
         .example = "1e-8"},
        {.path = "train.optimizer.weight_decay", .access = MEMBER(train.optimizer.weight_decay), .most = 1,
         .doc = "Pull of the parameters towards 0: added to the gradient (sgd, adam), or apart from it (adamw, "
                "nadamw).",
         .example = "0.0001"},
        {.path = "train.batch", .access = MEMBER(train.batch), .least = 1, .most = max_count, .word = "full",
         .unit = "examples", .doc = "Examples per optimizer step; a short last batch is kept.", .example = "32"},
        {.path = "train.local_epochs", .access = MEMBER(train.local_epochs), .least = 1, .most = 10'000,
         .unit = "epochs", .doc = "Passes over a client's own data in one round.", .example = "3"},
        {.path = "train.optimizer_state", .access = MEMBER(train.optimizer_state),
         .choices = {"reset", "keep"}, .check = check_optimizer_state,
         .doc = "What becomes of a client's optimizer state (momentum and the like) when models are synchronised.",
         .example = R"("reset")"},
        {.path = "train.compute", .access = MEMBER(train.compute), .choices = {"f32", "bf16", "winograd"},
         .doc = "How matrix products and convolutions are computed while clients train. `bf16` rounds their factors to "
                "16 bits: about twice as fast on processors with avx512_bf16 or amx_bf16; a node without refuses the "
                "work. `winograd` stays in f32 and takes convolutions 3x3 of 32 channels and more in about half the "
                "time where the processor has AVX-512, with ten times their rounding errors. Parameters, sums, what "
                "travels and evaluation are plain f32 always.",
         .example = R"("bf16")"},
        {.path = "train.clip_norm", .access = MEMBER(train.clip_norm), .most = 1e6,
         .doc = "Gradients whose norm over all layers is larger are scaled down to it; 0: never.", .example = "1"},
        {.path = "train.schedule.kind", .access = MEMBER(train.schedule.kind), .choices = schedule_names(),
         .doc = "How the learning rate changes over the rounds (and inside a round with its steps): `cosine` falls to "
                "`factor` of it at the last round, `step` is multiplied by `factor` every so many rounds, `two-phase` "
                "once, at a round.",
         .example = R"("cosine")"},
        {.path = "train.schedule.warmup", .access = MEMBER(train.schedule.warmup), .most = max_count, .unit = "rounds",
         .doc = "Rounds in which the learning rate rises from 0, whatever the schedule.", .example = "2"},
        {.path = "train.schedule.every", .access = MEMBER(train.schedule.every), .least = 0.01, .most = max_count,
         .only_with = "train.schedule.kind=step", .unit = "rounds", .doc = "Rounds from one cut to the next.",
         .example = "10"},
        {.path = "train.schedule.at", .access = MEMBER(train.schedule.at), .most = max_count,
         .only_with = "train.schedule.kind=two-phase", .unit = "rounds", .doc = "The rounds before the cut.",
         .example = "15"},
        {.path = "train.schedule.factor", .access = MEMBER(train.schedule.factor), .most = 1,
         .only_with = "train.schedule.kind=cosine|step|two-phase",
         .doc = "What a cut leaves of the learning rate; with `cosine` what is left at the end.", .example = "0.1"},
    };
}

/// How the work of a batch is ordered.
std::vector<Field> batch_fields() {
    return {
        {.path = "train.microbatch", .access = MEMBER(train.microbatch), .least = 1, .most = max_count,
         .word = "batch", .only_with = whole_models, .unit = "examples",
         .doc = "Examples that are computed at once: a batch's gradient is the sum of its microbatches', so memory is "
                "a microbatch's. `batch`: all of them.",
         .example = "8"},
        {.path = "train.recompute", .access = MEMBER(train.recompute), .least = 1, .most = 1024, .word = "none",
         .only_with = whole_models, .unit = "layers",
         .doc = "Activations inside blocks of so many layers are given up and computed again for the backward pass: "
                "less memory, a third more time, the same bits. `none`: all are kept.",
         .example = "1"},
        {.path = "train.snapshot_every", .access = MEMBER(train.snapshot_every), .check = check_snapshot_every,
         .doc = "How often a client keeps a round under way, so that it goes on there after a restart: a time (`30s`), "
                "`N batches`, `off`, or `auto`: every minute at most, and so seldom that it costs a fiftieth of the "
                "time; rounds that are shorter keep nothing.",
         .example = R"("100 batches")"},
        {.path = "train.step_deadline", .access = MEMBER(train.step_deadline), .most = max_seconds,
         .only_with = whole_models,
         .doc = "A client whose step takes longer gives the round up, and is left out of it; `0s`: it takes its time.",
         .example = R"("10s")"},
    };
}

// What else a key of split learning needs, said to whom wrote it with another preset.
constexpr auto split_hint = "choose preset = \"split\", \"u-shaped\", \"splitfed-v1\", \"splitfed-v2\" or \"gsfl\"";
constexpr auto relay_hint = "choose preset = \"gsfl\", \"split\" or \"u-shaped\"";
constexpr auto split_flows = "flow.kind=split|u-shaped|batch-major";

/// Where the chain is cut and who follows whom; what a cut means to a model is a joint check (split_checks.h).
std::vector<Field> split_fields() {
    return {
        {.path = "regime.cut", .access = MEMBER(regime.cut), .presence = Presence::required,
         .list = ListStyle::one_or_list, .least = 1, .most = 2, .only_with = split_flows, .hint = split_hint,
         .doc = "The layer after which the client's segment ends: a kind (`maxpool`: after the first one), one of "
                "several (`relu:2`), or the number of layers before it (`6`). `u-shaped` takes two: the second is "
                "where the client's last segment begins.",
         .example = R"("maxpool")"},
        {.path = "regime.groups", .access = MEMBER(regime.groups), .least = 1, .most = max_groups,
         .only_with = "mesh.replicas=groups", .hint = "choose preset = \"gsfl\"", .unit = "groups",
         .doc = "Relays side by side, each with its own copy of the host's segment: 1 is split learning, one client a "
                "group is `splitfed-v1`.",
         .example = "3"},
        {.path = "regime.grouping", .access = MEMBER(regime.grouping), .choices = known_groupings(),
         .only_with = "mesh.replicas=groups|one", .hint = relay_hint,
         .doc = "Who trains in which group and in which order: groups that take equally long (`time`), with labels "
                "mixed as everybody's together (`labels`, where policies share them), with clients behind one uplink "
                "in one group (`link`), by the seed (`random`), or `group_lists` (`fixed`).",
         .example = R"("time")"},
        {.path = "regime.group_lists", .access = MEMBER(regime.group_lists), .presence = Presence::required,
         .least = 1, .most = max_groups, .only_with = "regime.grouping=fixed",
         .hint = "the lists are the groups, written by hand",
         .doc = "The groups by nodes' names, each in the order in which its clients train; with it `groups` may be "
                "left out.",
         .example = R"([["ann", "bob"], ["carol"]])"},
        {.path = "regime.regroup", .access = MEMBER(regime.regroup), .choices = {"once", "every-round"},
         .only_with = "mesh.replicas=groups|one", .hint = relay_hint,
         .doc = "When groups are made: `once`, and again only for a round with other clients, or `every-round` from "
                "the newest measurements.",
         .example = R"("every-round")"},
        {.path = "regime.overlap", .access = MEMBER(regime.overlap), .most = 16, .only_with = split_flows,
         .hint = split_hint, .unit = "batches",
         .doc = "Batches that a client sends on before it has the gradient of an earlier one, so that it computes "
                "while the host does: with 1 the forward of each batch, and its backward, see the parameters of one "
                "step before. 0 waits for each gradient and is exact.",
         .example = "1"},
        {.path = "regime.smash_noise", .access = MEMBER(regime.smash_noise), .least = 0, .most = 1000,
         .only_with = split_flows, .hint = split_hint,
         .doc = "The standard deviation of Gaussian noise that clients add to every value that they send of their "
                "examples (smashed data): a host can tell less of the inputs, and the model learns from noisy values. "
                "`experiment leakage` shows what a scale hides.",
         .example = "0.5"},
    };
}

/// Bounds here are those of the flows that this version has.
std::vector<Field> regime_fields() {
    std::vector<Field> fields = {
        {.path = "regime.preset", .access = MEMBER(regime.preset), .choices = available_presets(),
         .check = check_preset, .doc = "The regime by name; it fills in [mesh], [flow], [sync] and [codec].",
         .example = R"("fedavg")"},
    };
    std::ranges::move(split_fields(), std::back_inserter(fields));
    const std::vector<Field> expanded = {
        {.path = "mesh.stages", .access = MEMBER(mesh.stages), .least = 1, .most = 3, .unit = "stages",
         .doc = "Segments that the chain of layers is cut into.", .example = "1"},
        {.path = "mesh.replicas", .access = MEMBER(mesh.replicas), .choices = {"cohort", "groups", "one"},
         .doc = "How often each stage is there: once per member of the round's cohort, per group, or once.",
         .example = R"("cohort")"},
        {.path = "flow.kind", .access = MEMBER(flow.kind), .choices = known_flows(),
         .doc = "How batches move along the stages.", .example = R"("local-epochs")"},
    };
    fields.insert(fields.end(), expanded.begin(), expanded.end());
    return fields;
}

/// Time limits have defaults that nobody needs to tune: a slow link that moves is never late by them.
std::vector<Field> sync_fields() {
    return {
        {.path = "sync.aggregator", .access = MEMBER(sync.aggregator),
         .choices = known_aggregators(), .check = check_aggregator,
         .doc = "The rule that makes one model of many updates.", .example = R"("mean")"},
        {.path = "sync.cohort", .access = MEMBER(sync.cohort), .least = 1, .most = max_count, .unit = "members",
         .doc = "Who is drawn for a round: `all`, a count or a share of the clients in session.",
         .example = R"("50%")"},
        {.path = "sync.selection", .access = MEMBER(sync.selection),
         .choices = {"uniform", "weighted", "availability"},
         .doc = "Who is drawn when the cohort is not all: every client alike, in proportion to the examples that it "
                "declares, or who has waited longest since it was last drawn.",
         .example = R"("weighted")"},
        {.path = "sync.quorum", .access = MEMBER(sync.quorum), .least = 1, .most = max_count, .unit = "members",
         .doc = "How much of the cohort as drawn must be counted, or the round fails.", .example = R"("70%")"},
        {.path = "sync.min_clients", .access = MEMBER(sync.min_clients), .least = 1, .most = max_count,
         .unit = "clients",
         .doc = "Clients that must be in session before a round is drawn; when left out, enough that no group stays "
                "empty and that a `quorum` given as a count can be reached.",
         .example = "3"},
        {.path = "sync.start_timeout", .access = MEMBER(sync.start_timeout), .least = 1, .most = max_seconds,
         .doc = "How long to wait for `min_clients` before the experiment fails.", .example = R"("10m")"},
        {.path = "sync.straggler_deadline", .access = MEMBER(sync.straggler_deadline), .most = max_seconds,
         .doc = "A round closes this long after its start at the latest; `0s`: it waits for all. Who was late is tried "
                "again later, and not waited for.",
         .example = R"("30s")"},
        {.path = "sync.rejoin", .access = MEMBER(sync.rejoin), .most = max_seconds,
         .doc = "A silent client may come back within this time and go on; `0s`: it is dropped at once.",
         .example = R"("60s")"},
        {.path = "sync.lost_client", .access = MEMBER(sync.lost_client), .choices = {"wait", "skip"},
         .only_with = split_flows, .hint = split_hint,
         .doc = "When a client falls silent in a relay: `wait` for it as long as `rejoin` says, or `skip` it at once. "
                "Its group then goes on from the last hand-over.",
         .example = R"("skip")"},
        {.path = "sync.handover_copy", .access = MEMBER(sync.handover_copy), .choices = {"coordinator", "none"},
         .only_with = split_flows, .hint = split_hint,
         .doc = "Who holds the host's segment besides the host after each turn: the `coordinator`, so that another "
                "host can go on from there, or `none`, which sends less and begins the group's round anew when its "
                "host is lost.",
         .example = R"("none")"},
        {.path = "codec.uplink", .access = MEMBER(codec.uplink), .choices = known_codecs(),
         .check = check_codec,
         .doc = "How updates are compressed on their way to the coordinator.", .example = R"("dense")"},
        {.path = "codec.downlink", .access = MEMBER(codec.downlink), .choices = known_codecs(),
         .check = check_codec,
         .doc = "How models are compressed on their way to the clients.", .example = R"("dense")"},
    };
}

std::vector<Field> evaluation_fields() {
    return {
        {.path = "evaluation.where", .access = MEMBER(evaluation.where),
         .choices = {"coordinator", "clients", "both", "none"},
         .doc = "Who measures the model on held-out data after a commit: `coordinator` on its own set, `clients` each "
                "on its held-out part (weighted by examples), `both` (the coordinator's figures count), or `none`.",
         .example = R"("clients")"},
        {.path = "evaluation.dataset", .access = MEMBER(evaluation.dataset), .check = check_name,
         .doc = "The held-out set's name at the coordinator; when left out, that of [data].",
         .example = R"("digits")"},
        {.path = "evaluation.every", .access = MEMBER(evaluation.every), .least = 1, .most = max_count,
         .unit = "rounds", .doc = "Evaluate after each so many rounds, and after the last one.", .example = "1"},
        {.path = "evaluation.holdout", .access = MEMBER(evaluation.holdout), .style = NumberStyle::share, .most = 0.9,
         .doc = "The share of its own examples that each client keeps from training and evaluates on, drawn by the "
                "seed; only with `where` of `clients` or `both`, and where no manifest holds out a part.",
         .example = R"("20%")"},
        {.path = "evaluation.metric", .access = MEMBER(evaluation.metric), .choices = metric_names(),
         .doc = "By which figure a model is the best (`export --best` fetches it): `accuracy`, `macro_f1` and `auc` "
                "(two classes) are better when greater, `loss`, `mae` and `rmse` (both for `mean-squared-error`) when "
                "smaller. Left out, it is `accuracy`, or `loss` for `mean-squared-error`.",
         .example = R"("macro_f1")"},
        {.path = "evaluation.patience", .access = MEMBER(evaluation.patience), .least = 1, .most = max_count,
         .word = "off", .unit = "rounds",
         .doc = "End as `succeeded` (`early_stop`) once so many rounds have brought no better model; each evaluated "
                "round then waits for its evaluation before the next begins. `off`: all rounds are run.",
         .example = "5"},
    };
}

std::vector<Field> make_fields() {
    std::vector<Field> fields;
    for (auto part : {experiment_fields(), data_fields(), model_fields(), train_fields(), batch_fields(),
                      regime_fields(), sync_fields(), evaluation_fields()}) {
        fields.insert(fields.end(), part.begin(), part.end());
    }
    return fields;
}

/// The row that `only_with` names, and the values it may have, with `|` between them.
const Field& field_that_governs(const Field& field, std::string_view& value) {
    const auto equals = field.only_with.find('=');
    value = std::string_view(field.only_with).substr(equals + 1);
    const auto* governing = find_field(std::string_view(field.only_with).substr(0, equals));
    ASSERT(governing != nullptr);
    return *governing;
}

}  // namespace

std::span<const Field> all_fields() {
    static const std::vector<Field> fields = make_fields();
    return fields;
}

const Field* find_field(std::string_view path) {
    const auto fields = all_fields();
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.path == path; });
    return found == fields.end() ? nullptr : &*found;
}

std::span<const TableDoc> all_tables() {
    static const std::vector<TableDoc> tables = {
        {"experiment", "What this run is called and how long it lasts."},
        {"data", "What is trained on. The data itself stays on the nodes."},
        {"model", "The network, as a chain of layers."},
        {"train", "What a client does in one round."},
        {"regime", "Who trains what, by name."},
        {"mesh", "Filled in by the preset: segments across, replicas down."},
        {"flow", "Filled in by the preset: how batches move."},
        {"sync", "Who agrees on what, when, and who may be missing."},
        {"codec", "What travels, and how it is compressed."},
        {"evaluation", "How good the model is, measured after the commit; it never delays a round."},
    };
    return tables;
}

bool applies(const Field& field, const Experiment& experiment) {
    if (field.only_with.empty()) {
        return true;
    }
    std::string_view wanted;
    const auto& governing = field_that_governs(field, wanted);
    const auto* text = std::get_if<std::string& (*)(Experiment&)>(&governing.access);
    ASSERT(text != nullptr);
    const auto& value = (*text)(const_cast<Experiment&>(experiment));  // the accessor only forms a reference
    const auto allowed = split_text(wanted, '|');
    return std::ranges::find(allowed, value) != allowed.end();
}

}  // namespace causeway
