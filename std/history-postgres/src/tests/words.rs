//! The index of words always equals an index that is rebuilt from the texts, and it finds the same messages as a scan
//! of all texts.

use epitome_conformance::index::{
    Dice, append_some, assert_found, assert_rare_first, assert_reused_id_found, change, hide_some, prune_some,
};
use epitome_history::{HistoryStore, LogSearch, SessionId, StoreErrorKind};
use epitome_message::search::{Postings, Term};

use super::Server;

/// The rows of the index.
fn index(server: &Server) -> Vec<String> {
    server.lines(
        "SELECT concat_ws(' ', session, first, span, term, encode(body, 'hex')) FROM @words
        WHERE body <> '' ORDER BY session, first, span, term",
    )
}

/// A block by its session, its first message and its span, with its rows.
type Kept = (String, Vec<(Term, Vec<u8>)>);

/// The postings of each block, with any division into rows: a prune leaves another division than a rebuild.
fn postings(server: &Server) -> Vec<Kept> {
    let mut blocks = Vec::<(String, Postings)>::new();
    for row in index(server) {
        let words: Vec<&str> = row.split(' ').collect();
        let [session, first, span, _, hex] = words[..] else { panic!("{row}") };
        let block = [session, first, span].join(" ");
        if blocks.last().is_none_or(|(last, _)| *last != block) {
            blocks.push((block, Postings::new()));
        }
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let body: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        blocks.last_mut().unwrap().1.add_row(&body, 0, |_| false).unwrap();
    }
    blocks.into_iter().map(|(block, postings)| (block, postings.into_rows())).collect()
}

#[test]
fn the_index_of_words_is_the_one_that_is_made_anew() {
    let Some(server) = Server::new("words") else { return };
    futures::executor::block_on(async {
        let (store, mut dice) = (&server.store, Dice::new(0x9e37_79b9));
        let sessions = ["alice/1", "alice/2", "bob/1"].map(SessionId::new);
        let (mut wide, mut searched) = (0, 0);
        for _ in 0..15 {
            append_some(store, &sessions[0], 260, &mut dice).await;
        }
        for turn in 0..40 {
            change(store, &sessions, &mut dice).await;
            if turn % 10 != 9 {
                continue;
            }
            let kept = postings(&server);
            wide += kept.iter().filter(|(block, _)| block.ends_with(" 4096")).count();
            store.reindex().await.unwrap();
            assert!(kept == postings(&server), "after turn {turn}");
            hide_some(store, &sessions[0], 200).await;
            searched += assert_found(store, &sessions[0], "alice/").await;
        }
        assert!(wide > 0 && searched > 5_000, "{wide} wide blocks, {searched} messages found");
    });
}

#[test]
fn a_damaged_row_of_the_index_is_corrupt_until_the_index_is_made_anew() {
    let Some(server) = Server::new("torn words") else { return };
    futures::executor::block_on(async {
        let (store, mut dice, session) = (&server.store, Dice::new(7), SessionId::new("s"));
        append_some(store, &session, 5_200, &mut dice).await;
        let search = LogSearch::new("common3").in_session(session.clone());
        let found = store.search(&search).await.unwrap();
        assert_eq!(found.len(), 8);
        server.run("UPDATE @words SET body = '\\x80' WHERE first = 4352");
        let error = store.search(&search).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert!(error.to_string().contains("the index of words is damaged: make it anew"), "{error}");
        store.reindex().await.unwrap();
        assert_eq!(store.search(&search).await.unwrap(), found);
        // A prune and a wide block rebuild a damaged block.
        store.delete(&session).await.unwrap();
        append_some(store, &session, 3_000, &mut dice).await;
        server.run("UPDATE @words SET body = '\\x80' WHERE first IN (0, 512)");
        prune_some(store, &session, 10).await;
        append_some(store, &session, 1_096, &mut dice).await;
        assert_eq!(server.lines("SELECT DISTINCT span FROM @words"), ["4096"]);
        assert_found(store, &session, "s").await;
    });
}

/// A prune removes the words of the pruned messages from the index: no row shows them.
#[test]
fn what_is_pruned_leaves_no_word_in_the_index() {
    let Some(server) = Server::new("pruned words") else { return };
    futures::executor::block_on(async {
        let (store, mut dice, session) = (&server.store, Dice::new(9), SessionId::new("s"));
        append_some(store, &session, 600, &mut dice).await;
        assert!(!index(&server).is_empty());
        prune_some(store, &session, usize::MAX).await;
        assert_eq!(index(&server), Vec::<String>::new());
        append_some(store, &session, 600, &mut dice).await;
        assert!(!index(&server).is_empty());
        store.delete(&session).await.unwrap();
        assert_eq!(server.lines("SELECT 1 FROM @words"), Vec::<String>::new());
    });
}

/// Searches prefixes of many small sessions, and finds more messages than are distinguished at once.
#[test]
fn the_texts_behind_the_blocks_of_many_sessions_are_searched() {
    let Some(server) = Server::new("small") else { return };
    futures::executor::block_on(async {
        let (store, mut dice) = (&server.store, Dice::new(17));
        for number in 0..70 {
            append_some(store, &SessionId::new(format!("many/{number:02}")), 30, &mut dice).await;
        }
        append_some(store, &SessionId::new("other"), 1_500, &mut dice).await;
        for prefix in ["many/", "many/1", ""] {
            assert!(assert_found(store, &SessionId::new("other"), prefix).await > 1_000, "{prefix}");
        }
    });
}

#[test]
fn a_rare_word_is_found_behind_thousands_of_a_common_one() {
    let Some(server) = Server::new("rare") else { return };
    futures::executor::block_on(assert_rare_first(&server.store, &SessionId::new("s")));
    futures::executor::block_on(assert_reused_id_found(&server.store, &SessionId::new("other")));
}

#[test]
fn the_index_is_right_at_the_borders_of_its_blocks() {
    let Some(server) = Server::new("borders") else { return };
    futures::executor::block_on(async {
        let (store, mut dice) = (&server.store, Dice::new(3));
        for head in [255, 256, 257, 4_095, 4_096, 4_097] {
            let session = SessionId::new(format!("of {head}"));
            append_some(store, &session, head, &mut dice).await;
            prune_some(store, &session, usize::MAX).await;
            append_some(store, &session, 1, &mut dice).await;
        }
        let kept = postings(&server);
        store.reindex().await.unwrap();
        assert!(kept == postings(&server));
    });
}
