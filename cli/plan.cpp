// `causeway plan`: what a round would take in each regime, at every cut and group count, and which one to choose.
//
// Predictions are the cost model's (split/cost_model.h) from each client's link and speed and from this machine's time
// for each layer, which a short run measures here. The first table has the times by cut and group count, the second
// the best of each regime with its bytes and memory. Main thread.
#include <algorithm>

#include <fmt/format.h>

#include "cli/experiment_file.h"
#include "cli/layer_times.h"
#include "cli/plan_commands.h"
#include "cli/plan_profile.h"
#include "common/json_lists.h"
#include "common/text.h"
#include "configs/split_plan.h"
#include "configs/workload.h"

namespace causeway::cli {
namespace {

constexpr std::size_t most_counts = 7;  // columns of the first table, within 100 characters
const std::vector<std::string> regimes = {"federated", "split", "splitfed-v1", "splitfed-v2", "gsfl"};

/// Everything that a plan is made from; the chain lives beside the input that refers to it.
struct PlanSubject {
    Experiment experiment;
    Chain chain;
    PlanCast cast;
    std::uint32_t batch = 0;
    LayerTimes times;
    double step_seconds = 0;  // of one batch here
};

Result<std::uint64_t> size_option(std::string_view option, const std::string& text) {
    if (text.empty()) {
        return 0;
    }
    const auto bytes = parse_size(text);
    if (!bytes) {
        return fail(ErrorKind::invalid, "usage", fmt::format("{} {}: write a size, such as 8GB", option, text));
    }
    return *bytes;
}

double total(const LayerTimes& times) {
    double sum = times.loss;
    for (std::size_t i = 0; i < times.forward.size(); ++i) {
        sum += times.forward[i] + times.backward[i] + times.step[i];
    }
    return sum;
}

/// The shares of the layers stay as measured.
void scale_to(LayerTimes& times, double step_seconds) {
    const double factor = step_seconds / total(times);
    for (auto* part : {&times.forward, &times.backward, &times.step}) {
        for (auto& value : *part) {
            value *= factor;
        }
    }
    times.loss *= factor;
}

/// A full batch is as large as the largest client's data.
std::uint32_t batch_of(const Experiment& experiment, const PlanCast& cast) {
    std::uint64_t largest = 1;
    for (const auto& client : cast.clients) {
        largest = std::max(largest, client.examples);
    }
    const auto batch = experiment.train.batch == 0 ? largest : experiment.train.batch;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(batch, 1'000'000));
}

Result<PlanSubject> read_subject(const PlanOptions& options) {
    TRY_ASSIGN(auto experiment, load_experiment(options.file, options.set));
    TRY_ASSIGN(auto chain, chain_of(experiment));
    TRY_ASSIGN(auto cast, plan_cast(options, experiment));
    TRY_ASSIGN(const auto optimizer, optimizer_of(experiment));
    const auto batch = batch_of(experiment, cast);
    TRY_ASSIGN(auto times, measure_layers(chain, optimizer, batch));
    if (options.step_seconds > 0) {
        scale_to(times, options.step_seconds);
    }
    const double step = total(times);
    return PlanSubject{std::move(experiment), std::move(chain), std::move(cast), batch, std::move(times), step};
}

Result<PlanInput> input_of(const PlanOptions& options, const PlanSubject& subject) {
    PlanInput input{
        .chain = subject.chain, .clients = subject.cast.clients, .times = subject.times, .host = subject.cast.host};
    TRY_ASSIGN(const auto optimizer, optimizer_of(subject.experiment));
    TRY_ASSIGN(const auto host_memory, size_option("--host-memory", options.host_memory));
    TRY_ASSIGN(input.client_memory, size_option("--client-memory", options.client_memory));
    input.host.memory = host_memory > 0 ? host_memory : input.host.memory;
    input.batch = subject.batch;
    input.local_epochs = subject.experiment.train.local_epochs;
    input.overlap = subject.experiment.regime.overlap;
    input.optimizer_moments = static_cast<std::uint32_t>(optimizer.kind->moments(optimizer));
    input.seed = subject.experiment.experiment.seed;
    input.handover_copies = subject.experiment.sync.handover_copy == "coordinator";
    // Lists of names are made for one number of groups; other counts are compared as the times would group them.
    const auto& grouping = subject.experiment.regime.grouping;
    input.grouping = grouping == "random" ? grouping : "time";
    return input;
}

std::string cut_text(const Chain& chain, const PlanRow& row) {
    return row.cut == 0 ? "-" : cut_name(chain, row.cut);
}

std::string seconds_text(double s) {
    return s < 10 ? fmt::format("{:.2f}s", s) : s < 600 ? fmt::format("{:.1f}s", s) : format_duration(from_seconds(s));
}

/// Some of the counts: 1, the small ones, and as many as there are clients.
std::vector<std::uint32_t> shown_counts(std::size_t clients) {
    const auto all = group_counts(clients);
    if (all.size() <= most_counts) {
        return all;
    }
    std::vector<std::uint32_t> shown;
    for (const auto wanted : {1U, 2U, 3U, 4U, 6U, 12U}) {
        if (std::ranges::find(all, wanted) != all.end() && wanted < clients) {
            shown.push_back(wanted);
        }
    }
    shown.push_back(static_cast<std::uint32_t>(clients));
    return shown;
}

void print_times(const PlanSubject& subject, const std::vector<PlanRow>& rows, Output output) {
    const auto counts = shown_counts(subject.cast.clients.size());
    std::vector<std::string> header{"cut after", "client", "a batch"};
    for (const auto groups : counts) {
        header.push_back(groups == 1 ? "1 group" : fmt::format("{}", groups));
    }
    std::vector<std::vector<std::string>> lines;
    for (const auto& row : rows) {
        if (row.cut == 0 || row.regime == "splitfed-v2" || std::ranges::find(counts, row.groups) == counts.end()) {
            continue;
        }
        if (row.groups == 1) {
            lines.push_back(
                {cut_text(subject.chain, row), format_bytes(row.client_memory), format_bytes(row.smashed_bytes)});
        }
        lines.back().push_back(seconds_text(row.cost.seconds) + (row.fits ? "" : "!"));
    }
    output.line(fmt::format("\n{}", styled("a round's time by cut and number of groups", "1")));
    output.line(table(header, lines));
}

void print_best(const PlanSubject& subject, const std::vector<PlanRow>& rows, const PlanRow* chosen, Output output) {
    std::vector<std::vector<std::string>> lines;
    for (const auto& regime : regimes) {
        const auto* row = best_row(rows, regime);
        if (row == nullptr) {
            lines.push_back({regime, "-", "-", "does not fit", "-", "-", "-", "-"});
            continue;
        }
        lines.push_back({regime, cut_text(subject.chain, *row), row->groups == 0 ? "-" : std::to_string(row->groups),
                         seconds_text(row->cost.seconds), format_bytes(row->cost.bytes_up),
                         format_bytes(row->cost.bytes_down),
                         row->groups == 0 ? "-" : format_bytes(row->cost.host_memory),
                         format_bytes(row->client_memory) + (row == chosen ? "  <- chosen" : "")});
    }
    output.line(fmt::format("\n{}", styled("the fastest of each regime", "1")));
    output.line(table({"regime", "cut", "groups", "round", "up", "down", "host memory", "client memory"}, lines));
}

Json row_json(const PlanSubject& subject, const PlanRow& row) {
    return Json::object()
        .set("regime", row.regime)
        .set("cut", row.cut == 0 ? Json() : Json(cut_name(subject.chain, row.cut)))
        .set("cut_index", row.cut)
        .set("groups", row.groups)
        .set("seconds", row.cost.seconds)
        .set("bytes_up", row.cost.bytes_up)
        .set("bytes_down", row.cost.bytes_down)
        .set("handover_bytes", row.cost.handover_bytes)
        .set("host_memory", row.cost.host_memory)
        .set("client_memory", row.client_memory)
        .set("smashed_bytes", row.smashed_bytes)
        .set("fits", row.fits);
}

std::string choice_words(const PlanSubject& subject, const PlanRow& row) {
    if (row.cut == 0) {
        return "preset = \"fedavg\"";
    }
    const auto words = fmt::format("preset = \"{}\", cut = \"{}\"", row.regime, cut_name(subject.chain, row.cut));
    return row.regime == "gsfl" ? fmt::format("{}, groups = {}", words, row.groups) : words;
}

Status apply(const PlanOptions& options, const PlanSubject& subject, const PlanRow& row, Output output) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(options.file, ignored)) {
        return fail(ErrorKind::invalid, "cannot_apply",
                    fmt::format("{} is an example of this binary, not a file; begin with `causeway experiment init`",
                                options.file));
    }
    TRY_ASSIGN(const auto text, load_experiment_text(options.file));
    const auto groups = row.regime == "gsfl" ? row.groups : 0;
    TRY_ASSIGN(const auto written, with_regime(text.text, text.file_name, row.cut == 0 ? "fedavg" : row.regime,
                                               row.cut == 0 ? "" : cut_name(subject.chain, row.cut), groups));
    // --apply names this very file as the one to change; it keeps its mode.
    TRY(write_output(options.file, as_bytes(written), public_mode() | 0666, Existing::replaced));
    output.line("written to " + options.file);
    return {};
}

