//! Every statement of the store. The tests check the query plan of each. `@` stands for the schema and the prefix of a
//! table's name.

/// Settings of the server within a transaction of the store, after `BEGIN`. With them the server plans with the indexes
/// that the schema has for each statement, independent of the tables' statistics, and does not compile plans to machine
/// code.
pub(super) const SETTINGS: &str = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL jit = off;
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off;
    SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off; SET LOCAL enable_sort = off";

/// The row of a session. It includes the runs of visible messages only if they were written at its revision.
pub(super) const SESSION: &str = "SELECT id, head, revision, live_messages, live_tokens, created, appended,
    CASE WHEN live_at = revision THEN live_first END, CASE WHEN live_at = revision THEN live_last END
    FROM @sessions WHERE digest = $1";

/// The row of a session, locked until the transaction ends.
pub(super) const LOCK_SESSION: &str =
    "SELECT id, head, revision, live_messages, live_tokens, created, appended,
    CASE WHEN live_at = revision THEN live_first END, CASE WHEN live_at = revision THEN live_last END
    FROM @sessions WHERE digest = $1 FOR UPDATE";

/// Creates a session. Returns no row if another transaction has just created it.
pub(super) const NEW_SESSION: &str =
    "INSERT INTO @sessions (digest, name, head, revision, live_messages, live_tokens)
    VALUES ($1, $2, 0, 0, 0, 0) ON CONFLICT (digest) DO NOTHING
    RETURNING id, head, revision, live_messages, live_tokens, created, appended";

pub(super) const MOVE_SESSION: &str = "UPDATE @sessions
    SET head = $2, revision = $3, live_messages = $4, live_tokens = $5, created = $6, appended = $7,
    live_at = CASE WHEN live_at = revision THEN $3::bigint END
    WHERE id = $1";

/// Sets the runs of visible messages, with their revision.
pub(super) const MOVE_LIVE: &str = "UPDATE @sessions SET live_first = $2, live_last = $3, live_at = $4
    WHERE id = $1";

pub(super) const DELETE_SESSION: &str = "DELETE FROM @sessions WHERE digest = $1";

/// The list, ordered by the position in the index. Only names with the same first 512 bytes are sorted afterwards.
pub(super) const LIST: &str = "SELECT name, head, revision, live_messages, live_tokens, created, appended
    FROM @sessions
    WHERE place >= substring($1::bytea FROM 1 FOR 512) AND name > $1 ORDER BY place, name LIMIT $2";

/// The list from the beginning. The empty name comes first.
pub(super) const LIST_ALL: &str = "SELECT name, head, revision, live_messages, live_tokens, created, appended
    FROM @sessions
    WHERE place >= ''::bytea ORDER BY place, name LIMIT $1";

pub(super) const TOKEN: &str = "SELECT t.digest, t.first, t.head, t.revision
    FROM @sessions s JOIN @tokens t ON t.session = s.id AND t.key = $2 WHERE s.digest = $1";

pub(super) const NEW_TOKEN: &str =
    "INSERT INTO @tokens (session, key, token, digest, first, head, revision, time)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// The appends in order, beginning with the one that contains a number. Appends do not overlap, so these are the last
/// ones.
pub(super) const APPENDS: &str = "SELECT token, first, head, revision, time FROM @tokens
    WHERE session = $1 AND head > $2
    AND first >= coalesce((SELECT first FROM @tokens
        WHERE session = $1 AND first <= $2 ORDER BY first DESC LIMIT 1), 0)
    ORDER BY first LIMIT $3";

/// Whether one of the messages in a range was pruned.
pub(super) const PRUNED_IN: &str = "SELECT 1 FROM @messages
    WHERE session = $1 AND seq >= $2 AND seq < $3 AND pruned_by IS NOT NULL LIMIT 1";

/// The group of a message of the log.
pub(super) const ANCHOR: &str =
    "SELECT anchor, hidden_by, turn FROM @messages WHERE session = $1 AND seq = $2";

pub(super) const NEW_MESSAGES: &str = "INSERT INTO @messages
    (session, seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by, body, part_tokens, standing)
    SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[],
        $8::boolean[], $9::boolean[], $10::bigint[], $11::text[], $12::text[], $13::bigint[])";

pub(super) const ANSWERED: &str =
    "DELETE FROM @unanswered WHERE session = $1 AND anchor = $2 AND ordinal = $3";

pub(super) const UNANSWERED: &str =
    "SELECT id, anchor, turn, ordinal FROM @unanswered WHERE session = $1 ORDER BY anchor, ordinal";

