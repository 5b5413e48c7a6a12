# The protocol of Causeway: every message, field by field. These comments are the specification; docs/protocol.md
# tells the same story in sequence (framing, a round, enrolment, transfers).
#
# Evolution: new fields only at the end of a struct, new kinds only at the end of Envelope; nothing is renumbered,
# renamed or removed while a version that uses it is served (N and N-1). An unknown field is ignored, an unknown kind
# is refused and counted. wire/schema.lock holds the normalised field list, and a test compares it with this file.
#
# Limits, checked by decode: a header is at most 256 KiB; a name 128 bytes, a code 256, a message 4 KiB
# (of an ErrorNotice 64 KiB: it may list every mistake of a file), a long text 240 KiB (the body of a Request 128 KiB);
# a list 1024 entries; a shape 8 dimensions below 2^48; a size is below 2^62.
# Texts are UTF-8. A Digest is exactly 32 bytes (SHA-256), or empty for "none". Durations are finite and not negative.
@0xdf198ef24628640d;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("causeway::schema");

enum ErrorKind {
  # Named by the remedy (docs/errors.md).
  invalid @0;
  notFound @1;
  refused @2;
  overloaded @3;
  disconnected @4;
  timedOut @5;
  corrupt @6;
  unsupported @7;
  io @8;
}

struct Lease {
  # Whose word counts. A message under a lease that is not the current one changes nothing.
  epoch @0 :UInt64;       # rises at each coordinator start
  experiment @1 :UInt64;
  round @2 :UInt32;
  attempt @3 :UInt32;     # from 1; rises when a member resyncs
}

struct DatasetDeclaration {
  name @0 :Text;
  digest @1 :Data;        # of the manifest and the bytes
  examples @2 :UInt64;
  shape @3 :List(Int64);  # of one example
  classes @4 :UInt32;     # 0: not a classification set
  labels @5 :List(UInt64);  # how often each occurs, at most 1024; empty: the node's policy does not share it
}

struct Metrics {
  loss @0 :Float64;       # may be any number: the coordinator judges it
  examples @1 :UInt64;
  trainSeconds @2 :Float64;
  streamSent @3 :UInt64;  # payload bytes of streams, of a cell that has any
  streamReceived @4 :UInt64;
  computeSeconds @5 :Float64;  # of trainSeconds, what the device was at work; 0: not said
}

struct HeldUpdate {
  experiment @0 :UInt64;
  round @1 :UInt32;
  digest @2 :Data;
  bytes @3 :UInt64;
  weight @4 :Int64;       # may be negative here: the firewall refuses it with a reason
  metrics @5 :Metrics;
  startModel @6 :Data;
}

struct Heartbeat {
  # Both ways, on control connections every 500 ms under a lease and every 2 s otherwise, on streams every 500 ms.
  # Handled by the link.
  sequence @0 :UInt64;
  asks @1 :Bool;          # answer with a Heartbeat at once: the probe of the take-over rule, and a round trip measured
  answers @2 :UInt64;     # the sequence of the one that asked; 0: it is no answer
}

struct ErrorNotice {
  # The sender cannot go on with something, or is about to close the connection for this reason.
  kind @0 :ErrorKind;
  code @1 :Text;          # stable, snake_case
  message @2 :Text;       # for people
}

struct Bye {
  # A planned end of the session; the sender closes 100 ms later.
  reason @0 :Text;
}

struct Hello {
  # First message of a node or operator on its control connection. Answered by Welcome or ErrorNotice.
  versionMin @0 :UInt32;
  versionMax @1 :UInt32;          # at least versionMin
  features @2 :List(Text);
  software @3 :Text;
  computeSignature @4 :Text;
  datasets @5 :List(DatasetDeclaration);
  held @6 :List(HeldUpdate);      # each answered by Committed
  experiments @7 :List(UInt64);   # whose client state the node keeps; those that are over are answered by Ended
  addresses @8 :List(Text);       # "HOST:PORT", where other nodes may open streams to it
  memory @9 :UInt64;              # bytes that the node has for models; 0: not said
}

struct Progress {
  lease @0 :Lease;
  step @1 :UInt32;                # at most steps, where that is known
  steps @2 :UInt32;               # 0: not known yet
  loss @3 :Float64;
}

