// What a node tells of its datasets before anybody has asked for anything. Thread: any.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/policy.h"
#include "wire/message.h"

namespace causeway::node {

using HearSkipped = std::function<void(const DatasetDeclaration& told, std::uint64_t entries)>;

/// As stored, without an experiment's options: what a node holds, not how it will be read. Examples that a manifest
/// holds out are not counted: nobody trains on them. How often each label occurs is told only where the policy says so
/// (`share_labels`); no message of a coordinator can ask for it.
///
/// `skipped` hears of each dataset in which entries were left out that are no examples, and of how many.
///
/// errors   those of reading the files
[[nodiscard]] Result<std::vector<DatasetDeclaration>> declarations_of(
    const std::map<std::string, std::filesystem::path>& datasets, const Policy& policy,
    const HearSkipped& skipped = {});

}  // namespace causeway::node
