// A thread that waits in sigwait; SIGUSR1 wakes it when the object goes.
#include "cli/stop_signal.h"

#include <atomic>
#include <csignal>
#include <thread>

#include <pthread.h>

#include "common/queue.h"

namespace causeway::cli {
namespace {

sigset_t waited_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    return set;
}

}  // namespace

struct StopSignal::State {
    BoundedQueue<std::function<void()>> stop{1};  // holds the function to call
    std::thread thread;

    void wait_for_signals() {
        const auto set = waited_signals();
        for (int signal = 0; ::sigwait(&set, &signal) == 0 && signal != SIGUSR1;) {
            if (auto call = stop.try_pop()) {
                (*call)();
            } else {
                ::signal(signal, SIG_DFL);  // asked twice: end now
                ::raise(signal);
                ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
            }
        }
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
    (void)state_->stop.try_pop();
    (void)state_->stop.try_push(stop);
}

}  // namespace causeway::cli
