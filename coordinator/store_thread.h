// The store on its own thread: executes the persists of each step in order, and everything else that needs SQLite.
//
// A step that cannot be stored because the machine fails (disk full) is tried again until it can: nothing that depends
// on it is released meanwhile. Any other failure is final for the process, and said so.
//
// Steps that only say what nodes declare are stored together, as many as wait: a thousand nodes that come at once cost
// a few flushes, not one each. Each is reported by itself, after the flush. Where they cannot be stored together each
// is stored alone, so that one that fails fails as it would have and takes none along.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "common/published.h"
#include "common/queue.h"
#include "common/retry.h"
#include "common/work_thread.h"
#include "coordinator/store.h"

namespace causeway {

struct StoreThreadOptions {
    std::function<void(std::uint64_t step)> stored;   // the step's persists are durable
    std::function<void(Error)> stuck;                 // it cannot be stored yet, and is tried again; may be empty
    std::function<void(Error)> broken;                // the store cannot go on: stop the process
    std::function<void(std::set<Digest>)> committed;  // after a commit: the models that are still named
};

class StoreThread {
public:
    StoreThread(Store store, StoreThreadOptions options);
    ~StoreThread();
    StoreThread(const StoreThread&) = delete;
    StoreThread& operator=(const StoreThread&) = delete;

    void execute(std::uint64_t step, std::vector<Persist> persists);
    /// Anything else: enrolment, lists.
    void run(std::function<void(Store&)> task);
    /// The audit log's last hash, of what is durable. threads  thread-safe
    [[nodiscard]] Digest audit_head() const { return *audit_head_.load(); }
    /// Of the database, so far. threads  thread-safe
    [[nodiscard]] std::uint64_t flushes() const { return flushes_; }

private:
    struct Step {
        std::uint64_t number = 0;
        std::vector<Persist> persists;
    };
    using Work = std::variant<Step, std::function<void(Store&)>>;

    static bool declares_only(const Work& work);
    void post(Work work);
    void take_work();
    std::vector<Step> declarations_after(Step first);
    bool store_together(const std::vector<Step>& steps);
    void store_step(const Step& step);
    void publish();

    StoreThreadOptions options_;
    Store store_;  // the thread's
    Retry retry_;
    std::atomic<std::uint64_t> flushes_{0};
    Published<Digest> audit_head_;
    BoundedQueue<Work> work_;
    std::optional<Work> next_;  // the thread's: looked at, and not done yet
    std::unique_ptr<WorkThread> thread_;
};

}  // namespace causeway
