// A bounded queue between two threads, the only place in the code with a mutex: threads exchange owned values here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "common/time.h"

namespace causeway {

/// threads  thread-safe
template <class T>
class BoundedQueue {
public:
    explicit BoundedQueue(std::size_t limit) : limit_(limit) {}

    /// Waits for room. False when closed.
    bool push(T value) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || items_.size() < limit_; });
        return push_locked(std::move(value));
    }
    /// False when full or closed; the value is untouched then.
    bool try_push(T& value) {
        std::unique_lock lock(mutex_);
        return items_.size() < limit_ && push_locked(std::move(value));
    }
    /// Waits for a value; empty when closed and drained.
    std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || !items_.empty(); });
        return pop_locked();
    }
    /// Waits at most `bound`; empty on time-out too.
    std::optional<T> pop_for(Duration bound) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, bound, [&] { return closed_ || !items_.empty(); });
        return pop_locked();
    }
    std::optional<T> try_pop() {
        std::unique_lock lock(mutex_);
        return pop_locked();
    }
    void close() {
        std::unique_lock lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] std::size_t size() const {
        std::unique_lock lock(mutex_);
        return items_.size();
    }

private:
    bool push_locked(T&& value) {
        if (closed_) {
            return false;
        }
        items_.push_back(std::move(value));
        changed_.notify_all();
        return true;
    }
    std::optional<T> pop_locked() {
        if (items_.empty()) {
            return std::nullopt;
        }
        std::optional<T> value(std::move(items_.front()));
        items_.pop_front();
        changed_.notify_all();
        return value;
    }

    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> items_;
    bool closed_ = false;
};

}  // namespace causeway
