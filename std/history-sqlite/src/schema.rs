//! The schema.
//!
//! Visible messages and summaries are found through two partial indexes, so that their cost does not grow with the
//! hidden ones; the tests check every statement's query plan. The index of messages contains every column that a commit
//! reads, including the column of its own condition. A message's row is small and is in its key's B-tree. Its text is
//! in a table with row ids: hiding a message then rewrites a few bytes, and never a text of perhaps megabytes. A
//! message with shortened parts keeps its row and its text. Its stand-ins have a separate row, which holds the latest
//! ones of all commits.
//!
//! The ids of texts ascend in the order of the writes, over all sessions, and are never reused. The index of words
//! (`words`) refers to texts by these ids.
//!
//! Each row has its own checksum (`sum`), which each statement that reads the row checks: see `sums`.

/// `EPIT`: the id of the application that owns a file.
pub(super) const APPLICATION_ID: i64 = 0x4550_4954;

/// The version of the schema: `user_version` of the file. A file of another version is refused.
pub(super) const SCHEMA_VERSION: i64 = 8;

/// Names are blobs, because SQLite does not compare text with NUL bytes reliably.
pub(super) const SCHEMA: &str = "
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    live_messages INTEGER NOT NULL,
    live_tokens INTEGER NOT NULL,
    created INTEGER,
    appended INTEGER,
    unanswered INTEGER NOT NULL,
    sum INTEGER NOT NULL
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
    pruned_by INTEGER,
    standing INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_live ON messages (session, seq, anchor, tokens, standing, orphan, hidden_by)
    WHERE hidden_by IS NULL AND orphan = 0;
CREATE INDEX messages_hidden ON messages (session, hidden_by) WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;

CREATE TABLE bodies (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    part_tokens TEXT,
    sum INTEGER NOT NULL,
    UNIQUE (session, seq)
) STRICT;

CREATE TABLE words (
    first INTEGER NOT NULL,
    span INTEGER NOT NULL,
    term INTEGER NOT NULL,
    body BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (first, span, term)
) STRICT;

CREATE TABLE edits (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    basis TEXT NOT NULL,
    counter TEXT NOT NULL,
    stand_ins TEXT NOT NULL,
    sum INTEGER NOT NULL,
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
    pruned_by INTEGER,
    standing INTEGER NOT NULL,
    covers TEXT NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, revision, key)
) STRICT;

CREATE UNIQUE INDEX summaries_live ON summaries (session, key) WHERE hidden_by IS NULL;
CREATE INDEX summaries_hidden ON summaries (session, hidden_by)
    WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;

CREATE TABLE unanswered (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    anchor INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    id BLOB NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, anchor, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    token BLOB NOT NULL,
    digest BLOB NOT NULL,
    first INTEGER NOT NULL,
    head INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    time INTEGER,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_first ON tokens (session, first);

CREATE TABLE records (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    id BLOB NOT NULL,
    body TEXT NOT NULL,
    undone_by INTEGER,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, revision)
) STRICT;

CREATE INDEX records_held ON records (session, revision) WHERE undone_by IS NULL;

CREATE TABLE prunes (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    through INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    summaries INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (session, revision)
) STRICT, WITHOUT ROWID;

CREATE INDEX prunes_through ON prunes (session, through, revision);

CREATE TABLE states (
    session INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    head INTEGER NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;

CREATE TABLE encryption (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    file BLOB NOT NULL,
    cipher TEXT NOT NULL,
    sealed TEXT NOT NULL
) STRICT;
";
