//! Tests of the plan and the cost of each statement, and of the index of words. None of these is visible to callers.

#[path = "tests/words.rs"]
mod words;

use core::time::Duration;

use epitome_core::attribution::{Authority, SeqRange, SourceKind};
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, MemoryStore, MessageEdit, PartStandIn,
    RemoteOptions, SessionId, StoreError, StoreErrorKind, Summary, TokenCount, UnansweredCall,
};
use epitome_message::{Attribution, Message};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::options::Names;
use super::{PostgresOptions, PostgresStore, sql};

/// A store in its own schema, and a second connection.
struct Server {
    store: PostgresStore,
    names: Names,
    client: Client,
    schema: String,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    fn new(name: &str) -> Option<Self> {
        let Some(url) = variable("EPITOME_TEST_POSTGRES").filter(|url| !url.is_empty()) else {
            let required = variable("EPITOME_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|name| name == "postgres"),
                "EPITOME_TEST_POSTGRES names no server"
            );
            eprintln!("skipped: EPITOME_TEST_POSTGRES names no server; tests/servers.sh starts one");
            return None;
        };
        let schema = format!("plans {name} {}", std::process::id());
        // A disk with other writers may take many seconds, in particular for thousands of messages at once.
        let remote = RemoteOptions::default().with_timeout(Duration::from_secs(60));
        let options = PostgresOptions::default().with_schema(&*schema).with_remote(remote);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        let names = Names::new(&options).unwrap();
        Some(Self { store: PostgresStore::open_with(&url, options).unwrap(), names, client, schema, runtime })
    }

    /// Waits until no other transaction can see the rows before the latest change: until then, the server does not
    /// clean up after changes. Other tests have transactions in the same database.
    fn until_settled(&self) {
        let now = &self.lines("SELECT txid_current() % 4294967296")[0];
        let older = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND greatest(age(backend_xid), age(backend_xmin)) > age('{now}'::xid)"
        );
        for _ in 0..6_000 {
            if self.lines(&older) == ["0"] {
                return;
            }
            self.run("SELECT pg_sleep(0.01)");
        }
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(&self.names.complete(sql))).unwrap();
    }

    /// The first column of the result of `sql`.
    fn lines(&self, sql: &str) -> Vec<String> {
        let messages = self.runtime.block_on(self.client.simple_query(&self.names.complete(sql))).unwrap();
        let first = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
            _ => None,
        };
        messages.iter().filter_map(first).collect()
    }

    /// The plan of `statement` in the store's own transactions.
    fn plan(&self, statement: &str) -> String {
        self.run(&format!("BEGIN; {}; PREPARE planned AS {statement}", sql::SETTINGS));
        let plan = self.lines(&format!("EXPLAIN (COSTS OFF) EXECUTE planned{}", nulls(statement)));
        self.run("DEALLOCATE planned; ROLLBACK");
        plan.join("\n")
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

fn nulls(statement: &str) -> String {
    let last = (1..20).rev().find(|number| statement.contains(&format!("${number}"))).unwrap_or(0);
    if last == 0 { String::new() } else { format!("({})", vec!["NULL"; last].join(", ")) }
}

impl Drop for Server {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA \"{}\" CASCADE", self.schema);
        let _ = self.runtime.block_on(self.client.batch_execute(&drop));
    }
}

const BY_NAME: &str = "Index Scan using epitome_sessions_digest_key on epitome_sessions";
const BY_SEQ: &str = "Index Scan using epitome_messages_pkey on epitome_messages";
const LIVE: &str = "Index Scan using epitome_messages_live on epitome_messages";
const LIVE_SUMMARIES: &str = "Index Scan using epitome_summaries_live on epitome_summaries";
const HIDDEN: &str = "Index Scan using epitome_messages_hidden on epitome_messages";
const SUMMARY: &str = "Index Scan using epitome_summaries_pkey on epitome_summaries";
const UNANSWERED: &str = "Index Scan using epitome_unanswered_pkey on epitome_unanswered";
const RECORD: &str = "Index Scan using epitome_records_pkey on epitome_records";
const PLACE: &str = "Index Scan using epitome_sessions_place on epitome_sessions";
/// Plan of the arrays of a statement: one pass over them.
const EACH: &str = "Function Scan on run";
const IN_RUN: &str = "((session = $1) AND (live >= run.low) AND (live <= run.high))";
const WORDS: &str = "Index Scan using epitome_words_pkey on epitome_words";
const FIRST: &str = "epitome_tokens_first on epitome_tokens";

