// What this node did, as lines in its state folder: for its admin (`node log --state DIR`), and for operators where the
// node's policy allows it (`node log NAME`).
//
// A line is one JSON object: `n` (rises by one, also across restarts), `at` (unix seconds), `what`, and that event's
// fields. Lines hold names, numbers and codes only: no values of the data, no message that could quote one, no secret.
// STATE/log/node.log is moved to node.log.1 when it is full, so both together are bounded.
// Threads: add() and read() are for the node's loop and never wait; a thread of its own writes. What the disk did not
// take is counted in the next line that it does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/json.h"
#include "common/result.h"
#include "common/work_thread.h"

namespace causeway::node {

constexpr std::uint64_t max_log_file_bytes = 1 << 20;  // of each of the two files: about ten thousand lines
constexpr std::size_t max_log_lines = 200;             // in one answer
constexpr std::size_t max_log_text = 200;              // of one field

struct LogEntry {
    std::string what;  // "assigned"
    Json detail = Json::object();
};

/// At most `limit` lines with n > `after`: the first of them, or with `after` 0 the last. Broken lines are left out.
///
/// errors   not_found: there is no log; io
[[nodiscard]] Result<std::vector<Json>> read_node_log(const std::filesystem::path& state, std::uint64_t after,
                                                      std::size_t limit);

class NodeLog {
public:
    /// errors  io; refused: others may read the folder
    static Result<std::unique_ptr<NodeLog>> open(const std::filesystem::path& state);
    NodeLog(std::filesystem::path state, std::uint64_t last);

    void add(LogEntry entry);
    /// As read_node_log; `done` is called on the log's thread.
    void read(std::uint64_t after, std::size_t limit, std::function<void(Result<std::vector<Json>>)> done);
    /// How often each event happened since open().
    [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

private:
    struct Writer;  // on the thread

    std::filesystem::path state_;
    std::uint64_t last_ = 0;
    std::map<std::string, std::uint64_t> counts_;
    std::shared_ptr<Writer> writer_;
    WorkThread thread_;
};

}  // namespace causeway::node
