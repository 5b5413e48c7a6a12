// decode: any bytes to a message or a named error.
//
// Total: the header is copied to aligned words (ZeroMQ's small frames are not), read under a traversal limit that
// follows from its size, and every value is judged: lists and texts have limits, enumerators and sizes must have a
// meaning. The judge keeps the first complaint and the reading goes on with harmless values, so each reader is a plain
// list of fields; Cap'n Proto's exceptions end at the single try below.
//
// threads  reentrant
#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cmath>
#include <cstring>

#include "common/printable.h"
#include "wire/causeway.capnp.h"
#include "wire/message.h"
#include "wire/secure_channel.h"
#include "wire/utf8.h"

namespace causeway {
namespace {

namespace cs = causeway::schema;

constexpr std::size_t max_name = 128;
constexpr std::size_t max_code = 256;
constexpr std::size_t max_message_text = 4096;
constexpr std::size_t max_error_text = 64 * 1024;  // lists every mistake of a file
constexpr std::size_t max_long_text = 240 * 1024;  // fits a header beside the other fields
constexpr std::size_t max_list = 1024;
constexpr std::size_t max_addresses = 32;
constexpr std::uint32_t max_roster_ms = 60'000;
constexpr std::uint32_t stream_kinds = 4;
constexpr std::size_t max_rank = 8;
constexpr std::uint64_t max_size = std::uint64_t{1} << 62;
constexpr std::int64_t max_dimension = std::int64_t{1} << 48;
constexpr std::uint32_t max_credits = 64;
constexpr std::size_t max_der = 8 * 1024;  // an enrolment session is 16 KiB in all

/// Keeps the first complaint about a message; the values it hands on are within the limits, and texts are fit to be
/// shown: what a peer says ends in logs, tables and terminals.
class Judge {
public:
    void require(bool holds, std::string_view what) {
        if (!holds && !complaint_) {
            complaint_ = std::string(what);
        }
    }
    std::string text(capnp::Text::Reader from, std::size_t limit, std::string_view what) {
        const std::string_view view(from.begin(), from.size());
        const bool fits = view.size() <= limit && is_utf8(view);
        require(fits, what);
        return fits ? printable(view, limit > max_message_text ? Lines::many : Lines::one) : std::string();
    }
    Bytes bytes(capnp::Data::Reader from, std::size_t limit, std::string_view what) {
        const auto view = std::as_bytes(std::span(from.begin(), from.size()));
        require(view.size() <= limit, what);
        return view.size() <= limit ? to_bytes(view) : Bytes();
    }
    Digest digest(capnp::Data::Reader from, std::string_view what) {
        Digest digest;
        require(from.size() == 0 || from.size() == digest.bytes.size(), what);
        if (from.size() == digest.bytes.size()) {
            std::memcpy(digest.bytes.data(), from.begin(), digest.bytes.size());
        }
        return digest;
    }
    std::uint64_t size(std::uint64_t value, std::string_view what) {
        require(value < max_size, what);
        return value;
    }
    double duration(double value, std::string_view what) {
        require(std::isfinite(value) && value >= 0, what);
        return value;
    }
    /// The list's length, 0 where it is over the limit.
    unsigned count(unsigned length, std::size_t limit, std::string_view what) {
        require(length <= limit, what);
        return length <= limit ? length : 0;
    }
    [[nodiscard]] const std::optional<std::string>& complaint() const { return complaint_; }

private:
    std::optional<std::string> complaint_;
};

/// One overload per kind of the schema; the sentences name the field for whoever reads the sender's log.
struct MessageReader {
    Judge& judge;