/// Every statement that searches for rows, with the lines that its plan must contain.
const PLANS: &[(&str, &[&str])] = &[
    (sql::SESSION, &[BY_NAME, "(digest = $1)"]),
    (sql::LOCK_SESSION, &[BY_NAME, "(digest = $1)"]),
    (sql::MOVE_SESSION, &["Index Scan using epitome_sessions_pkey on epitome_sessions", "(id = $1)"]),
    (sql::DELETE_SESSION, &[BY_NAME, "(digest = $1)"]),
    (sql::LIST, &[PLACE, "Presorted Key: place", "(place >= SUBSTRING($1 FROM 1 FOR 512))"]),
    (sql::LIST_ALL, &[PLACE, "Presorted Key: place"]),
    (sql::TOKEN, &[BY_NAME, "epitome_tokens_pkey", "((session = s.id) AND (key = $2))"]),
    (sql::APPENDS, &[FIRST, "Backward using", "((session = $1) AND (first <= $2))", "(first >= COALESCE("]),
    (sql::PRUNED_IN, &[BY_SEQ, "((session = $1) AND (seq >= $2) AND (seq < $3))"]),
    (sql::ANCHOR, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::ANSWERED, &[UNANSWERED, "((session = $1) AND (anchor = $2) AND (ordinal = $3))"]),
    (sql::UNANSWERED, &[UNANSWERED, "(session = $1)"]),
    (sql::MOVE_LIVE, &["Index Scan using epitome_sessions_pkey on epitome_sessions", "(id = $1)"]),
    (sql::LIVE_MESSAGES, &[EACH, LIVE, IN_RUN]),
    (sql::LIVE_SUMMARIES, &[LIVE_SUMMARIES, "((session = $1) AND (live >= $2))"]),
    (sql::TURNS, &[EACH, LIVE, IN_RUN]),
    (sql::SUMMARY_TURNS, &["Backward using epitome_summaries_live", "((session = $1) AND (live < $2))"]),
    (sql::LOG, &[BY_SEQ, "((session = $1) AND (seq >= $2) AND (seq < $3))"]),
    (sql::VISIBLE_MESSAGES, &[EACH, LIVE, IN_RUN]),
    (sql::VISIBLE_SUMMARIES, &[LIVE_SUMMARIES, "((session = $1) AND (live >= 0))"]),
    (sql::EDITED, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::EDIT, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::DROP_EDIT, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::RECORD, &[BY_NAME, RECORD, "((session = s.id) AND (revision = $2))"]),
    (sql::RECORDS, &[RECORD, "((session = $1) AND (revision > $2))"]),
    (sql::SUMMARIES, &[SUMMARY, "((session = $1) AND (revision >= $2) AND (revision <= $3))"]),
    (sql::HIDE_MESSAGES, &[LIVE, "((session = $1) AND (live >= $2) AND (live <= $3))"]),
    (sql::HIDE_SUMMARY, &[LIVE_SUMMARIES, "((session = $1) AND (live = $2))"]),
    (sql::NEW_SUMMARY, &[BY_SEQ, "((session = $1) AND (seq = $3))"]),
    (sql::MADE, &[RECORD, "((session = $1) AND (revision = $2))"]),
    (sql::LATEST_HELD, &["Backward using epitome_records_held", "(session = $1)"]),
    (sql::HELD_BEFORE, &["epitome_records_held", "((session = $1) AND (revision < $2))"]),
    (sql::UNDO, &[RECORD, "((session = $1) AND (revision = $2))"]),
    (
        sql::PRUNED_SINCE,
        &["epitome_prunes_through", "((session = $1) AND (through >= $2) AND (revision > $2))"],
    ),
    (sql::HIDDEN_MESSAGES, &[HIDDEN, "((session = $1) AND (hidden_by = $2))"]),
    (sql::HIDDEN_SUMMARIES, &["epitome_summaries_hidden", "((session = $1) AND (hidden_by = $2))"]),
    (sql::BODY, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::SHOW_MESSAGES, &[HIDDEN, "((session = $1) AND (hidden_by = $2))"]),
    (sql::SHOW_SUMMARIES, &["epitome_summaries_hidden", "((session = $1) AND (hidden_by = $2))"]),
    (sql::PRUNABLE_MESSAGES, &[HIDDEN, "((session = $1) AND (hidden_by <= $2))"]),
    (sql::PRUNABLE_SUMMARIES, &["epitome_summaries_hidden", "((session = $1) AND (hidden_by <= $2))"]),
    (sql::PRUNE_MESSAGE, &[BY_SEQ, "((session = $1) AND (seq = $2))"]),
    (sql::PRUNE_SUMMARY, &[SUMMARY, "((session = $1) AND (revision = $2) AND (key = $3))"]),
    (sql::PRUNED_AMONG, &["Function Scan on ", BY_SEQ, "((session = $1) AND (seq = edited.number))"]),
    (sql::BARE_RECORD, &[RECORD, "((session = $1) AND (revision = $2))"]),
    (sql::PRUNED_THROUGH, &["Backward using epitome_prunes_through", "((session = $1) AND (through = $2))"]),
    (sql::STATE_REVISION, &[BY_NAME, "epitome_states_pkey", "(session = s.id)"]),
    (sql::STATE, &[BY_NAME, "epitome_states_pkey", "(session = s.id)"]),
    (sql::TEXTS, &[BY_SEQ, "((session = $1) AND (seq >= $2) AND (seq < $3))"]),
    (sql::EARLIER_IN_GROUPS, &[BY_SEQ, "((session = g.session) AND (seq >= g.anchor) AND (seq < g.last))"]),
    (sql::WORDS, &[WORDS, "((session = $1) AND (first >= $2) AND (first < $3))"]),
    (sql::DROP_WORDS, &[WORDS, "((session = $1) AND (first >= $2) AND (first < $3))"]),
    (sql::WORD, &["Backward using epitome_words_pkey", "(span = b.span) AND (term <= t.term))"]),
    (sql::TEXTS_BEHIND, &[BY_SEQ, "((session = s.id) AND (seq >= s.first))"]),
    (sql::FOUND, &[BY_SEQ, "((session = f.session) AND (seq = f.seq))"]),
    (sql::SESSIONS, &[PLACE, "Presorted Key: place", "(place >= SUBSTRING($1 FROM 1 FOR 512))"]),
    (sql::APPENDED_BEFORE, &[FIRST, "(session = s.id)"]),
    (sql::PRUNES, &["epitome_prunes_pkey", "((session = $1) AND (revision > $2))"]),
];

