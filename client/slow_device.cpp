// See slow_device.h.
#include "client/slow_device.h"

namespace causeway::node {
namespace {

// Less is owed on until it is worth a pause: the system wakes nobody more exactly than this.
constexpr Duration least_pause = std::chrono::microseconds(200);

}  // namespace

Instant SlowDevice::now() {
    auto now = clock_();
    if (factor_ > 1) {
        owed_ += from_seconds(seconds(now - mark_) * (factor_ - 1));
        if (owed_ >= least_pause) {
            pause_(owed_);
            const auto after = clock_();
            owed_ -= after - now;
            now = after;
        }
    }
    mark_ = now;
    return now;
}

}  // namespace causeway::node
