// See output_folder.h.
#include "common/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/digest.h"
#include "common/queue.h"
#include "common/scratch.h"
#include "common/system_error.h"

namespace causeway {
namespace {

namespace fs = std::filesystem;

constexpr int removal_attempts = 5;  // processes may still be at work in it

void remove_whole(const fs::path& path) {
    for (int i = 0; i < removal_attempts && !path.empty(); ++i) {
        std::error_code failed;
        fs::remove_all(path, failed);
        if (!failed) {
            return;
        }
    }
}

using Noted = std::vector<std::pair<fs::path, Scratch>>;

/// A box with one thing in it: who has taken it out is alone with it.
BoundedQueue<Noted>& noted() {
    static BoundedQueue<Noted> box(1);
    static const bool filled = box.push({});
    (void)filled;
    return box;
}

}  // namespace

void note_scratch(const fs::path& path, Scratch kind) {
    if (auto all = noted().pop()) {
        all->emplace_back(path, kind);
        noted().push(*std::move(all));
    }
}

void forget_scratch(const fs::path& path) {
    if (auto all = noted().pop()) {
        std::erase_if(*all, [&](const auto& each) { return each.first == path; });
        noted().push(*std::move(all));
    }
}

void remove_all_scratch() {
    const auto all = noted().pop();
    for (const auto& [path, kind] : all.value_or(Noted{})) {
        if (kind == Scratch::whole) {
            remove_whole(path);
        }
    }
    for (std::size_t i = all ? all->size() : 0; i-- > 0;) {  // the innermost first
        ::rmdir((*all)[i].first.c_str());
    }
}

Result<ScratchFolder> ScratchFolder::make(const fs::path& parent, const std::string& prefix) {
    const auto path = parent / (prefix + to_hex(secret_random_bytes(8)));
    if (::mkdir(path.c_str(), 0700) != 0) {
        return fail(access_error(parent, "create a folder in it", errno));
    }
    note_scratch(path);
    return ScratchFolder(path);
}

Result<ScratchFolder> ScratchFolder::make_temporary(const std::string& prefix) {
    const char* given = std::getenv("TMPDIR");
    const bool named = given != nullptr && *given != '\0';
    TRY_ASSIGN(const auto parent, absolute_path(named ? given : "/tmp"));
    auto made = make(parent, prefix);
    if (!made) {
        auto error = made.error();
        error.message =
            fmt::format("no temporary folder can be made: {}; {}", error.message,
                        named ? "TMPDIR names it: set it to a folder that exists and may be written to"
                              : "set TMPDIR to a folder that exists and may be written to");
        return fail(std::move(error));
    }
    return made;
}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
}

ScratchFolder::~ScratchFolder() {
    remove_whole(path_);
    keep();
}

void ScratchFolder::keep() {
    if (!path_.empty()) {
        forget_scratch(path_);
        path_.clear();
    }
}

Result<OutputFolder> OutputFolder::make(const fs::path& path, mode_t mode) {
    OutputFolder folder;
    std::vector<fs::path> missing;
    struct stat info {};
    auto at = path.has_filename() ? path : path.parent_path();
    for (; !at.empty() && ::stat(at.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
         at = at.parent_path()) {
        missing.insert(missing.begin(), at);
    }
    if (!at.empty() && ::stat(at.c_str(), &info) != 0) {
        return fail(access_error(at, "look at the folder", errno));
    }
    if (!at.empty() && !S_ISDIR(info.st_mode)) {
        return fail(ErrorKind::invalid, "not_a_folder",
                    fmt::format("{}: {} is a file; name a folder", path.string(), at.string()));
    }
    for (const auto& each : missing) {
        if (::mkdir(each.c_str(), mode) != 0 && errno != EEXIST) {
            return fail(access_error(each, "create the folder", errno));
        }
        folder.made_.push_back(each);
        note_scratch(each, Scratch::if_empty);
    }
    return folder;
}

OutputFolder& OutputFolder::operator=(OutputFolder&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
}

OutputFolder::~OutputFolder() {
    for (auto each = made_.rbegin(); each != made_.rend(); ++each) {
        ::rmdir(each->c_str());
    }
    keep();
}

void OutputFolder::keep() {
    std::ranges::for_each(made_, forget_scratch);
    made_.clear();
}

}  // namespace causeway
