// See store_thread.h.
#include "coordinator/store_thread.h"

#include <algorithm>
#include <utility>

#include "coordinator/audit_store.h"

namespace causeway {
namespace {

constexpr std::size_t work_limit = 1 << 16;
constexpr std::size_t most_together = 256;  // the first of them waits for the flush of all

bool has_commit(const std::vector<Persist>& persists) {
    return std::ranges::any_of(persists, [](const Persist& p) { return std::holds_alternative<SaveCommit>(p); });
}

}  // namespace

StoreThread::StoreThread(Store store, StoreThreadOptions options)
    : options_(std::move(options)),
      store_(std::move(store)),
      audit_head_(std::make_shared<const Digest>()),
      work_(work_limit) {
    publish();
    thread_ = std::make_unique<WorkThread>();
}

StoreThread::~StoreThread() {
    retry_.stop();
    thread_.reset();
}

void StoreThread::execute(std::uint64_t step, std::vector<Persist> persists) {
    post(Step{step, std::move(persists)});
}

void StoreThread::run(std::function<void(Store&)> task) {
    post(std::move(task));
}

/// One turn of the thread for each piece of work, though a turn may do several: what waits always has its turn ahead.
void StoreThread::post(Work work) {
    work_.push(std::move(work));
    thread_->post([this] { take_work(); });
}

void StoreThread::take_work() {
    auto work = next_ ? std::exchange(next_, std::nullopt) : work_.try_pop();
    if (!work) {
        return;  // done in an earlier turn
    }
    if (auto* task = std::get_if<std::function<void(Store&)>>(&*work)) {
        (*task)(store_);
        return publish();
    }
    const bool declares = declares_only(*work);
    auto& step = std::get<Step>(*work);
    if (!declares) {
        return store_step(step);
    }
    const auto steps = declarations_after(std::move(step));
    if (steps.size() == 1 || !store_together(steps)) {
        std::ranges::for_each(steps, [this](const Step& one) { store_step(one); });
    }
}

bool StoreThread::declares_only(const Work& work) {
    const auto* step = std::get_if<Step>(&work);
    return step && std::ranges::all_of(step->persists, [](const Persist& persist) {
               return std::holds_alternative<SaveDeclaration>(persist);
           });
}

/// With those that wait right behind it: order is kept.
std::vector<StoreThread::Step> StoreThread::declarations_after(Step first) {
    std::vector<Step> steps;
    steps.push_back(std::move(first));
    while (steps.size() < most_together) {
        auto work = work_.try_pop();
        if (!work || !declares_only(*work)) {
            next_ = std::move(work);
            break;
        }
        steps.push_back(std::get<Step>(std::move(*work)));
    }
    return steps;
}

/// False: none of it is stored.
bool StoreThread::store_together(const std::vector<Step>& steps) {
    std::vector<Persist> all;
    for (const auto& step : steps) {
        all.insert(all.end(), step.persists.begin(), step.persists.end());
    }
    if (!store_.execute(all)) {
        return false;
    }
    publish();
    std::ranges::for_each(steps, [this](const Step& step) { options_.stored(step.number); });
    return true;
}

/// A head that cannot be read now is read after the next step; until then the one before is as true.
void StoreThread::publish() {
    flushes_ = store_.flushes();
    if (const auto head = AuditStore(store_.database()).head(); head && *head != audit_head()) {
        audit_head_.store(std::make_shared<const Digest>(*head));
    }
}

void StoreThread::store_step(const Step& step) {
    const auto& persists = step.persists;
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
    options_.stored(step.number);
    if (has_commit(persists)) {
        if (auto named = store_.named_models()) {
            options_.committed(*std::move(named));
        }
    }
}

}  // namespace causeway
