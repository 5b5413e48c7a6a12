// See declarations.h.
#include "client/declarations.h"

#include "configs/dataset_file.h"

namespace causeway::node {
namespace {

constexpr std::uint32_t most_told_classes = 1024;  // of a histogram that is shared: the schema's limit

}  // namespace

Result<std::vector<DatasetDeclaration>> declarations_of(const std::map<std::string, std::filesystem::path>& datasets,
                                                        const Policy& policy, const HearSkipped& skipped) {
    std::vector<DatasetDeclaration> all;
    for (const auto& [name, path] : datasets) {
        TRY_ASSIGN(const auto file, read_dataset_file(path, DataOptions{}));
        all.push_back({.name = name,
                       .digest = file.digest,
                       .examples = file.train.size(),
                       .shape = file.train.shape,
                       .classes = file.train.classes});
        if (file.train.skipped > 0 && skipped) {
            skipped(all.back(), file.train.skipped);
        }
        if (policy.share_labels && file.train.labelled() && file.train.classes <= most_told_classes) {
            all.back().labels = label_histogram(file.train);
        }
    }
    return all;
}

}  // namespace causeway::node
