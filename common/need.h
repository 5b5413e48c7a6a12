// What a process needs of its machine against what the machine has: one judgement, for every start and for `doctor`, so
// that doctor never praises a machine on which the start is refused.
//
// A machine that has less than a coordinator could use serves fewer nodes instead of none: how many follows from its
// descriptors and memory. Only what nothing can run with, and a clock that would put wrong times into certificates, is
// refused. A full disk is no refusal: who starts on one waits for room (cli/room.h). Pure; common/machine.h reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/machine.h"
#include "common/result.h"

namespace causeway {

struct Need {
    std::string who = "this process";
    std::uint64_t descriptors = 0;              // whatever comes: files, the store, plugins, --http
    std::uint64_t descriptors_per_session = 0;  // a control connection and its transfers
    std::uint64_t memory_per_session = 0;       // bytes
    std::uint64_t sessions = 0;                 // that it could use; 0: it serves nobody
    std::uint64_t sessions_asked = 0;           // 0: as many as there is room for
    std::string asked_by = "--sessions";
    bool first_start = false;  // certificates are made, or asked for
};
/// `http`: descriptors of --http.
[[nodiscard]] Need coordinator_need(std::uint64_t http = 0, std::uint64_t sessions_asked = 0);
[[nodiscard]] Need node_need();
/// A demo or a bench: a coordinator, and so many nodes, each a process of its own.
[[nodiscard]] Need federation_need(std::uint64_t nodes);

/// What the machine has, at one moment.
struct Machine {
    std::uint64_t descriptors = 0;  // that may still be opened
    std::optional<MemoryRoom> memory;
    std::optional<std::uint64_t> disk;  // bytes free where `folder` lies
    std::filesystem::path folder;
    std::int64_t now_s = 0;
    std::int64_t built_s = 0;
};
[[nodiscard]] Machine read_machine(const std::filesystem::path& folder, std::int64_t now_s);

enum class Enough { yes, little, no };

struct NeedFinding {
    std::string check;  // descriptors, memory, disk, clock
    Enough enough = Enough::yes;
    Error error;       // code of a refusal; its message is what there is
    std::string why;   // it matters; empty where there is enough
    std::string mend;  // what next
};

struct Capacity {
    std::uint64_t sessions = 0;   // nodes that can be served; 0 where nobody is
    std::uint64_t strangers = 0;  // connections that have not said who they are
    std::uint64_t connections = 0;
    std::string bound;      // "1024 descriptors may be open here": what keeps sessions from being more
    std::string raised_by;  // what raises it
    std::vector<NeedFinding> findings;
};
[[nodiscard]] Capacity judge(const Need& need, const Machine& machine);
/// The first finding that forbids a start, as an error with its remedy. errors: io, with the finding's code
[[nodiscard]] Status can_start(const Capacity& capacity);

}  // namespace causeway
