// `causeway simulate`: the whole federation on a virtual clock, with the real machines and, unless --no-training, the
// real model, data and sums; with failures on demand, and the rules checked at every step.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/live_view.h"
#include "cli/model_file.h"
#include "cli/simulate_cast.h"
#include "common/json_lists.h"
#include "common/random.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/reader.h"
#include "configs/statistics.h"
#include "configs/workload.h"
#include "simulation/faults.h"
#include "simulation/lies.h"
#include "simulation/mix.h"
#include "simulation/modelled_world.h"

namespace causeway::cli {
namespace {

using namespace simulation;

constexpr Duration longest_round = std::chrono::hours(2);  // virtual; the machines' own deadlines come first
constexpr std::uint64_t most_faults = 1000;

/// What the options say, read and checked.
struct Scene {
    Experiment experiment;
    ModelledSetup setup;  // also gives the real run its names, links and speeds
    std::vector<Fault> faults;
    DataPaths data;
    DataPaths models;
};

/// Delays of 1 to 20 ms by the seed, unless a mix is given.
Result<std::vector<simulation::LinkOptions>> links_of(const SimulateOptions& options) {
    if (!options.links.empty()) {
        return parse_links(options.links, options.clients, options.seed);
    }
    RandomStream random({.seed = options.seed, .purpose = "links"});
    std::vector<simulation::LinkOptions> links(options.clients);
    for (auto& link : links) {
        link.up.delay = link.down.delay = std::chrono::milliseconds(1 + random.below(20));
    }
    return links;
}

Result<Scene> read_scene(const SimulateOptions& options) {
    Scene scene;
    TRY_ASSIGN(scene.experiment, load_experiment(options.file, options.set));
    TRY(require_all(scene.experiment, options.clients));
    if (options.no_training) {  // there is nothing to evaluate, or to be patient with
        scene.experiment.evaluation.where = "none";
        scene.experiment.evaluation.patience = 0;
    }
    TRY_ASSIGN(scene.faults, parse_faults(options.faults));
    TRY_ASSIGN(scene.data, parse_data_arguments(options.data));
    TRY_ASSIGN(scene.models, parse_model_arguments(options.models));
    auto& setup = scene.setup;
    TRY_ASSIGN(const auto chain, chain_of(scene.experiment));
    setup.parameters = static_cast<std::uint64_t>(chain.parameter_count());
    setup.examples = options.examples;
    for (std::uint32_t i = 0; i < options.clients; ++i) {
        setup.names.push_back(demo_client_name(i));
    }
    TRY_ASSIGN(setup.links, links_of(options));
    setup.per_example.assign(options.clients, training_per_example);
    if (!options.speeds.empty()) {
        TRY_ASSIGN(setup.per_example, parse_speeds(options.speeds, options.clients, options.seed));
    }
    TRY_ASSIGN(const auto line, parse_link(options.coordinator_link));
    setup.line = {.rate_in = line.down.rate, .rate_out = line.up.rate};
    setup.dataset = {.name = scene.experiment.data.dataset,
                     .digest = {},
                     .examples = options.examples,
                     .shape = scene.experiment.data.shape,
                     .classes = 2};
    return scene;
}

/// The real work in a world of the scene's links and speeds; `lying` outlives the world.
WorldOptions real_world(const Scene& scene, const SimulateOptions& options, const Cast& cast,
                        std::unique_ptr<LyingClientWork>& lying) {
    WorldOptions world;
    world.coordinator.models = cast.models;
    world.coordinator.federation = "simulated";
    world.coordinator.max_sessions = sessions_for(cast.clients.size() + cast.hosts.size());
    world.work = cast.coordinator.get();
    world.line = scene.setup.line;
    for (std::size_t i = 0; i < cast.clients.size(); ++i) {
        ClientSetup client;
        client.name = scene.setup.names[i];
        client.work = cast.clients[i].get();
        if (lies(scene.faults, i)) {
            lying = std::make_unique<LyingClientWork>(*client.work, client.name, options.seed, forged_share);
            client.work = lying.get();
        }
        client.datasets = {cast.clients[i]->declaration()};
        if (scene.experiment.regime.grouping == "labels") {  // as if every policy shared them
            client.datasets.front().labels = cast.clients[i]->label_counts();
        }
        client.link = scene.setup.links[i];
        client.slowness = seconds(scene.setup.per_example[i]) / seconds(training_per_example);
        client.splits = !cast.hosts.empty();
        world.clients.push_back(std::move(client));
    }
    for (std::size_t i = 0; i < cast.hosts.size(); ++i) {
        ClientSetup host;
        host.name = demo_host_name(static_cast<std::uint32_t>(i));
        host.work = cast.hosts[i].get();
        host.role = "host";
        host.splits = true;
        host.link.up.delay = host.link.down.delay = std::chrono::milliseconds(1);
        world.clients.push_back(std::move(host));
    }
    return world;
}

/// How long it takes when nothing fails, so that failures are spread over it.
Result<Duration> undisturbed_time(const Scene& scene) {
    if (scene.experiment.mesh.stages > 1) {  // as if one client trained after another: more than any grouping takes
        Duration all{};
        for (const auto& per_example : scene.setup.per_example) {
            all += per_example * static_cast<std::int64_t>(scene.setup.examples);
        }
        return all * scene.experiment.experiment.rounds;
    }
    ModelledWorld modelled(scene.setup);
    auto& world = *modelled.world;
    TRY(start_and_wait(world));
    const auto begin = world.now();
    world.submit(canonical_toml(scene.experiment));
    (void)world.run_until([&world] { return world.over(1); }, longest_round * scene.experiment.experiment.rounds);
    return std::max<Duration>(world.now() - begin, std::chrono::seconds(1));
}

/// Follows the rounds as an operator would, who watches again when the coordinator is back.
class Follower {
public:
    Follower(World& world, LiveView& view) : world_(world), view_(view) {}

