// One link, one address after the other.
#include "wire/join.h"

namespace causeway {
namespace {

constexpr Duration patience = std::chrono::seconds(12);  // the link itself gives up after 10

/// The conversation on one connection: request when it is up, then a reply or a reason.
Result<JoinReply> ask(Link& link, LinkEvents& events, const Address& address, const JoinToken& token,
                      const JoinRequest& request, JoinTrace& trace) {
    const auto connection =
        link.connect({.to = address, .kind = ConnectionKind::join, .authority_key = token.authority_key});
    const auto deadline = real_now() + patience;
    while (real_now() < deadline) {
        auto event = events.pop_for(deadline - real_now());
        if (!event || std::visit([](const auto& e) { return e.connection; }, *event) != connection) {
            continue;
        }
        if (std::holds_alternative<PeerOpened>(*event)) {
            trace.asked = true;
            link.send(connection, request);  // the authority's hash has been checked by now
        } else if (auto* closed = std::get_if<PeerClosed>(&*event)) {
            return fail(std::move(closed->why));
        } else if (auto* message = std::get_if<PeerMessage>(&*event)) {
            if (auto* reply = std::get_if<JoinReply>(&message->message)) {
                link.close(connection, bye("joined"));
                return std::move(*reply);
            }
        }
    }
    return fail(ErrorKind::timed_out, "join_timeout", "no answer within 10 s");
}

/// Another address may do better; a coordinator's own refusal is final.
bool is_worth_another_try(const Error& error) {
    if (error.code == "awaiting_signature") {
        return false;
    }
    return error.kind == ErrorKind::disconnected || error.kind == ErrorKind::timed_out || error.kind == ErrorKind::io ||
           error.code == "unknown_ca" || error.code == "not_tls" || error.code == "wrong_protocol";
}

}  // namespace

Result<Credentials> join_federation(const JoinToken& token, const KeyPair& key,
                                    const std::function<void(std::string_view)>& say,
                                    const std::function<std::int64_t()>& unix_now, JoinTrace* trace) {
    JoinTrace unseen;
    TRY_ASSIGN(const auto request, make_join_request(token, key));
    LinkOptions options;
    options.unix_now = unix_now;
    const auto events = std::make_shared<LinkEvents>(64);
    TRY_ASSIGN(const auto link, Link::start(std::move(options), {events, nullptr}));
    std::string failures;
    for (const auto& address : token.addresses) {
        const auto reply = ask(*link, *events, address, token, request, trace ? *trace : unseen);
        if (reply) {
            return accept_join_reply(token, key, *reply, unix_now());
        }
        const auto failure = address.text() + ": " + reply.error().code + ": " + reply.error().message;
        say(failure);
        if (!is_worth_another_try(reply.error())) {
            return fail(reply.error());
        }
        failures += (failures.empty() ? "" : "; ") + failure;
    }
    return fail(ErrorKind::disconnected, "unreachable", "no address of the token could be joined: " + failures);
}

}  // namespace causeway
