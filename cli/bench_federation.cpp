// Benchmarks of a local federation of real processes: rounds, exchange of a large model, rest, faults.
#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "cli/run_history.h"
#include "configs/reader.h"

namespace causeway::cli {
namespace {

constexpr Duration federation_rest = std::chrono::seconds(5);

struct Setup {
    std::uint32_t clients = 8;
    std::uint32_t rounds = 300;
    std::size_t width = 64;                                      // of an example
    std::string layers = R"("dense 1000", "relu", "dense 35")";  // 100,035 parameters at 64 inputs
    std::string sync = "min_clients = 8";
    bool own_lines = false;  // a fast line of its own for each client, which can fall silent
};

/// Next to no training: one example a client.
std::string federated_experiment_text(const Setup& setup) {
    return fmt::format(R"(
[experiment]
name   = "bench"
rounds = {}
[data]
dataset = "bench"
label   = "last"
shape   = [{}]
[model]
layers = [{}]
[train]
optimizer = {{ kind = "sgd", learning_rate = 0.01 }}
batch = "full"
[regime]
preset = "fedavg"
[sync]
{}
[evaluation]
where = "none"
)",
                       setup.rounds, setup.width, setup.layers, setup.sync);
}

std::string tiny_dataset(const Setup& setup) {
    std::string text;
    for (std::size_t row = 0; row < setup.clients; ++row) {
        for (std::size_t column = 0; column < setup.width; ++column) {
            text += fmt::format("{},", (row * 7 + column) % 5);
        }
        text += fmt::format("{}\n", row % 35);
    }
    return text;
}

Result<std::unique_ptr<LocalFederation>> start(const BenchFolder& folder, const Setup& setup) {
    TRY(write_file_durably(folder.path / "bench.csv", as_bytes(tiny_dataset(setup))));
    LocalOptions options;
    TRY_ASSIGN(options.experiment, read_experiment_or_fail(federated_experiment_text(setup), "bench"));
    options.dataset = folder.path / "bench.csv";
    options.folder = folder.path / "federation";
    TRY(make_private_folder(options.folder));
    options.clients = setup.clients;
    if (setup.own_lines) {
        constexpr Duration delay = std::chrono::microseconds(100);
        constexpr double gigabit = 125e6;
        options.links.assign(setup.clients, {simulation::both_ways(delay, gigabit)});
    }
    options.status = [](const std::string&) {};
    return LocalFederation::start(std::move(options));
}

double median_figure(std::vector<double> values) {
    std::ranges::sort(values);
    return values.empty() ? 0 : values[values.size() / 2];
}

double cpu_of(LocalFederation& federation) {
    double sum = 0;
    for (const auto& process : federation.processes()) {
        sum += process_usage(process.pid()).cpu_seconds;
    }
    return sum;
}

/// A wait that is not on anything.
void wait_for(Duration time) {
    BoundedQueue<int> nothing(1);
    (void)nothing.pop_for(time);
}

Status require_success(const Json& done) {
    return done["state"].text() == "succeeded"
               ? Status()
               : fail(ErrorKind::io, "bench_failed", "the rounds ended with: " + done["reason"].text());
}

double megabytes(std::uint64_t bytes) {
    return 1e-6 * static_cast<double>(bytes);
}

/// Of round 1, by the coordinator's own clock: what came after its last member had begun to train.
Result<double> seconds_from_first_step(const LocalFederation& federation, ExperimentId id) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(federation.folder() / "coordinator"));
    TRY_ASSIGN(const auto history, fetch_history(*session, id));
    const auto rounds = own_rounds(history);
    double sum = 0;
    for (const char* part : {"train", "collect", "verify", "aggregate", "commit"}) {
        sum += rounds.empty() ? 0 : rounds.front().summary["time"][part].number();
    }
    return sum;
}

