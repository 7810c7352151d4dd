//! The index of words that the searches of a store create: it finds the same messages as a scan of every message, and
//! has no word of a deleted text.

mod changing;
mod files;
#[cfg(feature = "redis")]
mod server;

use epitome_conformance::index::{
    Dice, append_some, assert_found, assert_rare_first, assert_reused_id_found, change, hide_some, prune_some,
};
use epitome_core::message::Role;
use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_history::kernel::scan;
use epitome_history::words::{Block, KeptWords, SPAN, SessionWords, WIDE_SPAN, places_in_rows};
use epitome_message::Message;
use epitome_message::search::{Postings, Term, query_terms};
use epitome_std::history::{
    Append, AppendToken, Entry, Fsync, HistoryStore, JsonlOptions, JsonlStore, LogSearch, MemoryStore,
    SessionId, TokenCount,
};
use futures::executor::block_on;

fn jsonl(folder: &std::path::Path) -> JsonlStore {
    JsonlStore::open_with(folder, JsonlOptions::default().with_fsync(Fsync::Never)).unwrap()
}

const WORDS: &str = "\u{6771}\u{4eac} common0 common1 common3 w1 w2 w17 w18 w19";

fn terms() -> Vec<Term> {
    query_terms(WORDS)
}

async fn head<S: SessionWords>(store: &S, session: &SessionId) -> i64 {
    SessionWords::head(store, session).await.unwrap().map_or(0, |head| i64::try_from(head.0).unwrap())
}

/// The blocks of both sizes that a session has, with their rows.
async fn kept<S: SessionWords>(store: &S, session: &SessionId) -> Vec<(Block, Vec<(Term, Vec<u8>)>)> {
    let head = head(store, session).await;
    let sizes = [SPAN, WIDE_SPAN].into_iter();
    let all: Vec<Block> =
        sizes.flat_map(|span| (0..head / span).map(move |at| Block { first: at * span, span })).collect();
    let Some(KeptWords { rows, .. }) = store.words(session, &all, &terms()).await.unwrap() else {
        return Vec::new();
    };
    assert_eq!(rows.len(), all.len());
    all.into_iter().zip(rows).filter_map(|(block, rows)| Some((block, rows?))).collect()
}

/// Compares the stored blocks with blocks of the texts. Returns the number of wide blocks.
async fn assert_kept<S: SessionWords>(store: &S, session: &SessionId) -> usize {
    let kept = kept(store, session).await;
    for (block, rows) in &kept {
        let range = Seq(block.first.unsigned_abs())..Seq(block.end().unsigned_abs());
        let mut texts = Postings::new();
        for logged in store.log(session, range, 5_000).await.unwrap().messages {
            texts.add(block.place(i64::try_from(logged.seq.0).unwrap()).unwrap(), &logged.entry.message);
        }
        let texts = texts.into_rows();
        for term in terms() {
            let places = |rows: &[(Term, Vec<u8>)]| places_in_rows(rows, term).unwrap();
            assert_eq!(places(rows), places(&texts), "{block:?} of {session:?}");
        }
        let inner = kept.iter().filter(|(other, _)| block.holds(*other) && other != block);
        assert_eq!(inner.count(), 0, "a wide block stands in place of the others");
    }
    kept.iter().filter(|(block, _)| block.span == WIDE_SPAN).count()
}

/// Random changes, with all searches after every `every` changes.
async fn finds_among_changes<S: SessionWords>(store: &S, every: usize) {
    let (mut dice, mut wide, mut searched) = (Dice::new(0x9e37_79b9), 0, 0);
    let sessions = ["alice/1", "alice/2", "bob/1"].map(SessionId::new);
    for _ in 0..15 {
        append_some(store, &sessions[0], 260, &mut dice).await;
    }
    for turn in 0..40 {
        change(store, &sessions, &mut dice).await;
        if turn % every == every - 1 {
            hide_some(store, &sessions[0], 200).await;
            searched += assert_found(store, &sessions[0], "alice/").await;
        }
        for session in &sessions {
            wide += assert_kept(store, session).await;
        }
    }
    assert!(wide > 0 && searched > 2_000, "{wide} wide blocks, {searched} messages found");
}

/// A prune removes the blocks with words of its messages, or all blocks if it removes the `whole` index. A deletion
/// removes all.
async fn forgets_what_is_pruned<S: SessionWords>(store: &S, whole: bool) {
    let (mut dice, session) = (Dice::new(9), SessionId::new("s"));
    let first = Block { first: 0, span: SPAN };
    append_some(store, &session, 2_000, &mut dice).await;
    let search = LogSearch::new("common1").in_session(session.clone());
    store.search(&search).await.unwrap();
    assert_eq!(kept(store, &session).await.len(), 7);
    let before = store.words(&session, &[first], &terms()).await.unwrap().unwrap().stamp;
    prune_some(store, &session, 300).await;
    let left: Vec<i64> = kept(store, &session).await.iter().map(|(block, _)| block.first / SPAN).collect();
    assert!(if whole { left.is_empty() } else { !left.contains(&0) && left.contains(&6) }, "{left:?}");
    // Rows from the texts before the prune arrive too late.
    let rows = vec![(Term::from_bits(0), vec![1, 1, 0])];
    store.keep_words(&session, &before, first, rows).await.unwrap();
    assert!(kept(store, &session).await.iter().all(|(block, _)| *block != first));
    store.search(&search).await.unwrap();
    assert_eq!(kept(store, &session).await.len(), 7);
    assert_kept(store, &session).await;
    let before = store.words(&session, &[first], &terms()).await.unwrap().unwrap().stamp;
    store.reindex().await.unwrap();
    assert_eq!(kept(store, &session).await.len(), 0);
    store.search(&search).await.unwrap();
    assert!(store.delete(&session).await.unwrap());
    append_some(store, &session, 600, &mut dice).await;
    let rows = vec![(Term::from_bits(0), vec![1, 1, 0])];
    store.keep_words(&session, &before, first, rows).await.unwrap();
    assert_eq!(kept(store, &session).await.len(), 0, "a session of the same id has no index of the old one");
}