/// The statements that only add rows, or that read no table of the store: they search for nothing.
const OTHERS: &[&str] = &[
    sql::NEW_SESSION,
    sql::NEW_TOKEN,
    sql::NEW_MESSAGES,
    sql::NEW_UNANSWERED,
    sql::NEW_RECORD,
    sql::NEW_PRUNE,
    sql::KEEP_STATE,
    sql::KEEP_WORDS,
    sql::HAS_MIGRATIONS,
    sql::VERSION,
    sql::NEW_VERSION,
    sql::HAS_SCHEMA,
    sql::LOCK_MIGRATIONS,
    sql::ENCODING,
];

fn check_plans(server: &Server) {
    for (sql, expected) in PLANS {
        // A plan names a table by its name or by its alias.
        let plan = server.plan(sql);
        for line in *expected {
            assert!(plan.contains(line), "{sql}\nis planned as\n{plan}\nwithout\n{line}");
        }
    }
    for sql in PLANS.iter().map(|(sql, _)| sql).chain(OTHERS) {
        let plan = server.plan(sql);
        for bad in ["Seq Scan", "Bitmap", "Hash", "Merge", "Materialize", " Sort\n", "Join Filter"] {
            let found = plan.replace("Incremental Sort", "").contains(bad);
            assert!(!found, "{sql}\nis planned as\n{plan}\nwith {bad:?}");
        }
    }
}

#[test]
fn every_statement_finds_its_rows_by_an_index_whatever_the_statistics_say() {
    let Some(server) = Server::new("statements") else { return };
    let written = include_str!("sql.rs").matches("pub(super) const").count();
    assert_eq!(written, PLANS.len() + OTHERS.len() + 1, "a statement without a plan in this test");
    check_plans(&server);
    // Many sessions, all of them visible when the server gathers its statistics, and hidden after that.
    server.run(
        "INSERT INTO @sessions (digest, name, head, revision, live_messages, live_tokens)
            SELECT sha256(int8send(n)), int8send(n), 0, 0, 0, 0 FROM generate_series(1, 50) n;
        INSERT INTO @messages (session, seq, anchor, turn, tokens, basis, counter, late, orphan, body, standing)
            SELECT s.id, n, n, 1, 1, 'estimated', '', false, false, '', 2 FROM @sessions s, generate_series(0, 400) n;
        ANALYZE @sessions, @messages",
    );
    check_plans(&server);
    server.run("UPDATE @messages SET hidden_by = 1 WHERE seq < 390");
    check_plans(&server);
    server.run("ANALYZE @messages");
    check_plans(&server);
}

fn entry(seq: u64) -> Entry {
    let count = TokenCount::new(Tokens(5), Basis::Estimated, "test".into());
    Entry::new(Message::user("x"), Seq(seq), Turn(1), count)
}

