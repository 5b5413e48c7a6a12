// A value that one thread replaces and others look at: readers get the old one or the new one, whole, and keep it for
// as long as they look.
//
// std::atomic<std::shared_ptr> is that, but g++ 12's lets go of its lock without an order, which ThreadSanitizer
// reports and other processors than x86 may act upon. The flag is held for the copy or exchange of a pointer, never
// longer.
// threads  thread-safe
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace causeway {

template <class T>
class Published {
public:
    Published() = default;
    explicit Published(std::shared_ptr<const T> first) : value_(std::move(first)) {}

    /// The one before goes here, or with the last reader that has it.
    void store(std::shared_ptr<const T> value) {
        const Hold hold(held_);
        value_.swap(value);
    }
    /// Nothing, until something was stored.
    [[nodiscard]] std::shared_ptr<const T> load() const {
        const Hold hold(held_);
        return value_;
    }

private:
    struct Hold {
        explicit Hold(std::atomic_flag& flag) : held(flag) {
            while (held.test_and_set(std::memory_order_acquire)) {
            }
        }
        ~Hold() { held.clear(std::memory_order_release); }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        std::atomic_flag& held;
    };

    mutable std::atomic_flag held_;
    std::shared_ptr<const T> value_;
};

}  // namespace causeway
