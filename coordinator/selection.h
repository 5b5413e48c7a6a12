// Who of the clients that are there works on a round, when not all do: the rules of `sync.selection`.
//
//   uniform       every client alike
//   weighted      without replacement, each draw with a chance in proportion to the examples that a client declares
//   availability  who has waited longest since it was last drawn; equals in a drawn order
//
// Draws are functions of seed, round and names, never of the order in which clients came; who is there is decided by
// time, so the result is persisted before it takes effect. Thread: any. Pure.
// source: weighted by keys, Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace causeway {

struct Candidate {
    std::string node;
    std::uint64_t examples = 0;    // of the dataset, as declared
    std::uint32_t last_drawn = 0;  // the last round that it was drawn for, 0: none
};

struct Selection {
    std::string rule = "uniform";
    std::uint32_t wanted = 1;
    std::uint64_t seed = 0;
    std::uint32_t round = 0;
};

/// Sorted names; all of them when so many are wanted. `candidates` are sorted by name.
[[nodiscard]] std::vector<std::string> select(const Selection& selection, const std::vector<Candidate>& candidates);

}  // namespace causeway
