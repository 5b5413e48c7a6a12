// OpenSSL's EVP interface behind four small functions; no other file of common/ includes it.
#include "common/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/assert.h"

namespace causeway {
namespace {

const unsigned char* raw(ByteView bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(Digest& digest) {
    return reinterpret_cast<unsigned char*>(digest.bytes.data());
}

}  // namespace

Result<Digest> digest_from_hex(std::string_view text) {
    TRY_ASSIGN(const auto bytes, from_hex(text));
    Digest digest;
    if (bytes.size() != digest.bytes.size()) {
        return fail(ErrorKind::corrupt, "bad_digest", "a SHA-256 has 64 hexadecimal digits");
    }
    std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
    return digest;
}

struct Hasher::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
    // Looked up once: EVP_sha256() is looked up anew at each beginning.
    static EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    ASSERT(EVP_DigestInit_ex(state_->context, method, nullptr) == 1);
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(ByteView bytes) {
    ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Digest Hasher::finish() {
    Digest digest;
    ASSERT(EVP_DigestFinal_ex(state_->context, raw(digest), nullptr) == 1);
    return digest;
}

Digest sha256(ByteView bytes) {
    Hasher hasher;
    hasher.update(bytes);
    return hasher.finish();
}

Digest hmac_sha256(ByteView key, ByteView bytes) {
    Digest digest;
    unsigned size = 0;
    ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(bytes), bytes.size(), raw(digest), &size) !=
           nullptr);
    return digest;
}

bool equal_in_constant_time(ByteView a, ByteView b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Bytes secret_random_bytes(std::size_t count) {
    Bytes bytes(count);
    ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
    return bytes;
}

}  // namespace causeway
