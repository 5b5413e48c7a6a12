// `token new|list|revoke`, `node list|revoke`: who belongs to the federation.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/experiment_file.h"
#include "cli/operator_session.h"
#include "common/text.h"

namespace causeway::cli {
namespace {

Result<Json> ask_daemon(const std::string& state, const std::string& verb, const Json& body) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(state));
    return session->ask(verb, body);
}

Result<Json> new_token(const TokenOptions& options) {
    TRY_ASSIGN(const auto expires, parse_duration_option("--expires", options.expires));
    return ask_daemon(options.state, "token.new",
                      Json::object()
                          .set("name", options.name)
                          .set("role", options.role)
                          .set("expires_seconds", static_cast<std::int64_t>(seconds(expires))));
}

std::string datasets_text(const Json& node) {
    std::vector<std::string> parts;
    for (const auto& dataset : node["datasets"].items()) {
        parts.push_back(fmt::format("{} ({} examples)", dataset["name"].text(), dataset["examples"].integer()));
    }
    return join(parts, ", ");
}

}  // namespace

int run_token_new(const TokenOptions& options, Output output) {
    const auto reply = new_token(options);
    if (!reply) {
        return output.error(reply.error());
    }
    output.object(*reply);
    output.line((*reply)["token"].text());
    if (at_terminal()) {
        output.line(fmt::format("next, on {}'s machine, before {} have passed:\n  causeway join TOKEN --state DIR{}",
                                options.name, options.expires, options.role == "operator" ? "" : " --data NAME=PATH"));
    }
    return exit_done;
}

int run_node_revoke(const RevokeOptions& options, Output output) {
    const auto reply = ask_daemon(options.state, "node.revoke", Json::object().set("name", options.name));
    if (!reply) {
        return output.error(reply.error());
    }
    output.object("revoked", *reply);
    output.line(
        fmt::format("{0} is revoked: its connections are closed and it is refused from now on\n"
                    "to let it come back: token new --name {0}",
                    options.name));
    return exit_done;
}

int run_token_list(const TokenListOptions& options, Output output) {
    const auto reply = ask_daemon(options.state, "token.list", Json::object());
    if (!reply) {
        return output.error(reply.error());
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& token : (*reply)["tokens"].items()) {
        output.object("token", token);
        rows.push_back({token["name"].text(), token["role"].text(), utc_text(token["expires_unix_s"].integer()),
                        token["expired"].boolean() ? "expired" : "unused"});
    }
    output.line(rows.empty() ? "no unused tokens" : table({"name", "role", "until", "state"}, rows));
    return exit_done;
}

int run_token_revoke(const TokenRevokeOptions& options, Output output) {
    const auto reply = ask_daemon(options.state, "token.revoke", Json::object().set("name", options.name));
    if (!reply) {
        return output.error(reply.error());
    }
    output.object("token", *reply);
    output.line(fmt::format("the token of {} works no more; its name is free", options.name));
    return exit_done;
}

int run_node_list(const NodeListOptions& options, Output output) {
    const auto reply = ask_daemon(options.state, "node.list", Json::object());
    if (!reply) {
        return output.error(reply.error());
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& node : (*reply)["nodes"].items()) {
        output.object("node", node);
        const auto until = node["expires_unix_s"];
        rows.push_back({node["node"].text(), node["role"].text("-"), node["state"].text(),
                        until.is_null() ? "-" : utc_text(until.integer()).substr(0, 10), datasets_text(node)});
    }
    if (std::ranges::all_of(rows, [](const auto& row) { return row[1] == "operator"; })) {
        output.line(fmt::format("no nodes yet; next: {} token new --name NAME --state {}",
                                shell_quoted(own_path().string()), shell_quoted(options.state)));
    }
    if (!rows.empty()) {
        output.line(table({"node", "role", "state", "valid until", "datasets"}, rows));
    }
    return exit_done;
}

}  // namespace causeway::cli
