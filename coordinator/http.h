// `--http ADDR`: /healthz and /metrics for the machine's own monitoring. Off unless asked for.
//
// The one thing that speaks plaintext, hence bound to loopback only and read-only: no request changes anything, and a
// request whose Host is not a loopback name is refused, so that no web page in a browser on this machine can read it by
// a name of its own. Each answer is asked of the loop with a deadline: a loop that stands still is unhealthy. What a
// program of this machine can make it hold is bounded (http_connections.h). Thread: one of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/result.h"
#include "coordinator/metrics.h"
#include "wire/address.h"

namespace causeway {

class HttpServer {
public:
    /// Asks the loop and waits for it; nothing when it did not answer in time. Called on the server's thread.
    using Scrape = std::function<std::optional<CoordinatorMetrics>()>;

    /// errors   refused `http_not_loopback`; io `port_in_use`, `too_few_descriptors`
    static Result<std::unique_ptr<HttpServer>> start(const Address& listen, Scrape scrape);

    struct Parts;
    explicit HttpServer(std::unique_ptr<Parts> parts);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    [[nodiscard]] std::uint16_t port() const;

private:
    std::unique_ptr<Parts> parts_;
};

}  // namespace causeway