    Lease read(cs::Lease::Reader from) {
        return {from.getEpoch(), from.getExperiment(), from.getRound(), from.getAttempt()};
    }
    DatasetDeclaration read(cs::DatasetDeclaration::Reader from) {
        DatasetDeclaration dataset;
        dataset.name = judge.text(from.getName(), max_name, "dataset.name");
        dataset.digest = judge.digest(from.getDigest(), "dataset.digest");
        dataset.examples = judge.size(from.getExamples(), "dataset.examples");
        const auto shape = from.getShape();
        for (unsigned i = 0; i < judge.count(shape.size(), max_rank, "dataset.shape"); ++i) {
            judge.require(shape[i] > 0 && shape[i] < max_dimension, "dataset.shape");
            dataset.shape.push_back(shape[i]);
        }
        dataset.classes = from.getClasses();
        const auto labels = from.getLabels();
        for (unsigned i = 0; i < judge.count(labels.size(), max_list, "dataset.labels"); ++i) {
            dataset.labels.push_back(judge.size(labels[i], "dataset.labels"));
        }
        return dataset;
    }
    HeldUpdate read(cs::HeldUpdate::Reader from) {
        HeldUpdate held;
        held.experiment = from.getExperiment();
        held.round = from.getRound();
        held.digest = judge.digest(from.getDigest(), "update.digest");
        held.bytes = judge.size(from.getBytes(), "update.bytes");
        held.weight = from.getWeight();
        held.metrics.loss = from.getMetrics().getLoss();
        held.metrics.examples = from.getMetrics().getExamples();
        held.metrics.train_seconds = judge.duration(from.getMetrics().getTrainSeconds(), "metrics.train_seconds");
        held.metrics.stream_sent = judge.size(from.getMetrics().getStreamSent(), "metrics.stream_sent");
        held.metrics.stream_received = judge.size(from.getMetrics().getStreamReceived(), "metrics.stream_received");
        held.metrics.compute_seconds = judge.duration(from.getMetrics().getComputeSeconds(), "metrics.compute_seconds");
        held.start_model = judge.digest(from.getStartModel(), "update.start_model");
        return held;
    }
    Heartbeat read(cs::Heartbeat::Reader from) { return {from.getSequence(), from.getAsks(), from.getAnswers()}; }
    ErrorNotice read(cs::ErrorNotice::Reader from) {
        const auto kind = static_cast<std::uint16_t>(from.getKind());
        const bool known = kind <= static_cast<std::uint16_t>(ErrorKind::io);
        judge.require(known, "error.kind");
        return {known ? static_cast<ErrorKind>(kind) : ErrorKind::io,
                judge.text(from.getCode(), max_code, "error.code"),
                judge.text(from.getMessage(), max_error_text, "error.message")};
    }
    Bye read(cs::Bye::Reader from) { return {judge.text(from.getReason(), max_message_text, "bye.reason")}; }
    std::vector<std::uint64_t> numbers(capnp::List<std::uint64_t>::Reader from, const char* what) {
        std::vector<std::uint64_t> all;
        for (unsigned i = 0; i < judge.count(from.size(), max_list, what); ++i) {
            all.push_back(from[i]);
        }
        return all;
    }
    std::vector<std::string> texts(capnp::List<capnp::Text>::Reader from, std::size_t most, const char* what) {
        std::vector<std::string> all;
        for (unsigned i = 0; i < judge.count(from.size(), most, what); ++i) {
            all.push_back(judge.text(from[i], max_name, what));
        }
        return all;
    }
    Hello read(cs::Hello::Reader from) {
        Hello hello;
        hello.version_min = from.getVersionMin();
        hello.version_max = from.getVersionMax();
        judge.require(hello.version_min <= hello.version_max, "hello.version_min above version_max");
        hello.features = texts(from.getFeatures(), max_list, "hello.features");
        hello.software = judge.text(from.getSoftware(), max_code, "hello.software");
        hello.compute_signature = judge.text(from.getComputeSignature(), max_message_text, "hello.compute_signature");
        const auto datasets = from.getDatasets();
        for (unsigned i = 0; i < judge.count(datasets.size(), max_list, "hello.datasets"); ++i) {
            hello.datasets.push_back(read(datasets[i]));
        }
        const auto held = from.getHeld();
        for (unsigned i = 0; i < judge.count(held.size(), max_list, "hello.held"); ++i) {
            hello.held.push_back(read(held[i]));
        }
        hello.experiments = numbers(from.getExperiments(), "hello.experiments");
        hello.addresses = texts(from.getAddresses(), max_addresses, "hello.addresses");
        hello.memory = judge.size(from.getMemory(), "hello.memory");
        return hello;
    }
    Progress read(cs::Progress::Reader from) {
        judge.require(from.getSteps() == 0 || from.getStep() <= from.getSteps(), "progress.step beyond steps");
        return {read(from.getLease()), from.getStep(), from.getSteps(), from.getLoss()};
    }
    Offer read(cs::Offer::Reader from) { return {read(from.getLease()), read(from.getUpdate())}; }
    Decline read(cs::Decline::Reader from) {
        return {read(from.getLease()), judge.text(from.getCode(), max_code, "decline.code"),
                judge.text(from.getMessage(), max_message_text, "decline.message"),
                judge.text(from.getPeer(), max_name, "decline.peer")};
    }
    Welcome read(cs::Welcome::Reader from) {
        judge.require(from.getSession() != 0, "welcome.session is 0");
        return {from.getVersion(), from.getSession(), from.getEpoch(),
                judge.text(from.getFederation(), max_name, "welcome.federation")};
    }
    Assign read(cs::Assign::Reader from) {
        Assign assign;
        assign.lease = read(from.getLease());
        assign.experiment_name = judge.text(from.getExperimentName(), max_code, "assign.experiment_name");
        assign.rounds = from.getRounds();
        assign.seed = from.getSeed();
        assign.dataset = judge.text(from.getDataset(), max_name, "assign.dataset");
        assign.data_options = judge.text(from.getDataOptions(), max_long_text, "assign.data_options");
        assign.architecture = judge.text(from.getArchitecture(), max_long_text, "assign.architecture");
        assign.program = judge.text(from.getProgram(), max_long_text, "assign.program");
        assign.optimizer = judge.text(from.getOptimizer(), max_message_text, "assign.optimizer");
        assign.optimizer_state = judge.text(from.getOptimizerState(), max_name, "assign.optimizer_state");
        assign.batch = from.getBatch();
        assign.local_epochs = from.getLocalEpochs();
        assign.uplink = judge.text(from.getUplink(), max_message_text, "assign.uplink");
        assign.model = judge.digest(from.getModel(), "assign.model");
        assign.model_bytes = judge.size(from.getModelBytes(), "assign.model_bytes");
        assign.cohort = from.getCohort();
        assign.deadline_ms = from.getDeadlineMs();
        assign.regime = judge.text(from.getRegime(), max_name, "assign.regime");
        assign.submitted_by = judge.text(from.getSubmittedBy(), max_name, "assign.submitted_by");
        assign.continues = numbers(from.getContinues(), "assign.continues");
        assign.segment = judge.text(from.getSegment(), max_code, "assign.segment");
        assign.cell = from.getCell();
        assign.group = from.getGroup();
        const auto peers = from.getPeers();
        for (unsigned i = 0; i < judge.count(peers.size(), max_list, "assign.peers"); ++i) {
            assign.peers.push_back({peers[i].getCell(), judge.text(peers[i].getNode(), max_name, "assign.peers"),
                                    judge.size(peers[i].getExamples(), "assign.peers")});
        }
        assign.data_node = judge.text(from.getDataNode(), max_name, "assign.data_node");
        assign.examples = judge.size(from.getExamples(), "assign.examples");
        assign.microbatch = from.getMicrobatch();
        assign.snapshot_every = judge.text(from.getSnapshotEvery(), max_name, "assign.snapshot_every");
        assign.smash_noise = judge.duration(from.getSmashNoise(), "assign.smash_noise");
        return assign;
    }
    Counted read(cs::Counted::Reader from) {
        return {read(from.getLease()), judge.digest(from.getUpdate(), "counted.update")};
    }
    Refused read(cs::Refused::Reader from) {
        return {read(from.getLease()),
                judge.digest(from.getUpdate(), "refused.update"),
                judge.text(from.getCode(), max_code, "refused.code"),
                judge.text(from.getMessage(), max_message_text, "refused.message"),
                judge.text(from.getTensor(), max_code, "refused.tensor"),
                from.getIndex()};
    }
    Committed read(cs::Committed::Reader from) {
        return {from.getExperiment(),
                from.getRound(),
                judge.digest(from.getModel(), "committed.model"),
                from.getCounted(),
                judge.digest(from.getUpdate(), "committed.update"),
                judge.digest(from.getAuditHead(), "committed.audit_head")};
    }
    Dropped read(cs::Dropped::Reader from) {
        return {read(from.getLease()), judge.text(from.getCode(), max_code, "dropped.code"),
                judge.text(from.getMessage(), max_message_text, "dropped.message")};
    }
    Ended read(cs::Ended::Reader from) {
        return {from.getExperiment(), judge.text(from.getState(), max_name, "ended.state"),
                judge.text(from.getReason(), max_message_text, "ended.reason")};
    }
    Request read(cs::Request::Reader from) {
        return {from.getId(), judge.text(from.getVerb(), max_name, "request.verb"),
                judge.text(from.getBody(), max_request_bytes, "request.body")};
    }
    Reply read(cs::Reply::Reader from) {
        Reply reply{from.getId(), from.getLast(), judge.text(from.getBody(), max_long_text, "reply.body"), {}};
        if (from.hasError()) {
            reply.error = read(from.getError());
        }
        return reply;
    }
    Attach read(cs::Attach::Reader from) {
        judge.require(from.getSession() != 0, "attach.session is 0");
        return {from.getSession()};
    }
    Pull read(cs::Pull::Reader from) {
        judge.require(from.getCredits() > 0 && from.getCredits() <= max_credits, "pull.credits not in 1..64");
        return {from.getTransfer(), judge.digest(from.getDigest(), "pull.digest"),
                judge.size(from.getOffset(), "pull.offset"), from.getCredits()};
    }
    Credit read(cs::Credit::Reader from) {
        judge.require(from.getCredits() > 0 && from.getCredits() <= max_credits, "credit.credits not in 1..64");
        return {from.getTransfer(), from.getCredits()};
    }
    Chunk read(cs::Chunk::Reader from) {
        return {from.getTransfer(),
                judge.size(from.getOffset(), "chunk.offset"),
                judge.size(from.getTotal(), "chunk.total"),
                {}};
    }
    TransferEnd read(cs::TransferEnd::Reader from) {
        return {from.getTransfer(), judge.text(from.getCode(), max_code, "transfer_end.code"),
                judge.text(from.getMessage(), max_message_text, "transfer_end.message"), from.getByReceiver()};
    }
    JoinRequest read(cs::JoinRequest::Reader from) {
        judge.require(from.getSecret().size() == 32, "join_request.secret is not 32 bytes");
        return {judge.text(from.getName(), max_name, "join_request.name"),
                judge.bytes(from.getSecret(), 32, "join_request.secret"),
                judge.bytes(from.getPublicKey(), max_code, "join_request.public_key"),
                judge.bytes(from.getSignature(), max_code, "join_request.signature"),
                judge.bytes(from.getRequest(), max_der, "join_request.request")};
    }
    JoinReply read(cs::JoinReply::Reader from) {
        return {judge.bytes(from.getCertificate(), max_der, "join_reply.certificate"),
                judge.bytes(from.getCaCertificate(), max_der, "join_reply.ca_certificate"),
                judge.text(from.getFederation(), max_name, "join_reply.federation")};
    }

