// Keys and certificates as PEM files, so that the openssl command reads them too. A key that others may read is
// refused. Every file is written durably; the certificate comes last, for its presence means that a node has joined.
#include <openssl/err.h>
#include <openssl/pem.h>

#include <memory>
#include <optional>

#include "common/file.h"
#include "common/text.h"
#include "wire/identity.h"
#include "wire/openssl_objects.h"

namespace causeway {
namespace {

constexpr std::uint64_t max_pem_bytes = 64 * 1024;
constexpr const char* key_label = "PRIVATE KEY";
constexpr const char* certificate_label = "CERTIFICATE";

struct FreeOpenssl {
    void operator()(void* pointer) const { OPENSSL_free(pointer); }
};

struct PemBlock {
    std::string label;
    Bytes bytes;
};
std::optional<PemBlock> next_block(BIO* bio) {
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    const bool read = PEM_read_bio(bio, &name, &header, &data, &size) == 1;
    const std::unique_ptr<void, FreeOpenssl> free_name(name), free_header(header), free_data(data);
    ERR_clear_error();
    if (!read) {
        return std::nullopt;
    }
    return PemBlock{name, to_bytes(std::as_bytes(std::span(data, static_cast<std::size_t>(size))))};
}

/// The first PEM block, which must have the label.
Result<Bytes> read_pem(const std::filesystem::path& file, std::string_view label) {
    TRY_ASSIGN(const auto text, read_file(file, max_pem_bytes));
    const MemoryBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    auto block = next_block(bio.get());
    if (!block || block->label != label) {
        return fail(ErrorKind::corrupt, "bad_pem",
                    file.string() + " holds no PEM block of " + std::string(label) + ": restore it or join again");
    }
    return std::move(block->bytes);
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

/// The key that belongs to the certificate: node.key, or next.key where a renewal has just been put into force.
Result<KeyPair> key_of(const std::filesystem::path& folder, ByteView certificate) {
    TRY_ASSIGN(auto key, load_key(folder / "node.key"));
    const auto belongs = check_belongs(folder, key, certificate);
    if (belongs) {
        return key;
    }
    auto next = load_key(folder / "next.key");
    return next && check_belongs(folder, *next, certificate) ? next : fail(belongs.error());
}

Result<Credentials> load_once(const std::filesystem::path& folder) {
    Credentials credentials;
    TRY(load_key(folder / "node.key"));  // a folder without a key is no identity, whatever else is missing
    TRY_ASSIGN(credentials.certificate, read_pem(folder / "node.crt", certificate_label));
    TRY_ASSIGN(credentials.authority_certificate, read_pem(folder / "ca.crt", certificate_label));
    TRY_ASSIGN(credentials.key, key_of(folder, credentials.certificate));
    TRY_ASSIGN(auto facts, read_certificate(credentials.certificate));
    credentials.identity = std::move(facts.identity);
    return credentials;
}

}  // namespace

Bytes to_pem(const char* label, ByteView der) {
    const MemoryBio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio(bio.get(), label, "", raw(der), static_cast<long>(der.size()));
    const char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    return to_bytes(std::string_view(text, static_cast<std::size_t>(size)));
}

Bytes certificate_to_pem(ByteView certificate) {
    return to_pem(certificate_label, certificate);
}

Result<std::vector<Bytes>> read_certificates(const std::filesystem::path& file) {
    TRY_ASSIGN(const auto text, read_file(file, max_pem_bytes));
    const MemoryBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    std::vector<Bytes> certificates;
    while (auto block = next_block(bio.get())) {
        if (block->label != certificate_label) {
            break;
        }
        certificates.push_back(std::move(block->bytes));
    }
    if (certificates.empty()) {
        return fail(ErrorKind::corrupt, "bad_pem",
                    file.string() +
                        " holds no certificate: a PEM file beginning with -----BEGIN CERTIFICATE----- is "
                        "needed");
    }
    return certificates;
}

Status save_key(const std::filesystem::path& file, const KeyPair& key) {
    return write_file_durably(file, to_pem(key_label, key.private_key), FileMode::secret);
}

Result<KeyPair> load_key(const std::filesystem::path& file) {
    TRY(require_secret_mode(file));
    TRY_ASSIGN(auto der, read_pem(file, key_label));
    return key_from_private(der);
}

Result<KeyPair> load_or_make_key(const std::filesystem::path& file) {
    if (auto known = load_key(file); known || known.error().kind != ErrorKind::not_found) {
        return known;
    }
    auto made = make_key();
    TRY(save_key(file, made));
    return made;
}

Status save_credentials(const std::filesystem::path& folder, const Credentials& credentials) {
    TRY(save_key(folder / "node.key", credentials.key));
    TRY(write_certificate(folder / "ca.crt", credentials.authority_certificate));
    return write_certificate(folder / "node.crt", credentials.certificate);  // last: its presence means complete
}

Result<Credentials> load_credentials(const std::filesystem::path& folder) {
    auto credentials = load_once(folder);
    // Another process may put a renewed pair into force between two of our reads; then the next look finds it whole.
    for (int again = 0; again < 3 && !credentials && credentials.error().code == "key_mismatch"; ++again) {
        credentials = load_once(folder);
    }
    return credentials;
}

Result<KeyPair> next_key(const std::filesystem::path& folder) {
    TRY_ASSIGN(const auto certificate, read_pem(folder / "node.crt", certificate_label));
    const auto file = folder / "next.key";
    const auto known = load_key(file);
    if (known && check_belongs(folder, *known, certificate)) {  // in force already: killed before the last step
        TRY(rename_durably(file, folder / "node.key"));
    }
    return load_or_make_key(file);
}

Status save_renewed(const std::filesystem::path& folder, ByteView certificate) {
    TRY_ASSIGN(const auto key, load_key(folder / "next.key"));
    TRY(check_belongs(folder, key, certificate));
    TRY(write_certificate(folder / "node.crt", certificate));
    return rename_durably(folder / "next.key", folder / "node.key");
}

Status save_authority(const std::filesystem::path& folder, const Authority& authority) {
    TRY(save_key(folder / "ca.key", authority.key));
    return write_certificate(folder / "ca.crt", authority.certificate);
}

Result<Authority> load_authority(const std::filesystem::path& folder) {
    Authority authority;
    if (const auto elsewhere = read_file(folder / "external", max_pem_bytes)) {
        authority.federation = std::string(trim(as_text(*elsewhere)));
        TRY(check_name(authority.federation, "the federation's name"));
        TRY_ASSIGN(authority.certificate, read_pem(folder / "ca.crt", certificate_label));
        return authority;
    }
    TRY_ASSIGN(authority.key, load_key(folder / "ca.key"));
    TRY_ASSIGN(authority.certificate, read_pem(folder / "ca.crt", certificate_label));
    TRY(check_belongs(folder, authority.key, authority.certificate));
    TRY_ASSIGN(authority.federation, certificate_common_name(authority.certificate));
    return authority;
}

}  // namespace causeway
