//! The schema, and every statement that the store runs on it.
//!
//! What is visible is found through two partial indexes, so its cost does not grow with what is hidden; the tests hold
//! every statement's query plan. The one over messages has every column that a commit reads, its own condition's too. A message's row is small and lies in its key's B-tree, while its text lies in a table
//! with row ids: hiding a message then rewrites a few bytes, and never a text that may be megabytes long.

/// `EPIT`: the application that a file belongs to.
pub(super) const APPLICATION_ID: i64 = 0x4550_4954;

/// The version of the schema: `user_version` of the file.
pub(super) const SCHEMA_VERSION: i64 = 1;

/// Names are blobs, because text with NUL in it does not compare reliably.
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

pub(super) const SESSION: &str =
    "SELECT id, head, revision, live_messages, live_tokens FROM sessions WHERE name = ?1";

pub(super) const NEW_SESSION: &str = "INSERT INTO sessions (name, head, revision, live_messages, live_tokens)
    VALUES (?1, 0, 0, 0, 0)";

pub(super) const MOVE_SESSION: &str = "UPDATE sessions
    SET head = ?2, revision = ?3, live_messages = ?4, live_tokens = ?5 WHERE id = ?1";

pub(super) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE name = ?1";

pub(super) const LIST: &str = "SELECT name, head, revision, live_messages, live_tokens
    FROM sessions WHERE name >= ?1 ORDER BY name LIMIT ?2";

pub(super) const LIST_AFTER: &str = "SELECT name, head, revision, live_messages, live_tokens
    FROM sessions WHERE name > ?1 ORDER BY name LIMIT ?2";

pub(super) const TOKEN: &str =
    "SELECT digest, first, head, revision FROM tokens WHERE session = ?1 AND token = ?2";

pub(super) const NEW_TOKEN: &str = "INSERT INTO tokens (session, token, digest, first, head, revision)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) const ANCHOR: &str = "SELECT anchor, hidden_by FROM messages WHERE session = ?1 AND seq = ?2";

pub(super) const TURN: &str = "SELECT turn FROM messages WHERE session = ?1 AND seq = ?2";

pub(super) const NEW_MESSAGE: &str = "INSERT INTO messages
    (session, seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";

pub(super) const NEW_BODY: &str = "INSERT INTO bodies (session, seq, body) VALUES (?1, ?2, ?3)";

/// The first unanswered call of a group with one id.
pub(super) const ANSWER: &str = "DELETE FROM unanswered WHERE session = ?1 AND anchor = ?2 AND ordinal =
    (SELECT min(ordinal) FROM unanswered WHERE session = ?1 AND anchor = ?2 AND id = ?3)";

pub(super) const UNANSWERED: &str =
    "SELECT id, anchor, turn, ordinal FROM unanswered WHERE session = ?1 ORDER BY anchor, ordinal";

pub(super) const NEW_UNANSWERED: &str =
    "INSERT OR REPLACE INTO unanswered (session, anchor, ordinal, turn, id) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) const LIVE_MESSAGES: &str = "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late,
    m.orphan, m.hidden_by, b.body, NULL
    FROM messages m INDEXED BY messages_live LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    WHERE m.session = ?1 AND m.hidden_by IS NULL AND m.orphan = 0 ORDER BY m.seq";

/// The same columns as [`LIVE_MESSAGES`]: a summary is a group of its own.
pub(super) const LIVE_SUMMARIES: &str =
    "SELECT key, key, turn, tokens, basis, counter, 0, 0, hidden_by, body, covers
    FROM summaries INDEXED BY summaries_live WHERE session = ?1 AND hidden_by IS NULL ORDER BY key";

pub(super) const LOG: &str = "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late, m.orphan,
    m.hidden_by, b.body, NULL
    FROM messages m LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 ORDER BY m.seq";

pub(super) const VISIBLE_MESSAGES: &str = "SELECT seq, anchor, tokens FROM messages INDEXED BY messages_live
    WHERE session = ?1 AND hidden_by IS NULL AND orphan = 0 ORDER BY seq";

pub(super) const VISIBLE_SUMMARIES: &str =
    "SELECT key, tokens, covers FROM summaries INDEXED BY summaries_live
    WHERE session = ?1 AND hidden_by IS NULL ORDER BY key";

pub(super) const RECORD: &str = "SELECT id FROM records WHERE session = ?1 AND revision = ?2";

pub(super) const RECORDS: &str = "SELECT revision, body FROM records
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
