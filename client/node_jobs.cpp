// The node's work: models fetched, trained and evaluated. Part of Node::Parts (node_parts.h). Thread: loop.
#include "client/node_parts.h"
#include "wire/error_notice.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t small_model = 4 << 20;  // comes in memory: files would take more time than its way

}  // namespace

// ---------------------------------------------------------------- models and training

void Node::Parts::fetch(const FetchModel& job) {
    files->find_model(job.model, job.bytes, [q = queue, job](Result<bool> here) {
        q->push(CacheChecked{job, std::move(here)});
    });
}

void Node::Parts::on(const CacheChecked& event) {
    if (!event.here) {
        return step(ModelFetched{event.job.model, event.here.error()});  // asked again, with growing pauses
    }
    if (*event.here) {
        return step(ModelFetched{event.job.model, std::nullopt});
    }
    const Fetch fetch{.digest = event.job.model,
                      .bytes = event.job.bytes,
                      .destination = options.state / "downloads" / event.job.model.hex(),
                      .durability = Durability::unflushed,
                      .in_memory_up_to = small_model};
    transfers->fetch(connection, fetch, [q = queue, job = event.job](Result<FetchedBlob> blob) {
        q->push(Fetched{job, std::move(blob)});
    });
}

void Node::Parts::on(const Fetched& event) {
    if (!event.blob) {
        if (event.blob.error().code == "disk_full") {
            files->make_room();
        }
        return step(ModelFetched{event.job.model, event.blob.error()});
    }
    if (event.blob->bytes) {
        files->adopt_model(event.job.model, event.blob->bytes);
        return step(ModelFetched{event.job.model, std::nullopt});
    }
    files->adopt_model(event.job.model, event.blob->file, [q = queue, model = event.job.model](const Status& adopted) {
        q->push(Event(ModelFetched{model, adopted ? std::nullopt : std::optional(adopted.error())}));
    });
}

void Node::Parts::train(const Train& job) {
    files->start_training(job.assign, [q = queue, assign = job.assign](Result<TrainingStart> start) {
        q->push(StartTraining{assign, std::move(start)});
    });
}

void Node::Parts::on(const StartTraining& event) {
    const auto lease = event.assign.lease;
    if (!event.start && event.start.error().code == "model_lost") {
        return step(ModelLost{lease, event.start.error()});
    }
    if (!event.start) {
        return step(Trained{lease, {}, event.start.error()});
    }
    const auto progress = [q = queue, lease](std::uint64_t step, std::uint64_t steps, double loss) {
        q->push(
            Event(TrainingProgress{lease, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(steps), loss}));
    };
    trainer->train(event.assign, event.start->model, event.start->base, progress,
                   [this, q = queue, lease](Result<TrainingOutput> output) {
                       if (!output) {
                           q->push(Event(Trained{lease, {}, output.error()}));
                           return;
                       }
                       const auto held = output->held;
                       files->hold(*std::move(output), [q, lease, held](const Status& stored) {
                           q->push(Event(Trained{lease, held, stored ? std::nullopt : std::optional(stored.error())}));
                       });
                   });
}

// ---------------------------------------------------------------- evaluation

/// The model is mostly here: it is what the next round trains from. Else it comes into a folder of its own, so that a
/// download for training and this one do not touch each other.
void Node::Parts::evaluate(const Evaluate& job) {
    files->read_model(job.assign.model, job.assign.model_bytes, [q = queue, job](Result<Bytes> model) {
        q->push(EvaluationModel{job, std::move(model), EvaluationModel::Source::cache});
    });
}

void Node::Parts::on(const EvaluationModel& event) {
    if (event.model) {
        return trainer->evaluate(event.job.assign, *event.model,
                                 [this, job = event.job](const Result<Figures>& figures) { evaluated(job, figures); });
    }
    if (event.source == EvaluationModel::Source::download || event.model.error().code == "cache_full") {
        return evaluated(event.job, fail(event.model.error()));
    }
    const Fetch fetch{.digest = event.job.assign.model,
                      .bytes = event.job.assign.model_bytes,
                      .destination = options.state / "downloads" / "evaluation" / event.job.assign.model.hex(),
                      .durability = Durability::unflushed};
    transfers->fetch(connection, fetch, [this, q = queue, job = event.job](Result<FetchedBlob> blob) {
        const auto unavailable = [q, job](const Error& error) {
            q->push(EvaluationModel{job, tl::unexpected(error), EvaluationModel::Source::download});
        };
        if (!blob) {
            return unavailable(blob.error());
        }
        files->adopt_model(job.assign.model, blob->file, [this, q, job, unavailable](const Status& adopted) {
            if (!adopted) {
                return unavailable(adopted.error());
            }
            files->read_model(job.assign.model, job.assign.model_bytes, [q, job](Result<Bytes> model) {
                q->push(EvaluationModel{job, std::move(model), EvaluationModel::Source::download});
            });
        });
    });
}

/// From the trainer's thread or this one.
void Node::Parts::evaluated(const Evaluate& job, const Result<Figures>& figures) {
    Reply reply{.id = job.request};
    if (figures) {
        reply.body = to_json(*figures).dump();
    } else {
        reply.error = notice_of(figures.error());
    }
    queue->push(Event(Evaluated{std::move(reply)}));
}

}  // namespace causeway::node
