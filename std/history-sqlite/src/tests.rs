//! Tests of the plan and the cost of each statement, which are not visible to callers.

use epitome_core::attribution::{Authority, SeqRange, SourceKind};
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::bodies::RowTexts;
use epitome_history::encryption::Seal;
use epitome_history::kernel::{Op, Reply, run_now};
use epitome_history::rows::StoredProjection;
use epitome_history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, MessageEdit, PartStandIn, SessionId,
    StoreErrorKind, Summary, TokenCount, UnansweredCall,
};
use epitome_message::{Attribution, Message};
use rusqlite::{Connection, StatementStatus};

use super::failure::Failure;
use super::session::Session;
use super::transaction::SessionTransaction;
use super::{SqliteStore, open, read, schema, sql};

const BY_NAME: &str = "SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (name=?)";
const BY_SEQ: &str = "SEARCH messages USING PRIMARY KEY (session=? AND seq=?)";
const LIVE: &str = "messages USING INDEX messages_live (session=?";
const EDIT: &str = "SEARCH e USING INDEX sqlite_autoindex_edits_1 (session=? AND seq=?)";
const BODY: &str = "SEARCH b USING INDEX sqlite_autoindex_bodies_1 (session=? AND seq=?)";

const RECORD: &str = "SEARCH records USING INDEX sqlite_autoindex_records_1 (session=? AND revision=?)";

