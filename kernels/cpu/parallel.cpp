// The call into libgomp, whose header needs a compiler flag that nothing else here does. GOMP_parallel is its stable
// entry for `#pragma omp parallel`.
#include "kernels/cpu/parallel.h"

extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
}

namespace causeway::cpu {
namespace {

struct Job {
    std::int64_t count;
    void (*body)(void* context, std::int64_t begin, std::int64_t end);
    void* context;
};

void run_part(void* data) {
    const auto& job = *static_cast<const Job*>(data);
    const std::int64_t parts = omp_get_num_threads();
    const std::int64_t part = omp_get_thread_num();
    job.body(job.context, job.count * part / parts, job.count * (part + 1) / parts);
}

}  // namespace

void parallel_parts(int threads, std::int64_t count, void (*body)(void* context, std::int64_t begin, std::int64_t end),
                    void* context) {
    Job job{count, body, context};
    GOMP_parallel(run_part, &job, static_cast<unsigned>(threads), 0);
}

}  // namespace causeway::cpu