/// Of each round, by the coordinator's own clock: seconds from the first offer to the last addition.
Result<std::vector<double>> exchange_times(const LocalFederation& federation) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(federation.folder() / "coordinator"));
    TRY_ASSIGN(const auto history, fetch_history(*session, 1));
    std::vector<double> times;
    for (const auto& commit : own_rounds(history)) {
        times.push_back(commit.summary["exchange"].number());
    }
    return times;
}

}  // namespace

Result<std::vector<BenchRow>> bench_rounds(const BenchOptions&) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY_ASSIGN(const auto federation, start(folder, {.rounds = 200}));
    std::vector<double> times;
    std::vector<double> up;        // megabytes
    std::vector<double> to_first;  // new clients, then clients that have worked before
    std::vector<double> to_step;
    const double cpu = cpu_of(*federation);
    Json done;
    for (int run = 0; run < 2; ++run) {
        const auto begin = real_now();
        bool first = true;
        TRY_ASSIGN(done, federation->run([&](const Json& event) {
            if (event["event"].text() == "round") {
                if (std::exchange(first, false)) {
                    to_first.push_back(seconds(real_now() - begin));
                }
                times.push_back(event["seconds"].number());
                up.push_back(1e-6 * event["bytes_up"].number());
            }
        }));
        TRY(require_success(done));
        TRY_ASSIGN(const double after, seconds_from_first_step(*federation, static_cast<ExperimentId>(run + 1)));
        to_step.push_back(to_first.back() - after);
    }
    const double used = cpu_of(*federation) - cpu;
    federation->stop();
    const double median = median_figure(times);
    const auto rounds = static_cast<double>(std::max<std::size_t>(times.size(), 1));
    return std::vector{
        BenchRow{"8 clients, 100,035 parameters, durable commits", 1 / median, "rounds/s",
                 "each client trains one example", "100 or more"},
        BenchRow{"one round", 1e3 * median, "ms", "", ""},
        BenchRow{"processor time of all processes, a round", 1e3 * used / rounds, "ms", "2 cores give 2 ms a ms", ""},
        BenchRow{"from submit to the first commit, new clients", 1e3 * to_first.at(0), "ms",
                 "kernels are made, data is read; all of round 1", ""},
        BenchRow{"the same, clients that have worked before", 1e3 * to_first.at(1), "ms", "all of round 1", ""},
        BenchRow{"from submit to the first training step of these", 1e3 * to_step.at(1), "ms",
                 "of the client that came last", "20 or less"},
        BenchRow{"bytes up a round", median_figure(up), "MB", "at the socket; 8 x 400 KB of values", ""}};
}

/// Two clients and a model of a few values: all that is left of a round is what it leaves behind.
Result<std::vector<BenchRow>> bench_endurance(const BenchOptions&) {
    constexpr std::size_t settled = 1000;
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    const Setup setup{.clients = 2, .rounds = 10'000, .width = 4, .layers = R"("dense 35")", .sync = "min_clients = 2"};
    TRY_ASSIGN(const auto federation, start(folder, setup));
    auto& processes = federation->processes();
    const auto resident = [&](std::size_t process) { return process_usage(processes[process].pid()).resident; };
    std::array<std::uint64_t, 2> before{};  // the coordinator's, a client's
    std::size_t rounds = 0;
    const auto begin = real_now();
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) {
        if (event["event"].text() == "round" && ++rounds == settled) {
            before = {resident(0), resident(1)};
        }
    }));
    const std::array<std::uint64_t, 2> after = {resident(0), resident(1)};
    const double time = seconds(real_now() - begin);
    federation->stop();
    TRY(require_success(done));
    const auto growth = [&](std::size_t i) { return megabytes(after[i]) - megabytes(before[i]); };
    return std::vector{
        BenchRow{"the coordinator's memory after 10,000 rounds", megabytes(after[0]), "MB", "resident", ""},
        BenchRow{"what it grew by since round 1,000", growth(0), "MB", "", "no growth"},
        BenchRow{"the same of a client", growth(1), "MB", "", "no growth"},
        BenchRow{"rounds of 2 clients, 175 parameters", static_cast<double>(rounds) / time, "rounds/s", "", ""}};
}

