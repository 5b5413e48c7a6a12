// Keys and certificates as PEM files, so that the openssl command reads them too. A key that others may read is
// refused. Every file is written durably; the certificate comes last, for its presence means that a node has joined.
#include <openssl/pem.h>

#include <memory>

#include "common/file.h"
#include "wire/identity.h"

namespace causeway {
namespace {

constexpr std::uint64_t max_pem_bytes = 64 * 1024;
constexpr const char* key_label = "PRIVATE KEY";
constexpr const char* certificate_label = "CERTIFICATE";

struct FreeBio {
    void operator()(BIO* bio) const { BIO_free(bio); }
};
using MemoryBio = std::unique_ptr<BIO, FreeBio>;

struct FreeOpenssl {
    void operator()(void* pointer) const { OPENSSL_free(pointer); }
};

Bytes to_pem(const char* label, ByteView der) {
    const MemoryBio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio(bio.get(), label, "", reinterpret_cast<const unsigned char*>(der.data()),
                  static_cast<long>(der.size()));
    const char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    return to_bytes(std::string_view(text, static_cast<std::size_t>(size)));
}

/// The first PEM block, which must have the label.
Result<Bytes> read_pem(const std::filesystem::path& file, std::string_view label) {
    TRY_ASSIGN(const auto text, read_file(file, max_pem_bytes));
    const MemoryBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    const bool read = PEM_read_bio(bio.get(), &name, &header, &data, &size) == 1;
    const std::unique_ptr<void, FreeOpenssl> free_name(name), free_header(header), free_data(data);
    if (!read || label != name) {
        return fail(ErrorKind::corrupt, "bad_pem",
                    file.string() + " holds no PEM block of " + std::string(label) + ": restore it or join again");
    }
    return to_bytes(std::as_bytes(std::span(data, static_cast<std::size_t>(size))));
}

Status write_certificate(const std::filesystem::path& file, ByteView der) {
    return write_file_durably(file, to_pem(certificate_label, der));
}

/// A certificate of another key would fail later, in a handshake, with a message that helps nobody.
Status check_belongs(const std::filesystem::path& folder, const KeyPair& key, ByteView certificate) {
    TRY_ASSIGN(const auto in_certificate, certificate_key_digest(certificate));
    if (in_certificate != sha256(key.public_key)) {
        return fail(ErrorKind::corrupt, "key_mismatch",
                    "the key and the certificate in " + folder.string() + " do not belong together");
    }
    return {};
}

}  // namespace

Status save_key(const std::filesystem::path& file, const KeyPair& key) {
    return write_file_durably(file, to_pem(key_label, key.private_key), FileMode::secret);
}

Result<KeyPair> load_key(const std::filesystem::path& file) {
    TRY(require_secret_mode(file));
    TRY_ASSIGN(auto der, read_pem(file, key_label));
    return key_from_private(der);
}

Status save_credentials(const std::filesystem::path& folder, const Credentials& credentials) {
    TRY(save_key(folder / "node.key", credentials.key));
    TRY(write_certificate(folder / "ca.crt", credentials.authority_certificate));
    return write_certificate(folder / "node.crt", credentials.certificate);  // last: its presence means complete
}

Result<Credentials> load_credentials(const std::filesystem::path& folder) {
    Credentials credentials;
    TRY_ASSIGN(credentials.key, load_key(folder / "node.key"));
    TRY_ASSIGN(credentials.certificate, read_pem(folder / "node.crt", certificate_label));
    TRY_ASSIGN(credentials.authority_certificate, read_pem(folder / "ca.crt", certificate_label));
    TRY(check_belongs(folder, credentials.key, credentials.certificate));
    TRY_ASSIGN(auto facts, read_certificate(credentials.certificate));
    credentials.identity = std::move(facts.identity);
    return credentials;
}

Status save_authority(const std::filesystem::path& folder, const Authority& authority) {
    TRY(save_key(folder / "ca.key", authority.key));
    return write_certificate(folder / "ca.crt", authority.certificate);
}

Result<Authority> load_authority(const std::filesystem::path& folder) {
    Authority authority;
    TRY_ASSIGN(authority.key, load_key(folder / "ca.key"));
    TRY_ASSIGN(authority.certificate, read_pem(folder / "ca.crt", certificate_label));
    TRY(check_belongs(folder, authority.key, authority.certificate));
    TRY_ASSIGN(authority.federation, certificate_common_name(authority.certificate));
    return authority;
}

}  // namespace causeway
