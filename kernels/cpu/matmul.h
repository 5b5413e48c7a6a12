// The matmul kinds by oneDNN. Its headers stay in matmul.cpp.
#pragma once

#include <memory>
#include <string>

#include "kernels/host.h"

namespace causeway::cpu {

/// "onednn-2.6.3 avx512 caches=32+512+1024": what decides the bits of a matmul besides the number of threads.
std::string onednn_signature();

struct OnednnEngine;
/// errors   throws what oneDNN throws
std::shared_ptr<OnednnEngine> make_onednn_engine(int threads);

/// The three matmul kinds, prepared for one shape.
///
/// threads  the trainer thread only: prepare and run enter OpenMP
cw_status prepare_matmul(const std::shared_ptr<OnednnEngine>& engine, const cw_op& op, std::unique_ptr<cw_plan>* plan,
                         cw_error* error);

/// Whether oneDNN's code is for AVX-512: the processor's, or the lesser set that ONEDNN_MAX_CPU_ISA asks for.
bool has_avx512();
/// Whether the op's products are AMX's: their sums depend on the batch, the threads and the caches.
bool computes_in_amx(const cw_op& op);

/// errors   CW_UNSUPPORTED: the op's compute needs instructions that this processor lacks, named
cw_status check_compute(const cw_op& op, cw_error* error);
/// oneDNN's name of the chosen code of a product ("brg:avx512_core"), empty where none is needed. Tests: never "ref".
std::string product_implementation(const cw_plan& plan);

}  // namespace causeway::cpu
