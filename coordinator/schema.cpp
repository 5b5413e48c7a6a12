// The tables, documented where they are made. A later format is one more entry with its own comments; entries that
// were released are never edited, since folders in the field were made by them.
#include "coordinator/schema.h"

#include <array>

namespace causeway {
namespace {

// Times are seconds since 1970, digests 32-byte blobs, details JSON. NULL in a REAL column is NaN.
constexpr const char* format_1 = R"sql(
-- One row per name: epoch (how often a coordinator was started on this folder).
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', 0);

-- An experiment as last saved. state: queued starting running paused succeeded failed cancelled.
CREATE TABLE experiments (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    file TEXT NOT NULL,          -- the resolved file, by which a restart goes on
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    submitted_by TEXT NOT NULL);

-- The decision log: every choice made by time or arrival, in order, before it took effect.
CREATE TABLE decisions (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    experiment INTEGER NOT NULL REFERENCES experiments,
    round INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE INDEX decisions_of ON decisions (experiment, round);

-- A committed round names its snapshot and the next round's cohort. Round 0 is the initial model.
CREATE TABLE commits (
    experiment INTEGER NOT NULL REFERENCES experiments,
    round INTEGER NOT NULL,
    model BLOB NOT NULL,
    model_bytes INTEGER NOT NULL,
    next_cohort TEXT NOT NULL,   -- JSON array of names
    summary TEXT NOT NULL,
    PRIMARY KEY (experiment, round)) WITHOUT ROWID;

-- Whose update is part of a committed round.
CREATE TABLE participants (
    experiment INTEGER NOT NULL,
    round INTEGER NOT NULL,
    node TEXT NOT NULL,
    update_digest BLOB NOT NULL,
    PRIMARY KEY (experiment, round, node),
    FOREIGN KEY (experiment, round) REFERENCES commits) WITHOUT ROWID;

CREATE TABLE evaluations (
    experiment INTEGER NOT NULL,
    round INTEGER NOT NULL,
    loss REAL, accuracy REAL,
    examples INTEGER NOT NULL,
    PRIMARY KEY (experiment, round),
    FOREIGN KEY (experiment, round) REFERENCES commits) WITHOUT ROWID;

-- Models that stay whatever comes later (exported ones).
CREATE TABLE pins (model BLOB PRIMARY KEY) WITHOUT ROWID;

-- What each node declared last.
CREATE TABLE datasets (
    node TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    examples INTEGER NOT NULL,
    shape TEXT NOT NULL,         -- JSON array
    classes INTEGER NOT NULL,
    PRIMARY KEY (node, position)) WITHOUT ROWID;

-- Join tokens: never the secret, only its SHA-256. used_by: the public key that it enrolled.
CREATE TABLE tokens (
    secret_sha256 BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    expires INTEGER NOT NULL,
    used_by BLOB) WITHOUT ROWID;
CREATE INDEX tokens_of ON tokens (name);

-- Certificates issued, renewals too. revoked: when, or NULL.
CREATE TABLE certificates (
    fingerprint BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    public_key BLOB NOT NULL,
    certificate BLOB NOT NULL,   -- DER
    issued INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    revoked INTEGER) WITHOUT ROWID;
CREATE INDEX certificates_of ON certificates (name);

-- The audit log: hash = SHA-256(hash of the row before, or 32 zeros, then entry).
CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY,
    entry TEXT NOT NULL,
    hash BLOB NOT NULL);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
)sql";

// Requests that wait for an authority elsewhere: enrolments (their token is used by that key) and renewals.
constexpr const char* format_2 = R"sql(
CREATE TABLE requests (
    public_key BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    request BLOB NOT NULL,       -- DER PKCS#10
    at INTEGER NOT NULL) WITHOUT ROWID;
)sql";

// Figures beside loss and accuracy, and by which a model is the best.
constexpr const char* format_3 = R"sql(
ALTER TABLE evaluations ADD COLUMN detail TEXT NOT NULL DEFAULT '{}';   -- JSON: figures by name, those of clients
ALTER TABLE evaluations ADD COLUMN worth REAL;   -- by evaluation.metric, greater is better; NULL: not measured
)sql";

// Resumed experiments and the pin of the engine's build.
constexpr const char* format_4 = R"sql(
-- The experiment whose commit of parent_round it goes on from; 0: none. build: of the engine that runs it, or empty.
ALTER TABLE experiments ADD COLUMN parent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN parent_round INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN build TEXT NOT NULL DEFAULT '';
)sql";

// The best round of an experiment, by accuracy, by loss and by its metric, without a look at the others.
constexpr const char* format_5 = R"sql(
CREATE INDEX evaluations_by_accuracy ON evaluations (experiment, accuracy DESC, COALESCE(loss, 9e999), round)
    WHERE accuracy IS NOT NULL;
CREATE INDEX evaluations_by_loss ON evaluations (experiment, COALESCE(loss, 9e999), accuracy DESC, round)
    WHERE accuracy IS NOT NULL;
CREATE INDEX evaluations_by_worth ON evaluations (experiment, worth DESC, COALESCE(loss, 9e999), round)
    WHERE worth IS NOT NULL;
)sql";

// What tells a damaged database from a whole one (coordinator/row_sums.h, store_journal.h). Not part of the sums.
constexpr const char* format_6 = R"sql(
-- Of each table, and of each experiment in it (0: of none), how many rows there are and the sum of their digests.
CREATE TABLE sums (
    part TEXT NOT NULL,
    experiment INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    sum BLOB NOT NULL,
    PRIMARY KEY (part, experiment)) WITHOUT ROWID;

-- One row: how many transactions there were, what they come to, and the sum of all parts. STATE/coordinator.head
-- (head_file.h) says the same of the last one, and lags behind or agrees.
CREATE TABLE head (
    id INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    chain BLOB NOT NULL,
    total BLOB NOT NULL);
)sql";

constexpr std::array migrations{format_1, format_2, format_3, format_4, format_5, format_6};

}  // namespace

std::span<const char* const> store_migrations() {
    return migrations;
}

}  // namespace causeway
