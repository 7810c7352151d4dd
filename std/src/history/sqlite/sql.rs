//! The schema, and every statement that the store runs on it.
//!
//! What is visible is found through two partial indexes, so its cost does not grow with what is hidden; the tests hold
//! every statement's query plan. The one over messages has every column that a commit reads, its own condition's too. A
//! message's row is small and lies in its key's B-tree, while its text lies in a table with row ids: hiding a message
//! then rewrites a few bytes, and never a text that may be megabytes long. A message with shortened parts keeps both; what
//! stands in place of its parts has a row of its own, the latest of all that were committed for it.

/// `EPIT`: the application that a file belongs to.
pub(super) const APPLICATION_ID: i64 = 0x4550_4954;

/// The version of the schema: `user_version` of the file.
pub(super) const SCHEMA_VERSION: i64 = 1 + UPGRADES.len() as i64;

/// Version 1. Names are blobs, because text with NUL in it does not compare reliably.
pub(super) const SCHEMA: &str = "
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    live_messages INTEGER NOT NULL,
    live_tokens INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    anchor INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    basis TEXT NOT NULL,
    counter TEXT NOT NULL,
    late INTEGER NOT NULL,
    orphan INTEGER NOT NULL,
    hidden_by INTEGER,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_live ON messages (session, seq, anchor, tokens, orphan, hidden_by)
    WHERE hidden_by IS NULL AND orphan = 0;

CREATE TABLE bodies (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT;

CREATE TABLE summaries (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    key INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    basis TEXT NOT NULL,
    counter TEXT NOT NULL,
    hidden_by INTEGER,
    covers TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, revision, key)
) STRICT;

CREATE UNIQUE INDEX summaries_live ON summaries (session, key) WHERE hidden_by IS NULL;

