// What happened, line by line with its virtual time: compared with golden files, printed when a seed fails.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simulation/event_queue.h"

namespace causeway::simulation {

class Transcript {
public:
    enum class Keep { nothing, everything };

    Transcript(const EventQueue& queue, Keep keep) : queue_(queue), keep_(keep) {}

    void add(std::string_view who, std::string_view what) {
        if (keep_ == Keep::everything) {
            text_ += fmt::format("{:8.3f} {:<12} {}\n", seconds(queue_.now()), who, what);
        }
    }
    [[nodiscard]] bool kept() const { return keep_ == Keep::everything; }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    const EventQueue& queue_;
    Keep keep_;
    std::string text_;
};

}  // namespace causeway::simulation
