// The checks of `causeway doctor`. Each looks at one thing and says what it found, why that matters and how to mend it.
//
// Checks change nothing: no folder is made, no lock kept, and a coordinator that is asked sees a connection that goes
// again. Every wait has a bound. To add one: a function here and a line in doctor.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/need.h"
#include "common/time.h"
#include "wire/address.h"
#include "wire/identity.h"

namespace causeway::cli {

enum class Verdict { ok, warn, fail };

struct Finding {
    std::string check;  // a stable word
    Verdict verdict = Verdict::ok;
    std::string what;
    std::string why = {};   // empty when ok
    std::string mend = {};  // empty when ok
};
using Findings = std::vector<Finding>;

/// What the folder belongs to, by what lies in it.
enum class StateKind { absent, empty, coordinator, node, operator_ };
[[nodiscard]] StateKind kind_of_state(const std::filesystem::path& state);
/// A live process holds the folder's lock.
[[nodiscard]] bool state_in_use(const std::filesystem::path& state);

// doctor_machine.cpp
[[nodiscard]] Finding check_device(const std::string& device);
/// What a start would be judged by: descriptors, memory, disk, clock.
[[nodiscard]] Findings check_need(const Need& need, const Machine& machine);
/// What the settings' `key` bounds, against what there is of it.
[[nodiscard]] Finding check_quota(const std::string& key, std::uint64_t used, std::uint64_t quota);
/// Whether the system keeps its clock in step with others.
[[nodiscard]] Finding check_clock_service();

// doctor_state.cpp
[[nodiscard]] Findings check_modes(const std::filesystem::path& state);
[[nodiscard]] Finding check_lock(const std::filesystem::path& state);
/// Keys, certificate and authority belong together, and the certificate is in its time by this machine's clock.
[[nodiscard]] Findings check_certificate(const std::filesystem::path& folder, Role role, std::int64_t now_s);
/// When the federation's authority ends, and everybody's identity with it.
[[nodiscard]] Finding check_authority(const std::filesystem::path& certificate, std::int64_t now_s);
/// The clock against the moment at which the certificate was made.
[[nodiscard]] Finding check_clock(const CertificateFacts& certificate, std::int64_t now_s);
[[nodiscard]] Finding check_policy(const std::filesystem::path& state);

// doctor_network.cpp
[[nodiscard]] Finding check_port(const Address& listen);
/// Each address of the file; one that answers is enough.
[[nodiscard]] Findings check_coordinators(const std::filesystem::path& credentials,
                                          const std::filesystem::path& addresses);

}  // namespace causeway::cli
