// See first_start.h.
#include "cli/first_start.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "common/file.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

/// Where one of these was there before, or (a node's) is there now, the folder has an identity that others know of.
constexpr std::array identities = {"ca", "coordinator", "coordinator.db", "node", "operator", "join.key", "requests"};
constexpr std::array lasting = {"node/node.crt", "join.key"};

std::set<std::string> entries_of(const fs::path& folder) {
    std::set<std::string> names;
    std::error_code failed;
    for (auto entry = fs::directory_iterator(folder, failed); !failed && entry != fs::directory_iterator();
         entry.increment(failed)) {
        names.insert(entry->path().filename().string());
    }
    return names;
}

}  // namespace

Result<FirstStart> FirstStart::begin(const fs::path& state) {
    auto before = entries_of(state);
    TRY_ASSIGN(auto made, OutputFolder::make(state, 0700));
    return FirstStart(state, std::move(before), std::move(made));
}

FirstStart::FirstStart(FirstStart&& other) noexcept
    : state_(std::exchange(other.state_, {})), before_(std::move(other.before_)), made_(std::move(other.made_)) {}

FirstStart::~FirstStart() {
    if (!state_.empty()) {
        undo();
    }
}

void FirstStart::keep() {
    state_.clear();
    made_.keep();
}

bool FirstStart::goes_on() const {
    return std::ranges::any_of(identities, [&](const char* name) { return before_.contains(name); });
}

void FirstStart::undo() const {
    std::error_code ignored;
    const auto is_there_now = [&](const char* name) { return fs::exists(state_ / name, ignored); };
    const bool known = goes_on() || std::ranges::any_of(lasting, is_there_now);
    const auto lock = FolderLock::acquire(state_);
    if (known || !lock) {
        return;
    }
    for (const auto& name : entries_of(state_)) {
        if (!before_.contains(name)) {
            fs::remove_all(state_ / name, ignored);
        }
    }
}

}  // namespace causeway::cli