pub(super) const NEW_UNANSWERED: &str = "INSERT INTO @unanswered (session, anchor, ordinal, turn, id)
    SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[])
    ON CONFLICT (session, anchor, ordinal) DO UPDATE SET turn = excluded.turn, id = excluded.id";

/// The visible messages within runs of numbers, in order. `OFFSET 0` prevents the server from reordering the join, so
/// that it looks up each run separately.
pub(super) const LIVE_MESSAGES: &str = "SELECT it.* FROM unnest($2::bigint[], $3::bigint[]) run (low, high),
    LATERAL (SELECT seq, anchor, turn, tokens, basis, counter, late, orphan,
    hidden_by, body, NULL::text, part_tokens, edited_by, edit_tokens, edit_basis, edit_counter, stand_ins, pruned_by
    FROM @messages WHERE session = $1 AND live BETWEEN low AND high OFFSET 0) it";

/// The visible summaries, in the columns of [`LIVE_MESSAGES`]: a summary is a group of its own.
pub(super) const LIVE_SUMMARIES: &str =
    "SELECT key, key, turn, tokens, basis, counter, false, false, hidden_by,
    body, covers, NULL::text, NULL::bigint, NULL::bigint, NULL::text, NULL::bytea, NULL::text, pruned_by
    FROM @summaries WHERE session = $1 AND live >= $2 ORDER BY live";

pub(super) const TURNS: &str = "SELECT it.* FROM unnest($2::bigint[], $3::bigint[]) run (low, high),
    LATERAL (SELECT live, turn, late FROM @messages
        WHERE session = $1 AND live BETWEEN low AND high OFFSET 0) it";

/// The visible summaries before one, newest first. They are read as far as needed.
pub(super) const SUMMARY_TURNS: &str = "SELECT live, turn, false FROM @summaries
    WHERE session = $1 AND live < $2 ORDER BY live DESC LIMIT $3";

/// The log, in the columns of [`LIVE_MESSAGES`]. Of the stand-ins it reads only the revision that set them.
pub(super) const LOG: &str =
    "SELECT seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by, body,
    NULL::text, part_tokens, edited_by, NULL::bigint, NULL::text, NULL::bytea, NULL::text, pruned_by
    FROM @messages WHERE session = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";

pub(super) const VISIBLE_MESSAGES: &str =
    "SELECT it.* FROM unnest($2::bigint[], $3::bigint[]) run (low, high),
    LATERAL (SELECT seq, anchor, coalesce(edit_tokens, tokens), standing FROM @messages
        WHERE session = $1 AND live BETWEEN low AND high OFFSET 0) it";

pub(super) const VISIBLE_SUMMARIES: &str = "SELECT key, tokens, covers, standing, revision FROM @summaries WHERE session = $1 AND live >= 0 ORDER BY live";

/// A message in its appended form, with its stand-ins.
pub(super) const EDITED: &str = "SELECT tokens, basis, counter, body, edit_tokens, edit_basis,
    edit_counter, stand_ins, edited_by FROM @messages WHERE session = $1 AND seq = $2";

pub(super) const EDIT: &str = "UPDATE @messages SET edited_by = $3, edit_tokens = $4, edit_basis = $5,
    edit_counter = $6, stand_ins = $7 WHERE session = $1 AND seq = $2";

/// Removes the stand-ins of a message.
pub(super) const DROP_EDIT: &str =
    "UPDATE @messages SET edited_by = NULL, edit_tokens = NULL, edit_basis = NULL,
    edit_counter = NULL, stand_ins = NULL WHERE session = $1 AND seq = $2";

/// The messages that one revision has hidden, in the columns of [`VISIBLE_MESSAGES`].
pub(super) const HIDDEN_MESSAGES: &str =
    "SELECT seq, anchor, coalesce(edit_tokens, tokens), standing FROM @messages
    WHERE session = $1 AND hidden_by = $2 AND pruned_by IS NULL";

/// The summaries that one revision has hidden, in the columns of [`VISIBLE_SUMMARIES`].
pub(super) const HIDDEN_SUMMARIES: &str = "SELECT key, tokens, covers, standing, revision FROM @summaries
    WHERE session = $1 AND hidden_by = $2 AND pruned_by IS NULL";

pub(super) const RECORD: &str = "SELECT r.id FROM @sessions s
    JOIN @records r ON r.session = s.id AND r.revision = $2 WHERE s.digest = $1";

pub(super) const RECORDS: &str = "SELECT revision, body, undone_by, id FROM @records
    WHERE session = $1 AND revision > $2 ORDER BY revision LIMIT $3";

