// Which updates may come to the coordinator's disk, within the quota of STATE/coordinator.toml.
//
// An update takes its whole size from the moment at which it is asked for until it has been checked, so what is under
// way can never come to more than the quota. One that does not fit now waits for another to be done; one that would not
// fit alone is a fault of this machine's settings, told as such. Parts of broken transfers are kept for resuming, but
// are the first to go. Keys are the updates' digests. Pure: files are the caller's. Thread: loop.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/digest.h"

namespace causeway {

class SpoolRoom {
public:
    enum class Answer { take, wait, too_large };
    struct Admission {
        Answer answer = Answer::take;
        std::vector<Digest> remove;  // parts that have to go first
    };

    /// What an earlier process left.
    void found(const Digest& update, std::uint64_t bytes) { parts_[update] = bytes; }
    /// `take`: it counts from now on. An update that two members bring is one file. quota 0: no bound.
    Admission ask(const Digest& update, std::uint64_t bytes, std::uint64_t quota);
    /// It is checked, or its transfer broke and `part` bytes stay.
    void done(const Digest& update, std::uint64_t part);
    /// The parts are of no use any more: none is resumed after its round. What is under way stays.
    [[nodiscard]] std::vector<Digest> take_parts();

    /// Bytes of both kinds.
    [[nodiscard]] std::uint64_t bytes() const { return active_bytes_ + part_bytes(); }

private:
    struct Active {
        std::uint64_t bytes = 0;
        std::uint32_t members = 0;
    };
    [[nodiscard]] std::uint64_t part_bytes() const;

    std::map<Digest, Active> active_;
    std::map<Digest, std::uint64_t> parts_;
    std::uint64_t active_bytes_ = 0;
};

}  // namespace causeway
