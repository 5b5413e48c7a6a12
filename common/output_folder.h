// Folders that a command makes: for its output, and for what goes again with it. None of them outlives a failure.
// Thread: any; one owner.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "common/result.h"

namespace causeway {

/// A private folder of a name that nobody has, inside `parent`; it goes with the object, or with a stop.
class ScratchFolder {
public:
    /// errors  as of files; the message names `parent`
    static Result<ScratchFolder> make(const std::filesystem::path& parent, const std::string& prefix = ".causeway-");
    /// In the folder for temporary files: TMPDIR, else /tmp.
    ///
    /// errors  not_found, io, refused; the message names the folder and TMPDIR
    static Result<ScratchFolder> make_temporary(const std::string& prefix = "causeway-");
    ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchFolder& operator=(ScratchFolder&& other) noexcept;
    ~ScratchFolder();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// It stays.
    void keep();

private:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

/// The folders that an output needs, made with this mode; those that were made go again unless they are kept.
class OutputFolder {
public:
    /// errors  invalid `not_a_folder`; refused; io
    static Result<OutputFolder> make(const std::filesystem::path& path, mode_t mode);
    OutputFolder(OutputFolder&& other) noexcept : made_(std::exchange(other.made_, {})) {}
    OutputFolder& operator=(OutputFolder&& other) noexcept;
    ~OutputFolder();  // removes those of its folders that are empty

    /// They stay.
    void keep();

private:
    OutputFolder() = default;
    std::vector<std::filesystem::path> made_;  // the outermost first
};

}  // namespace causeway