pub(super) const SUMMARIES: &str = "SELECT revision, key, tokens, basis, counter, body FROM @summaries
    WHERE session = $1 AND revision >= $2 AND revision <= $3 ORDER BY revision, key";

pub(super) const HIDE_MESSAGES: &str = "UPDATE @messages SET hidden_by = $4
    WHERE session = $1 AND live BETWEEN $2 AND $3";

pub(super) const HIDE_SUMMARY: &str = "UPDATE @summaries SET hidden_by = $3 WHERE session = $1 AND live = $2";

/// Inserts a summary, with the turn of the first message that it covers.
pub(super) const NEW_SUMMARY: &str = "INSERT INTO @summaries
    (session, revision, key, turn, tokens, basis, counter, hidden_by, covers, body, standing)
    SELECT session, $2, seq, turn, $4, $5, $6, NULL, $7, $8, $9 FROM @messages WHERE session = $1 AND seq = $3";

pub(super) const NEW_RECORD: &str =
    "INSERT INTO @records (session, revision, id, body) VALUES ($1, $2, $3, $4)";

/// The record of a revision, with the facts that its uncompact needs.
pub(super) const MADE: &str = "SELECT undone_by, body FROM @records WHERE session = $1 AND revision = $2";

pub(super) const LATEST_HELD: &str = "SELECT revision FROM @records
    WHERE session = $1 AND undone_by IS NULL ORDER BY revision DESC LIMIT 1";

/// The records before a revision that are not undone.
pub(super) const HELD_BEFORE: &str = "SELECT revision, body FROM @records
    WHERE session = $1 AND undone_by IS NULL AND revision < $2 ORDER BY revision";

pub(super) const UNDO: &str = "UPDATE @records SET undone_by = $3 WHERE session = $1 AND revision = $2";

/// Whether there was a later prune of the messages that one revision has hidden.
pub(super) const PRUNED_SINCE: &str = "SELECT 1 FROM @prunes
    WHERE session = $1 AND through >= $2 AND revision > $2 LIMIT 1";

pub(super) const SHOW_MESSAGES: &str = "UPDATE @messages SET hidden_by = NULL
    WHERE session = $1 AND hidden_by = $2 AND pruned_by IS NULL";

pub(super) const SHOW_SUMMARIES: &str = "UPDATE @summaries SET hidden_by = NULL
    WHERE session = $1 AND hidden_by = $2 AND pruned_by IS NULL";

pub(super) const PRUNABLE_MESSAGES: &str = "SELECT seq FROM @messages
    WHERE session = $1 AND hidden_by <= $2 AND pruned_by IS NULL ORDER BY hidden_by";

pub(super) const BODY: &str = "SELECT body FROM @messages WHERE session = $1 AND seq = $2";

pub(super) const PRUNABLE_SUMMARIES: &str = "SELECT revision, key, body FROM @summaries
    WHERE session = $1 AND hidden_by <= $2 AND pruned_by IS NULL ORDER BY hidden_by";

pub(super) const PRUNE_MESSAGE: &str = "UPDATE @messages SET pruned_by = $3, body = $4, part_tokens = NULL,
    stand_ins = CASE WHEN edited_by IS NOT NULL THEN '[]' END WHERE session = $1 AND seq = $2";

pub(super) const PRUNE_SUMMARY: &str = "UPDATE @summaries SET pruned_by = $4, body = $5
    WHERE session = $1 AND revision = $2 AND key = $3";

/// The pruned messages among these.
pub(super) const PRUNED_AMONG: &str = "SELECT it.seq FROM unnest($2::bigint[]) edited (number),
    LATERAL (SELECT seq FROM @messages
        WHERE session = $1 AND seq = number AND pruned_by IS NOT NULL OFFSET 0) it";

pub(super) const BARE_RECORD: &str = "UPDATE @records SET body = $3 WHERE session = $1 AND revision = $2";

pub(super) const NEW_PRUNE: &str = "INSERT INTO @prunes (session, revision, through, messages, summaries)
    VALUES ($1, $2, $3, $4, $5)";

pub(super) const PRUNED_THROUGH: &str = "SELECT revision, through, messages, summaries FROM @prunes
    WHERE session = $1 AND through = $2 ORDER BY revision DESC LIMIT 1";

pub(super) const PRUNES: &str = "SELECT revision, through, messages, summaries FROM @prunes
    WHERE session = $1 AND revision > $2 ORDER BY revision LIMIT $3";

