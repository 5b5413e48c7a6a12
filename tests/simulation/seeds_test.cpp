// Hundreds of seeds of failures of every kind, with real training: the rules of simulation/invariants.h hold at every
// step, each experiment ends once the world is healed, and the replay of its decision log without any failure reaches
// the same bits in every round.
//
// Each kind has seeds of its own and the others mix them all; experiments, links and speeds follow from the seed as
// well. One more seed comes from the commit, so that every change is tried with a history of its own. A failing seed
// prints the command that repeats it, and the end of its transcript; that
// command shows all of it.
#include <cstdlib>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "common/file.h"
#include "common/text.h"
#include "points.h"
#include "simulation/faults.h"
#include "simulation/lies.h"

namespace causeway::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t seed_count = 1000;
constexpr std::uint64_t relay_seed_count = 500;
constexpr Duration bound = 3600s;  // virtual: the longest start timeout and rejoin, several times over
constexpr std::size_t lines_shown = 60;

/// .git/HEAD names the commit, or the branch whose file or packed line does; without git a fixed number.
std::uint64_t commit_seed() {
    const std::string git = std::string(CAUSEWAY_SOURCE_ROOT) + "/.git/";
    const auto read = [&](const std::string& name) {
        const auto file = read_file(git + name, 1 << 20);
        return file ? std::string(as_text(*file)) : std::string();
    };
    auto commit = std::string(trim(read("HEAD")));
    if (commit.starts_with("ref: ")) {
        const auto branch = commit.substr(5);
        const auto packed = read("packed-refs");
        const auto at = packed.find(" " + branch + "\n");
        commit = trim(read(branch));
        if (commit.empty() && at != std::string::npos && at >= 40) {
            commit = packed.substr(at - 40, 40);
        }
    }
    constexpr std::uint64_t without_git = 20'260'101;
    return commit.empty() ? without_git : std::strtoull(commit.substr(0, 12).c_str(), nullptr, 16);
}

std::vector<Fault> faults_of(std::uint64_t seed) {
    const auto kinds = fault_names().size();
    const auto one = seed % (2 * kinds);  // every second seed mixes them
    return one < kinds ? std::vector{static_cast<Fault>(one)} : *parse_faults("all");
}

enum class Regimes { whole, relays };

std::string regime_of(RandomStream& random, std::size_t clients) {
    const auto groups = std::to_string(1 + random.below(clients));
    const std::string regimes[] = {
        "preset = \"split\"\ncut = \"gelu\"",
        "preset = \"gsfl\"\ncut = \"gelu\"\ngroups = " + groups,
        "preset = \"gsfl\"\ncut = \"1\"\nregroup = \"every-round\"\ngroups = " + groups,
        "preset = \"splitfed-v1\"\ncut = \"gelu\"",
        "preset = \"u-shaped\"\ncut = [\"1\", \"4\"]",
        "preset = \"splitfed-v2\"\ncut = \"gelu\"",
        "preset = \"splitfed-v2\"\ncut = \"1\"\noverlap = 1",
        "preset = \"gsfl\"\ncut = \"gelu\"\noverlap = 2\ngroups = " + groups,
    };
    return regimes[random.below(std::size(regimes))];
}

