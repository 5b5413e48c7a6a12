// The node's turns of relays: streams to and from other nodes, and runs that wait for each other. What streams bring
// goes straight to the trainer's thread: a step waits for each message. Part of Node::Parts (node_parts.h).
// Thread: loop.
#include "client/node_parts.h"

namespace causeway::node {

Status Node::Parts::start_streams() {
    StreamCallbacks callbacks;
    callbacks.deliver = [this](const std::string& node, StreamData message) {
        trainer->deliver(node, std::move(message));
    };
    callbacks.lost = [this](const std::string& node, const Error& why) { trainer->lose_peer(node, why); };
    streams = std::make_unique<Streams>(*link, link_queues.streams, std::move(callbacks));
    return {};
}

void Node::Parts::run_turn(const RunTurn& job) {
    files->start_turn(job.assign, [q = queue, assign = job.assign](Result<TrainingStart> start) {
        q->push(StartTurn{assign, std::move(start)});
    });
}

void Node::Parts::on(const StartTurn& event) {
    const auto lease = event.assign.lease;
    if (!event.start) {
        return step(TurnDone{lease, {}, event.start.error()});
    }
    const auto progress = [q = queue, lease](std::uint64_t step, std::uint64_t steps, double loss) {
        q->push(
            Event(TrainingProgress{lease, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(steps), loss}));
    };
    const auto send = [this, peers = event.assign.peers](std::uint32_t cell, StreamData message) {
        for (const auto& peer : peers) {
            if (peer.cell == cell) {
                streams->send(peer.node, std::move(message));
                return;
            }
        }
    };
    trainer->run_turn(event.assign, event.start->model, progress, send, [this, q = queue, lease](TurnEnd end) {
        if (!end.output) {
            q->push(Event(TurnDone{lease, {}, end.output.error(), end.peer}));
            return;
        }
        const auto held = end.output->held;
        files->hold_segment(held.digest, std::move(end.output->file));
        q->push(Event(TurnDone{lease, held, std::nullopt}));
    });
}

}  // namespace causeway::node
