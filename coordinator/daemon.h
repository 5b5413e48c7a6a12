// The coordinator daemon: the machines of machine.h with sockets, files and threads around them.
//
// One loop thread owns the machines and executes their effects under the order contract; a link thread owns sockets and
// TLS, a transfer thread bulk data, a store thread SQLite, the job runner's threads everything that computes. They
// exchange owned values through the loop's queue. A Daemon is the loop: run() is called on its thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "coordinator/daemon_limits.h"
#include "coordinator/state_files.h"
#include "wire/address.h"

namespace causeway {

struct DaemonOptions {
    std::filesystem::path state;
    Address listen;
    std::vector<std::string> advertise;  // what tokens carry instead of this machine's global addresses
    std::string federation = "causeway";
    std::map<std::string, std::filesystem::path> datasets;  // held-out examples by name
    std::map<std::string, std::filesystem::path> models;    // safetensors files by name, for `init_from`
    std::uint32_t parallel = 1;
    std::uint32_t workers = 2;
    std::uint32_t sessions = 0;  // nodes and operators at one time; 0: as many as this machine has room for
    std::optional<Address> http;  // loopback: /healthz and /metrics
    AuthorityKind authority = AuthorityKind::own;
    std::shared_ptr<DaemonLimits> limits = std::make_shared<DaemonLimits>();
    std::function<std::int64_t()> unix_now = wall_clock_unix_s;  // certificates, tokens, the audit log
    std::function<void(Instant)> alive;  // on each turn of the loop, at least once a second: a watchdog's proof of life
};

class Daemon {
public:
    /// Opens the state folder (making it at the first start) and listens.
    ///
    /// errors   refused `state_in_use`; io `port_in_use`, `disk_full`, can_start's (common/need.h); corrupt,
    ///          unsupported: of the state folder, or of a model file
    static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);

    struct Parts;
    explicit Daemon(std::unique_ptr<Parts> parts);
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    /// Of --http; 0 when there is none.
    [[nodiscard]] std::uint16_t http_port() const;
    [[nodiscard]] const std::string& federation() const;
    /// Serves until stop(). errors: io, corrupt: the store failed for good
    Status run();
    /// threads  thread-safe
    void stop();

private:
    std::unique_ptr<Parts> parts_;
};

}  // namespace causeway
