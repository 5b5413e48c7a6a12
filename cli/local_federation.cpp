// The operator's own commands over the operator's own connection: nothing here that a person could not do by hand.
#include "cli/local_federation.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/file.h"
#include "common/text.h"
#include "configs/canonical.h"
#include "configs/dataset_file.h"
#include "configs/statistics.h"
#include "configs/workload.h"
#include "wire/token.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration start_bound = std::chrono::seconds(30);  // for the coordinator to listen, and for all to join
constexpr Duration poll = std::chrono::milliseconds(20);
constexpr int token_lifetime_s = 3600;

/// Asks again every few milliseconds until it is so. False when the bound has passed.
Result<bool> until(const std::function<Result<bool>()>& holds) {
    BoundedQueue<int> nothing(1);
    const auto deadline = real_now() + start_bound;
    while (real_now() < deadline) {
        TRY_ASSIGN(const bool so, holds());
        if (so) {
            return true;
        }
        (void)nothing.pop_for(poll);
    }
    return false;
}

}  // namespace

Result<std::unique_ptr<LocalFederation>> LocalFederation::start(LocalOptions options) {
    auto federation = std::make_unique<LocalFederation>(std::move(options));
    TRY(federation->divide_data());
    TRY_ASSIGN(auto coordinator, federation->start_coordinator("127.0.0.1:0"));
    federation->processes_.push_back(std::move(coordinator));
    TRY(federation->connect());
    TRY(federation->start_hosts());
    TRY(federation->wait_for("host", federation->hosts()));
    TRY(federation->shape_links());
    TRY(federation->start_clients());
    TRY(federation->wait_for("client", federation->options_.clients));
    return federation;
}

Status LocalFederation::divide_data() {
    const auto& experiment = options_.experiment;
    TRY_ASSIGN(auto file, read_dataset_file(options_.dataset, data_options_of(experiment)));
    TRY_ASSIGN(auto raw, std::move(file).whole());
    raw.name = experiment.data.dataset;
    const DividePlan plan{.parts = options_.clients,
                          .holdout = experiment.data.holdout,
                          .partition = partition_of(experiment),
                          .seed = experiment.experiment.seed};
    TRY_ASSIGN(parts_, write_split(raw, plan, options_.folder / "data"));
    return {};
}

std::string LocalFederation::data_argument(const WrittenPart& part) const {
    return options_.experiment.data.dataset + "=" + part.path.string();
}

Result<Process> LocalFederation::start_coordinator(const std::string& listen) {
    std::vector<std::string> words = {
        own_path().string(), "coordinator", "--state",   (options_.folder / "coordinator").string(),
        "--listen",          listen,        "--workers", std::to_string(options_.workers)};
    if (parts_.size() > options_.clients) {
        words.insert(words.end(), {"--data", data_argument(parts_.back())});
    }
    for (const auto& model : options_.models) {
        words.insert(words.end(), {"--model", model});
    }
    return Process::start(words, "", options_.folder / "coordinator.log");
}

Status LocalFederation::restart_coordinator() {
    TRY_ASSIGN(const auto address, read_file(options_.folder / "coordinator" / "operator" / "address", 256));
    session_.reset();
    processes_.front().stop(Duration(0));
    TRY_ASSIGN(processes_.front(), start_coordinator(std::string(trim(as_text(address)))));
    Status connected;
    TRY_ASSIGN(const bool up, until([&]() -> Result<bool> {
                   connected = connect();
                   return connected.has_value() || !processes_.front().running();
               }));
    return up ? connected : fail(ErrorKind::timed_out, "coordinator_failed", "the coordinator does not answer");
}

Status LocalFederation::connect() {
    const auto state = options_.folder / "coordinator";
    auto& coordinator = processes_.front();
    TRY_ASSIGN(const bool up, until([&]() -> Result<bool> {
                   std::error_code ignored;
                   return !coordinator.running() || fs::exists(state / "operator" / "address", ignored);
               }));
    if (!up || !coordinator.running()) {
        return fail(ErrorKind::io, "coordinator_failed",
                    "the coordinator did not start; its log says:\n" + coordinator.log_tail());
    }
    TRY_ASSIGN(session_, OperatorSession::connect(state));
    return {};
}

/// A model that is cut has a host for the part after the cut.
std::uint32_t LocalFederation::hosts() const {
    return options_.experiment.mesh.stages > 1 ? options_.hosts : 0;
}

/// One line per client; behind it are the coordinator and the hosts, each at a port of its own.
Status LocalFederation::shape_links() {
    if (options_.links.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto coordinator, read_addresses(options_.folder / "coordinator" / "operator" / "address"));
    std::vector<Address> there = {coordinator.front()};
    TRY_ASSIGN(const auto nodes, session_->ask("node.list", Json::object()));
    for (std::uint32_t i = 0; i < hosts(); ++i) {
        for (const auto& node : nodes["nodes"].items()) {
            if (node["node"].text() == demo_host_name(i)) {
                TRY_ASSIGN(auto address, parse_address(node["addresses"].items().front().text()));
                there.push_back(std::move(address));
            }
        }
    }
    std::vector<ShapedRoute> routes;
    for (const auto& to : there) {
        for (std::size_t client = 0; client < options_.links.size(); ++client) {
            routes.push_back({client, to});
        }
    }
    TRY_ASSIGN(shaped_, ShapedLinks::start(options_.links, routes, options_.experiment.experiment.seed));
    return {};
}