fn session() -> SessionId {
    SessionId::new("s")
}

/// Replaces all messages up to `last`, with one hidden call that has no result.
fn commit(server: &Server, parent: u64, head: u64, last: u64) {
    let covers = vec![SeqRange { first: Seq(0), last: Seq(last) }];
    let mut record = CompactionRecord::new(Revision(parent), Seq(head));
    record.hides.clone_from(&covers);
    let message = Message::assistant("so far");
    let attribution =
        Attribution::new("", SourceKind::Compaction, Authority::Assistant).with_derived_from(covers);
    let message = message.with_attribution(attribution);
    record.summaries = vec![Summary::new(Seq(0), message, entry(0).count)];
    if parent == 0 {
        record.unanswered = vec![UnansweredCall::new("c".into(), Seq(0), Turn(1), 0)];
    }
    futures::executor::block_on(server.store.commit(&session(), &record)).unwrap();
}

/// Appends up to `stored` messages. The last 50 stay visible, after a summary of the others; ten of them have shortened
/// parts.
fn fill(server: &Server, stored: u64) {
    let entries: Vec<Entry> = (0..stored).map(entry).collect();
    let token = AppendToken::new("t");
    let append = Append::new(&token, Seq(0), &entries);
    futures::executor::block_on(server.store.append(&session(), &append)).unwrap();
    commit(server, 0, stored, stored - 51);
    let mut record = CompactionRecord::new(Revision(1), Seq(stored));
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
    let edit = |seq| MessageEdit::new(Seq(seq), vec![PartStandIn::new(0, Some("[-]".into()))], count.clone());
    record.edits = (stored - 10..stored).map(edit).collect();
    futures::executor::block_on(server.store.commit(&session(), &record)).unwrap();
}

/// Parameters of a statement that searches for visible messages: the runs that contain these messages.
fn runs(server: &Server) -> String {
    let columns = "live_first::text || '::bigint[], ' || quote_literal(live_last::text)";
    let found = server.lines(&format!("SELECT {columns} FROM @sessions WHERE live_at = revision"));
    let (first, last) = found[0].split_once("::").unwrap();
    format!("1, '{first}'::{last}::bigint[]")
}

