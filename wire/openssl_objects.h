// Owners of OpenSSL's objects, and its bytes in and out: what the files that hold keys and certificates share.
//
// OpenSSL frees each type by a function of its own and hands out DER in memory that the caller frees. Internal to
// wire/, for .cpp files only. Any thread.
#pragma once

#include <memory>

#include <openssl/evp.h>

#include "common/bytes.h"
#include "common/result.h"

namespace causeway {

template <auto free_function>
struct Free {
    template <class T>
    void operator()(T* pointer) const {
        free_function(pointer);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using MemoryBio = std::unique_ptr<BIO, Free<BIO_free>>;

inline const unsigned char* raw(ByteView bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// The DER of a thing that is our own or has been parsed. OpenSSL's copy is wiped: it may be a private key.
template <class Thing, class Encode>
Bytes to_der(Thing* thing, Encode encode) {
    unsigned char* allocated = nullptr;
    const int size = encode(thing, &allocated);
    ASSERT(size > 0);
    Bytes der(reinterpret_cast<std::byte*>(allocated), reinterpret_cast<std::byte*>(allocated) + size);
    OPENSSL_clear_free(allocated, static_cast<std::size_t>(size));
    return der;
}

/// "-----BEGIN label-----" and so on.
Bytes to_pem(const char* label, ByteView der);

}  // namespace causeway
