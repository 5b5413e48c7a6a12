// Everything that is made once and then only read. Certificates of this machine are renewed at a start past two thirds
// of their life, for no session could do it while the daemon is down.
#include "coordinator/state_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "coordinator/external_authority.h"
#include "wire/own_addresses.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view format = "1";
constexpr std::size_t longest_format = 16;

/// False for a folder on which no start has been through. Folders from before the number was written are known by the
/// address that every start wrote.
Result<bool> is_complete(const fs::path& state) {
    const auto bytes = read_file(state / "format", longest_format);
    if (!bytes) {
        return bytes.error().kind == ErrorKind::not_found ? Result<bool>(is_there(state / "operator" / "address"))
                                                          : fail(bytes.error());
    }
    const auto found = trim(as_text(*bytes));
    if (found != format) {
        return fail(ErrorKind::unsupported, "newer_format",
                    fmt::format("{} has format \"{}\", this build knows {}: a newer release wrote it; install that "
                                "release",
                                state.string(), found, format));
    }
    return true;
}

Result<Authority> open_authority(const fs::path& folder, const StateOptions& options) {
    auto known = load_authority(folder);
    if (known && options.authority == AuthorityKind::external && known->signs_here()) {
        return fail(ErrorKind::refused, "other_authority",
                    folder.string() +
                        " has an authority of its own, which every node was told of: leave out --ca, or "
                        "name a new state folder");
    }
    if (known || known.error().kind != ErrorKind::not_found) {
        return known;
    }
    if (is_there(folder / "ca.crt")) {
        return fail(ErrorKind::corrupt, "authority_lost",
                    folder.string() +
                        " has the authority's certificate but not its key: restore ca.key from a backup; "
                        "without it this is a new federation, in a new folder");
    }
    TRY(check_name(options.federation, "the federation's name"));
    TRY(make_private_folder(folder));
    TRY_ASSIGN(auto made, make_authority(options.federation, options.now_s));
    TRY(save_authority(folder, made));
    return made;
}

/// Renewed at a start only by an authority that is here; one elsewhere is asked while the daemon runs.
Result<Credentials> open_credentials(const fs::path& folder, const Authority& authority, Role role,
                                     const std::string& name, const StateOptions& options) {
    auto known = load_credentials(folder);
    if (known ? !authority.signs_here() : known.error().kind != ErrorKind::not_found) {
        return known;
    }
    if (known) {
        TRY_ASSIGN(const auto facts, read_certificate(known->certificate));
        if (options.now_s < renewal_due_s(facts)) {
            return known;
        }
    }
    TRY(make_private_folder(folder));
    Credentials made{.identity = {authority.federation, role, name},
                     .key = known ? known->key : make_key(),
                     .authority_certificate = authority.certificate};
    TRY_ASSIGN(made.certificate, issue_certificate(authority, made.key.public_key, made.identity, options.now_s,
                                                   options.certificate_lifetime_s));
    TRY(save_credentials(folder, made));
    return made;
}

}  // namespace

Result<StateFiles> open_state(const fs::path& state, const StateOptions& options) {
    TRY(make_private_folder(state));
    TRY_ASSIGN(auto lock, FolderLock::acquire(state));
    TRY_ASSIGN(const auto complete, is_complete(state));
    if (options.authority == AuthorityKind::external && !is_external(state) && !is_there(state / "ca" / "ca.key")) {
        TRY(prepare_external(state, options.federation));
    }
    if (is_external(state)) {
        TRY(check_complete(state));
    }
    TRY_ASSIGN(auto authority, open_authority(state / "ca", options));
    TRY_ASSIGN(auto own, open_credentials(state / "coordinator", authority, Role::coordinator, "coordinator", options));
    TRY_ASSIGN(auto operator_, open_credentials(state / "operator", authority, Role::operator_, "operator", options));
    TRY(make_private_folder(state / "spool"));
    return StateFiles{std::move(lock), complete, std::move(authority), std::move(own), std::move(operator_)};
}

Status mark_complete(const fs::path& state) {
    return is_there(state / "format") ? Status()
                                      : write_file_durably(state / "format", as_bytes(std::string(format) + "\n"));
}

Status write_operator_address(const fs::path& state, const Address& listen, std::uint16_t port) {
    const Address address{is_wildcard(listen) ? "127.0.0.1" : listen.host, port};
    return write_file_durably(state / "operator" / "address", as_bytes(address.text() + "\n"));
}

}  // namespace causeway
