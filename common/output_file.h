// What a command writes for its user: the one way in which outputs come to be, so that none destroys anything.
//
// A stream (standard output by `-`, a pipe, a terminal, /dev/null) is written to as it is. A file appears whole, under
// a name of our own until then, and only then takes its place; a symbolic link stays, and what it leads to is written.
// A file that is there already is kept unless the caller was told to overwrite it. Modes follow the inputs: what is
// made of private data is private. A state folder's own files are written by common/file.h.
// Thread: any; one owner.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/bytes.h"

namespace causeway {

/// What happens to a file that is there already; `replaced` is what --force says.
enum class Existing { kept, replaced };

/// Of a file made of these files and folders: never wider than the most private of them, what others can read they must
/// be able to reach, and the process's umask counts as ever. Without any, or where one cannot be looked at: 0600.
[[nodiscard]] mode_t output_mode(const std::vector<std::filesystem::path>& inputs);
/// Of what is made of no data at all, such as a manual: 0666 less the umask.
[[nodiscard]] mode_t public_mode();
/// Of a folder of such files: who may read them may enter it.
[[nodiscard]] mode_t folder_mode(mode_t files);

/// Whether a path means standard output: `-`.
[[nodiscard]] inline bool is_standard_output(const std::filesystem::path& path) {
    return path == "-";
}

class OutputFile {
public:
    /// errors  invalid `file_exists`: there, and to be kept, or `not_a_file`: a folder; not_found `no_such_file`: no
    ///         such folder; refused `not_permitted`; io
    static Result<OutputFile> open(const std::filesystem::path& path, mode_t mode, Existing existing);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&& other) noexcept;
    ~OutputFile();  // without finish() a file is not there, or as it was

    /// errors  io (`disk_full`, `nobody_reads`)
    Status write(ByteView bytes);
    /// A file is flushed and takes its place. errors: as open; io. cost: 2 flushes
    Status finish();

private:
    OutputFile(int descriptor, std::filesystem::path shown) : descriptor_(descriptor), shown_(std::move(shown)) {}
    static Result<OutputFile> open_stream(const std::filesystem::path& path);
    Status begin(const std::filesystem::path& target, mode_t mode);
    void drop();

    int descriptor_ = -1;
    std::filesystem::path shown_;   // as the user named it
    std::filesystem::path target_;  // where links lead; empty: a stream
    std::filesystem::path beside_;  // the name of our own until it is whole
    Existing existing_ = Existing::kept;
};

/// All at once. errors: those of OutputFile
Status write_output(const std::filesystem::path& path, ByteView bytes, mode_t mode, Existing existing);
/// Copies a file into an output, a piece at a time. errors: those of OutputFile; those of reading
Status copy_to_output(const std::filesystem::path& from, const std::filesystem::path& path, mode_t mode,
                      Existing existing);
/// Whether a path is written to as it is: standard output, a pipe, a device.
[[nodiscard]] bool is_stream(const std::filesystem::path& path);
/// Gives a finished file of ours, flushed already, its place in the same file system. errors: those of OutputFile
Status move_output(const std::filesystem::path& from, const std::filesystem::path& to, Existing existing);
/// The same by way of any link, and of what is no file: then, and from another file system, it is copied.
///
/// errors  those of OutputFile
Status place_output(const std::filesystem::path& from, const std::filesystem::path& path, mode_t mode,
                    Existing existing);
/// Whether an output can be begun there: before long work whose result it takes. errors: those of OutputFile::open
Status check_output(const std::filesystem::path& path, Existing existing);

}  // namespace causeway