/// 25 million parameters: the peak beside what the design's formula allows.
Result<std::vector<BenchRow>> bench_exchange(const BenchOptions&) {
    constexpr std::uint64_t parameters = 964 * 25'000 + 25'000 + 25'000 * 35 + 35;
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    const Setup setup{.clients = 6,
                      .rounds = 6,
                      .width = 964,
                      .layers = R"("dense 25000", "dense 35")",
                      .sync = "min_clients = 6"};
    TRY_ASSIGN(const auto federation, start(folder, setup));
    std::vector<double> times;
    TRY_ASSIGN(const auto done, federation->run([&](const Json& event) {
        if (event["event"].text() == "round") {
            times.push_back(event["seconds"].number());
        }
    }));
    const auto peak = process_usage(federation->processes().front().pid()).peak;
    TRY(require_success(done));
    TRY_ASSIGN(const auto collected, exchange_times(*federation));
    federation->stop();
    const auto update = 4 * parameters;
    const auto formula = 16 * parameters + 8 * parameters + 6 * update + 12 * 2 * (std::uint64_t{1} << 20);
    const double moved = 1e-9 * static_cast<double>(12 * update);
    return std::vector{
        BenchRow{"6 clients, 100 MB each way: one round", median_figure(times), "s", "trains one example", ""},
        BenchRow{"both ways in that time", moved / median_figure(times), "GB/s", "", ""},
        BenchRow{"updates, from the first offer to the last addition", moved / 2 / median_figure(collected), "GB/s",
                 fmt::format("{:.2f} s; the others still write theirs in it", median_figure(collected)), "0.6 or more"},
        BenchRow{"the coordinator's peak memory", megabytes(peak), "MB",
                 "16 P + 4 P x 2 + 6 updates + sessions x 2 frames",
                 fmt::format("{:.0f} or less", megabytes(formula))}};
}

Result<std::vector<BenchRow>> bench_idle(const BenchOptions&) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY_ASSIGN(const auto federation, start(folder, {}));
    wait_for(federation_rest);
    const auto coordinator = federation->processes()[0].pid();
    const auto client = federation->processes()[1].pid();
    const auto before = process_usage(coordinator);
    const auto client_before = process_usage(client);
    wait_for(federation_rest);
    const auto after = process_usage(coordinator);
    const auto client_after = process_usage(client);
    federation->stop();
    const auto share = [](const ProcessUsage& from, const ProcessUsage& to) {
        return 100 * (to.cpu_seconds - from.cpu_seconds) / seconds(federation_rest);
    };
    return std::vector{
        BenchRow{"the coordinator's memory with 8 clients", megabytes(after.resident), "MB", "resident", "40 or less"},
        BenchRow{"its processor time", share(before, after), "% of a core", "", "1 or less"},
        BenchRow{"a client's memory", megabytes(client_after.resident), "MB", "resident", "40 or less"},
        BenchRow{"its processor time", share(client_before, client_after), "% of a core", "", ""}};
}

