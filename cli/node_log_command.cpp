// `node log`: what a node did. With a name its own answer, over the coordinator and if the node's policy allows it;
// without one the log of a node's state folder on this machine, for its admin, whether the node runs or not.
//
// --follow asks again once a second until it is interrupted. Main thread.
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/log_lines.h"
#include "cli/operator_session.h"
#include "client/node_log.h"
#include "common/printable.h"
#include "common/queue.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

constexpr Duration look_again = std::chrono::seconds(1);

/// Lines after a number, oldest first.
using ReadLines = std::function<Result<std::vector<Json>>(std::int64_t after, std::uint32_t most)>;

void print_line(const Json& line, Output output) {
    output.object("log", line);
    output.line(fitted(fmt::format("{}  {:12}  {}", utc_text(line["at"].integer()),
                                   printable(line["what"].text(), Lines::one),
                                   details_text(line, {"n", "at", "what", "attempt", "regime"}))));
}

/// errors  those of `read`; without --follow it returns after one look
Status print_lines(const NodeLogOptions& options, const ReadLines& read, Output output) {
    std::int64_t after = 0;
    BoundedQueue<int> nothing(1);
    while (true) {
        TRY_ASSIGN(const auto lines, read(after, options.lines));
        for (const auto& line : lines) {
            print_line(line, output);
            after = line["n"].integer();
        }
        if (!options.follow) {
            return {};
        }
        if (lines.empty()) {
            (void)nothing.pop_for(look_again);
        }
    }
}

void print_totals(const Json& reply, Output output) {
    output.object("node_totals", Json::object()
                                     .set("node", reply["node"])
                                     .set("since_unix_s", reply["since_unix_s"])
                                     .set("bytes_up", reply["bytes_up"])
                                     .set("bytes_down", reply["bytes_down"])
                                     .set("counts", reply["counts"]));
    output.line(fmt::format("since {}: {}\n{} up, {} down", utc_text(reply["since_unix_s"].integer()),
                            details_text(reply["counts"], {}),
                            format_bytes(static_cast<std::uint64_t>(reply["bytes_up"].integer())),
                            format_bytes(static_cast<std::uint64_t>(reply["bytes_down"].integer()))));
}

Status remote(const NodeLogOptions& options, Output output) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    Json last;
    const auto read = [&](std::int64_t after, std::uint32_t most) -> Result<std::vector<Json>> {
        TRY_ASSIGN(last, session->ask("node.log",
                                      Json::object().set("name", options.name).set("after", after).set("lines", most)));
        return last["lines"].items();
    };
    TRY(print_lines(options, read, output));
    print_totals(last, output);
    return {};
}

Status local(const NodeLogOptions& options, Output output) {
    std::error_code ignored;
    const std::filesystem::path state = options.state;
    if (!std::filesystem::exists(state / "log" / "node.log", ignored) &&
        std::filesystem::exists(state / "operator", ignored)) {
        return fail(ErrorKind::invalid, "usage",
                    options.state + " is an operator's folder: name the node, as `causeway node log lab-a --state " +
                        options.state + "`, or give a node's own state folder");
    }
    const auto read = [&](std::int64_t after, std::uint32_t most) {
        return node::read_node_log(state, static_cast<std::uint64_t>(after), most);
    };
    return print_lines(options, read, output);
}

}  // namespace

int run_node_log(const NodeLogOptions& options, Output output) {
    const auto printed = options.name.empty() ? local(options, output) : remote(options, output);
    return printed ? exit_done : output.error(printed.error());
}

}  // namespace causeway::cli
