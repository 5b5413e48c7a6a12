// See kept_segments.h. The folder is only listed here: what is found is read and verified as it is when it is served.
#include "coordinator/kept_segments.h"

#include <algorithm>

#include "common/log.h"

namespace causeway {

namespace fs = std::filesystem;

Result<SizedSegments> kept_segments(const Segments& segments, const fs::path& state, ExperimentId experiment,
                                    std::uint32_t round, std::uint64_t limit, const SizedSegments& known) {
    SizedSegments all;
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator(state / "segments" / std::to_string(experiment) / std::to_string(round), ignored)) {
        const auto digest = digest_from_hex(entry.path().filename().string());
        if (!digest || std::ranges::count(known, *digest, &SizedSegments::value_type::first) > 0) {
            continue;
        }
        if (const auto bytes = segments.read(*digest, limit)) {
            all.emplace_back(*digest, bytes->size());
        } else if (bytes.error().kind == ErrorKind::corrupt || bytes.error().kind == ErrorKind::not_found) {
            log_warn("coordinator", bytes.error().message + "; a group that had come to it begins its round anew");
        } else {
            return fail(bytes.error());
        }
    }
    std::ranges::sort(all);
    return all;
}

}  // namespace causeway
