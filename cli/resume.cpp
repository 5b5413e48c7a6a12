// `experiment resume`: a new experiment that goes on from the last commit of one that is over.
//
// The coordinator has the file, the model and the rounds, so the command sends only what is to be different. Main
// thread only.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_choice.h"
#include "cli/experiment_file.h"
#include "cli/follow.h"
#include "common/json_lists.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

Result<int> resume(const ResumeOptions& options, Output output) {
    TRY_ASSIGN(const auto patience, parse_duration_option("--reconnect", options.reconnect));
    std::optional<FollowInterrupt> interrupt;
    if (options.watch) {
        interrupt.emplace(output);
    }
    TRY_ASSIGN(auto session, OperatorSession::connect(options.state));
    TRY_ASSIGN(const auto parent, choose_experiment_id(*session, options.experiment, options.state, output));
    auto request = Json::object().set("experiment", parent).set("set", json_of(options.set));
    if (options.rounds != 0) {
        request.set("rounds", options.rounds);
    }
    TRY_ASSIGN(const auto reply, session->ask("experiment.resume", request));
    const auto id = static_cast<std::uint64_t>(reply["id"].integer());
    output.object(Json::object()
                      .set("event", "resumed")
                      .set("experiment", id)
                      .set("name", reply["name"])
                      .set("parent", parent)
                      .set("parent_round", reply["parent_round"]));
    output.line(fmt::format("experiment {} ({}) goes on from round {} of experiment {}", id, reply["name"].text(),
                            reply["parent_round"].integer(), parent));
    if (options.watch) {
        interrupt->leave_running(id, options.state);
        return follow_experiment({std::move(session), options.state, id, patience, output});
    }
    output.line(fmt::format("next: {} experiment watch {} --state {}", shell_quoted(own_path().string()), id,
                            shell_quoted(options.state)));
    return exit_done;
}

}  // namespace

int run_experiment_resume(const ResumeOptions& options, Output output) {
    const auto code = resume(options, output);
    return code ? *code : output.error(code.error());
}

}  // namespace causeway::cli
