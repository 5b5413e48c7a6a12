// Every message of the protocol as plain data. What travels is wire/causeway.capnp (its comments are the
// specification); encode and decode turn one into the other, and decode is total: any bytes give a message or an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.h"
#include "common/digest.h"
#include "common/result.h"
#include "common/shared_bytes.h"

namespace causeway {

constexpr std::uint32_t protocol_version = 1;      // N
constexpr std::uint32_t protocol_version_min = 1;  // N-1, once there is one

constexpr const char* split_feature = "split";  // of a Hello: takes cells of a split model

/// Whose word counts: everything a member says about a round names the lease it speaks under.
struct Lease {
    std::uint64_t epoch = 0;  // rises at each coordinator start
    std::uint64_t experiment = 0;
    std::uint32_t round = 0;
    std::uint32_t attempt = 0;  // from 1
    bool operator==(const Lease&) const = default;
};

/// A dataset that a node holds, as it declares it.
struct DatasetDeclaration {
    std::string name;
    Digest digest;
    std::uint64_t examples = 0;
    std::vector<std::int64_t> shape;  // of one example, as stored
    std::uint32_t classes = 0;        // 0: not a classification set
    std::vector<std::uint64_t> labels{};  // how often each occurs; empty: not shared
    bool operator==(const DatasetDeclaration&) const = default;
};

struct Metrics {
    double loss = 0;             // mean over the examples trained on, last local epoch
    std::uint64_t examples = 0;  // seen, epochs counted
    double train_seconds = 0;
    std::uint64_t stream_sent = 0;  // of a cell that streams to another: payload bytes
    std::uint64_t stream_received = 0;
    double compute_seconds = 0;  // of train_seconds, what its device was at work; 0: not said
    bool operator==(const Metrics&) const = default;
};

/// An encoded update that a client holds until the coordinator has committed its round.
struct HeldUpdate {
    std::uint64_t experiment = 0;
    std::uint32_t round = 0;
    Digest digest;
    std::uint64_t bytes = 0;
    std::int64_t weight = 0;
    Metrics metrics;
    Digest start_model;  // what it was trained from
    bool operator==(const HeldUpdate&) const = default;
};

// ---- control connection, both ways
struct Heartbeat {
    std::uint64_t sequence = 0;
    bool asks = false;  // answer at once; links answer by themselves
    std::uint64_t answers = 0;  // the sequence of the one that asked; 0: none did
    bool operator==(const Heartbeat&) const = default;
};
/// Something the sender cannot go on with; `code` is stable (docs/errors.md).
struct ErrorNotice {
    ErrorKind kind = ErrorKind::refused;
    std::string code;
    std::string message;
    bool operator==(const ErrorNotice&) const = default;
};
/// A planned end of the session.
struct Bye {
    std::string reason;
    bool operator==(const Bye&) const = default;
};

// ---- control connection, node -> coordinator
struct Hello {
    std::uint32_t version_min = protocol_version_min;
    std::uint32_t version_max = protocol_version;
    std::vector<std::string> features;
    std::string software;           // "causeway 0.1.0"
    std::string compute_signature;  // build, backend, library version, instruction set, threads
    std::vector<DatasetDeclaration> datasets;
    std::vector<HeldUpdate> held;   // asks what became of them
    std::vector<std::uint64_t> experiments;  // whose state it keeps: those that are over are answered by Ended
    std::vector<std::string> addresses{};    // where other nodes may open streams to it
    std::uint64_t memory = 0;                // bytes that it has for models; 0: not said
    bool operator==(const Hello&) const = default;
};
/// The assignment is being worked on; also the answer to `Assign`.
struct Progress {
    Lease lease;
    std::uint32_t step = 0;
    std::uint32_t steps = 0;  // 0: not known yet
    double loss = 0;
    bool operator==(const Progress&) const = default;
};
/// The update is encoded, durable at the client and can be pulled by its digest.
struct Offer {
    Lease lease;
    HeldUpdate update;
    bool operator==(const Offer&) const = default;
};
/// The client will not or cannot do what was assigned.
struct Decline {
    Lease lease;
    std::string code;
    std::string message;
    std::string peer{};  // the node whose doing it was, of a turn with others; empty: this one's own
    bool operator==(const Decline&) const = default;
};

// ---- control connection, coordinator -> node
struct Welcome {
    std::uint32_t version = protocol_version;
    std::uint64_t session = 0;  // presented by this session's bulk connections
    std::uint64_t epoch = 0;
    std::string federation;
    bool operator==(const Welcome&) const = default;
};
/// Another cell of the mesh that a program sends to or receives from.
struct CellPeer {
    std::uint32_t cell = 0;  // as the program numbers it
    std::string node;
    std::uint64_t examples = 0;  // whose batches this cell works on in turn with others' (`repeat clients`); 0 else
    bool operator==(const CellPeer&) const = default;
};
/// One cell for one round (of a tour: for one turn). Texts are in the spelling of the experiment file; each has one
/// parser.
struct Assign {
    Lease lease;
    std::string experiment_name;
    std::uint32_t rounds = 0;
    std::uint64_t seed = 0;
    std::string dataset;
    std::string data_options;  // canonical text of [data]: label, shape, scale
    std::string architecture;  // canonical text of input shape, layers and loss
    std::string program;       // model/program.h text
    std::string optimizer;     // "sgd learning_rate=0.05 momentum=0.9"
    std::string optimizer_state;  // reset | keep | average
    std::uint32_t batch = 0;   // 0: full
    std::uint32_t local_epochs = 1;
    std::string uplink;        // codec text
    Digest model;              // pulled when the cache lacks it
    std::uint64_t model_bytes = 0;
    std::uint32_t cohort = 0;  // members drawn for the round
    std::uint32_t deadline_ms = 0;  // straggler deadline from now, 0: none
    std::string regime;        // the preset's name; empty: an older coordinator did not say
    std::string submitted_by;  // the operator who submitted the experiment; empty likewise
    std::vector<std::uint64_t> continues;  // of a resumed experiment those before it, whose client state goes on
    // Of a mesh with several stages; empty and 0 else.
    std::string segment{};           // the layers that this node holds: "[0, 3)"; `model` is then a segment file
    std::uint32_t cell = 0;          // as the programs of the others number this one
    std::uint32_t group = 0;         // the replica of the mesh
    std::vector<CellPeer> peers{};   // the cells that the program names
    std::string data_node{};         // whose examples flow: the key of all random choices of the turn
    std::uint64_t examples = 0;      // so many, of one local epoch
    std::uint32_t microbatch = 0;  // examples at once, 0: the batch's
    std::string snapshot_every;    // of a round under way: "auto", "off", "30s", "100 batches"; empty: off
    double smash_noise = 0;        // scale of the noise on what a client sends of its examples
    bool operator==(const Assign&) const = default;
};
/// The update is in the sum; keep it until Committed.
struct Counted {
    Lease lease;
    Digest update;
    bool operator==(const Counted&) const = default;
};
/// The firewall or the lease refused the update.
struct Refused {
    Lease lease;
    Digest update;
    std::string code;     // out_of_range, non_finite, shape, stale_lease, ...
    std::string message;
    std::string tensor;   // empty when not about one
    std::uint64_t index = 0;
    bool operator==(const Refused&) const = default;
};
/// What became of a round: answers an Offer in time, or a Hello's `held`.
struct Committed {
    std::uint64_t experiment = 0;
    std::uint32_t round = 0;
    Digest model;          // after the round
    bool counted = false;  // this client's update is part of it
    Digest update;         // the update spoken of
    Digest audit_head{};   // the audit log's last hash, put in where the message is sent; zeros: nothing to keep
    bool operator==(const Committed&) const = default;
};
/// The lease is gone (late, silent too long, cancelled): stop working on it.
struct Dropped {
    Lease lease;
    std::string code;  // straggler_deadline, silent, cancelled, round_failed, stale_lease
    std::string message;
    bool operator==(const Dropped&) const = default;
};
/// The experiment is over for good.
struct Ended {
    std::uint64_t experiment = 0;
    std::string state;  // succeeded, failed, cancelled
    std::string reason;
    bool operator==(const Ended&) const = default;
};

// ---- operators (control connection of an operator identity)
/// A command: `verb` and its arguments as one JSON object (docs/protocol.md lists both).
struct Request {
    std::uint64_t id = 0;
    std::string verb;
    std::string body;
    bool operator==(const Request&) const = default;
};
/// `last` ends the request; a watch has many replies before it.
struct Reply {
    std::uint64_t id = 0;
    bool last = true;
    std::string body;  // JSON; an ErrorNotice with the id in its place is a Reply with `error`
    std::optional<ErrorNotice> error;
    bool operator==(const Reply&) const = default;
};

// ---- streams between nodes
/// One line of the roster: who may talk to this node, and where it is.
struct RosterEntry {
    std::string node;
    std::string role;
    Digest fingerprint;  // of its certificate
    std::uint64_t experiment = 0;
    std::vector<std::string> addresses;  // to connect to; empty: it connects, or only the relay reaches it
    std::uint32_t expires_ms = 0;        // from now
    bool operator==(const RosterEntry&) const = default;
};
/// Takes the place of the roster before it.
struct Roster {
    std::vector<RosterEntry> entries;
    bool operator==(const Roster&) const = default;
};
/// First message of a stream connection's connecting side.
struct StreamOpen {
    std::uint64_t experiment = 0;
    bool operator==(const StreamOpen&) const = default;
};
/// A piece of what one cell sends another: a batch's values or gradients at a boundary, or its labels.
struct StreamData {
    Lease lease;             // of the turn
    std::uint32_t cell = 0;  // the sender's
    std::uint32_t kind = 0;  // 0 activations, 1 gradients, 2 labels, 3 targets
    std::uint32_t epoch = 0;
    std::uint32_t batch = 0;
    std::uint32_t microbatch = 0;
    std::uint64_t rows = 0;
    std::uint64_t offset = 0;  // of the payload in the whole, which has `total` bytes
    std::uint64_t total = 0;
    Bytes payload;
    bool operator==(const StreamData&) const = default;
};
/// Connecting side to the coordinator: frames for a node that it cannot reach itself.
struct RelayOpen {
    std::uint64_t pair = 0;  // chosen by the connecting side, unique on its connection
    std::string node;
    std::uint64_t experiment = 0;
    bool operator==(const RelayOpen&) const = default;
};
/// Bytes of the two nodes' own TLS session; the relay cannot read them.
struct RelayFrame {
    std::uint64_t pair = 0;
    Bytes payload;
    bool operator==(const RelayFrame&) const = default;
};
struct RelayCredit {
    std::uint64_t pair = 0;
    std::uint64_t bytes = 0;  // so many more may be sent
    bool operator==(const RelayCredit&) const = default;
};
struct RelayEnd {
    std::uint64_t pair = 0;
    std::string code;
    std::string message;
    bool operator==(const RelayEnd&) const = default;
};

// ---- bulk connection (transfers); first message of the connecting side is Attach
struct Attach {
    std::uint64_t session = 0;
    bool operator==(const Attach&) const = default;
};
/// Start or resume: send `digest` from `offset`, `credits` chunks may be in flight.
struct Pull {
    std::uint64_t transfer = 0;  // chosen by the receiver, unique on the connection
    Digest digest;
    std::uint64_t offset = 0;
    std::uint32_t credits = 0;
    bool operator==(const Pull&) const = default;
};
struct Credit {
    std::uint64_t transfer = 0;
    std::uint32_t credits = 0;
    bool operator==(const Credit&) const = default;
};
/// The payload follows the header in the same sealed frame sequence (docs/protocol.md).
struct Chunk {
    std::uint64_t transfer = 0;
    std::uint64_t offset = 0;
    std::uint64_t total = 0;
    SharedBytes payload;
    bool operator==(const Chunk&) const = default;
};
struct TransferEnd {
    std::uint64_t transfer = 0;
    std::string code;  // "" done, cancelled, not_found, refused, overloaded, digest_mismatch, stalled, io
    std::string message;
    bool by_receiver = false;  // whose transfer is meant: both sides choose numbers for what they pull
    bool operator==(const TransferEnd&) const = default;
};

// ---- enrolment connection (ALPN causeway-join/1)
struct JoinRequest {
    std::string name;
    Bytes secret;      // 32 bytes of the token
    Bytes public_key;  // DER SubjectPublicKeyInfo, P-256
    Bytes signature;   // over "causeway-join" || secret || name, by that key: proof of possession
    Bytes request{};   // DER PKCS#10 of that key, for an authority elsewhere
    bool operator==(const JoinRequest&) const = default;
};
struct JoinReply {
    Bytes certificate;     // DER
    Bytes ca_certificate;  // DER
    std::string federation;
    bool operator==(const JoinReply&) const = default;
};

using Message =
    std::variant<Heartbeat, ErrorNotice, Bye, Hello, Progress, Offer, Decline, Welcome, Assign, Counted, Refused,
                 Committed, Dropped, Ended, Request, Reply, Attach, Pull, Credit, Chunk, TransferEnd, JoinRequest,
                 JoinReply, Roster, StreamOpen, StreamData, RelayOpen, RelayFrame, RelayCredit, RelayEnd>;

/// The kind's name as the schema spells it: "assign".
std::string_view message_name(const Message& message);

constexpr std::size_t max_header_bytes = 256 * 1024;  // every message but what has a payload
constexpr std::size_t max_chunk_bytes = 1 << 20;
constexpr std::size_t max_request_bytes = 128 * 1024;  // an experiment file and its overrides

/// u32 header length, capnp header (word-aligned segment), then the raw payload of a Chunk, StreamData or RelayFrame.
[[nodiscard]] Bytes encode(const Message& message);
/// The same in two parts. What follows the header raw is where it was; nothing: this kind has no payload.
[[nodiscard]] Bytes encode_header(const Message& message);
[[nodiscard]] std::optional<ByteView> payload_of(const Message& message);
/// errors  corrupt: not a message, over a limit, or with a value that has no meaning; unsupported: unknown kind
[[nodiscard]] Result<Message> decode(ByteView bytes);
/// The same; a payload stays where it is, in what was given.
[[nodiscard]] Result<Message> decode(Bytes&& bytes);

}  // namespace causeway
