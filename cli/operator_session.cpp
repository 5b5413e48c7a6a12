// One link with one connection; replies are told apart by the number of their request.
#include "cli/operator_session.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/file.h"
#include "common/log.h"
#include "common/system_error.h"
#include "common/text.h"
#include "wire/certificate_request.h"
#include "wire/transfer_engine.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

constexpr Duration greeting_bound = std::chrono::seconds(12);  // a handshake (10 s at most) and a greeting
constexpr Duration answer_bound = std::chrono::seconds(60);    // the longest a verb may take to say something
constexpr Duration idle_beat = std::chrono::milliseconds(500);
constexpr std::size_t operator_queue_limit = 1024;
constexpr std::size_t most_set_aside = 1024;  // replies to one request that came while another was waited for

/// Of a folder without an identity it says what to do first.
Result<std::vector<Address>> addresses_of(const fs::path& state) {
    auto addresses = read_addresses((state / "operator" / "address").string());
    if (!addresses && addresses.error().kind == ErrorKind::not_found) {
        return fail(
            ErrorKind::not_found, "no_operator_identity",
            fmt::format(
                "{0}: no operator identity here; start `causeway coordinator --state {0}` first, name its state "
                "folder with --state, or become an operator with `causeway join TOKEN --state {0}`",
                state.string()));
    }
    return addresses;
}

Error unreachable(const fs::path& state, const Address& address, const Error& why) {
    const auto what = why.code == "unreachable" ? std::string("nothing answers there") : why.message;
    return {ErrorKind::disconnected, "unreachable",
            fmt::format("no coordinator at {}: {}; is `causeway coordinator --state {}` running?", address.text(), what,
                        shell_quoted(state.string()))};
}

Result<std::optional<Reply>> taken(Reply reply) {
    if (reply.error) {
        return fail(reply.error->kind, reply.error->code, reply.error->message);
    }
    return std::optional(std::move(reply));
}

}  // namespace

OperatorSession::OperatorSession(std::unique_ptr<Link> link, std::shared_ptr<LinkEvents> control,
                                 std::shared_ptr<LinkEvents> bulk)
    : link_(std::move(link)), control_(std::move(control)), bulk_(std::move(bulk)) {}

Result<std::unique_ptr<OperatorSession>> OperatorSession::connect(const fs::path& state) {
    TRY_ASSIGN(const auto addresses, addresses_of(state));
    TRY_ASSIGN(const auto credentials, load_credentials(state / "operator"));
    auto session = connect_to(addresses.front(), credentials, state);
    // A coordinator that answers, if only to refuse, is the one: its other addresses say the same.
    for (std::size_t i = 1; i < addresses.size() && !session && session.error().kind != ErrorKind::refused; ++i) {
        session = connect_to(addresses[i], credentials, state);
    }
    return session;
}

Result<std::unique_ptr<OperatorSession>> OperatorSession::connect_to(const Address& address,
                                                                     const Credentials& credentials,
                                                                     const fs::path& state) {
    const LinkQueues queues{std::make_shared<LinkEvents>(operator_queue_limit),
                            std::make_shared<LinkEvents>(operator_queue_limit)};
    TRY_ASSIGN(auto link, Link::start({.credentials = credentials}, queues));
    auto session = std::make_unique<OperatorSession>(std::move(link), queues.control, queues.bulk);
    session->address_ = address;
    session->connection_ = session->link_->connect({.to = address});
    TRY(session->greet(state));
    session->renew(state, credentials);
    return session;
}

/// A command that finds its identity's certificate past two thirds of its life renews it, before it does what it came
/// for. Whatever stands in the way is another command's to try: there are weeks left. One command at a time does it.
void OperatorSession::renew(const fs::path& state, const Credentials& credentials) {
    const auto folder = state / "operator";
    const auto facts = read_certificate(credentials.certificate);
    if (!facts || wall_clock_unix_s() < renewal_due_s(*facts)) {
        return;
    }
    const auto lock = FolderLock::acquire(folder);
    if (!lock) {
        return;
    }
    const auto renewed = [&]() -> Status {
        TRY_ASSIGN(const auto body, renewal_body(folder, credentials.identity));
        TRY_ASSIGN(const auto request, Json::parse(body));
        TRY_ASSIGN(const auto reply, ask("certificate.renew", request));
        TRY_ASSIGN(const auto certificate, from_base64url(reply["certificate"].text()));
        TRY(accept_renewal(folder, credentials, certificate, wall_clock_unix_s()));
        return {};
    }();
    if (!renewed) {
        log_warn("operator", "the operator's certificate is due and could not be renewed: " + renewed.error().message);
    }
}