    RosterEntry read(cs::RosterEntry::Reader from) {
        judge.require(from.getExpiresMs() <= max_roster_ms, "roster.expires_ms");
        return {judge.text(from.getNode(), max_name, "roster.node"),
                judge.text(from.getRole(), max_name, "roster.role"),
                judge.digest(from.getFingerprint(), "roster.fingerprint"),
                from.getExperiment(),
                texts(from.getAddresses(), max_addresses, "roster.addresses"),
                from.getExpiresMs()};
    }
    Roster read(cs::Roster::Reader from) {
        Roster roster;
        const auto entries = from.getEntries();
        for (unsigned i = 0; i < judge.count(entries.size(), max_list, "roster.entries"); ++i) {
            roster.entries.push_back(read(entries[i]));
        }
        return roster;
    }
    StreamOpen read(cs::StreamOpen::Reader from) { return {from.getExperiment()}; }
    StreamData read(cs::StreamData::Reader from) {
        judge.require(from.getKind() < stream_kinds, "stream_data.kind");
        return {read(from.getLease()),
                from.getCell(),
                from.getKind(),
                from.getEpoch(),
                from.getBatch(),
                from.getMicrobatch(),
                judge.size(from.getRows(), "stream_data.rows"),
                judge.size(from.getOffset(), "stream_data.offset"),
                judge.size(from.getTotal(), "stream_data.total"),
                {}};
    }
    RelayOpen read(cs::RelayOpen::Reader from) {
        return {from.getPair(), judge.text(from.getNode(), max_name, "relay_open.node"), from.getExperiment()};
    }
    RelayFrame read(cs::RelayFrame::Reader from) { return {from.getPair(), {}}; }
    RelayCredit read(cs::RelayCredit::Reader from) {
        return {from.getPair(), judge.size(from.getBytes(), "relay_credit.bytes")};
    }
    RelayEnd read(cs::RelayEnd::Reader from) {
        return {from.getPair(), judge.text(from.getCode(), max_code, "relay_end.code"),
                judge.text(from.getMessage(), max_message_text, "relay_end.message")};
    }