/// Every statement that searches for rows, with the lines that its plan must contain.
const PLANS: &[(&str, &[&str])] = &[
    (sql::SESSION, &[BY_NAME]),
    (sql::MOVE_SESSION, &["SEARCH sessions USING INTEGER PRIMARY KEY (rowid=?)"]),
    (sql::DELETE_SESSION, &[BY_NAME]),
    (sql::LIST, &["SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (name>?)"]),
    (sql::LIST_AFTER, &["SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (name>?)"]),
    (sql::TOKEN, &["SEARCH tokens USING PRIMARY KEY (session=? AND token=?)"]),
    (sql::ANCHOR, &[BY_SEQ]),
    (sql::TURN, &[BY_SEQ]),
    (sql::ENCRYPTION, &["SEARCH encryption USING INTEGER PRIMARY KEY (rowid=?)"]),
    (sql::STATE_REVISION, &["SEARCH states USING INTEGER PRIMARY KEY (rowid=?)"]),
    (sql::STATE, &["SEARCH states USING INTEGER PRIMARY KEY (rowid=?)"]),
    (sql::ANSWERED, &["SEARCH unanswered USING PRIMARY KEY (session=? AND anchor=? AND ordinal=?)"]),
    (sql::UNANSWERED_COUNT, &["SEARCH sessions USING INTEGER PRIMARY KEY (rowid=?)"]),
    (sql::UNANSWERED, &["SEARCH unanswered USING PRIMARY KEY (session=?)"]),
    (sql::LIVE_MESSAGES, &["SEARCH m USING INDEX messages_live (session=? AND seq>?)", BODY, EDIT]),
    (sql::LIVE_SUMMARIES, &["SEARCH summaries USING INDEX summaries_live (session=? AND key>?)"]),
    (sql::TURNS, &["SEARCH messages USING INDEX messages_live (session=?)"]),
    (sql::SUMMARY_TURNS, &["SEARCH summaries USING INDEX summaries_live (session=?)"]),
    (sql::LOG, &["SEARCH m USING PRIMARY KEY (session=? AND seq>? AND seq<?)", BODY, EDIT]),
    (sql::VISIBLE_MESSAGES, &["SEARCH m USING COVERING INDEX messages_live (session=?)", EDIT]),
    (sql::EDITED, &["SEARCH m USING PRIMARY KEY (session=? AND seq=?)", BODY, EDIT]),
    (sql::VISIBLE_SUMMARIES, &["SEARCH summaries USING INDEX summaries_live (session=?)"]),
    (sql::RECORD, &[RECORD]),
    (sql::RECORDS, &["SEARCH records USING INDEX sqlite_autoindex_records_1 (session=? AND revision>?)"]),
    (
        sql::SUMMARIES,
        &["SEARCH summaries USING INDEX sqlite_autoindex_summaries_1 (session=? AND revision=?)"],
    ),
    (sql::APPENDS, &["SEARCH tokens USING INDEX tokens_first (session=? AND first>?)"]),
    (sql::PRUNED_IN, &["SEARCH messages USING PRIMARY KEY (session=? AND seq>? AND seq<?)"]),
    (sql::MADE, &[RECORD]),
    (sql::LATEST_HELD, &["SEARCH records USING INDEX records_held (session=?)"]),
    (sql::HELD_BEFORE, &["SEARCH records USING INDEX records_held (session=? AND revision<?)"]),
    (sql::UNDO, &[RECORD]),
    (sql::PRUNED_SINCE, &["SEARCH prunes USING COVERING INDEX prunes_through (session=? AND through>?)"]),
    (sql::HIDDEN_MESSAGES, &["SEARCH m USING INDEX messages_hidden (session=? AND hidden_by=?)", EDIT]),
    (sql::HIDDEN_SUMMARIES, &["SEARCH summaries USING INDEX summaries_hidden (session=? AND hidden_by=?)"]),
    (sql::SHOW_MESSAGES, &["SEARCH messages USING INDEX messages_hidden (session=? AND hidden_by=?)"]),
    (sql::SHOW_SUMMARIES, &["SEARCH summaries USING INDEX summaries_hidden (session=? AND hidden_by=?)"]),
    (sql::DROP_EDIT, &["SEARCH edits USING INDEX sqlite_autoindex_edits_1 (session=? AND seq=?)"]),
    (sql::PRUNABLE_MESSAGES, &["messages_hidden (session=? AND hidden_by<?)"]),
    (sql::PRUNABLE_SUMMARIES, &["summaries USING INDEX summaries_hidden (session=? AND hidden_by<?)"]),
    (sql::BODY, &["SEARCH bodies USING INDEX sqlite_autoindex_bodies_1 (session=? AND seq=?)"]),
    (sql::PRUNE_BODY, &["SEARCH bodies USING INDEX sqlite_autoindex_bodies_1 (session=? AND seq=?)"]),
    (sql::PRUNE_MESSAGE, &[BY_SEQ]),
    (sql::PRUNE_EDIT, &["SEARCH edits USING INDEX sqlite_autoindex_edits_1 (session=? AND seq=?)"]),
    (
        sql::PRUNE_SUMMARY,
        &["SEARCH summaries USING INDEX sqlite_autoindex_summaries_1 (session=? AND revision=? AND key=?)"],
    ),
    (sql::IS_PRUNED, &[BY_SEQ]),
    (sql::BARE_RECORD, &[RECORD]),
    (sql::PRUNED_THROUGH, &["SEARCH prunes USING INDEX prunes_through (session=? AND through=?)"]),
    (sql::PRUNES, &["SEARCH prunes USING PRIMARY KEY (session=? AND revision>?)"]),
    (sql::LAST_TEXT, &["sqlite_sequence"]),
    (sql::TEXTS, &["SEARCH bodies USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]),
    (
        sql::EARLIER_IN_GROUP,
        &[
            "SEARCH m USING PRIMARY KEY (session=? AND seq>? AND seq<?)",
            "SEARCH b USING INDEX sqlite_autoindex_bodies_1 (session=? AND seq=?)",
        ],
    ),
    (sql::TEXTS_OF_SESSION, &["SEARCH b USING COVERING INDEX sqlite_autoindex_bodies_1 (session=?)"]),
    (
        sql::PLACE,
        &["SEARCH b USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)"],
    ),
    (sql::WORDS, &["SEARCH words USING INDEX sqlite_autoindex_words_1 (first>? AND first<?)"]),
    (sql::MOVE_WORDS, &["SEARCH words USING INDEX sqlite_autoindex_words_1 (first=? AND span=? AND term=?)"]),
    (sql::DROP_WORDS, &["SEARCH words USING INDEX sqlite_autoindex_words_1 (first>? AND first<?)"]),
    (sql::WORD, &["SEARCH words USING INDEX sqlite_autoindex_words_1 (first=? AND span=? AND term<?)"]),
    (sql::SESSIONS, &["SEARCH sessions USING INDEX sqlite_autoindex_sessions_1 (name>?)"]),
    (sql::APPENDED_BEFORE, &["SEARCH tokens USING INDEX tokens_first (session=?)"]),
    (sql::HIDE_MESSAGES, &[LIVE]),
    (sql::HIDE_SUMMARY, &["SEARCH summaries USING INDEX summaries_live (session=? AND key=?)"]),
];

/// The statements that only add a row: their plan has only the tables that a constraint reads.
const INSERTS: &[&str] = &[
    sql::NEW_ENCRYPTION,
    sql::NEW_SESSION,
    sql::NEW_TOKEN,
    sql::NEW_MESSAGE,
    sql::NEW_BODY,
    sql::NEW_UNANSWERED,
    sql::NEW_SUMMARY,
    sql::NEW_EDIT,
    sql::NEW_RECORD,
    sql::NEW_PRUNE,
    sql::NEW_WORDS,
    sql::KEEP_STATE,
];

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters = vec![rusqlite::types::Null; statement.parameter_count()];
    let lines = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3));
    lines.unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_statement_finds_its_rows_by_an_index_and_sorts_nothing() {
    let connection = open::open_in_memory().unwrap().connection;
    for (sql, expected) in PLANS {
        // This table of SQLite has one row.
        let plan = plan(&connection, sql).join("\n").replace("SCAN sqlite_sequence", "sqlite_sequence");
        for line in *expected {
            assert!(plan.contains(line), "{sql}\nis planned as\n{plan}\nwithout\n{line}");
        }
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}\nis planned as\n{plan}");
    }
    for sql in INSERTS {
        assert_eq!(plan(&connection, sql), [""; 0], "{sql}");
    }
    let written = include_str!("sql.rs").matches("pub(super) const").count();
    assert_eq!(written, PLANS.len() + INSERTS.len(), "a statement without a plan in this test");
}

