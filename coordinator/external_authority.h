// A federation whose authority is elsewhere: STATE/ca holds its certificate and no key. Requests made here are PEM
// files in STATE/requests; what was signed comes back through import_certificates (`causeway ca import`).
//
// Which certificate is believed: the one that signs the federation's certificates, a root or one certified by another;
// it is believed for itself. A folder keeps the authority's key for good, for every node was told of it.
// Thread: any; one at a time for a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wire/identity.h"

namespace causeway {

/// A file or folder of that name.
bool is_there(const std::filesystem::path& path);
/// STATE/ca/external is there: the authority of this folder is elsewhere.
bool is_external(const std::filesystem::path& state);

/// STATE/requests/NAME.csr: what the authority is to sign for this key.
Status write_request_file(const std::filesystem::path& state, const KeyPair& key, const Identity& identity);

/// Makes what can be made without the authority: keys, requests, the federation's name. May be repeated.
Status prepare_external(const std::filesystem::path& state, const std::string& federation);
/// What is still missing before a coordinator can start on the folder, as an error with the steps to take.
///
/// errors   timed_out `awaiting_signature`
Status check_complete(const std::filesystem::path& state);

struct Imported {
    std::vector<std::string> names;  // "the authority", "coordinator", "operator"
    std::vector<Bytes> others;       // certificates of nodes: for the daemon (ca.import)
};
/// Takes what belongs to this folder: the authority's certificate, then the coordinator's and the first operator's.
///
/// errors   refused `other_authority`: the folder has another one; those of verify_certificate; invalid
///          `wrong_certificate`: for a key that is not here; io
Result<Imported> import_certificates(const std::filesystem::path& state, const std::vector<Bytes>& certificates,
                                     std::int64_t now_s);

}  // namespace causeway