/// The number of rows in the result of a statement, and of pages that its second execution reads. The first execution
/// may have to clean up.
fn cost(server: &Server, statement: &str, parameters: &str) -> (u64, u64) {
    server.until_settled();
    server.run(&format!("BEGIN; {}; PREPARE planned AS {statement}", sql::SETTINGS));
    let explain = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE planned";
    let analyzed = || server.lines(&format!("{explain}({parameters})")).join("\n");
    analyzed();
    let plan = analyzed();
    server.run("DEALLOCATE planned; ROLLBACK");
    let number = |key: &str| -> u64 {
        let after = plan.split_once(key).map(|(_, after)| after).unwrap_or_default();
        after.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    (number("actual rows="), number("shared hit=") + number("read="))
}

#[test]
fn the_cost_of_a_load_and_of_a_commit_is_that_of_what_is_visible() {
    let (Some(few), Some(many)) = (Server::new("few"), Server::new("many")) else { return };
    fill(&few, 100);
    fill(&many, 20_000);
    let statements = [
        (sql::LIVE_MESSAGES, 50, None),
        (sql::LIVE_SUMMARIES, 1, Some("1, 0")),
        (sql::UNANSWERED, 1, Some("1")),
        (sql::VISIBLE_MESSAGES, 50, None),
        (sql::VISIBLE_SUMMARIES, 1, Some("1")),
        (sql::TURNS, 50, None),
    ];
    for (sql, visible, parameters) in statements {
        let cost = |server| cost(server, sql, &parameters.map_or_else(|| runs(server), ToOwned::to_owned));
        let (few, many) = (cost(&few), cost(&many));
        assert_eq!((few.0, many.0), (visible, visible), "{sql}");
        // At most two more steps down a tree.
        assert!(many.1 <= few.1 + 2 && many.1 <= visible + 12, "{} and {} pages: {sql}", few.1, many.1);
    }
    let hides = |server, last: u64| cost(server, sql::HIDE_MESSAGES, &format!("1, {last}, {last}, 3"));
    let (few, many) = (hides(&few, 50), hides(&many, 19_950));
    assert!(many.1 <= few.1 + 6, "{} and {} pages to hide a message", few.1, many.1);
}

#[test]
fn what_is_damaged_within_is_corrupt_and_never_quoted() {
    let Some(server) = Server::new("damage") else { return };
    let damages = [
        "UPDATE @messages SET body = 'secret'",
        "UPDATE @messages SET basis = 'secret'",
        "UPDATE @messages SET anchor = -1",
        "UPDATE @messages SET turn = -1",
        "UPDATE @messages SET counter = '\\xff'",
        "UPDATE @messages SET part_tokens = 'secret'",
        "UPDATE @messages SET stand_ins = 'secret'",
        "UPDATE @messages SET edit_basis = 'secret'",
        "UPDATE @sessions SET head = -1",
        "UPDATE @summaries SET covers = 'secret'",
        "UPDATE @unanswered SET id = '\\xff'",
    ];
    for damage in damages {
        fill(&server, 100);
        server.run(damage);
        let error = futures::executor::block_on(server.store.load(&session())).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{damage}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{damage}: {error:?}");
        futures::executor::block_on(server.store.delete(&session())).unwrap();
    }
}

#[test]
fn a_row_that_the_index_of_the_visible_lacks_is_corrupt() {
    let Some(server) = Server::new("index") else { return };
    fill(&server, 100);
    server.run("DELETE FROM @messages WHERE seq = 60");
    let mut record = CompactionRecord::new(Revision(2), Seq(100));
    let covers = vec![SeqRange { first: Seq(60), last: Seq(60) }];
    record.hides.clone_from(&covers);
    let commit = |record: &CompactionRecord| -> StoreError {
        futures::executor::block_on(server.store.commit(&session(), record)).unwrap_err()
    };
    assert_eq!(commit(&record).kind(), StoreErrorKind::Invalid, "nothing is visible there");
    server.run("UPDATE @summaries SET covers = '[[0'");
    record.hides = vec![SeqRange { first: Seq(61), last: Seq(61) }];
    assert_eq!(commit(&record).kind(), StoreErrorKind::Corrupt);
}

/// Compares the session in two stores: the whole projection, and its tail.
fn assert_same(one: &dyn HistoryStore, other: &dyn HistoryStore) -> usize {
    let of = |store: &dyn HistoryStore| {
        let id = session();
        futures::executor::block_on(futures::future::try_join(store.load(&id), store.tail(&id))).unwrap()
    };
    let (one, other) = (of(one), of(other));
    assert!(one == other, "at {} and {}", one.0.revision, other.0.revision);
    one.0.live.len()
}

#[test]
fn what_is_visible_is_found_in_more_places_than_a_row_names() {
    let Some(server) = Server::new("places") else { return };
    let memory = MemoryStore::new();
    let stores: [&dyn HistoryStore; 2] = [&server.store, &memory];
    let turned = |seq: u64| {
        let mut entry = entry(seq);
        entry.turn = Turn(u32::try_from(seq / 500).unwrap());
        entry
    };
    let append = |first: u64, head: u64| {
        let entries: Vec<Entry> = (first..head).map(turned).collect();
        let token = AppendToken::new(first.to_string());
        let append = Append::new(&token, Seq(first), &entries);
        for store in stores {
            futures::executor::block_on(store.append(&session(), &append)).unwrap();
        }
    };
    let hide = |parent: u64, head: u64, first: u64| {
        let mut record = CompactionRecord::new(Revision(parent), Seq(head));
        record.hides = vec![SeqRange { first: Seq(first), last: Seq(first + 99) }];
        for store in stores {
            futures::executor::block_on(store.commit(&session(), &record)).unwrap();
        }
    };
    append(0, 6_000);
    for number in 0..45 {
        hide(number, 6_000, number * 130 + 20);
    }
    assert_eq!(assert_same(stores[0], stores[1]), 1_500);
    append(6_000, 6_010);
    for made in (43..=45).rev() {
        for store in stores {
            futures::executor::block_on(store.uncompact(&session(), Revision(made))).unwrap();
        }
        assert_same(stores[0], stores[1]);
    }
    // The columns as a program without knowledge of them leaves them, and as an older version leaves them.
    let lefts = [
        "live_first = '{9}', live_last = '{9}', live_at = 1",
        "live_first = NULL, live_last = NULL, live_at = NULL",
    ];
    for (more, left) in (0..).zip(lefts) {
        server.run(&format!("UPDATE @sessions SET {left}"));
        append(6_010 + more, 6_011 + more);
        assert_eq!(assert_same(stores[0], stores[1]), 1_811 + usize::try_from(more).unwrap());
    }
    hide(48, 6_012, 43 * 130);
    assert_eq!(assert_same(stores[0], stores[1]), 1_712);
    assert!(runs(&server).matches(',').count() > 40, "the row names no places");
}
