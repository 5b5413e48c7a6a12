// See store_thread.h.
#include "coordinator/store_thread.h"

#include <algorithm>
#include <utility>

#include "coordinator/audit_store.h"

namespace causeway {
namespace {

bool has_commit(const std::vector<Persist>& persists) {
    return std::ranges::any_of(persists, [](const Persist& p) { return std::holds_alternative<SaveCommit>(p); });
}

}  // namespace

StoreThread::StoreThread(Store store, StoreThreadOptions options)
    : options_(std::move(options)), store_(std::move(store)), audit_head_(std::make_shared<const Digest>()) {
    publish();
    thread_ = std::make_unique<WorkThread>();
}

StoreThread::~StoreThread() {
    retry_.stop();
    thread_.reset();
}

void StoreThread::execute(std::uint64_t step, std::vector<Persist> persists) {
    thread_->post([this, step, persists = std::move(persists)] { store_step(step, persists); });
}

void StoreThread::run(std::function<void(Store&)> task) {
    thread_->post([this, task = std::move(task)] {
        task(store_);
        publish();
    });
}

/// A head that cannot be read now is read after the next step; until then the one before is as true.
void StoreThread::publish() {
    flushes_ = store_.flushes();
    if (const auto head = AuditStore(store_.database()).head(); head && *head != audit_head()) {
        audit_head_.store(std::make_shared<const Digest>(*head));
    }
}

void StoreThread::store_step(std::uint64_t step, const std::vector<Persist>& persists) {
    auto tell = options_.stuck;  // once per step
    const auto stored = retry_.until_done("store", [&] {
        auto done = store_.execute(persists);
        if (!done && done.error().kind == ErrorKind::io && tell) {
            std::exchange(tell, {})(done.error());
        }
        return done;
    });
    if (!stored && stored.error().code == "stopped") {
        return;  // the step was never released, so nobody relies on it
    }
    if (!stored) {
        return options_.broken(stored.error());
    }
    publish();
    options_.stored(step);
    if (has_commit(persists)) {
        if (auto named = store_.named_models()) {
            options_.committed(*std::move(named));
        }
    }
}

}  // namespace causeway
