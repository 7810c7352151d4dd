//! Every statement of the store. The tests check the query plan of each.

use super::sums::intact;

/// The encryption of the texts of the file. A plain file has no row.
pub(super) const ENCRYPTION: &str = "SELECT file, cipher, sealed FROM encryption WHERE id = 1";

pub(super) const NEW_ENCRYPTION: &str =
    "INSERT INTO encryption (id, file, cipher, sealed) VALUES (1, ?1, ?2, ?3)";

pub(super) const SESSION: &str = concat!(
    "SELECT id, head, revision, live_messages, live_tokens, created, appended FROM sessions WHERE name = ?1 AND ",
    intact!(sessions)
);

pub(super) const NEW_SESSION: &str =
    "INSERT INTO sessions (name, head, revision, live_messages, live_tokens, unanswered, sum)
    VALUES (?1, 0, 0, 0, 0, 0, row_sum(?1, 0, 0, 0, 0, NULL, NULL, 0))";

pub(super) const MOVE_SESSION: &str = concat!("UPDATE sessions
    SET head = ?2, revision = ?3, live_messages = ?4, live_tokens = ?5, created = ?6, appended = ?7,
    unanswered = (SELECT count(*) FROM unanswered WHERE session = ?1), sum = row_sum(name, ?2, ?3, ?4, ?5, ?6, ?7,
    (SELECT count(*) FROM unanswered WHERE session = ?1))
    WHERE id = ?1 AND ", intact!(sessions));

pub(super) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE name = ?1";

pub(super) const LIST: &str = concat!(
    "SELECT name, head, revision, live_messages, live_tokens, created,
    appended FROM sessions WHERE name >= ?1 AND ",
    intact!(sessions),
    " ORDER BY name LIMIT ?2"
);

pub(super) const LIST_AFTER: &str = concat!(
    "SELECT name, head, revision, live_messages, live_tokens, created,
    appended FROM sessions WHERE name > ?1 AND ",
    intact!(sessions),
    " ORDER BY name LIMIT ?2"
);

pub(super) const TOKEN: &str = concat!(
    "SELECT digest, first, head, revision FROM tokens WHERE session = ?1 AND token = ?2 AND ",
    intact!(tokens)
);

pub(super) const NEW_TOKEN: &str =
    "INSERT INTO tokens (session, token, digest, first, head, revision, time, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7))";

/// The appends in order, beginning with the one that contains a number. Appends do not overlap, so these are the last
/// ones.
pub(super) const APPENDS: &str = concat!("SELECT token, first, head, revision, time FROM tokens
    WHERE session = ?1 AND first >= coalesce((SELECT max(first) FROM tokens WHERE session = ?1 AND first <= ?2), 0)
    AND head > ?2 AND ", intact!(tokens), " ORDER BY first LIMIT ?3");

/// Whether one of the messages in a range was pruned.
pub(super) const PRUNED_IN: &str = "SELECT 1 FROM messages
    WHERE session = ?1 AND seq >= ?2 AND seq < ?3 AND pruned_by IS NOT NULL LIMIT 1";

pub(super) const ANCHOR: &str =
    concat!("SELECT anchor, hidden_by FROM messages WHERE session = ?1 AND seq = ?2 AND ", intact!(messages));

pub(super) const TURN: &str =
    concat!("SELECT turn FROM messages WHERE session = ?1 AND seq = ?2 AND ", intact!(messages));

pub(super) const NEW_MESSAGE: &str = "INSERT INTO messages
    (session, seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by, standing, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULL, ?11))";

pub(super) const NEW_BODY: &str = "INSERT INTO bodies (session, seq, body, part_tokens, sum) VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))";

pub(super) const ANSWERED: &str =
    "DELETE FROM unanswered WHERE session = ?1 AND anchor = ?2 AND ordinal = ?3";

/// Number of unanswered calls of a session.
pub(super) const UNANSWERED_COUNT: &str =
    concat!("SELECT unanswered FROM sessions WHERE id = ?1 AND ", intact!(sessions));

pub(super) const UNANSWERED: &str = concat!(
    "SELECT id, anchor, turn, ordinal FROM unanswered WHERE session = ?1 AND ",
    intact!(unanswered),
    " ORDER BY anchor, ordinal"
);

pub(super) const NEW_UNANSWERED: &str = "INSERT OR REPLACE INTO unanswered (session, anchor, ordinal, turn, id, sum) VALUES (?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?3, ?4, ?5))";

pub(super) const LIVE_MESSAGES: &str = concat!(
    "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late,
    m.orphan, m.hidden_by, b.body, NULL, b.part_tokens, e.revision, e.tokens, e.basis, e.counter, e.stand_ins
    FROM messages m INDEXED BY messages_live LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.hidden_by IS NULL AND m.orphan = 0 AND ",
    intact!(messages, "m."),
    " AND ",
    intact!(bodies, "b."),
    " AND ",
    intact!(edits, "e."),
    " ORDER BY m.seq"
);

/// The visible summaries, in the columns of [`LIVE_MESSAGES`] except for the second. A summary is a group of its own,
/// and its revision identifies it.
pub(super) const LIVE_SUMMARIES: &str = concat!("SELECT key, revision, turn, tokens, basis, counter, 0, 0, hidden_by, body, covers, NULL, NULL, NULL, NULL, NULL, NULL
    FROM summaries INDEXED BY summaries_live WHERE session = ?1 AND key >= ?2 AND hidden_by IS NULL AND ", intact!(summaries), "
    ORDER BY key");

/// The visible messages, newest first. They are read as far as needed.
pub(super) const TURNS: &str = concat!(
    "SELECT seq, turn, late FROM messages INDEXED BY messages_live
    WHERE session = ?1 AND hidden_by IS NULL AND orphan = 0 AND ",
    intact!(messages),
    " ORDER BY seq DESC"
);

pub(super) const SUMMARY_TURNS: &str = concat!(
    "SELECT key, turn, 0 FROM summaries INDEXED BY summaries_live
    WHERE session = ?1 AND hidden_by IS NULL AND ",
    intact!(summaries),
    " ORDER BY key DESC"
);

/// The log, in the columns of [`LIVE_MESSAGES`], with the revision that pruned a message. Of the stand-ins it reads
/// only the revision that set them.
pub(super) const LOG: &str = concat!(
    "SELECT m.seq, m.anchor, m.turn, m.tokens, m.basis, m.counter, m.late, m.orphan,
    m.hidden_by, b.body, NULL, b.part_tokens, e.revision, NULL, NULL, NULL, NULL, m.pruned_by
    FROM messages m LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 AND ",
    intact!(messages, "m."),
    " AND ",
    intact!(bodies, "b."),
    " AND ",
    intact!(edits, "e."),
    " ORDER BY m.seq"
);

pub(super) const VISIBLE_MESSAGES: &str = "SELECT m.seq, m.anchor, coalesce(e.tokens, m.tokens), m.standing
    FROM messages m INDEXED BY messages_live LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.hidden_by IS NULL AND m.orphan = 0 ORDER BY m.seq";

/// One message in its appended form, with its stand-ins.
pub(super) const EDITED: &str = concat!(
    "SELECT m.tokens, m.basis, m.counter, b.body, e.tokens, e.basis, e.counter, e.stand_ins, e.revision
    FROM messages m LEFT JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq WHERE m.session = ?1 AND m.seq = ?2 AND ",
    intact!(messages, "m."),
    " AND ",
    intact!(bodies, "b."),
    " AND ",
    intact!(edits, "e.")
);

pub(super) const NEW_EDIT: &str = "INSERT OR REPLACE INTO edits
    (session, seq, revision, tokens, basis, counter, stand_ins, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7))";

pub(super) const VISIBLE_SUMMARIES: &str = concat!(
    "SELECT key, tokens, covers, standing, revision FROM summaries INDEXED BY summaries_live
    WHERE session = ?1 AND hidden_by IS NULL AND ",
    intact!(summaries),
    " ORDER BY key"
);

/// The messages that one revision has hidden, in the columns of [`VISIBLE_MESSAGES`].
pub(super) const HIDDEN_MESSAGES: &str = concat!(
    "SELECT m.seq, m.anchor, coalesce(e.tokens, m.tokens), m.standing
    FROM messages m INDEXED BY messages_hidden LEFT JOIN edits e ON e.session = m.session AND e.seq = m.seq
    WHERE m.session = ?1 AND m.hidden_by = ?2 AND m.pruned_by IS NULL AND ",
    intact!(messages, "m."),
    " ORDER BY m.seq"
);

/// The summaries that one revision has hidden, in the columns of [`VISIBLE_SUMMARIES`], in no order.
pub(super) const HIDDEN_SUMMARIES: &str = concat!(
    "SELECT key, tokens, covers, standing, revision FROM summaries INDEXED BY summaries_hidden
    WHERE session = ?1 AND hidden_by = ?2 AND pruned_by IS NULL AND ",
    intact!(summaries)
);

pub(super) const RECORD: &str =
    concat!("SELECT id FROM records WHERE session = ?1 AND revision = ?2 AND ", intact!(records));

pub(super) const RECORDS: &str = concat!(
    "SELECT revision, body, undone_by, id FROM records
    WHERE session = ?1 AND revision > ?2 AND ",
    intact!(records),
    " ORDER BY revision LIMIT ?3"
);

pub(super) const SUMMARIES: &str = concat!(
    "SELECT key, tokens, basis, counter, body FROM summaries
    WHERE session = ?1 AND revision = ?2 AND ",
    intact!(summaries),
    " ORDER BY key"
);

/// Uses the index of visible messages, because a range may contain any number of messages that are hidden already.
pub(super) const HIDE_MESSAGES: &str = concat!("UPDATE messages INDEXED BY messages_live SET hidden_by = ?4, sum = row_sum(session, seq, anchor, turn, tokens, basis, counter, late, orphan, ?4, pruned_by, standing)
    WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND hidden_by IS NULL AND orphan = 0 AND ", intact!(messages));

pub(super) const HIDE_SUMMARY: &str = concat!("UPDATE summaries INDEXED BY summaries_live SET hidden_by = ?3, sum = row_sum(session, revision, key, turn, tokens, basis, counter, ?3, pruned_by, standing, covers, body)
    WHERE session = ?1 AND key = ?2 AND hidden_by IS NULL AND ", intact!(summaries));

pub(super) const NEW_SUMMARY: &str = "INSERT INTO summaries
    (session, revision, key, turn, tokens, basis, counter, hidden_by, covers, body, standing, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9, ?10, row_sum(?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL, ?10, ?8, ?9))";

pub(super) const NEW_RECORD: &str = "INSERT INTO records (session, revision, id, body, sum) VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4, NULL))";

/// The record of a revision, with the facts that its uncompact needs.
pub(super) const MADE: &str = concat!(
    "SELECT undone_by, body FROM records WHERE session = ?1 AND revision = ?2 AND ",
    intact!(records)
);

pub(super) const LATEST_HELD: &str = "SELECT revision FROM records INDEXED BY records_held
    WHERE session = ?1 AND undone_by IS NULL ORDER BY revision DESC LIMIT 1";

/// The records before a revision that are not undone.
pub(super) const HELD_BEFORE: &str = concat!(
    "SELECT revision, body FROM records INDEXED BY records_held
    WHERE session = ?1 AND undone_by IS NULL AND revision < ?2 AND ",
    intact!(records),
    " ORDER BY revision"
);

pub(super) const UNDO: &str = concat!(
    "UPDATE records SET undone_by = ?3, sum = row_sum(session, revision, id, body, ?3) WHERE session = ?1 AND revision = ?2 AND ",
    intact!(records)
);

/// Whether there was a later prune of the messages that one revision has hidden.
pub(super) const PRUNED_SINCE: &str = "SELECT 1 FROM prunes INDEXED BY prunes_through
    WHERE session = ?1 AND through >= ?2 AND revision > ?2 LIMIT 1";

pub(super) const SHOW_MESSAGES: &str = concat!("UPDATE messages INDEXED BY messages_hidden SET hidden_by = NULL, sum = row_sum(session, seq, anchor, turn, tokens, basis, counter, late, orphan, NULL, pruned_by, standing)
    WHERE session = ?1 AND hidden_by = ?2 AND pruned_by IS NULL AND ", intact!(messages));

pub(super) const SHOW_SUMMARIES: &str = concat!("UPDATE summaries INDEXED BY summaries_hidden SET hidden_by = NULL, sum = row_sum(session, revision, key, turn, tokens, basis, counter, NULL, pruned_by, standing, covers, body)
    WHERE session = ?1 AND hidden_by = ?2 AND pruned_by IS NULL AND ", intact!(summaries));

pub(super) const DROP_EDIT: &str = "DELETE FROM edits WHERE session = ?1 AND seq = ?2";

pub(super) const PRUNABLE_MESSAGES: &str = "SELECT seq FROM messages INDEXED BY messages_hidden
    WHERE session = ?1 AND hidden_by <= ?2 AND pruned_by IS NULL";

pub(super) const PRUNABLE_SUMMARIES: &str = concat!(
    "SELECT revision, key, body FROM summaries INDEXED BY summaries_hidden
    WHERE session = ?1 AND hidden_by <= ?2 AND pruned_by IS NULL AND ",
    intact!(summaries)
);

/// The text of a message, and its id.
pub(super) const BODY: &str =
    concat!("SELECT body, id FROM bodies WHERE session = ?1 AND seq = ?2 AND ", intact!(bodies));

pub(super) const PRUNE_BODY: &str = concat!(
    "UPDATE bodies SET body = ?3, part_tokens = NULL, sum = row_sum(session, seq, ?3, NULL) WHERE session = ?1 AND seq = ?2 AND ",
    intact!(bodies)
);

pub(super) const PRUNE_MESSAGE: &str = concat!(
    "UPDATE messages SET pruned_by = ?3, sum = row_sum(session, seq, anchor, turn, tokens, basis, counter, late, orphan, hidden_by, ?3, standing) WHERE session = ?1 AND seq = ?2 AND ",
    intact!(messages)
);

pub(super) const PRUNE_EDIT: &str = concat!(
    "UPDATE edits SET stand_ins = ?3, sum = row_sum(session, seq, revision, tokens, basis, counter, ?3) WHERE session = ?1 AND seq = ?2 AND ",
    intact!(edits)
);

pub(super) const PRUNE_SUMMARY: &str = concat!("UPDATE summaries SET pruned_by = ?4, body = ?5, sum = row_sum(session, revision, key, turn, tokens, basis, counter, hidden_by, ?4, standing, covers, ?5)
    WHERE session = ?1 AND revision = ?2 AND key = ?3 AND ", intact!(summaries));

pub(super) const IS_PRUNED: &str =
    "SELECT 1 FROM messages WHERE session = ?1 AND seq = ?2 AND pruned_by IS NOT NULL";

pub(super) const BARE_RECORD: &str = concat!(
    "UPDATE records SET body = ?3, sum = row_sum(session, revision, id, ?3, undone_by) WHERE session = ?1 AND revision = ?2 AND ",
    intact!(records)
);

pub(super) const NEW_PRUNE: &str = "INSERT INTO prunes (session, revision, through, messages, summaries, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?3, ?4, ?5))";

pub(super) const PRUNED_THROUGH: &str = concat!(
    "SELECT revision, through, messages, summaries FROM prunes
    INDEXED BY prunes_through WHERE session = ?1 AND through = ?2 AND ",
    intact!(prunes),
    " ORDER BY revision DESC LIMIT 1"
);

pub(super) const PRUNES: &str = concat!(
    "SELECT revision, through, messages, summaries FROM prunes
    WHERE session = ?1 AND revision > ?2 AND ",
    intact!(prunes),
    " ORDER BY revision LIMIT ?3"
);

pub(super) const STATE_REVISION: &str =
    concat!("SELECT revision FROM states WHERE session = ?1 AND ", intact!(states));

pub(super) const STATE: &str =
    concat!("SELECT revision, head, body FROM states WHERE session = ?1 AND ", intact!(states));

pub(super) const KEEP_STATE: &str = "INSERT OR REPLACE INTO states (session, revision, head, body, sum) VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))";

/// The id of the text that was written last, and the highest id that exists.
pub(super) const LAST_TEXT: &str =
    "SELECT seq FROM sqlite_sequence WHERE name = 'bodies' UNION ALL SELECT max(id) FROM bodies";

/// The texts from one id up to before another. Their checksums are not checked here: a reader of the message checks
/// them.
pub(super) const TEXTS: &str =
    "SELECT id, session, seq, body FROM bodies WHERE id >= ?1 AND id < ?2 ORDER BY id";

/// The texts of a group before one of its messages.
pub(super) const EARLIER_IN_GROUP: &str = "SELECT m.seq, b.body FROM messages m
    JOIN bodies b ON b.session = m.session AND b.seq = m.seq
    WHERE m.session = ?1 AND m.seq >= ?2 AND m.seq < ?3 AND m.anchor = ?2 ORDER BY m.seq";

/// The ids of the texts of a session.
pub(super) const TEXTS_OF_SESSION: &str =
    "SELECT b.id FROM sessions s JOIN bodies b ON b.session = s.id WHERE s.name = ?1";

/// The session and the number of the message of a text.
pub(super) const PLACE: &str =
    "SELECT b.session, b.seq, s.name FROM bodies b JOIN sessions s ON s.id = b.session WHERE b.id = ?1";

pub(super) const NEW_WORDS: &str =
    "INSERT INTO words (first, span, term, body, sum) VALUES (?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))";

/// The rows of the blocks whose first text is between two texts, both included.
pub(super) const WORDS: &str = concat!(
    "SELECT first, term, body FROM words WHERE first >= ?1 AND first <= ?2 AND ",
    intact!(words),
    " ORDER BY first, span, term"
);

pub(super) const MOVE_WORDS: &str = "UPDATE words SET body = ?4, sum = row_sum(first, span, term, ?4)
    WHERE first = ?1 AND span = ?2 AND term = ?3";

pub(super) const DROP_WORDS: &str = "DELETE FROM words WHERE first >= ?1 AND first <= ?2";

/// The row of a block that can contain a term.
pub(super) const WORD: &str = concat!(
    "SELECT body FROM words WHERE first = ?1 AND span = ?2 AND term <= ?3 AND ",
    intact!(words),
    " ORDER BY term DESC LIMIT 1"
);

/// The sessions from a name on.
pub(super) const SESSIONS: &str = concat!(
    "SELECT id, name, head, appended FROM sessions WHERE name >= ?1 AND ",
    intact!(sessions),
    " ORDER BY name"
);

/// The head after the last append with a known time before the given one.
pub(super) const APPENDED_BEFORE: &str = concat!(
    "SELECT head FROM tokens INDEXED BY tokens_first WHERE session = ?1 AND time < ?2 AND ",
    intact!(tokens),
    " ORDER BY first DESC LIMIT 1"
);
