// See node_log.h. Lines are appended with one write each and not flushed: a log of what happened may lose its last
// lines with the power, and a line that a kill cut short is skipped by whoever reads.
#include "client/node_log.h"

#include <algorithm>
#include <atomic>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/file.h"
#include "common/text.h"
#include "common/time.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_log_file = max_log_file_bytes + (64 << 10);  // the line that filled it was written, too
constexpr std::size_t most_waiting = 10'000;  // lines that a stuck disk may hold back; further ones are counted as lost

fs::path current(const fs::path& state) {
    return state / "log" / "node.log";
}
fs::path older(const fs::path& state) {
    return state / "log" / "node.log.1";
}

/// Older lines first.
Result<std::string> whole_text(const fs::path& state) {
    std::string text;
    bool found = false;
    for (const auto& file : {older(state), current(state)}) {
        const auto bytes = read_file(file, largest_log_file);
        if (!bytes && bytes.error().kind != ErrorKind::not_found) {
            return fail(bytes.error());
        }
        found = found || bytes.has_value();
        text += bytes ? std::string(as_text(*bytes)) + "\n" : "";
    }
    if (!found) {
        return fail(
            ErrorKind::not_found, "no_node_log",
            current(state).string() + ": no log here; a node writes it into its state folder from its first start on");
    }
    return text;
}

/// Texts that come from elsewhere are cut: a line has a bound.
Json bounded(const Json& detail) {
    auto copy = Json::object();
    for (const auto& [key, value] : detail.fields()) {
        copy.set(key, value.is_text() ? Json(value.text().substr(0, max_log_text)) : value);
    }
    return copy;
}

}  // namespace

Result<std::vector<Json>> read_node_log(const fs::path& state, std::uint64_t after, std::size_t limit) {
    TRY_ASSIGN(const auto text, whole_text(state));
    std::vector<Json> lines;  // newest first
    const auto parts = split_text(text, '\n');
    for (auto part = parts.rbegin(); part != parts.rend() && (after != 0 || lines.size() < limit); ++part) {
        const auto line = Json::parse(*part);
        if (!line || !line->is_object()) {
            continue;
        }
        if (static_cast<std::uint64_t>((*line)["n"].integer()) <= after) {
            break;
        }
        lines.push_back(*line);
    }
    std::ranges::reverse(lines);
    lines.resize(std::min(lines.size(), limit));
    return lines;
}

struct NodeLog::Writer {
    fs::path state;
    std::atomic<std::size_t> waiting = 0;
    std::atomic<std::uint64_t> lost = 0;
    int descriptor = -1;
    std::uint64_t size = 0;

    explicit Writer(fs::path folder) : state(std::move(folder)) {}
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    ~Writer() { close_file(); }

    void close_file() {
        if (descriptor >= 0) {
            ::close(descriptor);
        }
        descriptor = -1;
    }
    bool open_file() {
        descriptor = ::open(current(state).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        std::error_code failed;
        size = descriptor < 0 ? 0 : fs::file_size(current(state), failed);
        // A line that a kill cut short ends here, and the next begins on a line of its own.
        return descriptor >= 0 && !failed && (size == 0 || ::write(descriptor, "\n", 1) == 1);
    }
    void rotate() {
        std::error_code ignored;
        close_file();
        fs::rename(current(state), older(state), ignored);
    }
    void write(Json line) {
        if (size > max_log_file_bytes) {
            rotate();
        }
        const auto missing = lost.exchange(0);
        if (missing > 0) {
            line.set("lost", missing);
        }
        const auto text = line.dump() + "\n";
        const bool usable = descriptor >= 0 || open_file();
        if (!usable || ::write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            lost += missing + 1;
            close_file();  // looked for again with the next line
            return;
        }
        size += text.size();
    }
};

Result<std::unique_ptr<NodeLog>> NodeLog::open(const fs::path& state) {
    TRY(make_private_folder(state / "log"));
    const auto lines = read_node_log(state, 0, 1);
    if (!lines && lines.error().kind != ErrorKind::not_found) {
        return fail(lines.error());
    }
    const auto last = lines && !lines->empty() ? static_cast<std::uint64_t>(lines->front()["n"].integer()) : 0;
    return std::make_unique<NodeLog>(state, last);
}

NodeLog::NodeLog(fs::path state, std::uint64_t last)
    : state_(std::move(state)), last_(last), writer_(std::make_shared<Writer>(state_)) {}

void NodeLog::add(LogEntry entry) {
    ++counts_[entry.what];
    if (writer_->waiting >= most_waiting) {
        ++writer_->lost;
        return;
    }
    ++writer_->waiting;
    auto line = Json::object().set("n", ++last_).set("at", wall_clock_unix_s()).set("what", entry.what);
    const auto detail = bounded(entry.detail);
    for (const auto& [key, value] : detail.fields()) {
        line.set(key, value);
    }
    thread_.post([writer = writer_, line] {
        writer->write(line);
        --writer->waiting;
    });
}

void NodeLog::read(std::uint64_t after, std::size_t limit, std::function<void(Result<std::vector<Json>>)> done) {
    thread_.post([state = state_, after, limit, done = std::move(done)] { done(read_node_log(state, after, limit)); });
}

}  // namespace causeway::node