pub(super) const KEEP_STATE: &str = "INSERT INTO @states (session, revision, head, body) VALUES ($1, $2, $3, $4)
    ON CONFLICT (session) DO UPDATE SET revision = excluded.revision, head = excluded.head, body = excluded.body";

pub(super) const STATE_REVISION: &str = "SELECT t.revision
    FROM @sessions s JOIN @states t ON t.session = s.id WHERE s.digest = $1";

/// The state of a session; NULL if it has none.
pub(super) const STATE: &str = "SELECT t.revision, t.head, t.body
    FROM @sessions s LEFT JOIN @states t ON t.session = s.id WHERE s.digest = $1";

/// Whether the tables exist.
pub(super) const HAS_MIGRATIONS: &str = "SELECT to_regclass($1) IS NOT NULL";

pub(super) const VERSION: &str = "SELECT max(version) FROM @migrations";

pub(super) const NEW_VERSION: &str = "INSERT INTO @migrations (version) VALUES ($1)";

pub(super) const HAS_SCHEMA: &str = "SELECT 1 FROM pg_namespace WHERE nspname = $1";

/// A lock that lets one of several migrations run at a time.
pub(super) const LOCK_MIGRATIONS: &str = "SELECT pg_advisory_xact_lock($1)";

pub(super) const ENCODING: &str = "SELECT pg_encoding_to_char(encoding) FROM pg_database
    WHERE datname = current_database()";

/// The texts of the messages from one number up to before another.
pub(super) const TEXTS: &str =
    "SELECT seq, body, anchor FROM @messages WHERE session = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";

/// The texts of these groups, each up to before one of its messages.
pub(super) const EARLIER_IN_GROUPS: &str =
    "SELECT g.number, it.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY g (session, anchor, last, number),
    LATERAL (SELECT seq, body FROM @messages
        WHERE session = g.session AND seq >= g.anchor AND seq < g.last AND anchor = g.anchor OFFSET 0) it";

/// The rows of the blocks whose first message is in a range.
pub(super) const WORDS: &str = "SELECT first, term, body FROM @words
    WHERE session = $1 AND first >= $2 AND first < $3 ORDER BY first, span, term";

pub(super) const DROP_WORDS: &str = "DELETE FROM @words WHERE session = $1 AND first >= $2 AND first < $3";

/// Writes rows of a block. Rows with the same keys are replaced.
pub(super) const KEEP_WORDS: &str = "INSERT INTO @words (session, first, span, term, body)
    SELECT $1, $2, $3, * FROM unnest($4::bigint[], $5::bytea[])
    ON CONFLICT (session, first, span, term) DO UPDATE SET body = excluded.body";

/// For each of these blocks and each of these terms, the row that can contain the term.
pub(super) const WORD: &str = "SELECT b.number, t.number, it.body
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY b (session, first, span, number),
    unnest($4::bigint[]) WITH ORDINALITY t (term, number),
    LATERAL (SELECT body FROM @words w WHERE w.session = b.session AND w.first = b.first AND w.span = b.span
        AND w.term <= t.term ORDER BY w.term DESC LIMIT 1) it";

/// The texts of these sessions, each from one message on, without pruned messages.
pub(super) const TEXTS_BEHIND: &str =
    "SELECT s.number, it.* FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY s (id, first, number),
    LATERAL (SELECT seq, body, anchor FROM @messages
        WHERE session = s.id AND seq >= s.first AND pruned_by IS NULL OFFSET 0) it";

/// Messages of several sessions, in the columns of [`LOG`], followed by their positions in the parameter arrays.
pub(super) const FOUND: &str =
    "SELECT it.*, f.number FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY f (session, seq, number),
    LATERAL (SELECT seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by, body,
    NULL::text, part_tokens, edited_by, NULL::bigint, NULL::text, NULL::bytea, NULL::text, pruned_by
    FROM @messages WHERE session = f.session AND seq = f.seq OFFSET 0) it";

/// The sessions from a name on, as in [`LIST`].
pub(super) const SESSIONS: &str = "SELECT id, name, head, appended FROM @sessions
    WHERE place >= substring($1::bytea FROM 1 FOR 512) AND name >= $1 ORDER BY place, name LIMIT $2";

/// For each of these sessions, the head after the last append with a known time before the given one.
pub(super) const APPENDED_BEFORE: &str = "SELECT coalesce((SELECT head FROM @tokens
        WHERE session = s.id AND time < $2 ORDER BY first DESC LIMIT 1), 0)
    FROM unnest($1::bigint[]) WITH ORDINALITY s (id, number) ORDER BY s.number";
