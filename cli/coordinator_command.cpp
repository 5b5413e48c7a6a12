// `causeway coordinator`: the daemon in the foreground, until SIGINT or SIGTERM.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/daemon_settings.h"
#include "cli/experiment_file.h"
#include "cli/first_start.h"
#include "cli/room.h"
#include "cli/service_manager.h"
#include "cli/stop_signal.h"
#include "common/text.h"
#include "configs/checks.h"
#include "coordinator/daemon.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

Result<DaemonOptions> daemon_options(const CoordinatorOptions& given) {
    DaemonOptions options{.state = given.state,
                          .listen = {},
                          .advertise = given.advertise,
                          .federation = given.federation,
                          .datasets = {},
                          .models = {},
                          .parallel = given.parallel,
                          .workers = given.workers,
                          .sessions = given.sessions};
    options.authority = given.ca == "external" ? AuthorityKind::external : AuthorityKind::own;
    TRY_ASSIGN(options.listen, parse_address(given.listen));
    if (!given.http.empty()) {
        TRY_ASSIGN(options.http, parse_address(given.http));
    }
    TRY_ASSIGN(options.datasets, parse_data_arguments(given.data));
    TRY_ASSIGN(options.models, parse_model_arguments(given.models));
    return options;
}

Status serve_federation(const CoordinatorOptions& given, Output output) {
    StopSignal signal([] { std::_Exit(exit_done); });
    TRY(check_state_argument(given.state));
    TRY_ASSIGN(const auto federation, check_name(given.federation).map_error([&](Error error) {
        error.message = fmt::format("--federation {}: {}", given.federation, error.message);
        return error;
    }));
    const auto limits = std::make_shared<DaemonLimits>();
    TRY(follow_settings(fs::path(given.state) / "coordinator.toml", signal, {.coordinator = limits}));
    ServiceManager manager;
    TRY_ASSIGN(auto options, daemon_options(given));
    options.limits = limits;
    options.alive = [&manager](Instant now) { manager.alive(now); };
    TRY_ASSIGN(auto first, FirstStart::begin(given.state));
    auto started = start_with_room([&] { return Daemon::start(options); }, first.goes_on());
    if (started || started.error().code == "awaiting_signature") {
        first.keep();
    }
    TRY_ASSIGN(const auto daemon, std::move(started));
    signal.set([&] { daemon->stop(); });
    output.object(Json::object()
                      .set("event", "listening")
                      .set("port", std::int64_t{daemon->port()})
                      .set("http_port", std::int64_t{daemon->http_port()})
                      .set("federation", daemon->federation()));
    output.line(fmt::format(
        "federation {} listens on port {}; Ctrl-C stops it\nnext, in another terminal:\n"
        "  {} token new --name NAME --state {}",
        daemon->federation(), daemon->port(), shell_quoted(own_path().string()), shell_quoted(given.state)));
    if (daemon->http_port() != 0) {
        output.line(fmt::format("http on port {}, this machine only: /healthz, /metrics", daemon->http_port()));
    }
    manager.ready(fmt::format("federation {} on port {}", daemon->federation(), daemon->port()));
    auto ended = daemon->run();
    signal.set([] { std::_Exit(exit_done); });  // the daemon is about to go
    manager.stopping();
    return ended;
}

}  // namespace

int run_coordinator(const CoordinatorOptions& options, Output output) {
    const auto served = serve_federation(options, output);
    return served ? exit_done : output.error(served.error());
}

}  // namespace causeway::cli
