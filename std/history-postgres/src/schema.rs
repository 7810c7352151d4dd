//! The tables.
//!
//! Visible messages and summaries are found through two partial indexes, over the number of a message or of a summary
//! while it is visible. That number is a separate column, so that only this index can serve a search for visible rows,
//! independent of the server's statistics. A message's row has all its visible content, so that a load needs no lookup
//! per row. Hiding a message rewrites its row, as any change in Postgres does, but not a text of more than about 2 kB,
//! which the server keeps elsewhere. A message with shortened parts keeps its text. Its stand-ins are the latest ones
//! of all commits.
//!
//! Names, tokens, ids and counters are bytes, because a text cannot contain NUL. They are looked up by their digests,
//! because an index cannot contain a long value. A list is ordered by the first bytes of a name.
//!
//! The index of visible messages has entries of recently hidden ones until the server vacuums it, and a scan reads them
//! all. A session's row therefore has the runs of numbers that contain the visible messages (`live_first`,
//! `live_last`), and the revision at which they were written. The server is set to vacuum after a number of changes,
//! instead of after changes to a fifth of all rows.
//!
//! The words of the messages are indexed in blocks. Each block has a few rows, which the server does not interpret.
//!
//! Messages that are hidden and not yet pruned have an index by the revision that hid them. Times are milliseconds
//! since 1970.
//!
//! `@` stands for the schema and the prefix of a table's name, `#` for the prefix of an index's.

/// The version that this program writes and reads. Tables of another version are refused.
pub(super) const VERSION: i64 = 6;

/// The table of applied versions.
pub(super) const MIGRATIONS: &str = "
CREATE TABLE IF NOT EXISTS @migrations (
    version bigint PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now()
)";

/// All other tables.
pub(super) const TABLES: &str = "
CREATE TABLE @sessions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    name bytea NOT NULL,
    place bytea NOT NULL GENERATED ALWAYS AS (substring(name FROM 1 FOR 512)) STORED,
    head bigint NOT NULL,
    revision bigint NOT NULL,
    live_messages bigint NOT NULL,
    live_tokens bigint NOT NULL,
    created bigint,
    appended bigint,
    live_first bigint[],
    live_last bigint[],
    live_at bigint
);

CREATE INDEX #sessions_place ON @sessions (place);

CREATE TABLE @messages (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    anchor bigint NOT NULL,
    turn bigint NOT NULL,
    tokens bigint NOT NULL,
    basis text NOT NULL,
    counter bytea NOT NULL,
    late boolean NOT NULL,
    orphan boolean NOT NULL,
    hidden_by bigint,
    pruned_by bigint,
    body text NOT NULL,
    part_tokens text,
    edited_by bigint,
    edit_tokens bigint,
    edit_basis text,
    edit_counter bytea,
    stand_ins text,
    standing bigint NOT NULL,
    live bigint GENERATED ALWAYS AS (CASE WHEN hidden_by IS NULL AND NOT orphan THEN seq END) STORED,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE UNIQUE INDEX #messages_live ON @messages (session, live) WHERE live IS NOT NULL;

CREATE INDEX #messages_hidden ON @messages (session, hidden_by)
    WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;

CREATE TABLE @words (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    first bigint NOT NULL,
    span bigint NOT NULL,
    term bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, first, span, term)
);

CREATE TABLE @summaries (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    revision bigint NOT NULL,
    key bigint NOT NULL,
    turn bigint NOT NULL,
    tokens bigint NOT NULL,
    basis text NOT NULL,
    counter bytea NOT NULL,
    hidden_by bigint,
    pruned_by bigint,
    covers text NOT NULL,
    body text NOT NULL,
    standing bigint NOT NULL,
    live bigint GENERATED ALWAYS AS (CASE WHEN hidden_by IS NULL THEN key END) STORED,
    PRIMARY KEY (session, revision, key)
);

CREATE UNIQUE INDEX #summaries_live ON @summaries (session, live) WHERE live IS NOT NULL;

CREATE INDEX #summaries_hidden ON @summaries (session, hidden_by)
    WHERE hidden_by IS NOT NULL AND pruned_by IS NULL;

CREATE TABLE @unanswered (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    anchor bigint NOT NULL,
    ordinal bigint NOT NULL,
    turn bigint NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (session, anchor, ordinal)
);

CREATE TABLE @tokens (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    key bytea NOT NULL,
    token bytea NOT NULL,
    digest bytea NOT NULL,
    first bigint NOT NULL,
    head bigint NOT NULL,
    revision bigint NOT NULL,
    time bigint,
    PRIMARY KEY (session, key)
);

CREATE INDEX #tokens_first ON @tokens (session, first);

CREATE TABLE @records (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    revision bigint NOT NULL,
    id bytea NOT NULL,
    body text NOT NULL,
    undone_by bigint,
    PRIMARY KEY (session, revision)
);

CREATE INDEX #records_held ON @records (session, revision) WHERE undone_by IS NULL;

CREATE TABLE @prunes (
    session bigint NOT NULL REFERENCES @sessions (id) ON DELETE CASCADE,
    revision bigint NOT NULL,
    through bigint NOT NULL,
    messages bigint NOT NULL,
    summaries bigint NOT NULL,
    PRIMARY KEY (session, revision)
);

CREATE INDEX #prunes_through ON @prunes (session, through, revision);

CREATE TABLE @states (
    session bigint PRIMARY KEY REFERENCES @sessions (id) ON DELETE CASCADE,
    revision bigint NOT NULL,
    head bigint NOT NULL,
    body bytea NOT NULL
);
";
