// The network: can the coordinator's port be had, does the coordinator answer. See doctor_checks.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/doctor_checks.h"
#include "common/file.h"
#include "common/text.h"
#include "wire/link.h"

namespace causeway::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration answer_limit = 5s;  // of one address
constexpr std::size_t most_addresses = 16;
constexpr std::uint64_t no_session = UINT64_MAX;  // numbers of sessions count from 1

/// Binds and lets go. An empty text: it worked.
std::string try_to_bind(const addrinfo& where) {
    const int descriptor = ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC, where.ai_protocol);
    if (descriptor < 0) {
        return std::strerror(errno);
    }
    const int on = 1;
    const int off = 0;
    (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (where.ai_family == AF_INET6) {
        (void)::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    const bool bound = ::bind(descriptor, where.ai_addr, where.ai_addrlen) == 0 && ::listen(descriptor, 1) == 0;
    const std::string why = bound ? "" : std::strerror(errno);
    ::close(descriptor);
    return why;
}

/// Why the coordinator ended the connection; to one that presents a session that is none, this refusal is the good one.
std::optional<Error> verdict_on(const Error& why) {
    return why.code == "unknown_session" ? std::nullopt : std::optional(why);
}

/// One TLS session with one address. It presents itself as a transfer of a session that is none: whom the coordinator
/// lets in, it answers `unknown_session`, and whom it has revoked, `revoked`; nobody's session is disturbed. None: it
/// answers and accepts this certificate.
std::optional<Error> try_to_connect(const Credentials& credentials, const Address& address) {
    const auto events = std::make_shared<LinkEvents>(64);
    const auto link = Link::start({.credentials = credentials}, {events, events});
    if (!link) {
        return link.error();
    }
    (*link)->connect({.to = address, .kind = ConnectionKind::bulk, .session = no_session});
    const auto until = real_now() + answer_limit;
    while (const auto event = events->pop_for(std::max<Duration>(until - real_now(), Duration::zero()))) {
        if (const auto* closed = std::get_if<PeerClosed>(&*event)) {
            return verdict_on(closed->why);
        }
        const auto* message = std::get_if<PeerMessage>(&*event);
        if (const auto* notice = message ? std::get_if<ErrorNotice>(&message->message) : nullptr) {
            return verdict_on({notice->kind, notice->code, notice->message});
        }
    }
    return Error{ErrorKind::timed_out, "no_answer", "no answer within " + format_duration(answer_limit)};
}

Finding refused_by(const Address& address, const Error& fault) {
    if (fault.code == "revoked") {
        return {"coordinator", Verdict::fail, fmt::format("{}: this identity is revoked", address.text()),
                "an operator has revoked it: the coordinator refuses every connection of it",
                "ask for a new token (causeway token new --name NAME) and join with it in a new state folder"};
    }
    return {"coordinator", Verdict::warn, fmt::format("{}: {}", address.text(), fault.message),
            "this address does not serve us", "is the coordinator running, is a firewall between"};
}

}  // namespace

Finding check_port(const Address& listen) {
    const auto name = listen.text();
    const bool all = listen.host.empty() || listen.host == "*";
    addrinfo hints{};
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const auto host = all ? std::string("::") : listen.host;
    const int failed = ::getaddrinfo(host.c_str(), std::to_string(listen.port).c_str(), &hints, &found);
    if (failed != 0) {
        return {"port", Verdict::fail, name + ": " + ::gai_strerror(failed), "the coordinator cannot listen there",
                "--listen with an address of this machine, as [::]:7400"};
    }
    const auto why = try_to_bind(*found);
    ::freeaddrinfo(found);
    if (!why.empty()) {
        return {"port", Verdict::fail, name + ": " + why, "the coordinator cannot listen there",
                fmt::format("`ss -ltnp sport = :{}` shows who has it; --listen takes another", listen.port)};
    }
    return {"port", Verdict::ok, name + " is free"};
}

Findings check_coordinators(const std::filesystem::path& credentials, const std::filesystem::path& addresses) {
    const auto known = read_addresses(addresses.string());
    const auto own = load_credentials(credentials);
    if (!known || !own) {
        return {{"coordinator", Verdict::fail, known ? own.error().message : known.error().message,
                 "without both nobody can be asked", "mend the certificate first"}};
    }
    Findings findings;
    std::vector<Finding> silent;
    for (const auto& address : std::span(*known).first(std::min(known->size(), most_addresses))) {
        if (const auto fault = try_to_connect(*own, address)) {
            silent.push_back(refused_by(address, *fault));
        } else {
            findings.push_back({"coordinator", Verdict::ok, address.text() + " answers and accepts this certificate"});
        }
    }
    for (auto& finding : silent) {  // one address that answers is enough
        finding.verdict = findings.empty() || finding.verdict == Verdict::fail ? Verdict::fail : Verdict::warn;
    }
    findings.insert(findings.end(), silent.begin(), silent.end());
    return findings;
}

}  // namespace causeway::cli
