//! The index always equals an index that is rebuilt from the texts, and it finds the same messages as a scan of all
//! texts.

use epitome_conformance::index::{
    Dice, append_some, assert_found, assert_rare_first, assert_reused_id_found, change, hide_some, prune_some,
};
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::kernel::scan;
use epitome_history::words::{READ_MAX, SPAN, WIDE_SPAN};
use epitome_history::{
    Append, AppendToken, Entry, HistoryStore, LogSearch, SessionId, StoreErrorKind, TokenCount,
};
use epitome_message::Message;
use futures::executor::block_on;
use rusqlite::{Connection, params};

use super::*;
use crate::{SqliteStore, open};

/// The rows of the index.
fn index(connection: &Connection) -> Vec<(i64, i64, Vec<u8>)> {
    let mut statement =
        connection.prepare("SELECT first, span, body FROM words ORDER BY 1, 2, term").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// A block by its first text and its span, with its rows.
type Kept = (i64, i64, Vec<(Term, Vec<u8>)>);

/// The postings of each block, with any division into rows.
fn postings(connection: &Connection) -> Vec<Kept> {
    let mut blocks: Vec<(i64, i64, Postings)> = Vec::new();
    for (first, span, row) in index(connection) {
        if blocks.last().is_none_or(|(last, ..)| *last != first) {
            blocks.push((first, span, Postings::new()));
        }
        blocks.last_mut().unwrap().2.add_row(&row, 0, |_| false).unwrap();
    }
    let blocks = blocks.into_iter().map(|(first, span, postings)| (first, span, postings.into_rows()));
    blocks.filter(|(.., rows)| !rows.is_empty()).collect()
}

/// A second connection.
fn beside(path: &std::path::Path) -> Connection {
    open::open(path, &epitome_history::encryption::Vault::Plain).unwrap().connection
}

#[test]
fn it_is_the_index_that_is_made_anew() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let (store, mut dice) = (SqliteStore::open(&path).unwrap(), Dice::new(0x9e37_79b9));
        let sessions = ["alice/1", "alice/2", "bob/1"].map(SessionId::new);
        let (mut wide, mut long, mut searched) = (0, 0, 0);
        for turn in 0..40 {
            change(&store, &sessions, &mut dice).await;
            if turn % 10 != 9 {
                continue;
            }
            let connection = beside(&path);
            let kept = postings(&connection);
            wide = wide.max(kept.iter().filter(|(_, span, _)| *span == WIDE_SPAN).count());
            rebuild(&connection).unwrap();
            assert!(kept == postings(&connection), "after turn {turn}");
            long += u32::from(store.load(&sessions[0]).await.is_ok_and(|it| it.head > Seq(READ_MAX)));
            hide_some(&store, &sessions[0], 200).await;
            searched += assert_found(&store, &sessions[0], "alice/").await;
        }
        assert!(long > 0, "no session was long enough to be searched by the index");
        assert!(wide > 0 && searched > 5_000, "{wide} wide blocks, {searched} messages found");
    });
}

#[test]
fn a_damaged_row_is_noticed_and_made_anew() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let (store, mut dice, session) =
            (SqliteStore::open(&path).unwrap(), Dice::new(7), SessionId::new("s"));
        append_some(&store, &session, 3_000, &mut dice).await;
        let search = LogSearch::new("common3").in_session(session);
        let found = store.search(&search).await.unwrap();
        assert_eq!(found.len(), 8);
        let connection = beside(&path);
        connection.execute("UPDATE words SET body = x'00' WHERE first = ?1", params![256]).unwrap();
        let error = store.search(&search).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(error.to_string().contains("the index of words is damaged: make it anew"), "{error}");
        store.reindex().await.unwrap();
        assert_eq!(store.search(&search).await.unwrap(), found);
    });
}

#[test]
fn a_rare_word_is_found_behind_thousands_of_a_common_one() {
    block_on(assert_rare_first(&SqliteStore::open_in_memory().unwrap(), &SessionId::new("s")));
    block_on(assert_reused_id_found(&SqliteStore::open_in_memory().unwrap(), &SessionId::new("s")));
}