/// Who was measured, and how: a plan for a running federation rests on it.
void print_nodes(const PlanSubject& subject, Output output) {
    if (!subject.cast.from_nodes) {
        return;
    }
    std::vector<std::vector<std::string>> lines;
    for (const auto& client : subject.cast.clients) {
        const auto assumed = subject.cast.assumed.find(client.name);
        const auto what = assumed == subject.cast.assumed.end() ? std::vector<std::string>() : assumed->second;
        lines.push_back({client.name, format_bytes(static_cast<std::uint64_t>(client.uplink)) + "/s",
                         format_bytes(static_cast<std::uint64_t>(client.downlink)) + "/s",
                         fmt::format("{:.1f} ms", 1e3 * client.delay), fmt::format("{:.2g}x", client.slowness),
                         what.empty() ? "" : join(what, ", ")});
        output.object("plan_node", Json::object()
                                       .set("node", client.name)
                                       .set("uplink", client.uplink)
                                       .set("downlink", client.downlink)
                                       .set("delay_seconds", client.delay)
                                       .set("slowness", client.slowness)
                                       .set("examples", client.examples)
                                       .set("assumed", json_of(what)));
    }
    output.line(table({"client", "uplink", "downlink", "delay", "speed", "never measured, assumed"}, lines));
    for (const auto& [name, what] : subject.cast.assumed) {
        const bool client = std::ranges::any_of(subject.cast.clients, [&](const auto& c) { return c.name == name; });
        if (!client) {
            output.line(fmt::format("{} (host): never measured: {}; as fast as this machine and beside the coordinator "
                                    "assumed",
                                    name, join(what, ", ")));
        }
    }
}