namespace {

enum class BenchFault { killed, stopped, cut_off };

void strike(LocalFederation& federation, BenchFault fault, std::size_t victim) {
    if (fault == BenchFault::cut_off) {
        federation.silence(victim - 1);
    } else {
        ::kill(federation.processes()[victim].pid(), fault == BenchFault::killed ? SIGKILL : SIGSTOP);
    }
}

/// One client after the other is struck; each time until a round commits without it.
Status strike_all(BenchFault fault, std::vector<double>& times) {
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY_ASSIGN(const auto federation, start(folder, {.rounds = 100'000,
                                                     .sync = "min_clients = 1\nquorum = 1\nrejoin = \"0s\"",
                                                     .own_lines = fault == BenchFault::cut_off}));
    std::size_t victim = federation->processes().size() - 1;
    std::int64_t clients = 8;
    int rounds_since = 0;
    Instant struck = never;
    const auto done = federation->run([&](const Json& event) {
        if (event["event"].text() != "round") {
            return;
        }
        if (struck != never && event["clients"].integer() < clients) {
            times.push_back(seconds(real_now() - struck));
            clients = event["clients"].integer();
            struck = never;
            rounds_since = 0;
            --victim;
        } else if (struck == never && ++rounds_since > 5 && victim > 1) {
            struck = real_now();
            strike(*federation, fault, victim);
        } else if (struck == never && victim <= 1 && federation->processes()[0].running()) {
            federation->processes()[0].ask_to_stop();  // enough: the watch ends with it
        }
    });
    for (auto& process : federation->processes()) {
        ::kill(process.pid(), SIGCONT);
    }
    federation->stop();
    return times.empty() && !done ? Status(fail(done.error())) : Status();
}

/// So often that the longest is a 95th percentile.
Result<std::vector<double>> fault_times(BenchFault fault) {
    constexpr std::size_t least = 20;
    std::vector<double> times;
    for (std::size_t before = 0; times.size() < least; before = times.size()) {
        TRY(strike_all(fault, times));
        if (times.size() == before) {
            return fail(ErrorKind::timed_out, "bench_failed", "no round was committed after a fault");
        }
    }
    return times;
}

/// The coordinator is killed while rounds go, and started at once; each time until a round commits that it began anew.
Result<std::vector<double>> restart_times() {
    constexpr int kills = 20;
    TRY_ASSIGN(const auto folder, BenchFolder::make());
    TRY_ASSIGN(const auto federation, start(folder, {.rounds = 100'000}));
    std::vector<double> times;
    std::uint32_t round = 0;      // the last heard of
    std::uint32_t struck_at = 0;  // the last before the kill
    Instant struck = never;
    const auto each = [&](const Json& event) {
        if (event["event"].text() != "round") {
            return;
        }
        round = static_cast<std::uint32_t>(event["round"].integer());
        // The next one may have been committed and not told of.
        if (struck != never && round > struck_at + 1) {
            times.push_back(seconds(real_now() - struck));
            struck = never;
            struck_at = round;
        } else if (struck == never && round > struck_at + 10 && times.size() < kills) {
            struck = real_now();
            struck_at = round;
            ::kill(federation->processes()[0].pid(), SIGKILL);  // the watch ends with it
        } else if (times.size() >= kills && federation->processes()[0].running()) {
            federation->processes()[0].ask_to_stop();
        }
    };
    auto done = federation->run(each);
    for (int starts = 0; struck != never && starts < 2 * kills; ++starts) {
        TRY(federation->restart_coordinator());
        done = federation->follow(struck_at + 1, each);
    }
    federation->stop();
    return times.empty() && !done ? fail(done.error()) : Result<std::vector<double>>(times);
}

}  // namespace

Result<std::vector<BenchRow>> bench_faults(const BenchOptions&) {
    TRY_ASSIGN(const auto killed, fault_times(BenchFault::killed));
    TRY_ASSIGN(const auto restarted, restart_times());
    TRY_ASSIGN(const auto stopped, fault_times(BenchFault::stopped));
    TRY_ASSIGN(const auto cut_off, fault_times(BenchFault::cut_off));
    const auto row = [](const char* name, const std::vector<double>& times, const char* target) {
        const double longest = times.empty() ? 0 : std::ranges::max(times);
        return BenchRow{name, median_figure(times), "s",
                        fmt::format("{} times, the longest {:.2f} s", times.size(), longest), target};
    };
    return std::vector{row("a client killed: until the next commit without it", killed, "0.5 or less"),
                       row("the coordinator killed and started again", restarted, "2.0 or less"),
                       row("a client stopped (SIGSTOP)", stopped, "2.0 or less, longest 3"),
                       row("a client's line silent", cut_off, "2.0 or less, longest 3")};
}

}  // namespace causeway::cli
