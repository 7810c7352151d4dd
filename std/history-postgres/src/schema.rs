//! The tables.
//!
//! What is visible is found through two partial indexes, over the number of a message, or of a summary, while it is visible.
//! That number is a column of its own, so that no other index can serve those who look for what is visible, whatever the
//! server thinks of the tables at the time. A message's row has all that is shown of it, so that a load looks up nothing
//! row by row. Hiding a message writes its row anew, as any change does here, but not a text of more than some 2 kB: that
//! the server keeps elsewhere. A message with shortened parts keeps its text; what stands in place of its parts is the latest
//! of all that was committed for it.
//!
//! Names, tokens, ids and counters are bytes, because a text cannot hold NUL; where they are looked up, it is by their digest,
//! because an index cannot hold a long one. A list finds its place by the first bytes of a name.
//!
//! The index of the visible has entries of what was just hidden until the server tidies up, and who looks through it walks over
//! them. So a session's row says in which runs of numbers the visible messages are (`live_first`, `live_last`), and at which
//! revision it was written; and the server is asked to tidy up after a number of changes, and not only when a fifth of all is
//! changed.
//!
//! The words of the messages are indexed in blocks, each a few rows that the server need not look into.
//!
//! What is hidden and not pruned yet has an index by the revision that hid it. Times are milliseconds since 1970.
//!
//! `@` stands for the schema and the prefix of a table's name, `#` for the prefix of an index's.

/// The version that this program writes and reads. Tables of another one are refused.
pub(super) const VERSION: i64 = 6;

/// Which versions there have been.
pub(super) const MIGRATIONS: &str = "
CREATE TABLE IF NOT EXISTS @migrations (
    version bigint PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now()
)";

/// The tables themselves.
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
