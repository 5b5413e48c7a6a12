// The convolution kinds by oneDNN. Its headers stay in convolution.cpp.
#pragma once

#include <memory>

#include "kernels/host.h"

namespace causeway::cpu {

struct OnednnEngine;

/// threads  the trainer thread only: prepare and run enter OpenMP
cw_status prepare_convolution(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op,
                              std::unique_ptr<cw_plan>* plan, cw_error* error);

}  // namespace causeway::cpu
