// A thread that waits in sigtimedwait; SIGUSR1 wakes it when the object goes.
#include "cli/stop_signal.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "common/log.h"
#include "common/queue.h"

namespace causeway::cli {
namespace {

sigset_t waited_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    return set;
}

/// The next of the waited signals, or 0 at the deadline.
int next_signal(Instant deadline) {
    const auto set = waited_signals();
    while (true) {
        const auto left = std::max<Duration>(deadline - real_now(), Duration::zero());
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
        const timespec patience{static_cast<std::time_t>(whole.count()), static_cast<long>((left - whole).count())};
        const int signal = deadline == never ? ::sigwaitinfo(&set, nullptr) : ::sigtimedwait(&set, nullptr, &patience);
        if (signal > 0) {
            return signal;
        }
        if (errno == EAGAIN) {
            return 0;
        }
    }
}

}  // namespace

struct StopSignal::State {
    using Call = std::function<void()>;
    BoundedQueue<Call> stop{1};    // holds the function to call
    BoundedQueue<bool> called{1};  // it was taken, and has returned
    BoundedQueue<Call> reload{1};  // the same of SIGHUP, put back after each use
    std::thread thread;

    bool reloaded() {
        auto call = ::isatty(STDERR_FILENO) == 1 ? std::nullopt : reload.try_pop();
        if (!call) {
            return false;
        }
        (*call)();
        (void)reload.try_push(*call);
        return true;
    }

    void wait_for_signals() {
        Instant deadline = never;
        for (int signal = 0; (signal = next_signal(deadline)) != SIGUSR1;) {
            if (signal == SIGHUP && (deadline != never || reloaded())) {
                continue;
            }
            auto call = signal == 0 ? std::nullopt : stop.try_pop();
            if (call) {
                deadline = real_now() + stop_limit;
                (*call)();
                called.push(true);
                continue;
            }
            end(signal);
        }
    }

    /// Asked twice, or stuck: what a restart needs is on the disk already.
    static void end(int signal) {
        if (signal == 0) {
            log_warn("service", "stopping took longer than " + format_duration(stop_limit) +
                                    "; ending now, nothing that was committed is lost");
            std::_Exit(0);
        }
        const auto set = waited_signals();
        ::signal(signal, SIG_DFL);
        ::raise(signal);
        ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    }
};

StopSignal::StopSignal(std::function<void()> stop) : state_(std::make_unique<State>()) {
    const auto set = waited_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    state_->stop.push(std::move(stop));
    state_->thread = std::thread([this] { state_->wait_for_signals(); });
}

StopSignal::~StopSignal() {
    ::pthread_kill(state_->thread.native_handle(), SIGUSR1);
    state_->thread.join();
}

void StopSignal::set(std::function<void()> stop) {
    if (!state_->stop.try_pop()) {
        (void)state_->called.pop();  // what it works on is about to go
    }
    (void)state_->stop.try_push(stop);
}

void StopSignal::on_hangup(std::function<void()> reload) {
    (void)state_->reload.try_pop();
    (void)state_->reload.try_push(reload);
}

}  // namespace causeway::cli