struct Offer {
  # The update is durable at its client, which keeps it until Committed; the coordinator pulls it by digest.
  lease @0 :Lease;
  update @1 :HeldUpdate;
}

struct Decline {
  lease @0 :Lease;
  code @1 :Text;
  message @2 :Text;
  peer @3 :Text;                  # the node whose doing it was, of a turn with others; empty: this one's own
}

struct Welcome {
  version @0 :UInt32;             # within the Hello's range
  session @1 :UInt64;             # not 0; presented by Attach
  epoch @2 :UInt64;
  federation @3 :Text;
}

struct CellPeer {
  cell @0 :UInt32;                # as the program numbers it
  node @1 :Text;
  examples @2 :UInt64;            # of one local epoch, where the program repeats over clients; 0 else
}

struct Assign {
  # One cell for one round, or for one turn of a tour. Texts are in the experiment file's spelling.
  lease @0 :Lease;
  experimentName @1 :Text;
  rounds @2 :UInt32;
  seed @3 :UInt64;
  dataset @4 :Text;
  dataOptions @5 :Text;
  architecture @6 :Text;
  program @7 :Text;               # or `statistics`: sums of columns are asked for, from no model
  optimizer @8 :Text;
  optimizerState @9 :Text;        # reset | keep | average
  batch @10 :UInt32;              # 0: all examples
  localEpochs @11 :UInt32;
  uplink @12 :Text;
  model @13 :Data;                # pulled when the cache lacks it
  modelBytes @14 :UInt64;
  cohort @15 :UInt32;
  deadlineMs @16 :UInt32;         # from now, 0: none
  regime @17 :Text;               # the preset's name; empty from a coordinator that does not say
  submittedBy @18 :Text;          # the operator's node name; empty likewise
  continues @19 :List(UInt64);    # the experiments that this one goes on from, the nearest first: the client state of
                                  # the first of them that the node has is what it starts with
  segment @20 :Text;              # the layers of this cell, "[0, 3)"; empty: all. model is then a segment file
  cell @21 :UInt32;
  group @22 :UInt32;              # the replica of the mesh
  peers @23 :List(CellPeer);      # the cells that the program names
  dataNode @24 :Text;             # whose examples flow: the key of the turn's random choices; empty: this node's
  examples @25 :UInt64;           # how many, of one local epoch; 0: the node's own
  microbatch @26 :UInt32;         # examples at once; 0: a batch's
  snapshotEvery @27 :Text;        # how often a round under way is kept for a restart; empty: never
  smashNoise @28 :Float64;        # of a cell with examples: standard deviation of the noise on the values that it sends
}

struct Counted {
  lease @0 :Lease;
  update @1 :Data;
}

struct Refused {
  lease @0 :Lease;
  update @1 :Data;
  code @2 :Text;
  message @3 :Text;
  tensor @4 :Text;                # empty when not about one
  index @5 :UInt64;
}

struct Committed {
  experiment @0 :UInt64;
  round @1 :UInt32;
  model @2 :Data;                 # after the round
  counted @3 :Bool;
  update @4 :Data;                # the update spoken of
  auditHead @5 :Data;             # the audit log's last hash: a log that lacks it later was cut
}

struct Dropped {
  lease @0 :Lease;
  code @1 :Text;
  message @2 :Text;
}

struct Ended {
  experiment @0 :UInt64;
  state @1 :Text;                 # succeeded | failed | cancelled
  reason @2 :Text;
}

struct Request {
  # An operator's command, or the coordinator's question to a node; the verbs and their JSON are in docs/protocol.md.
  id @0 :UInt64;
  verb @1 :Text;
  body @2 :Text;
}

struct Reply {
  id @0 :UInt64;
  last @1 :Bool;
  body @2 :Text;
  error @3 :ErrorNotice;          # absent: success
}

struct Attach {
  # First message of a bulk connection. The certificate must be the one of the live session that is named.
  session @0 :UInt64;
}

struct Pull {
  # Send the bytes under digest from offset on; at most credits chunks are in flight.
  transfer @0 :UInt64;            # chosen by the receiver, unique on the connection
  digest @1 :Data;
  offset @2 :UInt64;
  credits @3 :UInt32;             # 1 to 64
}

struct Credit {
  transfer @0 :UInt64;
  credits @1 :UInt32;             # 1 to 64, added to what is left
}