    std::optional<Message> read(cs::Envelope::Reader from) {
        switch (from.which()) {
            case cs::Envelope::HEARTBEAT:
                return read(from.getHeartbeat());
            case cs::Envelope::ERROR_NOTICE:
                return read(from.getErrorNotice());
            case cs::Envelope::BYE:
                return read(from.getBye());
            case cs::Envelope::HELLO:
                return read(from.getHello());
            case cs::Envelope::PROGRESS:
                return read(from.getProgress());
            case cs::Envelope::OFFER:
                return read(from.getOffer());
            case cs::Envelope::DECLINE:
                return read(from.getDecline());
            case cs::Envelope::WELCOME:
                return read(from.getWelcome());
            case cs::Envelope::ASSIGN:
                return read(from.getAssign());
            case cs::Envelope::COUNTED:
                return read(from.getCounted());
            case cs::Envelope::REFUSED:
                return read(from.getRefused());
            case cs::Envelope::COMMITTED:
                return read(from.getCommitted());
            case cs::Envelope::DROPPED:
                return read(from.getDropped());
            case cs::Envelope::ENDED:
                return read(from.getEnded());
            case cs::Envelope::REQUEST:
                return read(from.getRequest());
            case cs::Envelope::REPLY:
                return read(from.getReply());
            case cs::Envelope::ATTACH:
                return read(from.getAttach());
            case cs::Envelope::PULL:
                return read(from.getPull());
            case cs::Envelope::CREDIT:
                return read(from.getCredit());
            case cs::Envelope::CHUNK:
                return read(from.getChunk());
            case cs::Envelope::TRANSFER_END:
                return read(from.getTransferEnd());
            case cs::Envelope::JOIN_REQUEST:
                return read(from.getJoinRequest());
            case cs::Envelope::JOIN_REPLY:
                return read(from.getJoinReply());
            case cs::Envelope::ROSTER:
                return read(from.getRoster());
            case cs::Envelope::STREAM_OPEN:
                return read(from.getStreamOpen());
            case cs::Envelope::STREAM_DATA:
                return read(from.getStreamData());
            case cs::Envelope::RELAY_OPEN:
                return read(from.getRelayOpen());
            case cs::Envelope::RELAY_FRAME:
                return read(from.getRelayFrame());
            case cs::Envelope::RELAY_CREDIT:
                return read(from.getRelayCredit());
            case cs::Envelope::RELAY_END:
                return read(from.getRelayEnd());
        }
        return std::nullopt;  // a kind of a later version
    }
};

tl::unexpected<Error> corrupt(std::string what) {
    return fail(ErrorKind::corrupt, "bad_message", std::move(what));
}

/// The aligned header's envelope, judged. May throw kj::Exception.
Result<Message> read_header(kj::ArrayPtr<const capnp::word> words) {
    capnp::ReaderOptions limits;
    // Each field is read about once; a little more for lists of empty structs, which count a word each.
    limits.traversalLimitInWords = 4 * words.size() + 256;
    limits.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader(words, limits);
    Judge judge;
    auto message = MessageReader{judge}.read(reader.getRoot<cs::Envelope>());
    if (!message) {
        return fail(ErrorKind::unsupported, "unknown_kind", "a message of a kind that this version does not know");
    }
    if (judge.complaint()) {
        return corrupt(std::string(message_name(*message)) + ": " + *judge.complaint() +
                       " is over its limit or invalid");
    }
    return std::move(*message);
}

/// Chunks, stream data and relayed frames take the payload; every other kind must have none.
Status attach_payload(Message& message, SharedBytes payload) {
    auto* chunk = std::get_if<Chunk>(&message);
    auto* data = std::get_if<StreamData>(&message);
    auto* frame = std::get_if<RelayFrame>(&message);
    if (!chunk && !data && !frame) {
        return payload.empty() ? Status() : corrupt("bytes after the header of a message without payload");
    }
    const auto name = std::string(message_name(message));
    if (payload.empty() || payload.size() > max_chunk_bytes) {
        return corrupt(name + ": the payload is not 1 byte to 1 MiB");
    }
    if ((chunk && chunk->offset + payload.size() > chunk->total) ||
        (data && data->offset + payload.size() > data->total)) {
        return corrupt(name + ": reaches beyond the total it declares");
    }
    if (chunk) {
        chunk->payload = std::move(payload);
    } else {
        (data ? data->payload : frame->payload) = to_bytes(payload.view());
    }
    return {};
}

Result<Message> decode_checked(ByteView header, SharedBytes payload) {
    auto words = kj::heapArray<capnp::word>(header.size() / sizeof(capnp::word));
    std::memcpy(words.asBytes().begin(), header.data(), header.size());
    TRY_ASSIGN(auto message, read_header(words));
    TRY(attach_payload(message, std::move(payload)));
    return message;
}

/// `share` gives the payload an owner: whoever has the bytes, or a copy.
template <class Share>
Result<Message> decode_parts(ByteView bytes, const Share& share) {
    ByteReader reader(bytes);
    TRY_ASSIGN(const auto length, reader.get<std::uint32_t>());
    if (length > max_header_bytes || length % sizeof(capnp::word) != 0 || length == 0) {
        return corrupt("the header's length is not a multiple of 8 up to 256 KiB");
    }
    TRY_ASSIGN(const auto header, reader.get_bytes(length));
    TRY_ASSIGN(const auto payload, reader.get_bytes(reader.left()));
    try {
        return decode_checked(header, payload.empty() ? SharedBytes() : share(payload));
    } catch (const kj::Exception& broken) {
        // The library's words may quote the header's bytes.
        return corrupt("the header is malformed: " +
                       printable(std::string_view(broken.getDescription().cStr()).substr(0, max_code), Lines::one));
    }
}

}  // namespace

Result<Message> decode(ByteView bytes) {
    return decode_parts(bytes, [](ByteView payload) { return SharedBytes(to_bytes(payload)); });
}

Result<Message> decode_received(const SharedBytes& bytes) {
    return decode_parts(bytes.view(), [&](ByteView payload) {
        return SharedBytes(std::make_shared<const SharedBytes>(bytes), payload);
    });
}

Result<Message> decode(Bytes&& bytes) {
    return decode_received(SharedBytes(std::move(bytes)));
}

}  // namespace causeway
