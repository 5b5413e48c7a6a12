// Files only; each step may be repeated, and a kill between two leaves what the next run goes on from.
#include "coordinator/external_authority.h"

#include <fmt/format.h>

#include "common/file.h"
#include "wire/certificate_request.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

struct OwnIdentity {
    const char* folder;  // in STATE, and the name in certificates
    Role role;
};
constexpr OwnIdentity own_identities[] = {{"coordinator", Role::coordinator}, {"operator", Role::operator_}};

Status take_authority(const fs::path& state, const Bytes& certificate) {
    TRY_ASSIGN(const auto key, certificate_key_digest(certificate));
    if (const auto known = read_certificates(state / "ca" / "ca.crt")) {
        TRY_ASSIGN(const auto present, certificate_key_digest(known->front()));
        if (present != key) {
            return fail(ErrorKind::refused, "other_authority",
                        (state / "ca").string() +
                            " has the certificate of another authority, which every node was "
                            "told of; another one is a new federation, in a new folder");
        }
    }
    return write_file_durably(state / "ca" / "ca.crt", certificate_to_pem(certificate));
}

/// Into the folder whose key it is for: the first one of a new key, or the successor of next.key.
Status take_own(const fs::path& folder, const Bytes& authority, const PeerIdentity& peer, const Bytes& certificate,
                std::int64_t now_s) {
    TRY_ASSIGN(const auto key_digest, certificate_key_digest(certificate));
    if (const auto next = load_key(folder / "next.key"); next && sha256(next->public_key) == key_digest) {
        TRY_ASSIGN(const auto present, load_credentials(folder));
        TRY(accept_renewal(folder, present, certificate, now_s));
        return {};
    }
    TRY_ASSIGN(auto key, load_key(folder / "node.key"));
    if (sha256(key.public_key) != key_digest) {
        return fail(ErrorKind::invalid, "wrong_certificate",
                    "the certificate of " + peer.identity.uri() + " is for another key than those in " +
                        folder.string() + ": sign the request as it is");
    }
    return save_credentials(folder, {peer.identity, std::move(key), certificate, authority});
}

}  // namespace

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

bool is_external(const fs::path& state) {
    return is_there(state / "ca" / "external");
}

Status write_request_file(const fs::path& state, const KeyPair& key, const Identity& identity) {
    TRY(make_private_folder(state / "requests"));
    TRY_ASSIGN(const auto request, make_certificate_request(key, identity));
    return write_file_durably(state / "requests" / (identity.node + ".csr"), certificate_request_to_pem(request));
}

// The mark comes last: where it is, the keys and their requests are.
Status prepare_external(const fs::path& state, const std::string& federation) {
    TRY(check_name(federation, "the federation's name"));
    for (const auto& own : own_identities) {
        TRY(make_private_folder(state / own.folder));
        TRY_ASSIGN(const auto key, load_or_make_key(state / own.folder / "node.key"));
        TRY(write_request_file(state, key, {federation, own.role, own.folder}));
    }
    TRY(make_private_folder(state / "ca"));
    return write_file_durably(state / "ca" / "external", as_bytes(federation + "\n"));
}

Status check_complete(const fs::path& state) {
    std::string missing = is_there(state / "ca" / "ca.crt") ? "" : "the authority's certificate";
    for (const auto& own : own_identities) {
        if (!is_there(state / own.folder / "node.crt")) {
            missing += fmt::format("{}the certificate for {}", missing.empty() ? "" : ", ",
                                   (state / "requests" / own.folder).string() + ".csr");
        }
    }
    if (missing.empty()) {
        return {};
    }
    return fail(
        ErrorKind::timed_out, "awaiting_signature",
        fmt::format("the authority of this federation is elsewhere; still missing: {}. Have the requests signed "
                    "(docs/security.md has the openssl commands), then: causeway ca import FILES --state {}, "
                    "and start the coordinator again",
                    missing, state.string()));
}

// Authorities first: what they signed is judged by them.
Result<Imported> import_certificates(const fs::path& state, const std::vector<Bytes>& certificates,
                                     std::int64_t now_s) {
    Imported imported;
    bool taken = false;
    for (const auto& certificate : certificates) {
        TRY_ASSIGN(const auto signs, is_authority(certificate));
        if (signs && !std::exchange(taken, true)) {  // the first is the one that signs; what follows certifies it
            TRY(take_authority(state, certificate));
            imported.names.emplace_back("the authority");
        }
    }
    TRY_ASSIGN(const auto authority, load_authority(state / "ca"));
    for (const auto& certificate : certificates) {
        TRY_ASSIGN(const auto signs, is_authority(certificate));
        if (signs) {
            continue;
        }
        TRY_ASSIGN(const auto peer,
                   verify_certificate(certificate, {}, authority.certificate,
                                      {Role::coordinator, Role::operator_, Role::client, Role::host, Role::aggregator},
                                      authority.federation, now_s));
        const auto& name = peer.identity.node;
        const bool first = name == "operator" && !is_there(state / "operator" / "node.crt");
        if (peer.identity.role == Role::coordinator || (peer.identity.role == Role::operator_ && first)) {
            TRY(take_own(state / name, authority.certificate, peer, certificate, now_s));
            imported.names.push_back(name);
        } else {
            imported.others.push_back(certificate);
        }
    }
    return imported;
}

}  // namespace causeway