struct Chunk {
  # The payload (1 byte to 1 MiB) follows the header in the same message.
  transfer @0 :UInt64;
  offset @1 :UInt64;
  total @2 :UInt64;               # offset + payload is at most this
}

struct TransferEnd {
  transfer @0 :UInt64;
  code @1 :Text;                  # "" done, else as in docs/protocol.md
  message @2 :Text;
  byReceiver @3 :Bool;            # whose transfer is meant: both sides choose numbers for what they pull
}

struct JoinRequest {
  # Only on ALPN causeway-join/1, once, after the client has checked the CA's hash.
  name @0 :Text;
  secret @1 :Data;                # 32 bytes of the token
  publicKey @2 :Data;             # DER SubjectPublicKeyInfo, P-256
  signature @3 :Data;             # ECDSA-SHA256 over "causeway-join" || secret || name: proof of possession
  request @4 :Data;               # DER PKCS#10 of that key, for an authority elsewhere; empty: an older node
}

struct JoinReply {
  certificate @0 :Data;           # DER
  caCertificate @1 :Data;         # DER
  federation @2 :Text;
}

struct RosterEntry {
  node @0 :Text;
  role @1 :Text;
  fingerprint @2 :Data;           # SHA-256 of the certificate's DER
  experiment @3 :UInt64;
  addresses @4 :List(Text);       # "HOST:PORT"; empty: it connects to this node, or only the relay reaches it
  expiresMs @5 :UInt32;           # from now, at most 60 s
}

struct Roster {
  # Coordinator to node, on the control connection: who may talk to it, in place of what was said before. Renewed well
  # before it expires; a stream connection without a live entry is closed.
  entries @0 :List(RosterEntry);
}

struct StreamOpen {
  # First message of a stream connection, from the connecting side; the accepting side answers with the same. It wants a
  # live roster entry of exactly the certificate that connects.
  experiment @0 :UInt64;
}

struct StreamData {
  # The payload (1 byte to 1 MiB) follows the header in the same message.
  lease @0 :Lease;                # of the turn that both cells are in
  cell @1 :UInt32;                # the sender's
  kind @2 :UInt32;                # 0 activations, 1 gradients (f32), 2 labels (i64), 3 targets (f32)
  epoch @3 :UInt32;
  batch @4 :UInt32;
  microbatch @5 :UInt32;
  rows @6 :UInt64;
  offset @7 :UInt64;              # of the payload in the whole
  total @8 :UInt64;               # bytes of the whole; offset + payload is at most this
}

struct RelayOpen {
  # A node asks the coordinator to forward frames to another that it cannot reach itself. The coordinator says the same
  # to that node, with its own number of the pair and the asker's name.
  pair @0 :UInt64;
  node @1 :Text;
  experiment @2 :UInt64;
}

struct RelayFrame {
  # The payload (1 byte to 1 MiB) follows: bytes of the TLS session between the two nodes.
  pair @0 :UInt64;
}

struct RelayCredit {
  pair @0 :UInt64;
  bytes @1 :UInt64;               # that may be sent beyond what was granted before
}

struct RelayEnd {
  pair @0 :UInt64;
  code @1 :Text;                  # "" a planned end
  message @2 :Text;
}

struct Envelope {
  # Every message is one Envelope.
  union {
    heartbeat @0 :Heartbeat;
    errorNotice @1 :ErrorNotice;
    bye @2 :Bye;
    hello @3 :Hello;
    progress @4 :Progress;
    offer @5 :Offer;
    decline @6 :Decline;
    welcome @7 :Welcome;
    assign @8 :Assign;
    counted @9 :Counted;
    refused @10 :Refused;
    committed @11 :Committed;
    dropped @12 :Dropped;
    ended @13 :Ended;
    request @14 :Request;
    reply @15 :Reply;
    attach @16 :Attach;
    pull @17 :Pull;
    credit @18 :Credit;
    chunk @19 :Chunk;
    transferEnd @20 :TransferEnd;
    joinRequest @21 :JoinRequest;
    joinReply @22 :JoinReply;
    roster @23 :Roster;
    streamOpen @24 :StreamOpen;
    streamData @25 :StreamData;
    relayOpen @26 :RelayOpen;
    relayFrame @27 :RelayFrame;
    relayCredit @28 :RelayCredit;
    relayEnd @29 :RelayEnd;
  }
}
