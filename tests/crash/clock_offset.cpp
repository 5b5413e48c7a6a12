// Preloaded into a process of the clock's test: its wall clock is CAUSEWAY_CLOCK_OFFSET seconds off, as on a machine
// without NTP. The steady clock is left as it is, for that one no administrator can set.
#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

time_t offset_s() {
    static const time_t offset = [] {
        const char* value = std::getenv("CAUSEWAY_CLOCK_OFFSET");  // NOLINT: read once
        return value == nullptr ? time_t{0} : static_cast<time_t>(std::atoll(value));
    }();
    return offset;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
    const auto status = static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        out->tv_sec += offset_s();
    }
    return status;
}

extern "C" time_t time(time_t* out) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != nullptr) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

extern "C" int gettimeofday(timeval* out, void*) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
