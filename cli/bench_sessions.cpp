// The benchmark of a thousand sessions: one real coordinator, and a load tool that holds all clients in one thread.
#include <algorithm>

#include <fmt/format.h>

#include "cli/bench.h"
#include "cli/bench_folder.h"
#include "cli/local_federation.h"
#include "cli/operator_session.h"
#include "cli/process.h"
#include "cli/swarm.h"
#include "common/file.h"
#include "common/text.h"
#include "compression/update_format.h"
#include "model/arena.h"
#include "model/chain.h"
#include "wire/prepare_process.h"

namespace causeway::cli {
namespace {

constexpr std::size_t session_count = 1000;
constexpr Duration sessions_bound = std::chrono::seconds(40);
constexpr Duration sessions_rest = std::chrono::seconds(4);

constexpr std::string_view sessions_experiment = R"(
[experiment]
name   = "bench-sessions"
rounds = 1
[data]
dataset = "bench"
label   = "last"
shape   = [64]
[model]
layers = ["dense 1000", "relu", "dense 35"]
[train]
optimizer = { kind = "sgd", learning_rate = 0.01 }
batch = "full"
[regime]
preset = "fedavg"
[sync]
min_clients = 1000
[evaluation]
where = "none"
)";

/// All zeros, the shape of the assignment's model.
Result<SwarmUpdate> make_update_for(const Assign& assign) {
    TRY_ASSIGN(const auto chain, Chain::from_architecture(assign.architecture));
    TRY_ASSIGN(const auto codec, parse_codec(assign.uplink));
    const auto& table = chain.table();
    const auto state = ModelState::zeros(table);
    const ArenaValues values{state.trainable.values, state.buffers.values, state.frozen.values};
    return SwarmUpdate{encode_update(codec, make_update(table, exchanged_ranges(table), values)), assign.model};
}

struct Stage {
    BenchFolder folder;
    std::filesystem::path state = folder.path / "coordinator";
    Address address{"127.0.0.1", 0};
    std::optional<Process> coordinator;
    std::unique_ptr<Swarm> swarm;
    std::vector<BenchRow> rows;

    Status start_coordinator() {
        TRY_ASSIGN(auto process, Process::start({own_path().string(), "coordinator", "--state", state.string(),
                                                 "--listen", address.text(), "--workers", "2"},
                                                "", folder.path / "coordinator.log"));
        coordinator.emplace(std::move(process));
        return {};
    }
    Status find_coordinator() {
        BoundedQueue<int> nothing(1);
        for (const auto deadline = real_now() + sessions_bound; real_now() < deadline && coordinator->running();) {
            if (const auto text = read_file(state / "operator" / "address", 256)) {
                TRY_ASSIGN(const auto found, parse_address(trim(as_text(*text))));
                address.port = found.port;
                return {};
            }
            (void)nothing.pop_for(std::chrono::milliseconds(10));
        }
        return fail(ErrorKind::io, "cannot_start", "the coordinator did not start: " + coordinator->log_tail());
    }
    /// Seconds until all sessions are there.
    Result<double> run_until(std::string_view what, const std::function<std::size_t()>& count) {
        const auto begin = real_now();
        if (!swarm->run(sessions_bound, [&] { return count() >= session_count; })) {
            return fail(ErrorKind::timed_out, "bench_failed",
                        fmt::format("{} of {} sessions: {}; {}", count(), session_count, what, swarm->complaint()));
        }
        return seconds(real_now() - begin);
    }
    [[nodiscard]] ProcessUsage usage() const { return process_usage(coordinator->pid()); }

    Status admit();
    Status measure_rest(const ProcessUsage& before);
    Status round();
    Status restart();
};

Status Stage::admit() {
    const auto before = usage();
    swarm->connect(address);
    TRY_ASSIGN(const double time, run_until("admitted", [&] { return swarm->welcomed(); }));
    rows.push_back({"1,000 sessions admitted", time, "s", "the load tool is on the same 2 cores", "1.5 or less"});
    return measure_rest(before);
}

Status Stage::measure_rest(const ProcessUsage& before) {
    swarm->run(sessions_rest, [] { return false; });
    const auto begin = usage();
    swarm->run(sessions_rest, [] { return false; });
    const auto end = usage();
    const auto resident = end.resident > before.resident ? end.resident - before.resident : 0;
    rows.push_back({"memory of an idle session", 1e-3 * static_cast<double>(resident) / session_count, "KB",
                    "the coordinator's resident memory, the increase", "80 or less"});
    rows.push_back({"heartbeats of 1,000 idle sessions",
                    100 * (end.cpu_seconds - begin.cpu_seconds) / seconds(sessions_rest), "% of a core", "",
                    "4 or less"});
    return {};
}

Status Stage::round() {
    swarm->attach();
    TRY(run_until("attached", [&] { return swarm->attached(); }));
    TRY_ASSIGN(const auto session, OperatorSession::connect(state));
    TRY(session->ask("experiment.submit",
                     Json::object().set("file", std::string(sessions_experiment)).set("file_name", "bench-sessions")));
    if (!swarm->run(sessions_bound, [&] { return swarm->assigned() > 0; })) {
        return fail(ErrorKind::timed_out, "bench_failed", "nobody was assigned; " + swarm->complaint());
    }
    TRY_ASSIGN(const double broadcast, run_until("have the model", [&] { return swarm->models(); }));
    rows.push_back({"a broadcast of 400 KB", broadcast, "s", "from the first assignment", "0.35 or less"});
    TRY_ASSIGN(auto update, make_update_for(swarm->assignment()));
    swarm->prepare(std::move(update));
    const auto begin = real_now();
    swarm->offer();
    TRY(run_until("were counted", [&] { return swarm->committed(); }));
    rows.push_back({"a round of 1,000 updates of 400 KB", seconds(real_now() - begin), "s",
                    "from the first offer to the last word of the commit", "1 or less"});
    rows.push_back({"the coordinator's peak memory", 1e-6 * static_cast<double>(usage().peak), "MB", "", ""});
    return {};
}

/// Killed, not stopped: nobody hears a goodbye.
Status Stage::restart() {
    coordinator->stop(Duration(0));
    swarm->run(std::chrono::milliseconds(100), [] { return false; });
    TRY(start_coordinator());
    TRY_ASSIGN(const double time, run_until("are back", [&] { return swarm->welcomed(); }));
    rows.push_back({"all are back after a restart", time, "s", "from the coordinator's new start", "5 or less"});
    return {};
}

}  // namespace

Result<std::vector<BenchRow>> bench_sessions(const BenchOptions&) {
    TRY_ASSIGN(auto folder, BenchFolder::make());
    TRY(prepare_process_for_links(coordinator_need(0, session_count), read_machine(folder.path, wall_clock_unix_s())));
    Stage stage{std::move(folder)};
    TRY(stage.start_coordinator());
    TRY(stage.find_coordinator());
    TRY_ASSIGN(const auto authority, load_authority(stage.state / "ca"));
    TRY_ASSIGN(stage.swarm, Swarm::make(authority, session_count,
                                        {.name = "bench", .digest = {}, .examples = 1, .shape = {65}, .classes = 0}));
    TRY(stage.admit());
    TRY(stage.round());
    TRY(stage.restart());
    stage.coordinator->stop();
    return std::move(stage.rows);
}

}  // namespace causeway::cli