std::string experiment_of(RandomStream& random, std::size_t clients, Regimes regimes) {
    const auto all = std::to_string(clients);
    const std::string syncs[] = {
        "quorum = \"100%\"\nrejoin = \"10m\"\nstraggler_deadline = \"0s\"\nmin_clients = " + all,
        "quorum = 1\nrejoin = \"3s\"\nstraggler_deadline = \"5s\"",
        "quorum = \"50%\"\nrejoin = \"0s\"\nmin_clients = 2\nstart_timeout = \"20s\"",
        "quorum = 2\nrejoin = \"6s\"\nmin_clients = 3\nstart_timeout = \"60s\"\ncohort = 3",
        "quorum = \"70%\"\ncohort = \"60%\"",
    };
    const std::string trains[] = {
        "optimizer = { kind = \"sgd\", learning_rate = 0.1, momentum = 0.9 }\nbatch = 8\noptimizer_state = \"keep\"",
        "optimizer = { kind = \"adamw\", learning_rate = 0.01 }\nbatch = 4\nlocal_epochs = 2",
        "optimizer = { kind = \"sgd\", learning_rate = 0.1 }\nbatch = \"full\"",
    };
    const auto rounds = 2 + static_cast<std::uint32_t>(random.below(4));
    const std::string evaluations[] = {"", "\n[evaluation]\npatience = 1", "\n[evaluation]\nevery = 2"};
    const auto& train = trains[regimes == Regimes::relays ? 1 + random.below(2) : random.below(3)];
    const std::string copy = regimes == Regimes::relays && random.below(3) == 0 ? "handover_copy = \"none\"\n" : "";
    const auto sync = copy + syncs[random.below(5)] + evaluations[random.below(3)];
    return regimes == Regimes::whole ? points_experiment(rounds, train, sync)
                                     : points_experiment(rounds, train, sync, regime_of(random, clients));
}

/// With a round of statistics before the first.
std::string normalised_seed(std::string file) {
    const std::string shape = "shape = [5]\n";
    return file.replace(file.find(shape), shape.size(), shape + "normalise = \"federated\"\n");
}

/// Everything about one seed; what went wrong, and the transcript when it was kept.
struct SeedRun {
    std::uint64_t seed;
    Regimes regimes = Regimes::whole;
    Transcript::Keep keep = Transcript::Keep::nothing;
    std::vector<std::string> problems;
    std::string transcript;
    std::uint64_t checks = 0;
    std::uint32_t commits = 0;

    void go();

private:
    void require(bool holds, const std::string& problem) {
        if (!holds) {
            problems.push_back(problem);
        }
    }
    void play(World& world, RandomStream& random, std::size_t clients);
    void check_end(const World& world);
    void check_replay(const RunLog& log, std::size_t clients);
};

void SeedRun::go() {
    RandomStream random({.seed = seed, .purpose = "seeds"});
    const auto kinds = faults_of(seed);
    const auto clients = 2 + random.below(4);
    RealCast cast(clients, points(20, 99), regimes == Regimes::relays ? 1 + random.below(2) : 0);
    LyingClientWork lying(*cast.clients[liar], "client-0", seed, forged_share);
    auto options = cast.world();
    options.keep = keep;
    options.coordinator.parallel = 1 + static_cast<std::uint32_t>(random.below(2));
    if (lies(kinds, liar)) {
        options.clients[liar].work = &lying;
    }
    for (auto& client : options.clients) {
        client.link.up = {Duration(random.below(50'000'000)), 1e4 + 1e5 * random.uniform()};
        client.link.down = {Duration(random.below(50'000'000)), 1e4 + 1e5 * random.uniform()};
        client.slowness = 10 + 5000 * random.uniform();  // up to some seconds for a training
    }
    World world(std::move(options));
    plan_faults(world, {.kinds = kinds, .seed = seed, .count = 1 + static_cast<std::uint32_t>(random.below(12))});
    play(world, random, clients);
    transcript = world.transcript();
}

