// The command line of whom a federation consists of: tokens, nodes, an authority elsewhere, the audit log. As
// arguments.cpp, beside which it stands; includes CLI11.
#include <memory>

#include "cli/commands.h"
#include "cli/parser.h"

namespace causeway::cli {
namespace {

void add_federation(Parser& parser) {
    auto* tokens = group(parser.app, "token", "join tokens");
    auto token = std::make_shared<TokenOptions>();
    auto* app = command(parser, *tokens, "new", "make a token with which one node can join once",
                        "causeway token new --name hospital-a --state ~/federation", token, run_token_new);
    app->add_option("--name", token->name, "the node's name, unique in the federation")->required();
    add_choice(app, "--role", token->role, {"client", "host", "aggregator", "operator"}, "what it may do");
    app->add_option("--expires", token->expires, "how long it can be used")
        ->capture_default_str()
        ->type_name("DURATION");
    add_state(app, token->state);
    auto unused = std::make_shared<TokenListOptions>();
    app = command(parser, *tokens, "list", "the tokens that nobody has used",
                  "causeway token list --state ~/federation", unused, run_token_list);
    add_state(app, unused->state);
    auto withdrawn = std::make_shared<TokenRevokeOptions>();
    app = command(parser, *tokens, "revoke", "withdraw an unused token, so that its name is free",
                  "causeway token revoke hospital-a --state ~/federation", withdrawn, run_token_revoke);
    app->add_option("name", withdrawn->name, "the name it was made for")->required();
    add_state(app, withdrawn->state);

    auto* nodes = group(parser.app, "node", "the nodes of the federation");
    auto list = std::make_shared<NodeListOptions>();
    app = command(parser, *nodes, "list", "every enrolled node and operator, and its state",
                  "causeway node list --state ~/federation", list, run_node_list);
    add_state(app, list->state);

    auto revoke = std::make_shared<RevokeOptions>();
    app = command(parser, *nodes, "revoke", "end an identity: close its connections, refuse it",
                  "causeway node revoke hospital-a --state ~/federation", revoke, run_node_revoke);
    app->add_option("name", revoke->name, "the node's or operator's name")->required();
    add_state(app, revoke->state);

    auto log = std::make_shared<NodeLogOptions>();
    app = command(parser, *nodes, "log", "what a node did: its own log, if its policy allows it",
                  "causeway node log --lines 20 --state ~/node", log, run_node_log);
    app->add_option("name", log->name, "the node (default: the one whose state folder --state is)");
    add_number(app, "--lines", log->lines, 1, 200, "so many of the newest lines");
    app->add_flag("--follow", log->follow, "go on with new lines, until interrupted");
    add_state(app, log->state, "an operator's state folder; without a name, the node's own");
}

void add_authority(Parser& parser) {
    auto& parent = *group(parser.app, "ca", "a federation whose authority is elsewhere (coordinator --ca external)");
    auto requests = std::make_shared<CaOptions>();
    auto* app = command(parser, parent, "requests", "the certificate requests that wait to be signed",
                        "causeway ca requests --out requests --state ~/federation", requests, run_ca_requests);
    app->add_option("--out", requests->out, "write them here, as NAME.csr (default: list them)")->type_name("DIR");
    add_force(app, requests->force);
    add_state(app, requests->state);
    auto imported = std::make_shared<CaOptions>();
    app = command(parser, parent, "import", "take in the authority's certificate and those that it has signed",
                  "causeway ca import authority.crt coordinator.crt operator.crt --state ~/federation", imported,
                  run_ca_import);
    app->add_option("files", imported->files, "PEM files")->required()->type_name("FILE");
    add_state(app, imported->state);
}

void add_audit(Parser& parser) {
    auto& parent = *group(parser.app, "audit", "the audit log: who joined, was revoked, asked for what");
    auto show = std::make_shared<AuditOptions>();
    auto* app = command(parser, parent, "show", "print its lines, oldest first",
                        "causeway audit show --last 20 --state ~/federation", show, run_audit_show);
    app->add_option("--last", show->last, "only so many of the newest lines (default: all)")->type_name("N");
    add_state(app, show->state);

    auto verify = std::make_shared<AuditOptions>();
    app = command(parser, parent, "verify", "check that every line follows from the one before",
                  "causeway audit verify --state ~/federation", verify, run_audit_verify);
    app->add_option("--head", verify->head, "a hash noted earlier, which the log must still hold")->type_name("SHA256");
    app->add_option("--against", verify->against, "a node's state folder: the log must hold each head that it saw")
        ->type_name("DIR");
    add_state(app, verify->state);
}

}  // namespace

void add_federation_commands(Parser& parser) {
    add_federation(parser);
    add_authority(parser);
    add_audit(parser);
}

}  // namespace causeway::cli