Status OperatorSession::greet(const fs::path& state) {
    const auto deadline = real_now() + greeting_bound;
    while (real_now() < deadline) {
        const auto event = control_->pop_for(deadline - real_now());
        if (!event) {
            break;
        }
        if (const auto* closed = std::get_if<PeerClosed>(&*event)) {
            return fail(closed->why.kind == ErrorKind::refused ? closed->why
                                                               : unreachable(state, address_, closed->why));
        }
        if (std::holds_alternative<PeerOpened>(*event)) {
            link_->send(connection_, Hello{.software = "causeway " CAUSEWAY_VERSION});
        }
        if (const auto* message = std::get_if<PeerMessage>(&*event)) {
            if (const auto* welcome = std::get_if<Welcome>(&message->message)) {
                session_ = welcome->session;
                return {};
            }
            if (const auto* notice = std::get_if<ErrorNotice>(&message->message)) {
                return fail(notice->kind, notice->code, notice->message);
            }
        }
    }
    return fail(ErrorKind::timed_out, "no_welcome", "the coordinator took too long to answer");
}

std::uint64_t OperatorSession::send_request(const std::string& verb, const Json& body) {
    link_->send(connection_, Request{.id = ++last_request_, .verb = verb, .body = body.dump()});
    return last_request_;
}

/// A watch asks for the status while it waits: the events that come meanwhile are kept for it, in their order.
Result<std::optional<Reply>> OperatorSession::next_reply(std::uint64_t request, Duration bound) {
    const auto early = std::ranges::find(set_aside_, request, &Reply::id);
    if (early != set_aside_.end()) {
        auto reply = std::move(*early);
        set_aside_.erase(early);
        return taken(std::move(reply));
    }
    const auto deadline = real_now() + bound;
    while (!lost_ && real_now() < deadline) {
        auto event = control_->pop_for(deadline - real_now());
        if (!event) {
            break;
        }
        if (const auto* closed = std::get_if<PeerClosed>(&*event)) {
            lost_ = Error{ErrorKind::disconnected, "connection_lost",
                          "the connection to the coordinator was lost: " + closed->why.message};
            break;
        }
        auto* message = std::get_if<PeerMessage>(&*event);
        auto* reply = message ? std::get_if<Reply>(&message->message) : nullptr;
        if (reply && reply->id == request) {
            return taken(std::move(*reply));
        }
        if (reply && set_aside_.size() < most_set_aside) {
            set_aside_.push_back(std::move(*reply));
        }
    }
    if (lost_) {
        return fail(*lost_);
    }
    return std::optional<Reply>();
}

Result<Json> OperatorSession::ask(const std::string& verb, const Json& body) {
    const auto request = send_request(verb, body);
    TRY_ASSIGN(const auto reply, next_reply(request, answer_bound));
    if (!reply) {
        return fail(ErrorKind::timed_out, "no_answer", "the coordinator did not answer within 60 s");
    }
    return Json::parse(reply->body, max_header_bytes);
}

Status OperatorSession::follow(const std::string& verb, const Json& body, const std::function<bool(const Json&)>& each,
                               const std::function<bool()>& idle) {
    const auto request = send_request(verb, body);
    while (true) {
        TRY_ASSIGN(const auto reply, next_reply(request, idle_beat));
        if (!reply) {
            if (idle && !idle()) {
                return {};
            }
            continue;
        }
        TRY_ASSIGN(const auto value, Json::parse(reply->body, max_header_bytes));
        if (!each(value) || reply->last) {
            return {};
        }
    }
}

Status OperatorSession::fetch(const std::string& model_sha256, std::uint64_t bytes, const fs::path& file) {
    TRY_ASSIGN(const auto digest, digest_from_hex(model_sha256));
    const auto serves_nothing = [](const Digest&, const PeerIdentity&) -> Result<Blob> {
        return fail(ErrorKind::refused, "not_served", "a command serves nothing");
    };
    using Done = Result<FetchedBlob>;
    const auto done = std::make_shared<BoundedQueue<Done>>(1);
    TransferEngine transfers(*link_, bulk_, serves_nothing);
    transfers.attach(connection_, address_, session_);
    TRY_ASSIGN(const auto absolute, absolute_path(file));
    transfers.fetch(connection_, {.digest = digest, .bytes = bytes, .destination = absolute},
                    [done](Done result) { done->push(std::move(result)); });
    while (true) {
        if (const auto result = done->pop_for(idle_beat)) {
            TRY(*result);
            return {};
        }
        // The engine itself gives up on a stall; what is left to notice is that the session has gone.
        while (const auto event = control_->try_pop()) {
            if (const auto* closed = std::get_if<PeerClosed>(&*event); closed && closed->connection == connection_) {
                transfers.detach(connection_);
            }
        }
    }
}

}  // namespace causeway::cli