    /// True at the end.
    bool look() {
        const auto& host = world_.coordinator();
        if (host.up() && epoch_ != host.epoch()) {
            epoch_ = host.epoch();
            const auto from = summed_ || !rounds_.empty() ? rounds_.size() + 1 : 0;
            world_.request("experiment.watch", Json::object().set("experiment", 1).set("from", from));
        }
        for (const auto& replies = world_.replies(); seen_ < replies.size(); ++seen_) {
            const auto event = Json::parse(replies[seen_].body);
            if (event && (*event)["event"].text() == "round") {
                rounds_.push_back(*event);
                view_.event(*event);
            } else if (event && (*event)["event"].text() == "statistics") {
                summed_ = true;
                view_.event(*event);
            } else if (event && (*event)["event"].text() == "done") {
                done_ = *event;
            }
        }
        return !done_.is_null();
    }
    [[nodiscard]] const std::vector<Json>& rounds() const { return rounds_; }
    [[nodiscard]] const Json& done() const { return done_; }

private:
    World& world_;
    LiveView& view_;
    std::uint64_t epoch_ = 0;
    std::size_t seen_ = 0;
    bool summed_ = false;  // what came before round 1 was shown
    std::vector<Json> rounds_;
    Json done_;
};

/// Submits; faults begin when the submission is stored. errors: what is wrong with the file; timed_out `no_end`
Status play_simulation(World& world, Follower& follower, const Scene& scene, std::uint64_t seed) {
    TRY(start_and_wait(world));
    world.submit(canonical_toml(scene.experiment));
    if (!world.run_until([&world] { return !world.replies().empty(); }, std::chrono::minutes(10))) {
        return fail(ErrorKind::timed_out, "no_end", "the submission was not answered; this is a bug");
    }
    for (const auto& reply : world.replies()) {
        if (reply.error) {
            return fail(reply.error->kind, reply.error->code, reply.error->message);
        }
    }
    if (!scene.faults.empty()) {
        TRY_ASSIGN(const auto time, undisturbed_time(scene));
        const auto count = std::clamp<std::uint64_t>(scene.experiment.experiment.rounds, 8, most_faults);
        plan_faults(world, {.kinds = scene.faults,
                            .seed = seed,
                            .count = static_cast<std::uint32_t>(count),
                            .time = 2 * time,
                            .longest_absence = std::min<Duration>(2 * time, std::chrono::seconds(15))});
    }
    const auto bound = longest_round * (scene.experiment.experiment.rounds + 1);
    if (!world.run_until([&follower] { return follower.look(); }, bound)) {
        return fail(ErrorKind::timed_out, "no_end", "the simulated experiment did not end; this is a bug");
    }
    return {};
}

double sum_of(const std::vector<Json>& rounds, const char* field) {
    return std::accumulate(rounds.begin(), rounds.end(), 0.0,
                           [field](double sum, const Json& round) { return sum + round[field].number(); });
}

/// The `simulation` event, and its words.
Json summary_of(const World& world, const Follower& follower, const std::string& replay) {
    std::vector<double> times;
    for (const auto& round : follower.rounds()) {
        times.push_back(round["seconds"].number());
    }
    std::ranges::sort(times);
    const auto count = static_cast<double>(std::max<std::size_t>(times.size(), 1));
    return Json::object()
        .set("clients", static_cast<std::uint64_t>(world.client_count()))
        .set("rounds", static_cast<std::uint64_t>(times.size()))
        .set("virtual_seconds", seconds(world.now()))
        .set("round_seconds_median", times.empty() ? Json() : Json(times[times.size() / 2]))
        .set("round_seconds_longest", times.empty() ? Json() : Json(times.back()))
        .set("round_bytes_up", sum_of(follower.rounds(), "bytes_up") / count)
        .set("round_bytes_down", sum_of(follower.rounds(), "bytes_down") / count)
        .set("checks", world.invariants().checks())
        .set("broken", json_of(world.broken_rules()))
        .set("replay", replay.empty() ? Json() : Json(replay));
}

void show_summary(const Json& summary, Output output) {
    const auto bytes = [&](const char* field) {
        return format_bytes(static_cast<std::uint64_t>(summary[field].number()));
    };
    if (summary["rounds"].integer() > 0) {
        output.line(fmt::format("a round: {} (the longest {}), {} up, {} down; {} of virtual time in all",
                                format_duration(from_seconds(summary["round_seconds_median"].number())),
                                format_duration(from_seconds(summary["round_seconds_longest"].number())),
                                bytes("round_bytes_up"), bytes("round_bytes_down"),
                                format_duration(from_seconds(summary["virtual_seconds"].number()))));
    }
    output.line(fmt::format(
        "{} checks of the rules, {} broken{}", summary["checks"].integer(), summary["broken"].items().size(),
        summary["replay"].is_null() ? "" : "; its replay without failures: " + summary["replay"].text()));
}

/// With failures, the decision log is run again without them: every round must have the same bits.
Result<std::string> replay_of(const Scene& scene, const RunLog& log, std::uint32_t clients) {
    TRY_ASSIGN(const auto cast, make_cast(scene.experiment, scene.data, scene.models, clients));
    TRY_ASSIGN(const auto rounds,
               replay(log, *cast.coordinator, [&](const std::string& node) { return cast.find(node); }));
    for (const auto& round : rounds) {
        if (!round.same()) {
            return fmt::format("round {} has other bits", round.round);
        }
    }
    return std::string("the same bits in every round");
}

/// What is made of a dataset is as private as it is.
mode_t mode_of(const Scene& scene) {
    std::vector<std::filesystem::path> inputs;
    if (const auto data = find_dataset(scene.experiment.data.dataset, scene.data)) {
        inputs.push_back(*data);
    }
    for (const auto& [name, path] : scene.models) {
        inputs.push_back(path);
    }
    return output_mode(inputs);
}

/// As `experiment export` writes it.
Status write_model(const SimulateOptions& options, const Scene& scene, const Cast& cast, const World& world,
                   const Json& done) {
    if (options.out.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto digest, digest_from_hex(done["model_sha256"].text()));
    TRY_ASSIGN(const auto bytes, cast.coordinator->read_model(digest));
    TRY_ASSIGN(const auto run, read_experiment_or_fail(world.log(1).saved.file, "simulated"));
    if (const auto numbers = found_statistics(run); !numbers.empty()) {
        TRY_ASSIGN(const auto model, load_safetensors(bytes));
        return write_output(options.out, model_bytes(model, numbers), mode_of(scene), existing_of(options.force));
    }
    return write_output(options.out, bytes, mode_of(scene), existing_of(options.force));
}

/// Lines gathered into pieces; what could not be written is known at the end.
struct TranscriptFile {
    std::optional<OutputFile> file;
    std::string gathered;
    Status written;
    bool told = false;  // what failed before anything happened leaves no transcript

