// One line for each message, persist and job: what golden transcripts are made of.
#pragma once

#include <string>

#include "client/effects.h"
#include "coordinator/effects.h"

namespace causeway::simulation {

std::string describe(const Message& message);
std::string describe(const Persist& persist);
std::string describe(const Job& job);
std::string describe(const node::Persist& persist);
std::string describe(const node::Job& job);

}  // namespace causeway::simulation
