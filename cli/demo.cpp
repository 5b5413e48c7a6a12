// `causeway demo`: the real thing on one machine. A coordinator and clients as processes of this binary, each client
// with its own certificate and its own part of the data; then the operator's commands, as a person would give them.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/live_view.h"
#include "cli/operator_session.h"
#include "cli/process.h"
#include "cli/stop_signal.h"
#include "common/bytes.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/workload.h"
#include "data/reader.h"
#include "data/write.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration start_bound = std::chrono::seconds(20);  // for the coordinator to listen

struct Stage {
    fs::path folder;
    Experiment experiment;
    fs::path dataset;
    std::vector<WrittenPart> parts;  // clients' in order, the held-out one last if there is one
};

Result<fs::path> make_folder(const DemoOptions& options) {
    std::error_code ignored;
    fs::path folder = options.state;
    if (folder.empty()) {
        folder = fs::temp_directory_path() / ("causeway-demo-" + to_hex(secret_random_bytes(4)));
    } else if (fs::exists(folder / "coordinator", ignored)) {
        return fail(ErrorKind::invalid, "folder_in_use",
                    folder.string() + ": holds an earlier demo; name a new folder with --state");
    }
    TRY(make_private_folder(folder));
    return fs::absolute(folder);
}

Result<Stage> set_up(const DemoOptions& options) {
    Stage stage;
    TRY_ASSIGN(stage.experiment, load_experiment(options.example, options.set));
    require_all(stage.experiment, options.clients);
    TRY_ASSIGN(const auto paths, parse_data_arguments(options.data));
    TRY_ASSIGN(stage.dataset, find_dataset(stage.experiment.data.dataset, paths));
    TRY_ASSIGN(stage.folder, make_folder(options));
    TRY_ASSIGN(auto raw, read_raw_dataset(stage.dataset, data_options_of(stage.experiment)));
    raw.name = stage.experiment.data.dataset;
    const SplitPlan plan{.parts = options.clients,
                         .holdout = stage.experiment.data.holdout,
                         .partition = partition_of(stage.experiment),
                         .seed = stage.experiment.experiment.seed};
    TRY_ASSIGN(stage.parts, write_split(raw, plan, stage.folder / "data"));
    return stage;
}

std::string data_argument(const Stage& stage, const WrittenPart& part) {
    return stage.experiment.data.dataset + "=" + part.path.string();
}

Result<Process> start_coordinator(const Stage& stage, const DemoOptions& options) {
    std::vector<std::string> words = {own_path().string(), "coordinator", "--state", (stage.folder / "coordinator").string(),
                                      "--listen", "127.0.0.1:0", "--workers", std::to_string(options.workers)};
    if (stage.parts.size() > options.clients) {
        words.insert(words.end(), {"--data", data_argument(stage, stage.parts.back())});
    }
    return Process::start(words, "", stage.folder / "coordinator.log");
}

/// Waits until the coordinator answers; its log says why if it does not come up.
Result<std::unique_ptr<OperatorSession>> operator_session(const Stage& stage, Process& coordinator) {
    const auto state = stage.folder / "coordinator";
    const auto deadline = real_now() + start_bound;
    BoundedQueue<int> nothing(1);
    while (real_now() < deadline && coordinator.running()) {
        std::error_code ignored;
        if (fs::exists(state / "operator" / "address", ignored)) {
            return OperatorSession::connect(state);
        }
        (void)nothing.pop_for(std::chrono::milliseconds(20));
    }
    return fail(ErrorKind::io, "coordinator_failed", "the coordinator did not start; its log says:\n" + coordinator.log_tail());
}

Result<std::vector<Process>> start_clients(OperatorSession& session, const Stage& stage, std::uint32_t count) {
    std::vector<Process> clients;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto name = demo_client_name(i);
        TRY_ASSIGN(const auto token,
                   session.ask("token.new", Json::object().set("name", name).set("expires_seconds", 3600)));
        const std::vector<std::string> words = {own_path().string(), "join", "-", "--state", (stage.folder / name).string(),
                                                "--data", data_argument(stage, stage.parts[i])};
        TRY_ASSIGN(auto client, Process::start(words, token["token"].text() + "\n", stage.folder / (name + ".log")));
        clients.push_back(std::move(client));
    }
    return clients;
}

/// The first client that has ended by itself, as an error: without it the demo would wait for nothing.
Status all_running(std::vector<Process>& clients) {
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
        if (!clients[i].running()) {
            return fail(ErrorKind::io, "client_failed",
                        fmt::format("{} has ended; its log says:\n{}", demo_client_name(i), clients[i].log_tail()));
        }
    }
    return {};
}

