// The store on its own thread: executes the persists of each step in order, and everything else that needs SQLite.
//
// A step that cannot be stored because the machine fails (disk full) is tried again until it can: nothing that depends
// on it is released meanwhile. Any other failure is final for the process, and said so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "common/published.h"
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
    void store_step(std::uint64_t step, const std::vector<Persist>& persists);
    void publish();

    StoreThreadOptions options_;
    Store store_;  // the thread's
    Retry retry_;
    std::atomic<std::uint64_t> flushes_{0};
    Published<Digest> audit_head_;
    std::unique_ptr<WorkThread> thread_;
};

}  // namespace causeway
