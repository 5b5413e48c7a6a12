// The node's work: models fetched, trained and evaluated. Part of Node::Parts (node_parts.h). Thread: loop.
#include <cmath>

#include "client/evaluation_request.h"
#include "client/node_parts.h"
#include "wire/error_notice.h"

namespace causeway::node {
namespace {

namespace fs = std::filesystem;

constexpr double worth_a_breakdown = 1;  // seconds of training: shorter rounds would only fill the log

Json about_job(const Lease& lease) {
    return Json::object().set("experiment", lease.experiment).set("round", lease.round);
}

/// {"forward":1.25,"backward":2.5,...}: instructions that took any time, in milliseconds' precision.
Json breakdown(const std::array<double, op_code_count>& seconds) {
    Json parts = Json::object();
    for (std::size_t code = 0; code < seconds.size(); ++code) {
        const double rounded = std::round(seconds[code] * 1e3) / 1e3;
        if (rounded > 0) {
            parts.set(std::string(to_string(static_cast<OpCode>(code))), rounded);
        }
    }
    return parts;
}

constexpr std::uint64_t small_model = 4 << 20;  // comes in memory: files would take more time than its way

}  // namespace

// ---------------------------------------------------------------- models and training

/// One fetch per model, whoever asks for it while it is on its way.
void Node::Parts::need_model(const Digest& model, std::uint64_t bytes, Needed done) {
    auto& waiting = needed[model];
    waiting.push_back(std::move(done));
    if (waiting.size() == 1) {
        files->find_model(model, bytes, [q = queue, model, bytes](Result<bool> here) {
            q->push(CacheChecked{model, bytes, std::move(here)});
        });
    }
}

void Node::Parts::on(const CacheChecked& event) {
    if (!event.here) {
        return on(ModelHere{event.model, fail(event.here.error())});  // asked again, with growing pauses
    }
    if (*event.here) {
        return on(ModelHere{event.model, {}});
    }
    const Fetch fetch{.digest = event.model,
                      .bytes = event.bytes,
                      .destination = options.state / "downloads" / event.model.hex(),
                      .durability = Durability::unflushed,
                      .in_memory_up_to = small_model};
    transfers->fetch(connection, fetch, [q = queue, model = event.model](Result<FetchedBlob> blob) {
        q->push(Fetched{model, std::move(blob)});
    });
}

void Node::Parts::on(const Fetched& event) {
    if (!event.blob) {
        if (event.blob.error().code == "disk_full") {
            files->make_room();
        }
        return on(ModelHere{event.model, fail(event.blob.error())});
    }
    if (event.blob->bytes) {
        files->adopt_model(event.model, event.blob->bytes);
        return on(ModelHere{event.model, {}});
    }
    std::vector<Digest> under_way;
    for (const auto& [model, waiting] : needed) {
        under_way.push_back(model);
    }
    files->adopt_model(event.model, event.blob->file, std::move(under_way),
                       [q = queue, model = event.model](Status adopted) {
                           q->push(ModelHere{model, std::move(adopted)});
                       });
}

void Node::Parts::on(const ModelHere& event) {
    const auto waiting = needed.extract(event.model);
    if (!waiting.empty()) {
        for (const Needed& done : waiting.mapped()) {
            done(event.status);
        }
    }
}

void Node::Parts::fetch(const FetchModel& job) {
    need_model(job.model, job.bytes, [this, model = job.model](const Status& here) {
        step(ModelFetched{model, here ? std::nullopt : std::optional(here.error())});
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
    NodeTrainer::Calls calls;
    calls.progress = progress;
    calls.resumed = [q = queue, lease](std::uint64_t steps) {
        q->push(LogEntry{"resumed", about_job(lease).set("steps", steps)});
    };
    calls.keep = [this, experiment = lease.experiment](KeptRun run, std::function<void()> kept) {
        files->keep_run(experiment, std::move(run), std::move(kept));
    };
    calls.done = [this, q = queue, lease](Result<TrainingOutput> output) {
        if (!output) {
            q->push(Event(Trained{lease, {}, output.error()}));
            return;
        }
        if (output->held.metrics.train_seconds >= worth_a_breakdown) {
            q->push(LogEntry{"timed", about_job(lease).set("seconds", breakdown(output->seconds))});
        }
        const auto held = output->held;
        files->hold(*std::move(output), [q, lease, held](const Status& stored) {
            q->push(Event(Trained{lease, held, stored ? std::nullopt : std::optional(stored.error())}));
        });
    };
    trainer->train(event.assign, *event.start, std::move(calls));
}

// ---------------------------------------------------------------- evaluation

/// The model is mostly here, or on its way: it is what the next round trains from.
void Node::Parts::evaluate(const Evaluate& job) {
    need_model(job.assign.model, job.assign.model_bytes, [this, job](const Status& here) {
        if (!here) {
            return evaluated(job, fail(here.error()));
        }
        files->start_evaluation(job.assign, [q = queue, job](Result<TrainingStart> start) {
            q->push(EvaluationModel{job, std::move(start)});
        });
    });
}

void Node::Parts::on(const EvaluationModel& event) {
    if (!event.start) {
        return evaluated(event.job, fail(event.start.error()));
    }
    trainer->evaluate(event.job.assign, *event.start,
                      [this, job = event.job](const Result<Figures>& figures) { evaluated(job, figures); });
}

/// From the trainer's thread or this one.
void Node::Parts::evaluated(const Evaluate& job, const Result<Figures>& figures) {
    queue->push(Event(Evaluated{evaluation_reply(job.request, figures)}));
}

}  // namespace causeway::node
