// One datagram per message, sent without waiting: a service manager that does not read must not stop the service.
#include "cli/service_manager.h"

#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"

namespace causeway::cli {
namespace {

std::string variable(const char* name) {
    const auto* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// The interval within which the manager wants to hear of us; set for this process only.
std::optional<Duration> watchdog_of_environment() {
    const auto pid = variable("WATCHDOG_PID");
    const auto interval_us = std::strtoll(variable("WATCHDOG_USEC").c_str(), nullptr, 10);
    if (interval_us <= 0 || (!pid.empty() && pid != std::to_string(::getpid()))) {
        return std::nullopt;
    }
    return std::chrono::microseconds(interval_us);
}

}  // namespace

ServiceManager::ServiceManager() : socket_(variable("NOTIFY_SOCKET")), watchdog_(watchdog_of_environment()) {}

void ServiceManager::ready(std::string_view status) const {
    send("READY=1\nSTATUS=" + std::string(status));
}

void ServiceManager::stopping() const {
    send("STOPPING=1\nSTATUS=stopping");
}

void ServiceManager::alive(Instant now) {
    if (watchdog_ && now >= next_) {
        next_ = now + *watchdog_ / 2;
        send("WATCHDOG=1");
    }
}

/// '@' stands for the zero byte of an abstract address.
void ServiceManager::send(const std::string& text) const {
    sockaddr_un address{};
    if (socket_.size() < 2 || socket_.size() >= sizeof address.sun_path) {
        return;
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_.data(), socket_.size());
    if (socket_[0] == '@') {
        address.sun_path[0] = '\0';
    }
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
    const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        return;
    }
    const auto sent = ::sendto(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                               reinterpret_cast<const sockaddr*>(&address), length);
    if (sent < 0) {
        log_warn("service", "the service manager at " + socket_ + " did not take a message: " + std::strerror(errno));
    }
    ::close(descriptor);
}

}  // namespace causeway::cli
