// What systemd wants to know of a daemon (ready, alive, stopping), as datagrams to $NOTIFY_SOCKET: no library needed.
//
// Outside systemd (no NOTIFY_SOCKET) every call does nothing. alive() is called from each turn of a daemon's loop, so
// the watchdog sees a loop that stands still, not a process that merely exists; it sends at most one datagram per half
// of the watchdog's interval. source: sd_notify(3), sd_watchdog_enabled(3). Thread: each object is of one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/time.h"

namespace causeway::cli {

class ServiceManager {
public:
    /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
    ServiceManager();

    void ready(std::string_view status) const;
    void stopping() const;
    /// The loop has made a turn at `now`.
    void alive(Instant now);


private:
    void send(const std::string& text) const;

    std::string socket_;  // empty: nobody listens
    std::optional<Duration> watchdog_;  // none: not started by systemd, or without a watchdog
    Instant next_{};
};

}  // namespace causeway::cli
