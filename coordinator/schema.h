// The tables of STATE/coordinator.db and how an older format becomes the present one.
//
// The format number is SQLite's user_version. Each migration leads from one format to the next, inside one
// transaction, after a copy of the database as coordinator.db.format-N; they only go forward, and a newer format than
// this build's is refused. Entry 0 makes the first format out of nothing; its comments document every column.
#pragma once

#include <span>

namespace causeway {

/// Entry n leads from format n to n + 1; the present format is the number of entries.
std::span<const char* const> store_migrations();

}  // namespace causeway
