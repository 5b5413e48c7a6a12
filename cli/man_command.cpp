// `causeway man DIR`: the man pages as files, for an installation (meson.build) or a look.
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.h"
#include "common/file.h"

namespace causeway::cli {
namespace {

Status write_pages(const ManualOptions& options) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(options.folder, failed)) {
        return fail(ErrorKind::invalid, "not_a_folder", options.folder + ": is a file; name a folder");
    }
    std::filesystem::create_directories(options.folder, failed);
    if (failed) {
        return fail(ErrorKind::io, "io", fmt::format("{}: {}; name another folder", options.folder, failed.message()));
    }
    for (const auto& page : options.pages) {
        TRY(write_file_durably(std::filesystem::path(options.folder) / page.file, as_bytes(page.text)));
    }
    return {};
}

}  // namespace

int run_man(const ManualOptions& options, Output output) {
    if (const auto written = write_pages(options); !written) {
        return output.error(written.error());
    }
    for (const auto& page : options.pages) {
        output.object("written",
                      Json::object().set("file", (std::filesystem::path(options.folder) / page.file).string()));
    }
    output.line(fmt::format("wrote {} pages; next: man {}", options.pages.size(),
                            (std::filesystem::path(options.folder) / "causeway.1").string()));
    return exit_done;
}

}  // namespace causeway::cli
