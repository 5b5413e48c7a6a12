// See store_thread.h.
#include "coordinator/store_thread.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {
namespace {

constexpr Duration retry_pause = std::chrono::seconds(1);  // as the machines' first retry of a job (limits.h)

bool has_commit(const std::vector<Persist>& persists) {
    return std::ranges::any_of(persists, [](const Persist& p) { return std::holds_alternative<SaveCommit>(p); });
}

}  // namespace

StoreThread::StoreThread(Store store, StoreThreadOptions options)
    : options_(std::move(options)), store_(std::move(store)), thread_(std::make_unique<WorkThread>()) {}

StoreThread::~StoreThread() {
    stopping_ = true;
    pauses_.close();
    thread_.reset();
}

void StoreThread::execute(std::uint64_t step, std::vector<Persist> persists) {
    thread_->post([this, step, persists = std::move(persists)] { store_step(step, persists); });
}

void StoreThread::run(std::function<void(Store&)> task) {
    thread_->post([this, task = std::move(task)] { task(store_); });
}

void StoreThread::store_step(std::uint64_t step, const std::vector<Persist>& persists) {
    auto stored = store_.execute(persists);
    for (bool first = true; !stored && stored.error().kind == ErrorKind::io; first = false) {
        if (first) {
            log_error("store", stored.error().message + "; trying again until it works");
        }
        (void)pauses_.pop_for(retry_pause);
        if (stopping_) {
            return;  // the step was never released, so nobody relies on it
        }
        stored = store_.execute(persists);
    }
    if (!stored) {
        return options_.broken(stored.error());
    }
    options_.stored(step);
    if (has_commit(persists)) {
        if (auto named = store_.named_models()) {
            options_.committed(*std::move(named));
        }
    }
}

}  // namespace causeway