#[test]
fn a_statement_is_not_prepared_anew_for_other_values() {
    let connection = session_of(300);
    let mut statement = connection.prepare(sql::LOG).unwrap();
    for first in 0..9 {
        let rows = statement.query_map((1, first, first + 2), |row| row.get::<_, i64>(0));
        assert_eq!(rows.unwrap().count(), 2);
    }
    assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
}

fn entry(seq: u64) -> Entry {
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
    Entry::new(Message::user("x"), Seq(seq), Turn(1), count)
}

fn session() -> Session {
    Session { name: SessionId::new("s"), seal: Seal::Plain }
}

fn run(connection: &Connection, op: Op<'_>) -> Result<Reply, Failure> {
    let (session, texts) = (session(), RowTexts::of(&op).unwrap());
    run_now(&op, &mut SessionTransaction { connection, session: &session, texts: &texts, row: None })
}

/// A session of `stored` messages, of which the last 50 are visible, after a summary of the others.
fn session_of(stored: u64) -> Connection {
    let connection = open::open_in_memory().unwrap().connection;
    let entries: Vec<Entry> = (0..stored).map(entry).collect();
    let token = AppendToken::new("t");
    let append = Append::new(&token, Seq(0), &entries);
    run(&connection, Op::Append(append, None)).unwrap();
    commit(&connection, 0, stored, stored - 51);
    connection
}

/// Replaces all messages up to `last`.
fn commit(connection: &Connection, parent: u64, head: u64, last: u64) {
    let covers = vec![SeqRange { first: Seq(0), last: Seq(last) }];
    let mut record = CompactionRecord::new(Revision(parent), Seq(head));
    record.hides.clone_from(&covers);
    let message = Message::assistant("so far");
    let attribution =
        Attribution::new("", SourceKind::Compaction, Authority::Assistant).with_derived_from(covers);
    let message = message.with_attribution(attribution);
    record.summaries = vec![Summary::new(Seq(0), message, entry(0).count)];
    record.unanswered = vec![UnansweredCall::new("c".into(), Seq(0), Turn(1), 0)];
    run(connection, Op::commit(&record).unwrap()).unwrap();
}

/// Edits the newest ten of `head` messages.
fn shorten(connection: &Connection, head: u64) {
    let mut record = CompactionRecord::new(Revision(1), Seq(head));
    let count = TokenCount::new(Tokens(0), Basis::Estimated, "test".into());
    let edit = |seq| MessageEdit::new(Seq(seq), vec![PartStandIn::new(0, Some("[-]".into()))], count.clone());
    record.edits = (head - 10..head).map(edit).collect();
    run(connection, Op::commit(&record).unwrap()).unwrap();
}

/// The number of rows in the result of a statement, its number of steps, and the number of steps in scans of a whole
/// table.
fn cost(connection: &Connection, sql: &str, parameters: &[i64]) -> (u64, i32, i32) {
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query(rusqlite::params_from_iter(parameters)).unwrap();
    let mut count = 0;
    while rows.next().unwrap().is_some() {
        count += 1;
    }
    drop(rows);
    (
        count,
        statement.get_status(StatementStatus::VmStep),
        statement.get_status(StatementStatus::FullscanStep),
    )
}

