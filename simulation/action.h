// Something to do later: a callable that is moved, called once, and kept in place when it is small.
//
// The virtual world plans millions of these. Those of a few words cost no allocation, which std::function, made for
// copying, gives only up to two; the others live on the heap.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace causeway::simulation {

class Action {
public:
    Action() = default;
    template <class Call>
    requires(!std::is_same_v<std::decay_t<Call>, Action>)
        Action(Call&& call) {  // NOLINT: as of std::function, any callable is one
        using Kept = std::decay_t<Call>;
        if constexpr (sizeof(Kept) <= sizeof(space_) && std::is_nothrow_move_constructible_v<Kept>) {
            ::new (static_cast<void*>(space_)) Kept(std::forward<Call>(call));
            table_ = &in_place<Kept>;
        } else {
            *this = Action([kept = std::make_unique<Kept>(std::forward<Call>(call))] { (*kept)(); });
        }
    }
    Action(Action&& other) noexcept { take(other); }
    Action& operator=(Action&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    Action(const Action&) = delete;
    Action& operator=(const Action&) = delete;
    ~Action() { reset(); }

    void operator()() { table_->call(space_); }
    explicit operator bool() const { return table_ != nullptr; }

private:
    struct Table {
        void (*call)(void*);
        void (*move)(void* to, void* from);  // and ends `from`
        void (*end)(void*);
    };
    template <class Kept>
    static constexpr Table in_place{
        [](void* at) { (*static_cast<Kept*>(at))(); },
        [](void* to, void* from) {
            ::new (to) Kept(std::move(*static_cast<Kept*>(from)));
            static_cast<Kept*>(from)->~Kept();
        },
        [](void* at) { static_cast<Kept*>(at)->~Kept(); },
    };

    void take(Action& other) {
        if (other.table_ != nullptr) {
            table_ = std::exchange(other.table_, nullptr);
            table_->move(space_, other.space_);
        }
    }
    void reset() {
        if (const auto* table = std::exchange(table_, nullptr)) {
            table->end(space_);
        }
    }

    const Table* table_ = nullptr;
    alignas(std::max_align_t) std::byte space_[64];
};

}  // namespace causeway::simulation
