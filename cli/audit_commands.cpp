// `audit show` and `audit verify`: the coordinator's log of who did what, read over the operator's connection.
//
// Verification happens here, from the texts that were hashed: the coordinator's word that its log is whole would be
// worth nothing. Its limit: a coordinator that writes a whole new chain is found out only by a hash that somebody noted
// earlier (--head), or that a node was sent with a commit (--against).
#include <deque>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/log_lines.h"
#include "cli/operator_session.h"
#include "client/audit_heads.h"
#include "coordinator/audit_store.h"

namespace causeway::cli {
namespace {

struct Line {
    std::int64_t sequence = 0;
    std::string entry;  // as hashed
    std::string hash;
};

/// Gives every line in order, page by page; the log's head at the end.
Result<std::string> read_log(const std::string& state, const std::function<Status(Line)>& each) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(state));
    std::int64_t after = 0;
    while (true) {
        TRY_ASSIGN(const auto page, session->ask("audit.show", Json::object().set("after", after)));
        const auto& entries = page["entries"].items();
        for (const auto& entry : entries) {
            TRY(each({entry["sequence"].integer(), entry["entry"].text(), entry["hash"].text()}));
        }
        if (entries.empty() || entries.back()["sequence"].integer() <= after) {
            return page["head"].text();
        }
        after = entries.back()["sequence"].integer();
    }
}

Json parsed(const Line& line) {
    return Json::parse(line.entry).value_or(Json::object());
}

void print_entry(const std::deque<Line>& lines, Output output) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& line : lines) {
        const auto entry = parsed(line);
        output.object("audit",
                      Json::object().set("sequence", line.sequence).set("hash", line.hash).set("entry", entry));
        rows.push_back({std::to_string(line.sequence), utc_text(entry["at"].integer()), entry["event"].text(),
                        details_text(entry, {"at", "event"})});
    }
    output.line(table({"line", "time", "event", "what"}, rows));
}

tl::unexpected<Error> broken(const std::string& message) {
    return fail(ErrorKind::corrupt, "audit_broken", message);
}

/// The chain so far, judged line by line.
struct AuditChain {
    std::set<std::string> noted;  // not met yet, by hash
    Digest head{};
    std::int64_t length = 0;

    Status add(const Line& line) {
        head = audit_hash(head, line.entry);
        ++length;
        if (line.sequence != length || line.hash != head.hex()) {
            return broken(
                fmt::format("line {} of the audit log does not follow from the one before: it was changed, "
                            "added or cut out",
                            length));
        }
        noted.erase(line.hash);
        return {};
    }
};

/// The hashes that the log must hold: one from the command line, those that a node has seen.
Result<std::set<std::string>> noted_heads(const AuditOptions& options) {
    std::set<std::string> noted;
    if (!options.head.empty()) {
        noted.insert(options.head);
    }
    if (options.against.empty()) {
        return noted;
    }
    TRY_ASSIGN(const auto seen, node::AuditHeads::open(options.against));
    if (seen.heads().empty()) {
        return fail(ErrorKind::not_found, "no_such_file",
                    fmt::format("--against {}: no heads of the audit log there; name the state folder of a node that "
                                "has taken part in a round",
                                options.against));
    }
    TRY_ASSIGN(const auto own, load_credentials(std::filesystem::path(options.state) / "operator"));
    if (seen.federation() != own.identity.federation) {
        return fail(ErrorKind::invalid, "usage",
                    fmt::format("--against {}: that node belongs to the federation \"{}\", this operator to \"{}\"",
                                options.against, seen.federation(), own.identity.federation));
    }
    for (const auto& head : seen.heads()) {
        noted.insert(head.hex());
    }
    return noted;
}

Result<AuditChain> verify(const AuditOptions& options) {
    if (!options.head.empty() && !digest_from_hex(options.head)) {
        return fail(ErrorKind::invalid, "usage",
                    fmt::format("--head {}: is no hash of the log, which has 64 hexadecimal digits; an earlier `audit "
                                "verify` printed it",
                                options.head));
    }
    TRY_ASSIGN(auto noted, noted_heads(options));
    const auto count = noted.size();
    AuditChain chain{.noted = std::move(noted)};
    TRY_ASSIGN(const auto head, read_log(options.state, [&](const Line& line) { return chain.add(line); }));
    if (head != chain.head.hex()) {
        return broken("the audit log ends elsewhere than its head says: it was cut");
    }
    if (!chain.noted.empty()) {
        return broken(
            fmt::format("the audit log does not hold the line with hash {} ({} of {} hashes are missing): it "
                        "was cut, written anew or restored from a backup, since that was noted",
                        *chain.noted.begin(), chain.noted.size(), count));
    }
    return chain;
}

}  // namespace

int run_audit_show(const AuditOptions& options, Output output) {
    std::deque<Line> lines;
    const auto read = read_log(options.state, [&](Line line) -> Status {
        lines.push_back(std::move(line));
        if (options.last > 0 && lines.size() > options.last) {
            lines.pop_front();
        }
        return {};
    });
    if (!read) {
        return output.error(read.error());
    }
    print_entry(lines, output);
    return exit_done;
}

int run_audit_verify(const AuditOptions& options, Output output) {
    const auto chain = verify(options);
    if (!chain) {
        return output.error(chain.error());
    }
    output.object("verified", Json::object().set("lines", chain->length).set("head", chain->head.hex()));
    output.line(
        fmt::format("the audit log is whole: {} lines, with the head\n  {}\nnote it somewhere else: with "
                    "--head HEAD a later check shows whether the log was cut or made anew",
                    chain->length, chain->head.hex()));
    return exit_done;
}

}  // namespace causeway::cli
