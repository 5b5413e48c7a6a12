// A federation to test with, and a folder that goes when the test ends.
#pragma once

#include <filesystem>
#include <string>

#include <catch2/catch.hpp>

#include "common/random.h"
#include "wire/identity.h"

namespace causeway {

constexpr std::int64_t test_now_s = 1'900'000'000;  // in 2030: no certificate of a test is valid by accident

struct Federation {
    Authority authority = *make_authority("clinic", test_now_s);

    [[nodiscard]] Credentials node(Role role, const std::string& name, std::int64_t now_s = test_now_s) const {
        Credentials credentials{{authority.federation, role, name}, make_key(), {}, authority.certificate};
        credentials.certificate =
            *issue_certificate(authority, credentials.key.public_key, credentials.identity, now_s);
        return credentials;
    }
};

struct TemporaryFolder {
    std::filesystem::path path;

    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "causeway-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
};

}  // namespace causeway
