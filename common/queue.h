// A bounded queue between two threads, the only place in the code with a mutex: threads exchange owned values here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "common/time.h"

namespace causeway {

/// Who waits is woken after the lock is let go of, and only if somebody waits: a hand-over is one change of threads,
/// not two, and none where the other side is awake. So a queue must outlive every call into it: one that another
/// thread pushes into is shared with it, or ends after that thread.
///
/// threads  thread-safe
template <class T>
class BoundedQueue {
public:
    explicit BoundedQueue(std::size_t limit) : limit_(limit) {}

    /// Waits for room. False when closed.
    bool push(T value) {
        std::unique_lock lock(mutex_);
        ++pushing_;
        room_.wait(lock, [&] { return closed_ || items_.size() < limit_; });
        --pushing_;
        return put(std::move(lock), std::move(value));
    }
    /// False when full or closed; the value is untouched then.
    bool try_push(T& value) {
        std::unique_lock lock(mutex_);
        return items_.size() < limit_ && put(std::move(lock), std::move(value));
    }
    /// Waits for a value; empty when closed and drained.
    std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        ++popping_;
        some_.wait(lock, [&] { return closed_ || !items_.empty(); });
        --popping_;
        return take(std::move(lock));
    }
    /// Waits at most `bound`; empty on time-out too.
    std::optional<T> pop_for(Duration bound) {
        std::unique_lock lock(mutex_);
        ++popping_;
        some_.wait_for(lock, bound, [&] { return closed_ || !items_.empty(); });
        --popping_;
        return take(std::move(lock));
    }
    std::optional<T> try_pop() { return take(std::unique_lock(mutex_)); }
    void close() {
        std::unique_lock lock(mutex_);
        closed_ = true;
        some_.notify_all();
        room_.notify_all();
    }
    [[nodiscard]] std::size_t size() const {
        std::unique_lock lock(mutex_);
        return items_.size();
    }

private:
    bool put(std::unique_lock<std::mutex> lock, T&& value) {
        if (closed_) {
            return false;
        }
        items_.push_back(std::move(value));
        const bool awaited = popping_ > 0;
        lock.unlock();
        if (awaited) {
            some_.notify_one();
        }
        return true;
    }
    std::optional<T> take(std::unique_lock<std::mutex> lock) {
        if (items_.empty()) {
            return std::nullopt;
        }
        std::optional<T> value(std::move(items_.front()));
        items_.pop_front();
        const bool awaited = pushing_ > 0;
        lock.unlock();
        if (awaited) {
            room_.notify_one();
        }
        return value;
    }

    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::condition_variable some_;  // awaited by poppers
    std::condition_variable room_;  // awaited by pushers
    std::deque<T> items_;
    std::size_t popping_ = 0;  // wait, or are about to look
    std::size_t pushing_ = 0;
    bool closed_ = false;
};

}  // namespace causeway