/// The index serves searches in many small sessions: one owner has most of the messages in many sessions, another has
/// few.
#[test]
fn many_small_sessions_are_searched_by_the_index() {
    block_on(async {
        let (store, mut dice) = (SqliteStore::open_in_memory().unwrap(), Dice::new(17));
        for number in 0..70 {
            append_some(&store, &SessionId::new(format!("many/{number:02}")), 30, &mut dice).await;
            append_some(&store, &SessionId::new(format!("others/{number:02}")), 10, &mut dice).await;
        }
        let planted = SessionId::new("many/35");
        let size = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
        let entries = ["zebra", "a zebra and a quagga", "zebra"].map(|text| (text, size.clone()));
        let entries: Vec<Entry> = (30..)
            .zip(entries)
            .map(|(seq, (text, size))| Entry::new(Message::user(text), Seq(seq), Turn(1), size))
            .collect();
        let token = AppendToken::new("planted");
        store.append(&planted, &Append::new(&token, Seq(30), &entries)).await.unwrap();
        // The search finds more messages than it distinguishes at once.
        let common: Vec<_> = (0..9).map(|number| format!("common{number}")).collect();
        for (prefix, least) in [("many/", 1_025), ("others/", 300), ("many/1", 150), ("", 1_500)] {
            let search = LogSearch::new(common.join(" ")).in_sessions(prefix).with_limit(u32::MAX);
            let mut found = [store.search(&search).await.unwrap(), scan(&store, &search).await.unwrap()];
            for found in &mut found {
                assert!(found.iter().all(|it| it.session.as_str().starts_with(prefix)), "{prefix}");
                found.sort_by(|one, other| {
                    (&one.session, one.logged.seq).cmp(&(&other.session, other.logged.seq))
                });
            }
            assert!(found[0] == found[1] && found[0].len() > least, "{prefix}: {}", found[0].len());
        }
        let search = LogSearch::new("quagga zebra").in_sessions("many/").with_limit(2);
        let found = store.search(&search).await.unwrap();
        let found: Vec<_> = found.iter().map(|it| (it.session.as_str(), it.logged.seq.0)).collect();
        assert_eq!(found, [("many/35", 31), ("many/35", 32)], "the nearest first, of equal ones the newest");
    });
}

/// Damage to the index, or to a message of another session, does not affect writes, deletions and searches.
#[test]
fn damage_does_not_spread() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let (store, mut dice) = (SqliteStore::open(&path).unwrap(), Dice::new(13));
        let [own, other] = ["own", "other"].map(SessionId::new);
        append_some(&store, &own, 3_900, &mut dice).await;
        append_some(&store, &other, 90, &mut dice).await;
        let connection = beside(&path);
        connection.execute("UPDATE words SET body = x'00' WHERE first = 1024", []).unwrap();
        connection.execute("UPDATE bodies SET body = 'torn' WHERE seq = 85 AND session = 2", []).unwrap();
        // These bodies are no valid text; one may be a call whose results are indexed later.
        let damage =
            "UPDATE bodies SET body = CAST(x'22ff22' AS TEXT) WHERE session = 2 AND seq BETWEEN 86 AND 89";
        connection.execute(damage, []).unwrap();
        // A message after the last block cannot be read. The next appends complete this block, and a wide one.
        let search = LogSearch::new("common1 common3").in_session(own.clone()).with_limit(u32::MAX);
        append_some(&store, &own, 300, &mut dice).await;
        let found = store.search(&search).await.unwrap();
        assert_eq!(found.len(), scan(&store, &search).await.unwrap().len());
        assert_eq!(index(&connection).iter().filter(|(_, span, _)| *span == SPAN).count(), 0);
        // A prune and a deletion in a damaged block.
        connection.execute("UPDATE words SET body = x'00' WHERE first = 0", []).unwrap();
        prune_some(&store, &own, 500).await;
        assert_eq!(store.search(&search).await.unwrap().len(), scan(&store, &search).await.unwrap().len());
        connection.execute("UPDATE words SET body = x'00' WHERE first = 0", []).unwrap();
        assert!(store.delete(&other).await.unwrap());
        store.reindex().await.unwrap();
        assert_eq!(store.search(&search).await.unwrap().len(), scan(&store, &search).await.unwrap().len());
    });
}

/// Neither the index nor free pages contain a word of a deleted message.
#[test]
fn what_is_pruned_leaves_no_term() {
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let (store, mut dice, session) =
            (SqliteStore::open(&path).unwrap(), Dice::new(9), SessionId::new("s"));
        append_some(&store, &session, 600, &mut dice).await;
        let connection = beside(&path);
        let before = index(&connection).iter().map(|(.., body)| body.len()).sum::<usize>();
        prune_some(&store, &session, usize::MAX).await;
        let left = index(&connection).iter().map(|(.., body)| body.len()).sum::<usize>();
        assert!(before > 3_000 && left == 0, "{before} bytes before, {left} left");
        assert_eq!(store.load(&session).await.unwrap().revision, Revision(2));
    });
}

#[test]
fn an_encrypted_file_has_no_index() {
    #[cfg(feature = "encryption")]
    block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.db");
        let key = epitome_history::StoreKey::parse(&"07".repeat(32)).unwrap();
        let store = SqliteStore::open_encrypted(&path, key).unwrap();
        let (mut dice, session) = (Dice::new(11), SessionId::new("s"));
        append_some(&store, &session, 3_000, &mut dice).await;
        assert_eq!(store.search(&LogSearch::new("common3")).await.unwrap().len(), 8);
        let connection = Connection::open(&path).unwrap();
        assert_eq!(index(&connection), []);
    });
}
