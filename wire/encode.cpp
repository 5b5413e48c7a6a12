// encode: the plain structs of wire/message.h to the schema's bytes.
//
// Written by hand rather than derived, so that the plain structs and the schema can each change without the other and
// every field's journey is one line. Layout: u32 header length, header (Cap'n Proto stream format), payload.
//
// threads  reentrant
#include <capnp/message.h>
#include <capnp/serialize.h>

#include "wire/causeway.capnp.h"
#include "wire/message.h"

namespace causeway {
namespace {

namespace cs = causeway::schema;

capnp::Data::Reader raw_text(ByteView bytes) {
    return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
capnp::Data::Reader raw_text(const Digest& digest) {
    return raw_text(ByteView(digest.bytes));
}
kj::StringPtr text(const std::string& text) {
    return {text.c_str(), text.size()};
}

void put(cs::Lease::Builder to, const Lease& lease) {
    to.setEpoch(lease.epoch);
    to.setExperiment(lease.experiment);
    to.setRound(lease.round);
    to.setAttempt(lease.attempt);
}
void put(cs::DatasetDeclaration::Builder to, const DatasetDeclaration& dataset) {
    to.setName(text(dataset.name));
    to.setDigest(raw_text(dataset.digest));
    to.setExamples(dataset.examples);
    auto shape = to.initShape(static_cast<unsigned>(dataset.shape.size()));
    for (unsigned i = 0; i < shape.size(); ++i) {
        shape.set(i, dataset.shape[i]);
    }
    to.setClasses(dataset.classes);
    auto labels = to.initLabels(static_cast<unsigned>(dataset.labels.size()));
    for (unsigned i = 0; i < labels.size(); ++i) {
        labels.set(i, dataset.labels[i]);
    }
}
void put(cs::HeldUpdate::Builder to, const HeldUpdate& held) {
    to.setExperiment(held.experiment);
    to.setRound(held.round);
    to.setDigest(raw_text(held.digest));
    to.setBytes(held.bytes);
    to.setWeight(held.weight);
    auto metrics = to.initMetrics();
    metrics.setLoss(held.metrics.loss);
    metrics.setExamples(held.metrics.examples);
    metrics.setTrainSeconds(held.metrics.train_seconds);
    metrics.setStreamSent(held.metrics.stream_sent);
    metrics.setStreamReceived(held.metrics.stream_received);
    metrics.setComputeSeconds(held.metrics.compute_seconds);
    to.setStartModel(raw_text(held.start_model));
}
void put(cs::ErrorNotice::Builder to, const ErrorNotice& notice) {
    to.setKind(static_cast<cs::ErrorKind>(notice.kind));  // the enums have one order (a test goes through all)
    to.setCode(text(notice.code));
    to.setMessage(text(notice.message));
}

void put(capnp::List<capnp::Text>::Builder to, const std::vector<std::string>& texts) {
    for (unsigned i = 0; i < to.size(); ++i) {
        to.set(i, text(texts[i]));
    }
}

// Parts that several kinds share. Lists are bounded by decode at the other end; a list of ours over its limit is a
// message that the peer refuses by name, which the log of both sides shows.

/// One overload per kind: fills the envelope's member.
struct Writer {
    cs::Envelope::Builder to;

    void operator()(const Heartbeat& m) {
        auto h = to.initHeartbeat();
        h.setSequence(m.sequence);
        h.setAsks(m.asks);
        h.setAnswers(m.answers);
    }
    void operator()(const ErrorNotice& m) { put(to.initErrorNotice(), m); }
    void operator()(const Bye& m) { to.initBye().setReason(text(m.reason)); }
    void operator()(const Hello& m) {
        auto h = to.initHello();
        h.setVersionMin(m.version_min);
        h.setVersionMax(m.version_max);
        put(h.initFeatures(static_cast<unsigned>(m.features.size())), m.features);
        h.setSoftware(text(m.software));
        h.setComputeSignature(text(m.compute_signature));
        auto datasets = h.initDatasets(static_cast<unsigned>(m.datasets.size()));
        for (unsigned i = 0; i < datasets.size(); ++i) {
            put(datasets[i], m.datasets[i]);
        }
        auto held = h.initHeld(static_cast<unsigned>(m.held.size()));
        for (unsigned i = 0; i < held.size(); ++i) {
            put(held[i], m.held[i]);
        }
        auto experiments = h.initExperiments(static_cast<unsigned>(m.experiments.size()));
        for (unsigned i = 0; i < experiments.size(); ++i) {
            experiments.set(i, m.experiments[i]);
        }
        put(h.initAddresses(static_cast<unsigned>(m.addresses.size())), m.addresses);
        h.setMemory(m.memory);
    }
    void operator()(const Progress& m) {
        auto p = to.initProgress();
        put(p.initLease(), m.lease);
        p.setStep(m.step);
        p.setSteps(m.steps);
        p.setLoss(m.loss);
    }
    void operator()(const Offer& m) {
        auto o = to.initOffer();
        put(o.initLease(), m.lease);
        put(o.initUpdate(), m.update);
    }
    void operator()(const Decline& m) {
        auto d = to.initDecline();
        put(d.initLease(), m.lease);
        d.setCode(text(m.code));
        d.setMessage(text(m.message));
        d.setPeer(text(m.peer));
    }
    void operator()(const Welcome& m) {
        auto w = to.initWelcome();
        w.setVersion(m.version);
        w.setSession(m.session);
        w.setEpoch(m.epoch);
        w.setFederation(text(m.federation));
    }
    void operator()(const Assign& m) {
        auto a = to.initAssign();
        put(a.initLease(), m.lease);
        a.setExperimentName(text(m.experiment_name));
        a.setRounds(m.rounds);
        a.setSeed(m.seed);
        a.setDataset(text(m.dataset));
        a.setDataOptions(text(m.data_options));
        a.setArchitecture(text(m.architecture));
        a.setProgram(text(m.program));
        a.setOptimizer(text(m.optimizer));
        a.setOptimizerState(text(m.optimizer_state));
        a.setBatch(m.batch);
        a.setLocalEpochs(m.local_epochs);
        a.setUplink(text(m.uplink));
        a.setModel(raw_text(m.model));
        a.setModelBytes(m.model_bytes);
        a.setCohort(m.cohort);
        a.setDeadlineMs(m.deadline_ms);
        a.setRegime(text(m.regime));
        a.setSubmittedBy(text(m.submitted_by));
        auto continues = a.initContinues(static_cast<unsigned>(m.continues.size()));
        for (unsigned i = 0; i < continues.size(); ++i) {
            continues.set(i, m.continues[i]);
        }
        a.setSegment(text(m.segment));
        a.setCell(m.cell);
        a.setGroup(m.group);
        auto peers = a.initPeers(static_cast<unsigned>(m.peers.size()));
        for (unsigned i = 0; i < peers.size(); ++i) {
            peers[i].setCell(m.peers[i].cell);
            peers[i].setNode(text(m.peers[i].node));
            peers[i].setExamples(m.peers[i].examples);
        }
        a.setDataNode(text(m.data_node));
        a.setExamples(m.examples);
        a.setMicrobatch(m.microbatch);
        a.setSnapshotEvery(text(m.snapshot_every));
        a.setSmashNoise(m.smash_noise);
    }
    void operator()(const Counted& m) {
        auto c = to.initCounted();
        put(c.initLease(), m.lease);
        c.setUpdate(raw_text(m.update));
    }
    void operator()(const Refused& m) {
        auto r = to.initRefused();
        put(r.initLease(), m.lease);
        r.setUpdate(raw_text(m.update));
        r.setCode(text(m.code));
        r.setMessage(text(m.message));
        r.setTensor(text(m.tensor));
        r.setIndex(m.index);
    }
    void operator()(const Committed& m) {
        auto c = to.initCommitted();
        c.setExperiment(m.experiment);
        c.setRound(m.round);
        c.setModel(raw_text(m.model));
        c.setCounted(m.counted);
        c.setUpdate(raw_text(m.update));
        c.setAuditHead(raw_text(m.audit_head));
    }
    void operator()(const Dropped& m) {
        auto d = to.initDropped();
        put(d.initLease(), m.lease);
        d.setCode(text(m.code));
        d.setMessage(text(m.message));
    }
    void operator()(const Ended& m) {
        auto e = to.initEnded();
        e.setExperiment(m.experiment);
        e.setState(text(m.state));
        e.setReason(text(m.reason));
    }
    void operator()(const Request& m) {
        auto r = to.initRequest();
        r.setId(m.id);
        r.setVerb(text(m.verb));
        r.setBody(text(m.body));
    }
    void operator()(const Reply& m) {
        auto r = to.initReply();
        r.setId(m.id);
        r.setLast(m.last);
        r.setBody(text(m.body));
        if (m.error) {
            put(r.initError(), *m.error);
        }
    }
    void operator()(const Attach& m) { to.initAttach().setSession(m.session); }
    void operator()(const Pull& m) {
        auto p = to.initPull();
        p.setTransfer(m.transfer);
        p.setDigest(raw_text(m.digest));
        p.setOffset(m.offset);
        p.setCredits(m.credits);
    }
    void operator()(const Credit& m) {
        auto c = to.initCredit();
        c.setTransfer(m.transfer);
        c.setCredits(m.credits);
    }
    void operator()(const Chunk& m) {
        auto c = to.initChunk();
        c.setTransfer(m.transfer);
        c.setOffset(m.offset);
        c.setTotal(m.total);
    }
    void operator()(const TransferEnd& m) {
        auto e = to.initTransferEnd();
        e.setTransfer(m.transfer);
        e.setCode(text(m.code));
        e.setMessage(text(m.message));
        e.setByReceiver(m.by_receiver);
    }
    void operator()(const JoinRequest& m) {
        auto j = to.initJoinRequest();
        j.setName(text(m.name));
        j.setSecret(raw_text(m.secret));
        j.setPublicKey(raw_text(m.public_key));
        j.setSignature(raw_text(m.signature));
        j.setRequest(raw_text(m.request));
    }
    void operator()(const JoinReply& m) {
        auto j = to.initJoinReply();
        j.setCertificate(raw_text(m.certificate));
        j.setCaCertificate(raw_text(m.ca_certificate));
        j.setFederation(text(m.federation));
    }
    void operator()(const Roster& m) {
        auto entries = to.initRoster().initEntries(static_cast<unsigned>(m.entries.size()));
        for (unsigned i = 0; i < entries.size(); ++i) {
            const auto& entry = m.entries[i];
            entries[i].setNode(text(entry.node));
            entries[i].setRole(text(entry.role));
            entries[i].setFingerprint(raw_text(entry.fingerprint));
            entries[i].setExperiment(entry.experiment);
            put(entries[i].initAddresses(static_cast<unsigned>(entry.addresses.size())), entry.addresses);
            entries[i].setExpiresMs(entry.expires_ms);
        }
    }
    void operator()(const StreamOpen& m) { to.initStreamOpen().setExperiment(m.experiment); }
    void operator()(const StreamData& m) {
        auto s = to.initStreamData();
        put(s.initLease(), m.lease);
        s.setCell(m.cell);
        s.setKind(m.kind);
        s.setEpoch(m.epoch);
        s.setBatch(m.batch);
        s.setMicrobatch(m.microbatch);
        s.setRows(m.rows);
        s.setOffset(m.offset);
        s.setTotal(m.total);
    }
    void operator()(const RelayOpen& m) {
        auto r = to.initRelayOpen();
        r.setPair(m.pair);
        r.setNode(text(m.node));
        r.setExperiment(m.experiment);
    }
    void operator()(const RelayFrame& m) { to.initRelayFrame().setPair(m.pair); }
    void operator()(const RelayCredit& m) {
        auto r = to.initRelayCredit();
        r.setPair(m.pair);
        r.setBytes(m.bytes);
    }
    void operator()(const RelayEnd& m) {
        auto r = to.initRelayEnd();
        r.setPair(m.pair);
        r.setCode(text(m.code));
        r.setMessage(text(m.message));
    }
};

}  // namespace

Bytes encode_header(const Message& message) {
    capnp::MallocMessageBuilder builder;
    std::visit(Writer{builder.initRoot<cs::Envelope>()}, message);
    const auto words = capnp::messageToFlatArray(builder);
    const auto header = words.asBytes();
    const auto length = static_cast<std::uint32_t>(header.size());
    Bytes bytes;
    bytes.reserve(sizeof(length) + header.size());
    const auto append = [&](ByteView part) { bytes.insert(bytes.end(), part.begin(), part.end()); };
    append(std::as_bytes(std::span(&length, 1)));
    append(std::as_bytes(std::span(header.begin(), header.size())));
    return bytes;
}

Bytes encode(const Message& message) {
    auto bytes = encode_header(message);
    if (const auto payload = payload_of(message)) {
        bytes.insert(bytes.end(), payload->begin(), payload->end());
    }
    return bytes;
}

}  // namespace causeway
