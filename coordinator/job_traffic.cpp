// What the bytes of experiments that run at one time are counted by. Part of JobRunner (job_runner.h). Thread: sums,
// but for note_chunk.
#include "coordinator/job_runner.h"

namespace causeway {

void JobRunner::begin_counting(ExperimentId experiment) {
    shares_.begin(experiment, options_.traffic());
    counts_chunks_ = shares_.several();
}

void JobRunner::end_counting(ExperimentId experiment) {
    shares_.end(experiment, options_.traffic());
    counts_chunks_ = shares_.several();
}

/// Before the update that it completes is absorbed, and so before its round's end is counted.
void JobRunner::note_chunk(const MovedChunk& chunk) {
    if (!counts_chunks_) {
        return;
    }
    sums_->post([this, chunk] {
        if (chunk.received > 0) {
            shares_.chunk_came(chunk.owner, bytes_at_socket(chunk.received));
        } else {
            shares_.chunk_went(chunk.blob, bytes_at_socket(chunk.sent));
        }
    });
}

}  // namespace causeway