/// Many small sessions, borders of blocks, and a rare word after thousands of a common one.
async fn finds_at_the_borders<S: SessionWords>(store: &S) {
    let (mut dice, rare) = (Dice::new(17), SessionId::new("rare"));
    assert_rare_first(store, &rare).await;
    assert!(store.delete(&rare).await.unwrap());
    let reused = SessionId::new("reused");
    assert_reused_id_found(store, &reused).await;
    assert!(store.delete(&reused).await.unwrap());
    for number in 0..5 {
        append_some(store, &SessionId::new(format!("many/{number:02}")), 300, &mut dice).await;
    }
    let sessions = [256, 257, 4_095, 4_096].map(|head| (head, SessionId::new(format!("of {head}"))));
    for (head, session) in &sessions {
        append_some(store, session, *head, &mut dice).await;
    }
    assert!(assert_found(store, &sessions[3].1, "many/").await > 0);
    for (_, session) in &sessions {
        prune_some(store, session, 40).await;
        append_some(store, session, 1, &mut dice).await;
    }
    assert!(assert_found(store, &sessions[2].1, "of ").await > 0);
}

async fn finds_what_reading_finds<S: SessionWords>(store: &S) {
    finds_among_changes(store, 5).await;
}

/// A test of each function on a fresh store.
macro_rules! tests {
    ($($name:ident)*) => {
        mod memory {
            $(#[test] fn $name() { futures::executor::block_on(super::$name(&super::MemoryStore::new())); })*
        }
        mod jsonl {
            $(#[test] fn $name() {
                let folder = tempfile::tempdir().unwrap();
                futures::executor::block_on(super::$name(&super::jsonl(folder.path())));
            })*
        }
    };
}

tests! { finds_what_reading_finds finds_at_the_borders }

#[test]
fn what_is_pruned_leaves_no_block() {
    block_on(forgets_what_is_pruned(&MemoryStore::new(), false));
    let folder = tempfile::tempdir().unwrap();
    block_on(forgets_what_is_pruned(&jsonl(folder.path()), true));
}

/// Only neighbours raise each other. The end of a session is no neighbour of the beginning of the next one, and a
/// message of another role is none either.
#[test]
fn only_neighbours_raise_each_other() {
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "c".into());
    let store = MemoryStore::new();
    let fill = |name: &str, said: &dyn Fn(u64) -> Message| {
        let entries: Vec<Entry> =
            (0..1_300).map(|seq| Entry::new(said(seq), Seq(seq), Turn(1), count.clone())).collect();
        let token = AppendToken::new("all");
        block_on(store.append(&SessionId::new(name), &Append::new(&token, Seq(0), &entries))).unwrap();
    };
    // The next number, but in another session.
    fill("a/0", &|seq| match seq {
        1_298 => Message::user("zebra one two three four"),
        _ => Message::user("and so on"),
    });
    fill("a/1", &|seq| match seq {
        1_299 => Message::user("zebra one two"),
        _ => Message::user("and so on"),
    });
    fill("a/2", &|seq| match seq {
        0 => Message::user("zebra quagga okapi"),
        600 => Message::user("zebra one"),
        700 => Message::user("zebra quagga okapi"),
        701 => Message::assistant("zebra one two three"),
        _ => Message::user("and so on"),
    });
    let found = |search: LogSearch| {
        let search = search.in_sessions("a/").with_limit(9);
        let [by_index, by_reading] =
            [block_on(store.search(&search)), block_on(scan(&store, &search))].map(|found| {
                found.unwrap().iter().map(|it| (it.session.to_string(), it.logged.seq.0)).collect::<Vec<_>>()
            });
        assert_eq!(by_index, by_reading);
        by_index
    };
    let place = |session: &str, seq: u64| (session.to_owned(), seq);
    let all = found(LogSearch::new("zebra quagga okapi"));
    let expected = [(2, 700), (2, 0), (2, 701), (2, 600), (1, 1_299), (0, 1_298)];
    assert_eq!(all, expected.map(|(session, seq)| place(&format!("a/{session}"), seq)));
    let by_users = found(LogSearch::new("zebra quagga okapi").of_role(Role::User));
    assert_eq!(by_users.last(), Some(&place("a/0", 1_298)));
    assert_eq!(by_users.len(), 5);
    let by_model = found(LogSearch::new("zebra quagga okapi").of_role(Role::Assistant));
    assert_eq!(by_model, [place("a/2", 701)]);
}