void print_plan(const PlanSubject& subject, const std::vector<PlanRow>& rows, const PlanRow* chosen, Output output) {
    output.line(fmt::format("{}: {}\none batch of {} takes this machine {:.2f} ms for all {} layers",
                            subject.experiment.experiment.name, subject.cast.source, subject.batch,
                            1e3 * subject.step_seconds, subject.chain.layer_count()));
    print_nodes(subject, output);
    print_times(subject, rows, output);
    if (std::ranges::any_of(rows, [](const auto& row) { return !row.fits; })) {
        output.line("! does not fit in the memory that was named");
    }
    print_best(subject, rows, chosen, output);
    for (const auto& row : rows) {
        output.object("plan", row_json(subject, row).set("chosen", &row == chosen));
    }
}

Status plan(const PlanOptions& options, Output output) {
    TRY_ASSIGN(const auto subject, read_subject(options));
    TRY_ASSIGN(const auto input, input_of(options, subject));
    TRY_ASSIGN(const auto rows, predict_rounds(input));
    const auto* chosen = best_row(rows, options.regime);
    print_plan(subject, rows, chosen, output);
    if (chosen == nullptr) {
        return fail(ErrorKind::refused, "nothing_fits",
                    "no cut and number of groups fits in the memory that was named; the tables have what each needs");
    }
    output.line(
        fmt::format("\nchosen: {}, {} a round", choice_words(subject, *chosen), seconds_text(chosen->cost.seconds)));
    output.object("planned", row_json(subject, *chosen).set("step_seconds", subject.step_seconds));
    if (options.apply) {
        return apply(options, subject, *chosen, output);
    }
    output.line("the time alone decides: more groups may need more rounds; --apply writes it into the file");
    return {};
}

}  // namespace

int run_plan(const PlanOptions& options, Output output) {
    const auto planned = plan(options, output);
    return planned ? exit_done : output.error(planned.error());
}

}  // namespace causeway::cli
