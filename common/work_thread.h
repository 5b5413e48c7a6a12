// A thread that does tasks one after the other: how workers, the store and the trainer are run.
//
// Whoever posts hands over everything the task needs; results come back as values through the poster's own queue.
#pragma once

#include <functional>
#include <thread>

#include "common/queue.h"

namespace causeway {

class WorkThread {
public:
    /// More waiting tasks than this make post() wait: far above what the owners' own limits let through.
    explicit WorkThread(std::size_t limit = 1 << 16)
        : tasks_(limit), thread_([this] {
              while (auto task = tasks_.pop()) {
                  (*task)();
              }
          }) {}
    ~WorkThread() { close(); }
    WorkThread(const WorkThread&) = delete;
    WorkThread& operator=(const WorkThread&) = delete;

    /// Does what was posted, then ends; what is posted later is not done. Not from a task.
    void close() {
        tasks_.close();
        if (thread_.joinable()) {
            thread_.join();
        }
    }
    /// threads  thread-safe
    void post(std::function<void()> task) { tasks_.push(std::move(task)); }

private:
    BoundedQueue<std::function<void()>> tasks_;
    std::thread thread_;  // after the queue: it uses it from its first moment
};

}  // namespace causeway
