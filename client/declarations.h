// What a node tells of its datasets before anybody has asked for anything. Thread: any.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "client/policy.h"
#include "wire/message.h"

namespace causeway::node {

/// As stored, without an experiment's options: what a node holds, not how it will be read. Examples that a manifest
/// holds out are not counted: nobody trains on them. How often each label occurs is told only where the policy says so
/// (`share_labels`); no message of a coordinator can ask for it.
///
/// errors   those of reading the files
[[nodiscard]] Result<std::vector<DatasetDeclaration>> declarations_of(
    const std::map<std::string, std::filesystem::path>& datasets, const Policy& policy);

}  // namespace causeway::node
