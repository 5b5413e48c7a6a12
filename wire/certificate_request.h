// Certificate requests (PKCS#10): what a key's owner gives an authority, signed by that key, so that possession is
// proved wherever the request travels: in an enrolment, in a renewal, or in a PEM file to an authority elsewhere.
//
// The subject and the alternative name are those that the certificate will have. source: RFC 2986.
//
// threads  reentrant
#pragma once

#include <filesystem>

#include "wire/identity.h"

namespace causeway {

struct CertificateRequest {
    Identity identity;
    Bytes public_key;  // DER SubjectPublicKeyInfo
};

/// DER. errors: invalid `bad_name`; corrupt: the key cannot sign
Result<Bytes> make_certificate_request(const KeyPair& key, const Identity& identity);
/// What it asks for, once its own signature has been judged. Total: any bytes give a request or an error.
///
/// errors   invalid `bad_certificate_request`, `bad_identity`, `bad_public_key`; refused `bad_signature`
Result<CertificateRequest> read_certificate_request(ByteView request);
/// A PEM text, as every authority's tool reads it.
Bytes certificate_request_to_pem(ByteView request);

// ---- renewal: one request of an identity over its own control connection (docs/protocol.md, certificate.renew)

/// The body of the request: the next key is made, or the one that an earlier request has named.
///
/// errors   io, corrupt: of the folder; the caller holds its lock
Result<std::string> renewal_body(const std::filesystem::path& folder, const Identity& identity);
/// The coordinator's judgement of a body: a request for the asker's own identity, by a key it has.
///
/// errors   as read_certificate_request; refused `wrong_identity`
Result<CertificateRequest> read_renewal_body(std::string_view body, const Identity& asker);
/// The node judges the answer and puts it into force: its own identity, the next key, the same authority, in its time.
///
/// errors   refused `wrong_certificate`, or a code of verify_certificate; io
Result<Credentials> accept_renewal(const std::filesystem::path& folder, const Credentials& present,
                                   ByteView certificate, std::int64_t now_s);

}  // namespace causeway
