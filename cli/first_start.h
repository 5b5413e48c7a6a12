// A daemon's first start in a state folder: if it fails, the folder is as it was before, or not there.
//
// What another start, a person or an enrolment may need stays: a key of which a coordinator may have heard, requests
// that wait to be signed, settings. Nothing is touched while another process holds the folder's lock. Main thread.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "common/output_folder.h"

namespace causeway::cli {

class FirstStart {
public:
    /// Makes the folder, and those that it lies in. errors: those of OutputFolder::make
    static Result<FirstStart> begin(const std::filesystem::path& state);
    FirstStart(FirstStart&& other) noexcept;
    FirstStart& operator=(FirstStart&& other) = delete;
    ~FirstStart();  // undoes it, unless it is to stay

    void keep();
    /// The folder had an identity before: a daemon that others know of goes on in it.
    [[nodiscard]] bool goes_on() const;

private:
    FirstStart(std::filesystem::path state, std::set<std::string> before, OutputFolder made)
        : state_(std::move(state)), before_(std::move(before)), made_(std::move(made)) {}
    void undo() const;

    std::filesystem::path state_;  // empty: nothing to undo
    std::set<std::string> before_;
    OutputFolder made_;
};

}  // namespace causeway::cli
