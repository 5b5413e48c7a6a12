// A device made slower on purpose: whatever it computes takes so many times as long, and gives the same bits.
//
// It is a clock that the trainer asks before and after each instruction: each answer first spends what the computing
// since the answer before still owes. So a slowed client's smashed data leave as late as a weak one's would, and all
// times that it measures and reports are a weak one's. Clock and pause are given: a test has both made of numbers.
// Thread: the trainer's.
#pragma once

#include <functional>

#include "common/time.h"

namespace causeway::node {

class SlowDevice {
public:
    using Clock = std::function<Instant()>;
    /// Returns after about so long, or earlier; what it takes is measured.
    using Pause = std::function<void(Duration)>;

    /// factor  how many times as long computing takes, at least 1
    SlowDevice(double factor, Clock clock, Pause pause)
        : factor_(factor), clock_(std::move(clock)), pause_(std::move(pause)) {}

    /// What has passed until now was no computing: it waited for others, or read a file.
    void resume() { mark_ = clock_(); }
    /// Spends what is owed for the time since resume() or the last call, and says what time it is then.
    Instant now();

private:
    double factor_;
    Clock clock_;
    Pause pause_;
    Instant mark_{};
    Duration owed_{};  // below 0: a pause took longer than it was to
};

}  // namespace causeway::node
