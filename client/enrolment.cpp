// The first start with a token, and every later one without: STATE/node/ has the credentials, STATE/coordinators the
// addresses; an operator's are STATE/operator/ and STATE/operator/address. The key is written before it is used, so
// that a repeated enrolment asks with the same key, and the certificate last: where it is, the enrolment is whole.
#include "client/node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/crash_point.h"
#include "common/need.h"
#include "common/queue.h"
#include "common/text.h"
#include "wire/join.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr Duration ask_again = std::chrono::seconds(3);  // a person signs: minutes, or days

/// Where an identity of this role and its coordinator's addresses lie.
struct Places {
    fs::path credentials;
    fs::path addresses;
};

Places places(const fs::path& state, Role role) {
    return role == Role::operator_ ? Places{state / "operator", state / "operator" / "address"}
                                   : Places{state / "node", state / "coordinators"};
}

bool is_enrolled(const fs::path& state, Role role) {
    std::error_code ignored;
    return fs::exists(places(state, role).credentials / "node.crt", ignored);
}

/// Asks until there is a certificate or a refusal; the key stays the same, so the request does.
Result<Credentials> ask_until_signed(const JoinToken& token, const KeyPair& key,
                                     const std::function<void(std::string_view)>& say, Duration wait,
                                     JoinTrace& trace) {
    BoundedQueue<int> nothing(1);
    const auto until = real_now() + wait;
    bool said = false;
    while (true) {
        auto joined = join_federation(token, key, said ? [](std::string_view) {} : say, wall_clock_unix_s, &trace);
        if (joined || joined.error().code != "awaiting_signature") {
            return joined;
        }
        const auto left = until - real_now();
        if (left <= Duration::zero()) {
            return fail(joined.error().kind, joined.error().code,
                        joined.error().message + " with the same command and state folder");
        }
        if (!std::exchange(said, true)) {
            say(fmt::format("the federation's authority signs elsewhere; waiting for {}'s certificate, up to {}",
                            token.name, format_duration(wait)));
        }
        (void)nothing.pop_for(std::min<Duration>(ask_again, left));
    }
}

Status enrol(const fs::path& state, const JoinToken& token, const std::function<void(std::string_view)>& say,
             Duration wait) {
    std::error_code ignored;
    const auto key_file = state / "join.key";
    const bool repeated = fs::exists(key_file, ignored);
    TRY_ASSIGN(const auto key, load_or_make_key(key_file));
    JoinTrace trace;
    const auto signed_key = ask_until_signed(token, key, say, wait, trace);
    // A key that nobody has heard of, or that was refused, is of no use to a later attempt.
    if (!signed_key && !repeated && (!trace.asked || signed_key.error().kind == ErrorKind::refused)) {
        fs::remove(key_file, ignored);
    }
    TRY_ASSIGN(const auto credentials, signed_key);
    std::string addresses;
    for (const auto& address : token.addresses) {
        addresses += address.text() + "\n";
    }
    const auto at = places(state, token.role);
    TRY(make_private_folder(at.credentials));
    TRY(write_file_durably(at.addresses, as_bytes(addresses)));
    TRY(save_credentials(at.credentials, credentials));
    crash_point("enrolment.whole", at.credentials);
    fs::remove(key_file, ignored);
    return {};
}

}  // namespace

Result<Enrolment> Enrolment::open(const fs::path& state, const std::string& token,
                                  const std::function<void(std::string_view)>& say, Duration wait) {
    if (!is_enrolled(state, Role::client) && !is_enrolled(state, Role::operator_)) {
        auto need = node_need();
        need.first_start = true;
        TRY(can_start(judge(need, read_machine(state, wall_clock_unix_s()))));
    }
    TRY(make_private_folder(state));
    TRY_ASSIGN(auto lock, FolderLock::acquire(state));
    auto role =
        is_enrolled(state, Role::client) || !is_enrolled(state, Role::operator_) ? Role::client : Role::operator_;
    if (!is_enrolled(state, role) && token.empty()) {
        return fail(ErrorKind::not_found, "not_enrolled",
                    fmt::format("{}: this node has not joined yet; ask the coordinator's operator for a token "
                                "(causeway token new --name NAME) and give it here",
                                state.string()));
    }
    if (!token.empty() && !is_enrolled(state, Role::client)) {
        TRY_ASSIGN(const auto parsed, parse_token(token));
        role = parsed.role;
        if (!is_enrolled(state, role)) {
            TRY(enrol(state, parsed, say, wait));
        }
    }
    TRY_ASSIGN(const auto credentials, load_credentials(places(state, role).credentials));
    TRY_ASSIGN(auto addresses, read_addresses(places(state, role).addresses.string()));
    return Enrolment{std::move(lock), credentials.identity.node, credentials.identity.federation, std::move(addresses),
                     credentials.identity.role};
}

}  // namespace causeway::node
