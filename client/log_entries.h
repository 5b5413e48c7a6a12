// Which line of the node's log (node_log.h) a message or event makes, if any.
//
// Names, numbers and codes only: a message's text may quote what lies on this machine, so only a policy's own refusal,
// which names file and line, is kept. Pure.
#pragma once

#include <optional>

#include "client/effects.h"
#include "client/node_log.h"

namespace causeway::node {

/// What the coordinator said.
[[nodiscard]] std::optional<LogEntry> entry_of_heard(const Message& message);
/// What this node answered.
[[nodiscard]] std::optional<LogEntry> entry_of_said(const Message& message);
/// What its own threads reported.
[[nodiscard]] std::optional<LogEntry> entry_of_event(const Event& event);

}  // namespace causeway::node