/// One or two experiments, of which one may be cancelled, while things fail.
void SeedRun::play(World& world, RandomStream& random, std::size_t clients) {
    world.start();
    world.run_for(Duration(random.below(2'000'000'000)));
    const auto submit = [&world](const std::string& file) {
        if (world.coordinator().up()) {
            world.submit(file);
        }
    };
    const auto file = seed % 3 == 0 && !lies(faults_of(seed), liar)  // sums that are made up look like others
                          ? normalised_seed(experiment_of(random, clients, regimes))
                          : experiment_of(random, clients, regimes);
    world.at(world.now(), [&] { submit(file); });
    const auto second = experiment_of(random, clients, regimes);
    if (random.below(3) == 0) {
        world.at(world.now() + Duration(random.below(20'000'000'000)), [&] { submit(second); });
    }
    if (random.below(6) == 0) {
        world.at(world.now() + Duration(random.below(10'000'000'000)), [&world] {
            if (world.coordinator().up()) {
                world.request("experiment.cancel", Json::object().set("experiment", 1));
            }
        });
    }
    world.run_for(60s);  // all failures have begun
    const auto ended = [&world] {
        for (ExperimentId id = 1; world.coordinator().store().find(id) != nullptr; ++id) {
            if (!world.over(id)) {
                return false;
            }
        }
        return world.coordinator().up();
    };
    require(world.run_until(ended, bound), "an experiment does not end");
    world.run_for(60s);
    check_end(world);
    for (ExperimentId id = 1; world.coordinator().store().find(id) != nullptr; ++id) {
        check_replay(world.log(id), clients);
    }
}

/// The end is the same everywhere: nobody works on it any more or holds something of it.
void SeedRun::check_end(const World& world) {
    for (const auto& rule : world.broken_rules()) {
        problems.push_back("rule: " + rule);
    }
    checks += world.invariants().checks();
    for (std::size_t i = 0; i < world.client_count(); ++i) {
        const auto* session = world.client(i).session();
        require(session != nullptr, world.client(i).name() + " is not back");
        require(session == nullptr || (!session->working() && session->held().empty()),
                world.client(i).name() + " has not let go");
    }
}

void SeedRun::check_replay(const RunLog& log, std::size_t clients) {
    RealCast cast(clients, points(20, 99));
    const auto rounds = replay(log, cast.coordinator, [&](const std::string& node) { return cast.find(node); });
    require(rounds.has_value(), rounds ? "" : "replay: " + rounds.error().message);
    for (const auto& round : rounds ? *rounds : std::vector<ReplayedRound>{}) {
        require(round.same(),
                fmt::format("replay: experiment {} round {} has other bits", log.saved.experiment, round.round));
        ++commits;
    }
}

std::string end_of_seed(const std::string& transcript, std::size_t shown) {
    auto at = transcript.size();
    for (std::size_t lines = 0; lines <= shown && at > 0; ++lines) {
        at = transcript.rfind('\n', at - 1);
        at = at == std::string::npos ? 0 : at;
    }
    return transcript.substr(at);
}

/// With `shown` lines of the transcript of a seed that fails.
void require_good(std::uint64_t seed, Regimes regimes, std::size_t shown, std::uint64_t& checks,
                  std::uint32_t& commits) {
    SeedRun run{.seed = seed, .regimes = regimes, .problems = {}, .transcript = {}};
    run.go();
    checks += run.checks;
    commits += run.commits;
    if (run.problems.empty()) {
        return;
    }
    SeedRun again{
        .seed = seed, .regimes = regimes, .keep = Transcript::Keep::everything, .problems = {}, .transcript = {}};
    again.go();
    FAIL("CAUSEWAY_SEED=" << seed << " build/tests/simulation/test_simulation \""
                          << (regimes == Regimes::whole ? "[seeds]" : "[relay-seeds]") << "\"\n"
                          << join(run.problems, "\n")
                          << "\n... and the end of its transcript:" << end_of_seed(again.transcript, shown));
}

}  // namespace

namespace {

void require_all_good(Regimes regimes, std::uint64_t usual) {
    std::uint64_t checks = 0;
    std::uint32_t commits = 0;
    if (const char* one = std::getenv("CAUSEWAY_SEED")) {
        return require_good(std::strtoull(one, nullptr, 10), regimes, std::string::npos, checks, commits);
    }
    const char* more = std::getenv("CAUSEWAY_SEEDS");  // for a night
    const auto count = more != nullptr ? std::strtoull(more, nullptr, 10) : usual;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        require_good(seed, regimes, lines_shown, checks, commits);
    }
    require_good(commit_seed(), regimes, lines_shown, checks, commits);
    CHECK(checks > 100 * count);  // the seeds do something
    CHECK(commits > count);
}

}  // namespace

TEST_CASE("whatever fails, the rules hold, everything ends, and a replay without failures has the same bits",
          "[seeds][faults]") {
    require_all_good(Regimes::whole, seed_count);
}

TEST_CASE("relays too: split learning, GSFL, SplitFed and u-shaped training, whatever fails", "[relay-seeds][faults]") {
    require_all_good(Regimes::relays, relay_seed_count);
}

}  // namespace causeway::simulation