#[test]
fn the_cost_of_a_load_and_of_a_commit_is_that_of_what_is_visible() {
    let (few, many) = (session_of(100), session_of(20_000));
    shorten(&few, 100);
    shorten(&many, 20_000);
    let statements = [
        (sql::LIVE_MESSAGES, 50, &[1, 0][..], 3_850),
        (sql::LIVE_SUMMARIES, 1, &[1, 0], 60),
        (sql::UNANSWERED, 1, &[1], 30),
        (sql::VISIBLE_MESSAGES, 50, &[1], 975),
        (sql::VISIBLE_SUMMARIES, 1, &[1], 45),
    ];
    for (sql, visible, parameters, steps_max) in statements {
        let (rows, steps, scanned) = cost(&many, sql, parameters);
        assert_eq!((rows, scanned), (visible, 0), "{sql}");
        assert!(steps <= steps_max, "{steps} steps for {visible} rows: {sql}");
        assert_eq!(cost(&few, sql, parameters).1, steps, "{sql}");
    }
    let edited = |connection, seq| cost(connection, sql::EDITED, &[1, seq]);
    assert_eq!(edited(&many, 19_999).1, edited(&few, 99).1);
    // A summary over a summary: the range covers all hidden messages, and one visible message.
    let steps = |connection, last| cost(connection, sql::HIDE_MESSAGES, &[1, 0, last, 2]).1;
    assert_eq!(steps(&many, 19_950), steps(&few, 50));
}

#[test]
fn what_is_damaged_within_is_corrupt_and_never_quoted() {
    let damages = [
        "DELETE FROM bodies",
        "UPDATE bodies SET body = 'secret'",
        r#"UPDATE bodies SET body = replace(body, '"v":1', '"v":9')"#,
        "UPDATE messages SET basis = 'secret'",
        "UPDATE messages SET anchor = -1",
        "UPDATE messages SET turn = -1",
        "UPDATE sessions SET head = -1",
        "UPDATE unanswered SET id = x'ff'",
        "DROP TABLE unanswered",
        "UPDATE bodies SET part_tokens = 'secret'",
        "UPDATE edits SET stand_ins = 'secret'",
        "UPDATE edits SET basis = 'secret'",
    ];
    for damage in damages {
        let connection = session_of(100);
        shorten(&connection, 100);
        connection.execute_batch(damage).unwrap();
        let loaded = read::load(&connection, &session()).map_err(|failure| failure.of("load"));
        let error = loaded.and_then(StoredProjection::into_loaded).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{damage}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{damage}: {error:?}");
    }
}

#[test]
fn an_index_that_disagrees_with_its_table_is_corrupt() {
    let connection = session_of(100);
    connection.execute_batch("UPDATE summaries SET covers = '[[0'").unwrap();
    let mut record = CompactionRecord::new(Revision(1), Seq(100));
    record.hides = vec![SeqRange { first: Seq(60), last: Seq(60) }];
    let failure = run(&connection, Op::commit(&record).unwrap()).unwrap_err();
    assert_eq!(failure.of("commit").kind(), StoreErrorKind::Corrupt);
}

#[test]
fn a_record_keeps_its_notes_and_a_summary_its_text_once() {
    let connection = session_of(100);
    let text = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert!(text("SELECT body FROM summaries").contains("so far"));
    let record = text("SELECT body FROM records");
    assert!(record.contains(r#""hides":[[0,49]]"#) && !record.contains("so far"), "{record}");
}

#[test]
fn a_file_of_an_older_version_is_named_as_such_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch("CREATE TABLE sessions (id INTEGER PRIMARY KEY) STRICT").unwrap();
    old.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    old.pragma_update(None, "user_version", schema::SCHEMA_VERSION - 1).unwrap();
    drop(old);
    for refused in [SqliteStore::open_read_only(&path), SqliteStore::open(&path)] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Invalid);
        assert!(refused.to_string().contains("by an older version: schema 7, this one has 8"), "{refused}");
    }
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables = Connection::open(&path).unwrap().query_row(tables, [], |row| row.get(0));
    assert_eq!(tables, Ok(1));
}

#[test]
fn what_is_pruned_or_deleted_is_nowhere_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let holds = |word: &str| {
        let done: i64 = Connection::open(&path)
            .unwrap()
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .unwrap();
        assert_eq!(done, 0);
        std::fs::read(&path).unwrap().windows(word.len()).any(|window| window == word.as_bytes())
    };
    let store = SqliteStore::open(&path).unwrap();
    futures::executor::block_on(async {
        let said = |word: &str| Message::user(word.repeat(900));
        let entries: Vec<Entry> = (0..)
            .zip(["zebra", "quokka"])
            .map(|(seq, word)| {
                let mut entry = entry(seq);
                entry.message = said(word);
                entry
            })
            .collect();
        store.append(&session().name, &Append::new(&AppendToken::new("t"), Seq(0), &entries)).await.unwrap();
        let mut record = CompactionRecord::new(Revision(0), Seq(2));
        record.hides = vec![SeqRange { first: Seq(0), last: Seq(0) }];
        store.commit(&session().name, &record).await.unwrap();
        assert!(holds("zebra") && holds("quokka"));
        store.prune(&session().name, Revision(1)).await.unwrap();
        assert!(!holds("zebra") && holds("quokka"));
        store.delete(&session().name).await.unwrap();
        assert!(!holds("quokka"));
    });
}