CREATE TABLE unanswered (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    anchor INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (session, anchor, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    token BLOB NOT NULL,
    digest BLOB NOT NULL,
    first INTEGER NOT NULL,
    head INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (session, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    id BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, revision)
) STRICT;
";

/// What each later version adds. A new file goes through all of them too.
pub(super) const UPGRADES: &[&str] = &["
ALTER TABLE bodies ADD COLUMN part_tokens TEXT;

CREATE TABLE edits (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    basis TEXT NOT NULL,
    counter TEXT NOT NULL,
    stand_ins TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT;
", "
ALTER TABLE sessions ADD COLUMN created INTEGER;
ALTER TABLE sessions ADD COLUMN appended INTEGER;
ALTER TABLE tokens ADD COLUMN time INTEGER;
ALTER TABLE messages ADD COLUMN pruned_by INTEGER;
ALTER TABLE summaries ADD COLUMN pruned_by INTEGER;
ALTER TABLE records ADD COLUMN undone_by INTEGER;

CREATE INDEX messages_hidden ON messages (session, hidden_by) WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;
CREATE INDEX summaries_hidden ON summaries (session, hidden_by)
    WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;
CREATE INDEX records_held ON records (session, revision) WHERE undone_by IS NULL;
CREATE INDEX tokens_first ON tokens (session, first);

CREATE TABLE prunes (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    through INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    summaries INTEGER NOT NULL,
    PRIMARY KEY (session, revision)
) STRICT, WITHOUT ROWID;

CREATE INDEX prunes_through ON prunes (session, through, revision);
", "
CREATE TABLE encryption (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    file BLOB NOT NULL,
    cipher TEXT NOT NULL,
    sealed TEXT NOT NULL
) STRICT;
", "
CREATE TABLE states (
    session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    head INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
"];

/// How the texts of the file are encrypted: no row if they are not.
pub(super) const ENCRYPTION: &str = "SELECT file, cipher, sealed FROM encryption WHERE id = 1";

pub(super) const NEW_ENCRYPTION: &str =
    "INSERT INTO encryption (id, file, cipher, sealed) VALUES (1, ?1, ?2, ?3)";

pub(super) const SESSION: &str =
    "SELECT id, head, revision, live_messages, live_tokens, created, appended FROM sessions WHERE name = ?1";

pub(super) const NEW_SESSION: &str = "INSERT INTO sessions (name, head, revision, live_messages, live_tokens)
    VALUES (?1, 0, 0, 0, 0)";

pub(super) const MOVE_SESSION: &str = "UPDATE sessions
    SET head = ?2, revision = ?3, live_messages = ?4, live_tokens = ?5, created = ?6, appended = ?7
    WHERE id = ?1";

pub(super) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE name = ?1";

pub(super) const LIST: &str = "SELECT name, head, revision, live_messages, live_tokens, created,
    appended FROM sessions WHERE name >= ?1 ORDER BY name LIMIT ?2";

pub(super) const LIST_AFTER: &str = "SELECT name, head, revision, live_messages, live_tokens, created,
    appended FROM sessions WHERE name > ?1 ORDER BY name LIMIT ?2";

pub(super) const TOKEN: &str =
    "SELECT digest, first, head, revision FROM tokens WHERE session = ?1 AND token = ?2";

pub(super) const NEW_TOKEN: &str = "INSERT INTO tokens (session, token, digest, first, head, revision, time)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// The appends in order: the ends of two never meet, so those that bring a number or what lies behind it are the last ones.
pub(super) const APPENDS: &str = "SELECT token, first, head, revision, time FROM tokens
    WHERE session = ?1 AND first >= coalesce((SELECT max(first) FROM tokens WHERE session = ?1 AND first <= ?2), 0)
    AND head > ?2 ORDER BY first LIMIT ?3";

/// Whether one of the messages in a range was pruned.
pub(super) const PRUNED_IN: &str = "SELECT 1 FROM messages
    WHERE session = ?1 AND seq >= ?2 AND seq < ?3 AND pruned_by IS NOT NULL LIMIT 1";

pub(super) const ANCHOR: &str = "SELECT anchor, hidden_by FROM messages WHERE session = ?1 AND seq = ?2";

pub(super) const TURN: &str = "SELECT turn FROM messages WHERE session = ?1 AND seq = ?2";

pub(super) const NEW_MESSAGE: &str = "INSERT INTO messages
    (session, seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

pub(super) const NEW_BODY: &str =
    "INSERT INTO bodies (session, seq, body, part_tokens) VALUES (?1, ?2, ?3, ?4)";

/// The unanswered calls of a group, or its requests for approval: their ordinals have bit 31. Their ids may be encrypted,
/// so that only who reads them can look for one.
pub(super) const UNANSWERED_OF: &str = "SELECT ordinal, id FROM unanswered
    WHERE session = ?1 AND anchor = ?2 AND ordinal >> 31 = ?3 ORDER BY ordinal";

pub(super) const ANSWERED: &str =
    "DELETE FROM unanswered WHERE session = ?1 AND anchor = ?2 AND ordinal = ?3";

pub(super) const UNANSWERED: &str =
    "SELECT id, anchor, turn, ordinal FROM unanswered WHERE session = ?1 ORDER BY anchor, ordinal";

pub(super) const NEW_UNANSWERED: &str =
    "INSERT OR REPLACE INTO unanswered (session, anchor, ordinal, turn, id) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const LIVE_MESSAGES: &str = "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late,
    m.orphan, m.hidden_by, b.body, NULL, b.part_tokens, e.revision, e.tokens, e.basis, e.counter, e.stand_ins
    FROM messages m INDEXED BY messages_live LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.hidden_by IS NULL AND m.orphan = 0 ORDER BY m.seq";

/// The same columns as [`LIVE_MESSAGES`], but for the second: a summary is a group of its own, and named by its revision.
pub(super) const LIVE_SUMMARIES: &str =
    "SELECT key, revision, turn, tokens, basis, counter, 0, 0, hidden_by, body, covers, NULL, NULL, NULL, NULL, NULL, NULL
    FROM summaries INDEXED BY summaries_live WHERE session = ?1 AND key >= ?2 AND hidden_by IS NULL
    ORDER BY key";

/// Newest first, to be read as far as needed.
pub(super) const TURNS: &str = "SELECT seq, turn, late FROM messages INDEXED BY messages_live
    WHERE session = ?1 AND hidden_by IS NULL AND orphan = 0 ORDER BY seq DESC";

pub(super) const SUMMARY_TURNS: &str = "SELECT key, turn, 0 FROM summaries INDEXED BY summaries_live
    WHERE session = ?1 AND hidden_by IS NULL ORDER BY key DESC";

/// The same columns, and which revision pruned it; what stands in place of parts is not asked for, only which revision put
/// it there.
pub(super) const LOG: &str = "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late, m.orphan,
    m.hidden_by, b.body, NULL, b.part_tokens, e.revision, NULL, NULL, NULL, NULL, m.pruned_by
    FROM messages m LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq";

pub(super) const VISIBLE_MESSAGES: &str = "SELECT m.seq, m.anchor, coalesce(e.tokens, m.tokens)
    FROM messages m INDEXED BY messages_live LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.hidden_by IS NULL AND m.orphan = 0 ORDER BY m.seq";

/// One message as it was appended, and what stands in place of its parts.
pub(super) const EDITED: &str =
    "SELECT m.tokens, m.basis, m.counter, b.body, e.tokens, e.basis, e.counter, e.stand_ins
    FROM messages m LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq WHERE m.session = ?1 AND m.seq = ?2";

pub(super) const NEW_EDIT: &str = "INSERT OR REPLACE INTO edits
    (session, seq, revision, tokens, basis, counter, stand_ins) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

pub(super) const VISIBLE_SUMMARIES: &str =
    "SELECT key, tokens, covers FROM summaries INDEXED BY summaries_live
    WHERE session = ?1 AND hidden_by IS NULL ORDER BY key";

pub(super) const RECORD: &str = "SELECT id FROM records WHERE session = ?1 AND revision = ?2";

pub(super) const RECORDS: &str = "SELECT revision, body, undone_by FROM records
    WHERE session = ?1 AND revision > ?2 ORDER BY revision LIMIT ?3";

pub(super) const SUMMARIES: &str = "SELECT key, tokens, basis, counter, body FROM summaries
    WHERE session = ?1 AND revision = ?2 ORDER BY key";

/// By the index of the visible: a range may lie over any number of messages that are hidden already.
pub(super) const HIDE_MESSAGES: &str = "UPDATE messages INDEXED BY messages_live SET hidden_by = ?4
    WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND hidden_by IS NULL AND orphan = 0";

pub(super) const HIDE_SUMMARY: &str = "UPDATE summaries INDEXED BY summaries_live SET hidden_by = ?3
    WHERE session = ?1 AND key = ?2 AND hidden_by IS NULL";

pub(super) const NEW_SUMMARY: &str = "INSERT INTO summaries
    (session, revision, key, turn, tokens, basis, counter, hidden_by, covers, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9)";

pub(super) const NEW_RECORD: &str =
    "INSERT INTO records (session, revision, id, body) VALUES (?1, ?2, ?3, ?4)";

/// Whether a record made a revision, and what is to be known to undo it.
pub(super) const MADE: &str = "SELECT undone_by, body FROM records WHERE session = ?1 AND revision = ?2";

pub(super) const LATEST_HELD: &str = "SELECT revision FROM records INDEXED BY records_held
    WHERE session = ?1 AND undone_by IS NULL ORDER BY revision DESC LIMIT 1";

/// The records that hold and came before a revision.
pub(super) const HELD_BEFORE: &str = "SELECT revision, body FROM records INDEXED BY records_held
    WHERE session = ?1 AND undone_by IS NULL AND revision < ?2 ORDER BY revision";

pub(super) const UNDO: &str = "UPDATE records SET undone_by = ?3 WHERE session = ?1 AND revision = ?2";

/// Whether what one revision has hidden was pruned since.
pub(super) const PRUNED_SINCE: &str = "SELECT 1 FROM prunes INDEXED BY prunes_through
    WHERE session = ?1 AND through >= ?2 AND revision > ?2 LIMIT 1";

pub(super) const SHOW_MESSAGES: &str = "UPDATE messages INDEXED BY messages_hidden SET hidden_by = NULL
    WHERE session = ?1 AND hidden_by = ?2 AND pruned_by IS NULL";

pub(super) const SHOW_SUMMARIES: &str = "UPDATE summaries INDEXED BY summaries_hidden SET hidden_by = NULL
    WHERE session = ?1 AND hidden_by = ?2 AND pruned_by IS NULL";

/// The summaries of a record that is undone.
pub(super) const WITHDRAW: &str = "UPDATE summaries SET hidden_by = ?3 WHERE session = ?1 AND revision = ?2";

/// The calls of groups that are about to be shown again.
pub(super) const FORGET_UNANSWERED: &str = "DELETE FROM unanswered WHERE session = ?1 AND EXISTS
    (SELECT 1 FROM messages m WHERE m.session = ?1 AND m.seq = unanswered.anchor AND m.hidden_by = ?2)";

pub(super) const DROP_EDIT: &str = "DELETE FROM edits WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNABLE_MESSAGES: &str = "SELECT seq FROM messages INDEXED BY messages_hidden
    WHERE session = ?1 AND hidden_by <= ?2 AND pruned_by IS NULL";

pub(super) const PRUNABLE_SUMMARIES: &str =
    "SELECT revision, key, body FROM summaries INDEXED BY summaries_hidden
    WHERE session = ?1 AND hidden_by <= ?2 AND pruned_by IS NULL";

pub(super) const BODY: &str = "SELECT body FROM bodies WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNE_BODY: &str =
    "UPDATE bodies SET body = ?3, part_tokens = NULL WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNE_MESSAGE: &str = "UPDATE messages SET pruned_by = ?3 WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNE_EDIT: &str = "UPDATE edits SET stand_ins = ?3 WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNE_SUMMARY: &str = "UPDATE summaries SET pruned_by = ?4, body = ?5
    WHERE session = ?1 AND revision = ?2 AND key = ?3";

pub(super) const IS_PRUNED: &str =
    "SELECT 1 FROM messages WHERE session = ?1 AND seq = ?2 AND pruned_by IS NOT NULL";

pub(super) const BARE_RECORD: &str = "UPDATE records SET body = ?3 WHERE session = ?1 AND revision = ?2";

pub(super) const NEW_PRUNE: &str = "INSERT INTO prunes (session, revision, through, messages, summaries)
    VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const PRUNED_THROUGH: &str = "SELECT revision, through, messages, summaries FROM prunes
    INDEXED BY prunes_through WHERE session = ?1 AND through = ?2 ORDER BY revision DESC LIMIT 1";

pub(super) const PRUNES: &str = "SELECT revision, through, messages, summaries FROM prunes
    WHERE session = ?1 AND revision > ?2 ORDER BY revision LIMIT ?3";

pub(super) const STATE_REVISION: &str = "SELECT revision FROM states WHERE session = ?1";

pub(super) const STATE: &str = "SELECT revision, head, body FROM states WHERE session = ?1";

pub(super) const KEEP_STATE: &str =
    "INSERT OR REPLACE INTO states (session, revision, head, body) VALUES (?1, ?2, ?3, ?4)";
