// operator new and delete of every program here, and the shelf of large blocks behind them.
//
// A block is a mapping of malloc's own from 4 MiB on (wire/link.cpp sets that), so that giving it back gives all of it
// back. A place on the shelf is claimed by changing its state, so no thread waits for another. Thread: any.
#include "common/large_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace causeway {
namespace {

constexpr std::size_t least = 4 << 20;
constexpr std::size_t page = 4096;
constexpr std::size_t spare_places = 32;  // more kinds of arrays than a round has
constexpr std::size_t slack = 8;          // a block serves what is up to an eighth smaller

enum class Place : int { empty, claimed, full };

struct Spare {
    std::atomic<Place> place{Place::empty};
    std::atomic<std::size_t> size{0};  // read before the place is claimed: a hint then
    std::atomic<Instant::rep> since{0};
    void* block = nullptr;

    bool claim(Place from) { return place.compare_exchange_strong(from, Place::claimed); }
};

constinit std::array<Spare, spare_places> shelf;

Instant::rep instant_now() {
    return real_now().count();
}

/// A hint to the kernel; where it has no large pages nothing changes.
void want_large_pages(void* block, std::size_t size) {
    const auto begin = (reinterpret_cast<std::uintptr_t>(block) + page - 1) / page * page;
    const auto end = (reinterpret_cast<std::uintptr_t>(block) + size) / page * page;
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

/// How much went; nothing where another thread has taken it. cost: a system call
std::size_t free_spare(Spare& spare) {
    if (!spare.claim(Place::full)) {
        return 0;
    }
    const auto size = spare.size.load();
    std::free(std::exchange(spare.block, nullptr));
    spare.place = Place::empty;
    return size;
}

/// So much goes before as much is taken anew, the smallest first: what is large is the dearest to get back.
void make_way(std::size_t wanted) {
    std::array<std::pair<std::size_t, Spare*>, spare_places> by_size;  // as they are now: others change them
    std::ranges::transform(shelf, by_size.begin(), [](Spare& spare) { return std::pair(spare.size.load(), &spare); });
    std::ranges::sort(by_size);
    std::size_t freed = 0;
    for (const auto& [size, spare] : by_size) {
        freed += freed < wanted ? free_spare(*spare) : 0;
    }
}

/// The smallest that serves; another thread may take it first, and then the next look finds another or none.
void* take_spare(std::size_t size) {
    for (std::size_t tries = 0; tries < spare_places; ++tries) {
        Spare* best = nullptr;
        for (auto& spare : shelf) {
            const auto has = spare.size.load(std::memory_order_relaxed);
            const bool serves = spare.place == Place::full && has >= size && has - size <= size / slack;
            best = serves && (best == nullptr || has < best->size) ? &spare : best;
        }
        if (best == nullptr) {
            return nullptr;
        }
        if (best->claim(Place::full)) {
            const auto has = best->size.load();
            const bool serves = has >= size && has - size <= size / slack;
            void* block = serves ? std::exchange(best->block, nullptr) : nullptr;
            best->place = serves ? Place::empty : Place::full;
            if (serves) {
                return block;
            }
        }
    }
    return nullptr;
}

bool keep_spare(void* block, std::size_t size) {
    for (auto& spare : shelf) {
        if (spare.claim(Place::empty)) {
            spare.block = block;
            spare.size = size;
            spare.since = instant_now();
            spare.place = Place::full;
            return true;
        }
    }
    return false;
}

}  // namespace

void give_back_spare_memory(Duration unused_for) {
    const auto before = instant_now() - unused_for.count();
    for (auto& spare : shelf) {
        if (spare.place == Place::full && spare.since <= before) {
            (void)free_spare(spare);
        }
    }
}

std::size_t spare_memory() {
    std::size_t sum = 0;
    for (const auto& spare : shelf) {
        sum += spare.place == Place::full ? spare.size.load() : 0;
    }
    return sum;
}

namespace {

[[maybe_unused]] void* take_memory(std::size_t size) {
    if (size >= least) {
        if (void* block = take_spare(size)) {
            return block;
        }
        make_way(size);
    }
    void* block = std::malloc(size == 0 ? 1 : size);
    if (block == nullptr) {
        give_back_spare_memory({});
        block = std::malloc(size == 0 ? 1 : size);
    }
    if (block != nullptr && size >= least) {
        want_large_pages(block, size);
    }
    return block;
}

[[maybe_unused]] void let_go(void* block) {
    const auto size = block == nullptr ? 0 : ::malloc_usable_size(block);
    if (size < least || !keep_spare(block, size)) {
        std::free(block);
    }
}

}  // namespace
}  // namespace causeway

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
void* operator new(std::size_t size) {
    void* block = causeway::take_memory(size);
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    return block;
}
void operator delete(void* block) noexcept {
    causeway::let_go(block);
}
void operator delete(void* block, std::size_t) noexcept {
    causeway::let_go(block);
}
#endif