/// Waits until every client has joined: only then does the coordinator know their dataset.
Status all_joined(OperatorSession& session, std::vector<Process>& clients, LiveView& view) {
    BoundedQueue<int> nothing(1);
    const auto deadline = real_now() + start_bound;
    while (real_now() < deadline) {
        TRY(all_running(clients));
        TRY_ASSIGN(const auto nodes, session.ask("node.list", Json::object()));
        const auto online = std::ranges::count_if(
            nodes["nodes"].items(), [](const Json& node) { return node["state"].text() == "online"; });
        if (static_cast<std::size_t>(online) >= clients.size()) {
            return {};
        }
        view.status(fmt::format("{} of {} clients have joined", online, clients.size()));
        (void)nothing.pop_for(std::chrono::milliseconds(20));
    }
    return fail(ErrorKind::timed_out, "clients_missing", "not all clients joined in time; their logs lie in the demo's folder");
}

Result<Json> follow(OperatorSession& session, const Stage& stage, std::vector<Process>& clients, Output output) {
    LiveView view(output);
    TRY(all_joined(session, clients, view));
    TRY_ASSIGN(const auto reply, session.ask("experiment.submit", Json::object()
                                                                      .set("file", canonical_toml(stage.experiment))
                                                                      .set("file_name", stage.experiment.experiment.name)));
    Json done;
    Status broken;
    const auto each = [&](const Json& event) {
        view.event(event);
        done = event["event"].text() == "done" ? event : done;
        return true;
    };
    const auto idle = [&] {
        broken = all_running(clients);
        return broken.has_value();
    };
    TRY(session.follow("experiment.watch", Json::object().set("experiment", reply["id"]).set("from", 1), each, idle));
    TRY(broken);
    return done;
}

/// The example's name or file with what was changed, as the commands below take it.
std::string example_words(const DemoOptions& options) {
    auto words = shell_quoted(options.example);
    for (const auto& set : options.set) {
        words += " --set " + shell_quoted(set);
    }
    return words;
}

void print_closing(const DemoOptions& options, const Stage& stage, const fs::path& model, const Json& done, Output output) {
    const auto self = shell_quoted(own_path().string());
    const auto data = " --data " + shell_quoted(stage.experiment.data.dataset + "=" + fs::absolute(stage.dataset).string());
    const auto model_path = model.string();
    output.line("");
    output.line(styled("model    ", "1") + model_path);
    output.line(styled("SHA-256  ", "1") + done["model_sha256"].text());
    output.line(styled("logs     ", "1") + stage.folder.string());
    output.line("\nNext, try:");
    output.line("  the same run on a virtual clock, with the same SHA-256");
    output.line(fmt::format("    {} simulate {} --clients {}{}", self, example_words(options), options.clients, data));
    output.line("  every setting of it, and where each came from");
    output.line(fmt::format("    {} experiment show {}", self, example_words(options)));
    output.line("  what one client held");
    output.line(fmt::format("    {} data inspect {} --label {}", self, shell_quoted(stage.parts.front().path.string()),
                            shell_quoted(stage.experiment.data.label)));
}

Result<int> demo(const DemoOptions& options, Output output) {
    StopSignal signal([] { std::quick_exit(130); });
    TRY_ASSIGN(const auto stage, set_up(options));
    output.line(fmt::format("{}: a coordinator and {} clients on this machine, {} on \"{}\", {} rounds",
                            stage.experiment.experiment.name, options.clients, stage.experiment.regime.preset,
                            stage.experiment.data.dataset, stage.experiment.experiment.rounds));
    TRY_ASSIGN(auto coordinator, start_coordinator(stage, options));
    TRY_ASSIGN(const auto session, operator_session(stage, coordinator));
    TRY_ASSIGN(auto clients, start_clients(*session, stage, options.clients));
    TRY_ASSIGN(auto done, follow(*session, stage, clients, output));
    const auto model = stage.folder / "model.safetensors";
    if (done["state"].text() == "succeeded") {
        std::error_code failed;
        fs::copy_file(done["model"].text(), model, fs::copy_options::overwrite_existing, failed);
        if (failed) {
            return fail(ErrorKind::io, "io", model.string() + ": " + failed.message());
        }
    }
    for (auto& client : clients) {
        client.stop();
    }
    coordinator.stop();
    if (done["state"].text() != "succeeded") {
        return exit_failed;
    }
    print_closing(options, stage, model, done, output);
    return exit_done;
}

}  // namespace

int run_demo(const DemoOptions& options, Output output) {
    const auto code = demo(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
