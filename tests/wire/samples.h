// One telling value of every message kind: no field at its default, so that a forgotten one shows.
#pragma once

#include <vector>

#include "wire/message.h"

namespace causeway {

inline Digest sample_digest(unsigned char fill) {
    Digest digest;
    digest.bytes.fill(static_cast<std::byte>(fill));
    return digest;
}

/// What nodes and the relay say about streams.
inline std::vector<Message> sample_stream_messages() {
    const Lease lease{3, 7, 11, 2};
    return {Roster{{{"host-1", "host", sample_digest(11), 7, {"10.0.0.3:7401"}, 60'000},
                    {"site-a", "client", {}, 7, {}, 1}}},
            StreamOpen{7},
            StreamData{lease, 1, 2, 3, 4, 5, 32, 100, 200, Bytes(100, std::byte{4})},
            RelayOpen{5, "host-1", 7},
            RelayFrame{5, Bytes(300, std::byte{6})},
            RelayCredit{5, 1 << 20},
            RelayEnd{5, "no_route", "the node is not connected"}};
}

inline Assign sample_assign(const Lease& lease) {
    Assign assign;
    assign.lease = lease;
    assign.experiment_name = "digits-fedavg";
    assign.rounds = 20;
    assign.seed = 42;
    assign.dataset = "digits";
    assign.data_options = "label=last shape=8x8x1 scale=0..16->0..1";
    assign.architecture = "input 64\ndense 64\nrelu\ndense 10\nloss cross-entropy";
    assign.program = "load\nforward\nloss\nbackward\nstep";
    assign.optimizer = "sgd learning_rate=0.05 momentum=0.9";
    assign.optimizer_state = "reset";
    assign.batch = 32;
    assign.local_epochs = 3;
    assign.uplink = "none";
    assign.model = sample_digest(4);
    assign.model_bytes = 400'000;
    assign.cohort = 5;
    assign.deadline_ms = 30'000;
    assign.regime = "fedavg";
    assign.submitted_by = "operator";
    assign.segment = "[0, 3)";
    assign.cell = 1;
    assign.group = 2;
    assign.peers = {{0, "site-a"}, {2, "site-b", 300}};
    assign.data_node = "site-a";
    assign.examples = 288;
    assign.microbatch = 8;
    assign.snapshot_every = "30s";
    assign.smash_noise = 0.25;
    return assign;
}

inline std::vector<Message> sample_messages() {
    const Lease lease{3, 7, 11, 2};
    const HeldUpdate held{7, 11, sample_digest(1), 1234567, 359, {0.25, 718, 1.5, 4096, 8192, 1.25}, sample_digest(2)};
    const DatasetDeclaration digits{"digits", sample_digest(3), 1437, {8, 8, 1}, 10, {140, 0, 1297}};
    const Assign assign = sample_assign(lease);
    std::vector<Message> all = {
        Heartbeat{9, true, 7},
        ErrorNotice{ErrorKind::timed_out, "no_progress", "the transfer did not move for 10 s"},
        Bye{"stopped by the user"},
        Hello{1,
              2,
              {"resume", "\xc3\xa9t\xc3\xa9"},
              "causeway 0.1.0",
              "cpu onednn 2.6 avx512 2",
              {digits, digits},
              {held},
              {3, 5},
              {"10.0.0.3:7401", "[::1]:7401"},
              8'000'000'000},
        Progress{lease, 5, 10, 0.75},
        Offer{lease, held},
        Decline{lease, "hours", "not between 8:00 and 18:00", "host-1"},
        Welcome{1, 77, 3, "clinic"},
        assign,
        Counted{lease, sample_digest(5)},
        Refused{lease, sample_digest(6), "non_finite", "a NaN at dense.weight[17]", "dense.weight", 17},
        Committed{7, 11, sample_digest(7), true, sample_digest(8), sample_digest(10)},
        Dropped{lease, "straggler_deadline", "the round closed after 30 s"},
        Ended{7, "succeeded", "20 rounds"},
        Request{4, "experiment.submit", R"({"file":"[experiment]"})"},
        Reply{4, true, R"({"id":7})", {}},
        Reply{5, false, "", ErrorNotice{ErrorKind::not_found, "unknown_experiment", "no experiment 9"}},
        Attach{77},
        Pull{2, sample_digest(9), 1 << 20, 8},
        Credit{2, 1},
        Chunk{2, 1 << 20, (1 << 20) + 100, Bytes(100, std::byte{0x5a})},
        Chunk{3, 0, max_chunk_bytes, Bytes(max_chunk_bytes, std::byte{1})},
        TransferEnd{2, "not_found", "no such model", true},
        JoinRequest{"site-a", Bytes(32, std::byte{7}), Bytes(91, std::byte{8}), Bytes(71, std::byte{9}),
                    Bytes(300, std::byte{10})},
        JoinReply{Bytes(500, std::byte{1}), Bytes(400, std::byte{2}), "clinic"}};
    for (auto& message : sample_stream_messages()) {
        all.push_back(std::move(message));
    }
    return all;
}

}  // namespace causeway
