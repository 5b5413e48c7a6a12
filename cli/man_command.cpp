// `causeway man DIR`: the man pages as files, for an installation (meson.build) or a look.
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.h"
#include "common/output_folder.h"

namespace causeway::cli {
namespace {

Status write_pages(const ManualOptions& options) {
    const auto place = [&](const ManualPage& page) { return std::filesystem::path(options.folder) / page.file; };
    TRY_ASSIGN(auto folder, OutputFolder::make(options.folder, folder_mode(public_mode())));
    for (const auto& page : options.pages) {  // all of them, before the first
        TRY(check_output(place(page), existing_of(options.force)));
    }
    TRY_ASSIGN(const auto scratch, ScratchFolder::make(options.folder));
    for (const auto& page : options.pages) {
        TRY(write_output(scratch.path() / page.file, as_bytes(page.text), public_mode(), Existing::kept));
    }
    for (const auto& page : options.pages) {
        TRY(place_output(scratch.path() / page.file, place(page), public_mode(), existing_of(options.force)));
    }
    folder.keep();
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
