// See http.h.
#include "coordinator/http.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "coordinator/http_connections.h"

namespace causeway {
namespace {

/// An address, or the one name that no resolver may give away: "127.example.org" is a name like any other.
bool is_loopback(const std::string& host) {
    const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
    return host == "localhost" || host == "::1" || (numeric && host.starts_with("127."));
}

/// The host of "127.0.0.1:9400", "[::1]:9400", "localhost".
std::string host_of(const std::string& header) {
    if (header.starts_with("[")) {
        return header.substr(1, header.find(']') - 1);
    }
    return header.substr(0, header.find(':'));
}

constexpr auto health_path = "/healthz";
constexpr auto metrics_path = "/metrics";

/// What is answered without asking the loop.
std::optional<HttpResponse> refuse_http(const HttpRequest& request) {
    if (!is_loopback(host_of(request.host.value_or("")))) {
        return HttpResponse{403, "only by a loopback name\n"};
    }
    if (request.method != "GET" && request.method != "HEAD") {
        return HttpResponse{405, "read-only\n", "text/plain", "Allow: GET, HEAD\r\n"};
    }
    if (request.path != health_path && request.path != metrics_path) {
        return HttpResponse{404, "there are /healthz and /metrics\n"};
    }
    return std::nullopt;
}

HttpResponse http_page(const HttpRequest& request, const std::optional<CoordinatorMetrics>& scraped) {
    if (!scraped) {
        return {503, "the loop does not answer\n"};
    }
    return request.path == health_path
               ? HttpResponse{200, "ok\n"}
               : HttpResponse{200, to_prometheus(*scraped), "text/plain; version=0.0.4; charset=utf-8"};
}

/// The loop is asked once for all of them, and not at all where none is a page of ours.
std::vector<HttpResponse> http_answers(const std::vector<HttpRequest>& requests, const HttpServer::Scrape& scrape) {
    std::vector<HttpResponse> responses;
    std::optional<std::optional<CoordinatorMetrics>> scraped;
    for (const auto& request : requests) {
        if (auto refused = refuse_http(request)) {
            responses.push_back(*std::move(refused));
            continue;
        }
        if (!scraped) {
            scraped = scrape();
        }
        responses.push_back(http_page(request, *scraped));
    }
    return responses;
}

}  // namespace

struct HttpServer::Parts {
    std::unique_ptr<HttpConnections> connections;
    std::thread thread;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Address& listen, Scrape scrape) {
    if (!is_loopback(listen.host)) {
        return fail(ErrorKind::refused, "http_not_loopback",
                    fmt::format("--http {}: it is unencrypted and for this machine only; use 127.0.0.1:{}",
                                listen.text(), listen.port));
    }
    auto parts = std::make_unique<Parts>();
    TRY_ASSIGN(parts->connections,
               HttpConnections::open(listen, [scrape = std::move(scrape)](const std::vector<HttpRequest>& requests) {
                   return http_answers(requests, scrape);
               }));
    parts->thread = std::thread([connections = parts->connections.get()] { connections->run(); });
    return std::make_unique<HttpServer>(std::move(parts));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() {
    parts_->connections->stop();
    parts_->thread.join();
}

std::uint16_t HttpServer::port() const {
    return parts_->connections->port();
}

}  // namespace causeway
