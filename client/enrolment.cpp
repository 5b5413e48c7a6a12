// The first start with a token, and every later one without: STATE/node/ has the credentials, STATE/coordinators the
// addresses. The key is written before it is used, so that a repeated enrolment asks with the same key.
#include "client/node.h"

#include <fmt/format.h>

#include "common/text.h"
#include "wire/join.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_addresses = 16 * 1024;

Result<KeyPair> own_key(const fs::path& state) {
    const auto file = state / "join.key";
    if (auto known = load_key(file); known || known.error().kind != ErrorKind::not_found) {
        return known;
    }
    auto made = make_key();
    TRY(save_key(file, made));
    return made;
}

Status enrol(const fs::path& state, const JoinToken& token, const std::function<void(std::string_view)>& say) {
    TRY_ASSIGN(const auto key, own_key(state));
    TRY_ASSIGN(const auto credentials, join_federation(token, key, say));
    std::string addresses;
    for (const auto& address : token.addresses) {
        addresses += address.text() + "\n";
    }
    TRY(write_file_durably(state / "coordinators", as_bytes(addresses)));
    TRY(make_private_folder(state / "node"));
    TRY(save_credentials(state / "node", credentials));
    std::error_code ignored;
    fs::remove(state / "join.key", ignored);
    return {};
}

Result<std::vector<Address>> read_addresses(const fs::path& state) {
    TRY_ASSIGN(const auto text, read_file(state / "coordinators", largest_addresses));
    std::vector<Address> addresses;
    for (const auto& line : split_text(trim(as_text(text)), '\n')) {
        auto address = parse_address(trim(line));
        if (!address || address->host == "*") {
            return fail(ErrorKind::corrupt, "bad_address",
                        (state / "coordinators").string() +
                            " must hold one HOST:PORT of the coordinator per line: write it anew, or join again");
        }
        addresses.push_back(*std::move(address));
    }
    return addresses;
}

}  // namespace

Result<Enrolment> Enrolment::open(const fs::path& state, const std::string& token,
                                  const std::function<void(std::string_view)>& say) {
    TRY(make_private_folder(state));
    TRY_ASSIGN(auto lock, FolderLock::acquire(state));
    std::error_code ignored;
    const bool enrolled = fs::exists(state / "node" / "node.crt", ignored);
    if (!enrolled && token.empty()) {
        return fail(ErrorKind::not_found, "not_enrolled",
                    fmt::format("{}: this node has not joined yet; ask the coordinator's operator for a token "
                                "(causeway token new --name NAME) and give it here",
                                state.string()));
    }
    if (!enrolled) {
        TRY_ASSIGN(const auto parsed, parse_token(token));
        TRY(enrol(state, parsed, say));
    }
    TRY_ASSIGN(const auto credentials, load_credentials(state / "node"));
    TRY_ASSIGN(auto addresses, read_addresses(state));
    return Enrolment{std::move(lock), credentials.identity.node, credentials.identity.federation, std::move(addresses)};
}

}  // namespace causeway::node
