// `ca requests` and `ca import`: a federation whose authority is elsewhere, step by step in docs/security.md.
//
// A coordinator's own requests are files in its state folder, which a first start writes; those of nodes and operators
// wait at the daemon. `import` takes what was signed for either: what belongs to the folder goes there, the rest to
// the daemon.
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/operator_session.h"
#include "common/output_folder.h"
#include "common/text.h"
#include "common/time.h"
#include "coordinator/external_authority.h"
#include "wire/certificate_request.h"

namespace causeway::cli {
namespace {

namespace fs = std::filesystem;

Result<std::string> write_request(const fs::path& folder, const Json& request, Existing existing) {
    TRY(check_name(request["name"].text(), "the name"));  // it becomes a file's name
    TRY_ASSIGN(const auto der, from_base64url(request["request"].text()));
    const auto file = folder / (request["name"].text() + ".csr");
    TRY(write_output(file, certificate_request_to_pem(der), public_mode(), existing));
    return file.string();
}

Result<Json> parked(const CaOptions& options) {
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    return session->ask("ca.requests", Json::object());
}

Status export_requests(const CaOptions& options, Output output) {
    TRY_ASSIGN(const auto reply, parked(options));
    std::optional<OutputFolder> folder;
    if (!options.out.empty()) {
        TRY_ASSIGN(folder, OutputFolder::make(options.out, folder_mode(public_mode())));
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& request : reply["requests"].items()) {
        std::string file = "-";
        if (!options.out.empty()) {
            TRY_ASSIGN(file, write_request(options.out, request, existing_of(options.force)));
        }
        output.object(Json::object()
                          .set("event", "request")
                          .set("name", request["name"].text())
                          .set("role", request["role"].text())
                          .set("at_unix_s", request["at_unix_s"].integer())
                          .set("file", file));
        rows.push_back(
            {request["name"].text(), request["role"].text(), utc_text(request["at_unix_s"].integer()), file});
    }
    if (folder) {
        folder->keep();
    }
    output.line(rows.empty() ? "no request waits" : table({"name", "role", "since", "file"}, rows));
    return {};
}

void tell(const std::string& name, Output output) {
    output.object(Json::object().set("event", "imported").set("name", name));
    output.line("imported: " + name);
}

Status import_files(const CaOptions& options, Output output) {
    std::vector<Bytes> certificates;
    for (const auto& file : options.files) {
        TRY_ASSIGN(auto some, read_certificates(file));
        certificates.insert(certificates.end(), some.begin(), some.end());
    }
    Imported imported{.names = {}, .others = certificates};
    if (is_external(options.state)) {
        TRY_ASSIGN(imported, import_certificates(options.state, certificates, wall_clock_unix_s()));
    }
    for (const auto& name : imported.names) {
        tell(name, output);
    }
    if (imported.others.empty()) {
        return {};
    }
    TRY_ASSIGN(const auto session, OperatorSession::connect(options.state));
    for (const auto& certificate : imported.others) {
        TRY_ASSIGN(const auto reply,
                   session->ask("ca.import", Json::object().set("certificate", to_base64url(certificate))));
        tell(reply["name"].text(), output);
    }
    return {};
}

}  // namespace

int run_ca_requests(const CaOptions& options, Output output) {
    const auto done = export_requests(options, output);
    return done ? exit_done : output.error(done.error());
}

int run_ca_import(const CaOptions& options, Output output) {
    const auto done = import_files(options, output);
    return done ? exit_done : output.error(done.error());
}

}  // namespace causeway::cli