/// With links, a client dials each host at its own end of its line.
std::vector<std::string> LocalFederation::ways_to_hosts(std::size_t client) const {
    std::vector<std::string> words;
    for (std::uint32_t i = 0; shaped_ && i < hosts(); ++i) {
        const auto port = shaped_->port((i + 1) * options_.links.size() + client);
        words.insert(words.end(), {"--reach", fmt::format("{}=127.0.0.1:{}", demo_host_name(i), port)});
    }
    return words;
}

/// With links, a client's token leads to its own end of its line.
Result<std::string> LocalFederation::token_for(std::optional<std::uint32_t> line, const std::string& given) const {
    if (!shaped_ || !line) {
        return given;
    }
    TRY_ASSIGN(auto token, parse_token(given));
    token.addresses = {{"127.0.0.1", shaped_->port(*line)}};
    return format_token(token);
}

Status LocalFederation::start_hosts() {
    for (std::uint32_t i = 0; i < hosts(); ++i) {
        TRY(start_node(demo_host_name(i), "host", {"--allow", "split", "--listen", "127.0.0.1:0"}, {}));
    }
    return {};
}

Status LocalFederation::start_clients() {
    for (std::uint32_t i = 0; i < options_.clients; ++i) {
        std::vector<std::string> more = {"--data", data_argument(parts_[i])};
        if (hosts() > 0) {
            more.insert(more.end(), {"--allow", "split"});
        }
        if (options_.experiment.regime.grouping == "labels") {
            more.emplace_back("--share-labels");
        }
        if (!options_.slow.empty()) {
            more.insert(more.end(), {"--slow", fmt::format("{:g}x", options_.slow[i])});
        }
        if (needs_statistics(options_.experiment)) {
            more.emplace_back("--share-statistics");
        }
        const auto ways = ways_to_hosts(i);
        more.insert(more.end(), ways.begin(), ways.end());
        TRY(start_node(demo_client_name(i), "client", more, i));
    }
    return {};
}

std::string LocalFederation::name_of(std::size_t process) const {
    const auto node = static_cast<std::uint32_t>(process - 1);
    return node < hosts() ? demo_host_name(node) : demo_client_name(node - hosts());
}

Status LocalFederation::start_node(const std::string& name, const std::string& role,
                                   const std::vector<std::string>& more, std::optional<std::uint32_t> line) {
    TRY_ASSIGN(
        const auto reply,
        session_->ask("token.new",
                      Json::object().set("name", name).set("role", role).set("expires_seconds", token_lifetime_s)));
    std::vector<std::string> words = {own_path().string(), "join", "-", "--state", (options_.folder / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    TRY_ASSIGN(const auto token, token_for(line, reply["token"].text()));
    TRY_ASSIGN(auto node, Process::start(words, token + "\n", options_.folder / (name + ".log")));
    processes_.push_back(std::move(node));
    return {};
}

/// Only then does the coordinator know the clients' dataset and where hosts are.
Status LocalFederation::wait_for(const std::string& role, std::uint32_t count) {
    TRY_ASSIGN(
        const bool joined, until([&]() -> Result<bool> {
            TRY(all_running());
            TRY_ASSIGN(const auto nodes, session_->ask("node.list", Json::object()));
            const auto online = static_cast<std::uint32_t>(
                std::ranges::count_if(nodes["nodes"].items(), [&](const Json& node) {
                    return node["role"].text() == role && node["state"].text() == "online";
                }));
            options_.status(fmt::format("{} of {} {}s have joined", online, count, role));
            return online >= count;
        }));
    if (!joined) {
        return fail(ErrorKind::timed_out, "nodes_missing",
                    fmt::format("not all {}s joined in time; their logs lie in {}", role, options_.folder.string()));
    }
    return {};
}

/// Without one of them the experiment would wait for nothing.
Status LocalFederation::all_running() {
    for (std::size_t i = 1; i < processes_.size(); ++i) {
        if (!processes_[i].running()) {
            return fail(ErrorKind::io, "client_failed",
                        fmt::format("{} has ended; its log says:\n{}", name_of(i), processes_[i].log_tail()));
        }
    }
    return {};
}

Result<Json> LocalFederation::run(const std::function<void(const Json&)>& each) {
    const auto& experiment = options_.experiment;
    TRY_ASSIGN(
        submitted_,
        session_->ask(
            "experiment.submit",
            Json::object().set("file", canonical_toml(experiment)).set("file_name", experiment.experiment.name)));
    return follow(0, each);
}

Result<Json> LocalFederation::follow(std::uint32_t from, const std::function<void(const Json&)>& each) {
    const auto& reply = submitted_;
    Json done;
    Status broken;
    const auto take = [&](const Json& event) {
        each(event);
        done = event["event"].text() == "done" ? event : done;
        return true;
    };
    const auto idle = [&] {
        broken = all_running();
        if (broken && options_.working) {
            if (const auto status = session_->ask("experiment.status", Json::object().set("experiment", reply["id"]))) {
                options_.working(*status);
            }
        }
        return broken.has_value();
    };
    const auto watch = Json::object().set("experiment", reply["id"]).set("from", from);
    TRY(session_->follow("experiment.watch", watch, take, idle));
    TRY(broken);
    return done;
}

void LocalFederation::stop() {
    for (auto& process : processes_) {
        process.ask_to_stop();
    }
    for (auto& process : processes_) {
        process.stop();
    }
}

}  // namespace causeway::cli
