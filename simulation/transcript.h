// What happened, line by line with its virtual time: compared with golden files, shown when a seed fails, and what
// `causeway simulate --transcript` writes.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simulation/event_queue.h"

namespace causeway::simulation {

class Transcript {
public:
    enum class Keep { nothing, everything };
    /// Who did what, as it happens.
    using Tell = std::function<void(Instant when, std::string_view who, std::string_view what)>;

    /// With `tell` nothing is kept here.
    Transcript(const EventQueue& queue, Keep keep, Tell tell = {})
        : queue_(queue), keep_(keep), tell_(std::move(tell)) {}

    void add(std::string_view who, std::string_view what) {
        if (tell_) {
            tell_(queue_.now(), who, what);
        } else if (keep_ == Keep::everything) {
            text_ += line(queue_.now(), who, what) + "\n";
        }
    }
    /// Put into words only when somebody will read it.
    void add(std::string_view who, const std::invocable auto& describe) {
        if (tell_ || keep_ == Keep::everything) {
            add(who, std::string_view(describe()));
        }
    }
    [[nodiscard]] const std::string& text() const { return text_; }
    static std::string line(Instant when, std::string_view who, std::string_view what) {
        return fmt::format("{:8.3f} {:<12} {}", seconds(when), who, what);
    }

private:
    const EventQueue& queue_;
    Keep keep_;
    Tell tell_;
    std::string text_;
};

}  // namespace causeway::simulation
