// `causeway join`: a node in the foreground, until SIGINT or SIGTERM. With an operator's token it only enrols: what an
// operator runs are commands.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/daemon_settings.h"
#include "cli/experiment_file.h"
#include "cli/first_start.h"
#include "cli/room.h"
#include "cli/service_manager.h"
#include "cli/stop_signal.h"
#include "client/node.h"
#include "common/reader.h"
#include "common/printable.h"
#include "common/text.h"
#include "simulation/mix.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_token = 16 * 1024;

/// The token as given, or the first line of stdin for `-`.
Result<std::string> read_token(const std::string& given) {
    if (given != "-") {
        return given;
    }
    std::string line;
    std::getline(std::cin, line);
    const auto token = std::string(trim(line));
    if (token.empty() || token.size() > longest_token) {
        return fail(ErrorKind::invalid, "not_a_token", "no token came on stdin; pipe one into `causeway join -`");
    }
    return token;
}

void say_what_an_operator_can_do(const node::Enrolment& enrolment, const std::string& state, Output output) {
    output.object("enrolled", Json::object()
                                  .set("name", enrolment.name)
                                  .set("role", to_string(enrolment.role))
                                  .set("federation", enrolment.federation));
    output.line(fmt::format("{} is an operator of federation {}\nnext: {} node list --state {}", enrolment.name,
                            enrolment.federation, shell_quoted(own_path().string()), shell_quoted(state)));
}

Result<std::map<std::string, std::string>> read_reach(const std::vector<std::string>& arguments) {
    std::map<std::string, std::string> reach;
    for (const auto& argument : arguments) {
        const auto equals = std::min(argument.find('='), argument.size());
        const auto address = parse_address(argument.substr(std::min(equals + 1, argument.size())));
        if (equals == 0 || equals == argument.size() || !address) {
            return fail(ErrorKind::invalid, "bad_address",
                        fmt::format("--reach {}: a host's name and an address are needed, as in host-1=10.0.0.3:7401",
                                    argument));
        }
        reach[argument.substr(0, equals)] = address->text();
    }
    return reach;
}

Result<node::Policy> read_policy(const JoinOptions& given) {
    TRY_ASSIGN(auto policy, node::load_policy(given.state, given.policy));
    if (!given.allow.empty()) {
        policy.allow("allow_split", "--allow split");
    }
    if (given.share_labels) {
        policy.allow("share_labels", "--share-labels");
    }
    if (given.share_statistics) {
        policy.allow("share_statistics", "--share-statistics");
    }
    return policy;
}

/// What is in force, before anything is asked of the node.
void print_policy(const node::Policy& policy, Output output) {
    output.object(node::to_json(policy));
    std::vector<std::vector<std::string>> rows;
    for (const auto& line : node::describe(policy)) {
        rows.push_back({line.key, line.value, line.where});
    }
    output.line(table({"policy", "value", "from"}, rows));
}

Result<std::uint64_t> memory_option(const std::string& given) {
    const auto bytes = given.empty() ? std::optional<std::uint64_t>(0) : parse_size(given);
    if (!bytes || (*bytes == 0 && !given.empty())) {
        return fail(ErrorKind::invalid, "usage", "--memory " + given + ": write a size, such as 8GB");
    }
    return *bytes;
}

Status serve_node(const JoinOptions& given, Output output) {
    StopSignal signal([] { std::_Exit(exit_done); });
    TRY(check_state_argument(given.state));
    TRY_ASSIGN(const double slow, given.slow.empty() ? Result<double>(1.0) : simulation::parse_slowness(given.slow));
    TRY_ASSIGN(auto reach, read_reach(given.reach));
    TRY_ASSIGN(const auto memory, memory_option(given.memory));
    const auto limits = std::make_shared<node::NodeLimits>();
    TRY(follow_settings(fs::path(given.state) / "node.toml", signal, {.node = limits}));
    ServiceManager manager;
    TRY_ASSIGN(auto policy, read_policy(given));
    TRY_ASSIGN(const auto datasets, parse_data_arguments(given.data));
    TRY_ASSIGN(const auto token, read_token(given.token));
    TRY_ASSIGN(const auto wait, parse_duration_option("--wait", given.wait));
    const auto say = [output](std::string_view line) {
        if (!takes_a_line(STDOUT_FILENO)) {
            return;  // said from the node's loop, which must not wait for a reader
        }
        output.line(printable(line, Lines::one));  // it may quote the coordinator: no line of its own
        output.object(Json::object().set("event", "node").set("text", line));
    };
    TRY_ASSIGN(auto first, FirstStart::begin(given.state));
    TRY_ASSIGN(auto enrolment,
               start_with_room([&] { return node::Enrolment::open(given.state, token, say, wait); },
                               first.goes_on()));
    first.keep();
    if (enrolment.role == Role::operator_) {
        say_what_an_operator_can_do(enrolment, given.state, output);
        return {};
    }
    say(fmt::format("{} of federation {}, coordinator at {}", enrolment.name, enrolment.federation,
                    enrolment.coordinators.empty() ? "-" : enrolment.coordinators.front().text()));
    print_policy(policy, output);
    output.line(
        "this node works whenever an experiment has need of its datasets; Ctrl-C stops it\nnext, where the "
        "coordinator's state folder lies:\n  causeway experiment submit FILE --state DIR");
    const auto status = fmt::format("{} of federation {}", enrolment.name, enrolment.federation);
    node::NodeOptions options{.state = given.state, .datasets = datasets, .device = given.device};
    options.threads = static_cast<std::int32_t>(given.threads);
    options.slow = slow;
    options.memory = memory;
    options.alive = [&manager](Instant now) { manager.alive(now); };
    options.policy = std::move(policy);
    TRY_ASSIGN(options.listen, parse_address(given.listen));
    options.advertise = given.advertise;
    options.reach = std::move(reach);
    options.limits = limits;
    options.say = [say](const std::string& line) { say(line); };
    TRY_ASSIGN(const auto node, node::Node::start(std::move(enrolment), std::move(options)));
    signal.set([&] { node->stop(); });
    manager.ready(status);
    auto ended = node->run();
    signal.set([] { std::_Exit(exit_done); });  // the node is about to go
    manager.stopping();
    return ended;
}

}  // namespace

int run_join(const JoinOptions& options, Output output) {
    const auto served = serve_node(options, output);
    return served ? exit_done : output.error(served.error());
}

}  // namespace causeway::cli