    void add(const std::string& line) {
        constexpr std::size_t piece = 64 * 1024;
        told = true;
        gathered += line + '\n';
        if (gathered.size() >= piece) {
            flush();
        }
    }
    void flush() {
        if (written && file) {
            written = file->write(as_bytes(gathered));
        }
        gathered.clear();
    }
    Status finish() {
        flush();
        TRY(written);
        return file && told ? file->finish() : Status();
    }
};

/// To a file, or between the other lines.
Transcript::Tell transcript_to(const SimulateOptions& options, Output output, TranscriptFile& file) {
    if (options.transcript == "-") {
        return [output](Instant when, std::string_view who, std::string_view what) {
            output.object("transcript", Json::object()
                                            .set("seconds", seconds(when))
                                            .set("who", std::string(who))
                                            .set("what", std::string(what)));
            output.line(Transcript::line(when, who, what));
        };
    }
    return [&file](Instant when, std::string_view who, std::string_view what) {
        file.add(Transcript::line(when, who, what));
    };
}

int result_of(const World& world, const Json& summary, const Json& done, const SimulateOptions& options,
              Output output) {
    const bool differs = summary["replay"].text().starts_with("round");
    if (world.broken_rules().empty() && !differs) {
        return done["state"].text() == "succeeded" ? exit_done : exit_failed;
    }
    for (const auto& rule : world.broken_rules()) {
        output.line("broken: " + rule);
    }
    return output.error({ErrorKind::corrupt, "rule_broken",
                         fmt::format("a rule of the simulated federation is broken; this is a bug. To repeat it: "
                                     "causeway simulate {} --seed {} --faults {} --clients {}",
                                     options.file, options.seed, options.faults, options.clients)});
}

Result<int> play_scene(const SimulateOptions& options, const Scene& scene, TranscriptFile& file, Output output) {
    WorldOptions world_options;
    if (!options.transcript.empty()) {
        world_options.tell = transcript_to(options, output, file);
    }
    std::optional<Cast> cast;
    std::optional<ModelledWorld> modelled;
    std::unique_ptr<LyingClientWork> lying;
    std::unique_ptr<World> world;
    if (options.no_training) {
        modelled.emplace(scene.setup, std::move(world_options));
        world = std::move(modelled->world);
    } else {
        TRY_ASSIGN(cast, make_cast(scene.experiment, scene.data, scene.models, options.clients));
        auto with_work = real_world(scene, options, *cast, lying);
        with_work.tell = std::move(world_options.tell);
        world = std::make_unique<World>(std::move(with_work));
    }
    LiveView view(output);
    Follower follower(*world, view);
    TRY(play_simulation(*world, follower, scene, options.seed));
    std::string replayed;
    if (cast && !scene.faults.empty()) {
        TRY_ASSIGN(replayed, replay_of(scene, world->log(1), options.clients));
    }
    const auto summary = summary_of(*world, follower, replayed);
    output.object("simulation", summary);
    view.event(follower.done());
    show_summary(summary, output);
    if (cast && follower.done()["state"].text() == "succeeded") {
        TRY(write_model(options, scene, *cast, *world, follower.done()));
        output.line(fmt::format("model    {}\nSHA-256  {}",
                                options.out.empty() ? "(not written; --out FILE keeps it)" : options.out,
                                follower.done()["model_sha256"].text()));
    }
    return result_of(*world, summary, follower.done(), options, output);
}

/// A transcript is worth most where something went wrong, so it is finished in any case.
Result<int> simulate(const SimulateOptions& options, Output given) {
    TRY_ASSIGN(const auto output, given.for_file(options.out));
    const auto existing = existing_of(options.force);
    if (!options.out.empty()) {
        TRY(check_output(options.out, existing));
    }
    TRY_ASSIGN(const auto scene, read_scene(options));
    TranscriptFile file;
    if (!options.transcript.empty() && !is_standard_output(options.transcript)) {
        TRY_ASSIGN(file.file, OutputFile::open(options.transcript, mode_of(scene), existing));
    }
    auto code = play_scene(options, scene, file, output);
    const auto written = file.finish();
    TRY(code);
    TRY(written);
    return code;
}

}  // namespace

int run_simulate(const SimulateOptions& options, Output output) {
    const auto code = simulate(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
