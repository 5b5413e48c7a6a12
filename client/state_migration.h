// Brings a node's state folder of an older format to the present one, forward only.
//
//   1 -> 2   a pending file's update lies behind the check, which it is no part of; builds that wrote format 1 wrote
//            either form, so a file is judged by where its check holds
//
// Before anything is changed the folder `experiments` is copied to `experiments.format-N`, as hard links: no file is
// ever written in place. The number is written last, so a kill at any instruction leaves the older format with some of
// the work done, and the next start goes on. The copy stays: the older release goes on with it (docs/service.md).
//
// threads  one owner at a time
#pragma once

#include <filesystem>
#include <string_view>

#include "common/result.h"

namespace causeway::node {

constexpr std::string_view state_format = "2";

/// A folder without a number is new and gets the present one.
///
/// errors   unsupported `newer_format`; corrupt `state_damaged`: a file of the older format, nothing is lost; io
Status bring_up_to_date(const std::filesystem::path& state);

}  // namespace causeway::node
