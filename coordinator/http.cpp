// See http.h.
#include "coordinator/http.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>

namespace causeway {
namespace {

constexpr std::size_t serving_threads = 2;     // a scraper and a person
constexpr std::size_t largest_request = 1024;  // there is nothing to send
constexpr int io_seconds = 5;

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// The host of "127.0.0.1:9400", "[::1]:9400", "localhost".
std::string host_of(const std::string& header) {
    if (header.starts_with("[")) {
        return header.substr(1, header.find(']') - 1);
    }
    return header.substr(0, header.find(':'));
}

void prepare(httplib::Server& server) {
    server.new_task_queue = [] { return new httplib::ThreadPool(serving_threads); };  // owned by the server
    server.set_payload_max_length(largest_request);
    server.set_read_timeout(io_seconds);
    server.set_write_timeout(io_seconds);
    server.set_keep_alive_max_count(1);
    // Without SO_REUSEPORT, httplib's default: a second process must not share the port unseen.
    server.set_socket_options([](socket_t descriptor) {
        const int on = 1;
        (void)::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
        if (!is_loopback(host_of(request.get_header_value("Host")))) {
            response.status = 403;
            response.set_content("only by a loopback name\n", "text/plain");
            return httplib::Server::HandlerResponse::Handled;
        }
        if (request.method != "GET" && request.method != "HEAD") {
            response.status = 405;
            response.set_header("Allow", "GET, HEAD");
            response.set_content("read-only\n", "text/plain");
            return httplib::Server::HandlerResponse::Handled;
        }
        return httplib::Server::HandlerResponse::Unhandled;
    });
}

void answer(httplib::Response& response, const std::optional<std::string>& body, const char* type) {
    response.status = body ? 200 : 503;
    response.set_content(body.value_or("the loop does not answer\n"), body ? type : "text/plain");
}

}  // namespace

struct HttpServer::Parts {
    httplib::Server server;
    Scrape scrape;
    std::thread thread;
    std::atomic<bool> ended{false};
    std::uint16_t port = 0;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Address& listen, Scrape scrape) {
    if (!is_loopback(listen.host)) {
        return fail(ErrorKind::refused, "http_not_loopback",
                    fmt::format("--http {}: it is unencrypted and for this machine only; use 127.0.0.1:{}",
                                listen.text(), listen.port));
    }
    auto parts = std::make_unique<Parts>();
    parts->scrape = std::move(scrape);
    prepare(parts->server);
    auto* own = parts.get();
    parts->server.Get("/healthz", [own](const httplib::Request&, httplib::Response& response) {
        const auto metrics = own->scrape();
        answer(response, metrics ? std::optional<std::string>("ok\n") : std::nullopt, "text/plain");
    });
    parts->server.Get("/metrics", [own](const httplib::Request&, httplib::Response& response) {
        const auto metrics = own->scrape();
        answer(response, metrics ? std::optional(to_prometheus(*metrics)) : std::nullopt,
               "text/plain; version=0.0.4; charset=utf-8");
    });
    const int port = listen.port == 0 ? parts->server.bind_to_any_port(listen.host)
                     : parts->server.bind_to_port(listen.host, listen.port) ? listen.port
                                                                            : -1;
    if (port < 0) {
        return fail(ErrorKind::io, "port_in_use",
                    fmt::format("--http {}: the port cannot be had; stop what uses it or take another", listen.text()));
    }
    parts->port = static_cast<std::uint16_t>(port);
    parts->thread = std::thread([own] {
        own->server.listen_after_bind();
        own->ended = true;
    });
    return std::make_unique<HttpServer>(std::move(parts));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

/// stop() before the thread listens would be lost.
HttpServer::~HttpServer() {
    while (!parts_->server.is_running() && !parts_->ended) {
        std::this_thread::yield();
    }
    parts_->server.stop();
    parts_->thread.join();
}

std::uint16_t HttpServer::port() const {
    return parts_->port;
}

}  // namespace causeway
