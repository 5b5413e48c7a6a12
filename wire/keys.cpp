// P-256 keys and ECDSA signatures, DER in and out.
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "wire/identity.h"
#include "wire/openssl_objects.h"

namespace causeway {
namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;

// Private bytes are wiped from OpenSSL's buffer; our copy lives in a KeyPair for the life of the process.
int encode_private(EVP_PKEY* key, unsigned char** out) {
    const std::unique_ptr<PKCS8_PRIV_KEY_INFO, Free<PKCS8_PRIV_KEY_INFO_free>> info(EVP_PKEY2PKCS8(key));
    return i2d_PKCS8_PRIV_KEY_INFO(info.get(), out);
}

Key parse_public(ByteView der) {
    const auto* at = raw(der);
    Key key(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
    const bool whole = key && at == raw(der) + der.size();
    return whole ? std::move(key) : nullptr;
}

}  // namespace

KeyPair make_key() {
    const Key key(EVP_EC_gen("P-256"));
    ASSERT(key != nullptr);  // only a machine without randomness or memory fails here
    return {to_der(key.get(), encode_private), to_der(key.get(), i2d_PUBKEY)};
}

Result<KeyPair> key_from_private(ByteView private_key) {
    const auto* at = raw(private_key);
    const Key key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(private_key.size())));
    if (!key) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the private key is not readable: restore its file");
    }
    return KeyPair{to_der(key.get(), encode_private), to_der(key.get(), i2d_PUBKEY)};
}

// Two calls: the first tells the most a signature can take, the second the actual size (DER integers vary).
Result<Bytes> sign(const KeyPair& pair, ByteView data) {
    const auto* at = raw(pair.private_key);
    const Key key(d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(pair.private_key.size())));
    const DigestContext context(EVP_MD_CTX_new());
    std::size_t size = 0;
    if (!key || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
        EVP_DigestSign(context.get(), nullptr, &size, raw(data), data.size()) != 1) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the private key cannot sign: restore its file");
    }
    Bytes signature(size);
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, raw(data),
                       data.size()) != 1) {
        return fail(ErrorKind::corrupt, "bad_private_key", "the private key cannot sign: restore its file");
    }
    signature.resize(size);
    return signature;
}

bool verify_signature(ByteView public_key, ByteView data, ByteView signature) {
    const Key key = parse_public(public_key);
    const DigestContext context(EVP_MD_CTX_new());
    return key && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), raw(signature), signature.size(), raw(data), data.size()) == 1;
}

Status check_public_key(ByteView public_key) {
    const Key key = parse_public(public_key);
    char group[32] = {};
    const bool right = key && EVP_PKEY_is_a(key.get(), "EC") == 1 &&
                       EVP_PKEY_get_group_name(key.get(), group, sizeof(group), nullptr) == 1 &&
                       std::string_view(group) == "prime256v1";
    if (!right) {
        return fail(ErrorKind::invalid, "bad_public_key", "the public key is not DER of a key on P-256");
    }
    return {};
}

}  // namespace causeway
