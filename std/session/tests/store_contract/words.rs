//! The index of words that the searches of a store make: it finds what reading every message finds, and has no word of a deleted text.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::fs;

use async_trait::async_trait;
use epitome_conformance::index::{
    Dice, append_some, assert_found, assert_rare_first, assert_reused_id_found, change, hide_some, prune_some,
};
use epitome_core::message::Role;
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::kernel::scan;
use epitome_history::words::{
    Block, BlockRows, KeptWords, SPAN, SessionWords, WIDE_SPAN, places_in_rows, search_sessions,
};
use epitome_message::Message;
use epitome_message::search::{Postings, Term, query_terms};
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, Fsync, HistoryStore, JsonlOptions,
    JsonlStore, Loaded, LogPage, LogSearch, MemoryStore, SessionId, SessionInfo, StoreError, StoreErrorKind,
    TokenCount,
};
use futures::executor::block_on;

#[cfg(feature = "redis")]
use crate::redis_store::server::Room;
#[cfg(feature = "redis")]
use epitome_std::history::RedisStore;

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

/// Compares the blocks that are kept with blocks of the texts. Returns how many wide ones there are.
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

/// Random changes, with all searches after every so many of them.
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

fn indexes_removed_whole<S: core::fmt::Debug>(store: &S) -> bool {
    format!("{store:?}").starts_with("JsonlStore")
}

/// A prune removes the blocks that have words of it, and a deletion all.
async fn forgets_what_is_pruned<S: SessionWords>(store: &S) {
    let (mut dice, session) = (Dice::new(9), SessionId::new("s"));
    let first = Block { first: 0, span: SPAN };
    append_some(store, &session, 2_000, &mut dice).await;
    let search = LogSearch::new("common1").in_session(session.clone());
    store.search(&search).await.unwrap();
    assert_eq!(kept(store, &session).await.len(), 7);
    let before = store.words(&session, &[first], &terms()).await.unwrap().unwrap().stamp;
    prune_some(store, &session, 300).await;
    let left: Vec<i64> = kept(store, &session).await.iter().map(|(block, _)| block.first / SPAN).collect();
    // A file is removed whole.
    let is_file = indexes_removed_whole(store);
    assert!(if is_file { left.is_empty() } else { !left.contains(&0) && left.contains(&6) }, "{left:?}");
    // Rows that were made of the texts before the prune come too late.
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

/// Many small sessions, borders of blocks, and a rare word behind thousands of a common one.
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

/// A test of each on a fresh store.
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

tests! { finds_what_reading_finds forgets_what_is_pruned finds_at_the_borders }

/// To read every message takes long on a server.
#[cfg(feature = "redis")]
#[test]
fn a_search_on_a_server_finds_what_reading_finds() {
    let Some(room) = Room::new() else { return };
    block_on(finds_among_changes(&room.store(), 9));
}

#[cfg(feature = "redis")]
#[test]
fn a_server_forgets_what_is_pruned() {
    let Some(room) = Room::new() else { return };
    block_on(forgets_what_is_pruned(&room.store()));
    let store = room.store();
    block_on(store.delete(&SessionId::new("s"))).unwrap();
    assert!(room.keys().iter().all(|key| !key.contains(":words:")), "{:?}", room.keys());
}

/// What others wrote into the hash of the index is read over, and a session that ends takes the index with it.
#[cfg(feature = "redis")]
#[test]
fn a_damaged_index_on_a_server_is_written_anew() {
    let Some(room) = Room::new() else { return };
    let session = SessionId::new("s");
    let hours = core::time::Duration::from_secs(7_200);
    let store = RedisStore::open(&room.url, room.options().with_ttl(hours)).unwrap();
    block_on(append_some(&store, &session, 5_200, &mut Dice::new(7)));
    let search = LogSearch::new(WORDS).in_session(session.clone());
    let found = block_on(store.search(&search)).unwrap();
    let (key, mut connection) = (room.key("words"), room.connection());
    let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
    assert!(left > 7_100_000, "{left}");
    let fields: Vec<String> = redis::cmd("HKEYS").arg(&key).query(&mut connection).unwrap();
    assert!(fields.len() > 10 && fields.contains(&"0.4096".to_owned()), "{fields:?}");
    for damage in [&b""[..], b"\0", b"12345678", b"0123456789abcdef0123"] {
        for field in &fields {
            let whole: Vec<u8> = redis::cmd("HGET").arg(&key).arg(field).query(&mut connection).unwrap();
            redis::cmd("HSET").arg(&key).arg(field).arg(damage).exec(&mut connection).unwrap();
            assert_eq!(block_on(store.search(&search)).unwrap(), found, "{field} is {damage:?}");
            // The search has written what it looked up, and nothing else.
            redis::cmd("HSET").arg(&key).arg(field).arg(whole).exec(&mut connection).unwrap();
        }
    }
    redis::cmd("SET").arg(&key).arg("a text").exec(&mut connection).unwrap();
    assert_eq!(block_on(store.search(&search)).unwrap(), found);
    let kind: String = redis::cmd("TYPE").arg(&key).query(&mut connection).unwrap();
    assert_eq!(kind, "hash");
    redis::cmd("SET").arg(&key).arg("a text").exec(&mut connection).unwrap();
    block_on(append_some(&store, &session, 2, &mut Dice::new(7)));
    assert_eq!(block_on(kept(&store, &session)), []);
    // A damaged index does not keep the words of a text that a prune deletes.
    let search_again = || block_on(store.search(&search)).unwrap();
    search_again();
    redis::cmd("HSET").arg(&key).arg("0.4096").arg("12345678").exec(&mut connection).unwrap();
    block_on(prune_some(&store, &session, 10));
    let left: Vec<String> = redis::cmd("HKEYS").arg(&key).query(&mut connection).unwrap();
    assert_eq!(left, Vec::<String>::new());
    search_again();
    assert!(!block_on(kept(&store, &session)).is_empty());
    block_on(assert_kept(&store, &session));
}

/// The names of the files that are no sessions.
fn indexes(folder: &std::path::Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|found| found.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".jsonl")).collect()
}

#[test]
fn a_damaged_file_of_words_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (store, mut dice, session) = (jsonl(folder.path()), Dice::new(7), SessionId::new("s"));
    block_on(async {
        append_some(&store, &session, 5_200, &mut dice).await;
        let search = LogSearch::new(WORDS).in_session(session.clone());
        let found = store.search(&search).await.unwrap();
        assert_eq!(indexes(folder.path()), ["s.jsonl.words"]);
        let path = folder.path().join("s.jsonl.words");
        let whole = fs::read(&path).unwrap();
        let first = Block { first: 0, span: WIDE_SPAN };
        for _ in 0..60 {
            let mut bytes = whole.clone();
            let at = usize::try_from(dice.below(whole.len() as u64)).unwrap();
            match dice.below(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << dice.below(8),
                _ => bytes[at % 60] = dice.below(256) as u8,
            }
            fs::write(&path, &bytes).unwrap();
            assert_eq!(store.search(&search).await.unwrap(), found, "damaged at {at}");
            assert!(kept(&store, &session).await.iter().any(|(block, _)| *block == first));
            assert_kept(&store, &session).await;
        }
        // The index of another file is no index of this one.
        let other = SessionId::new("other");
        append_some(&store, &other, 5_200, &mut dice).await;
        fs::write(folder.path().join("other.jsonl.words"), &whole).unwrap();
        assert_eq!(kept(&store, &other).await, []);
        assert_found(&store, &other, "other").await;
    });
}

#[test]
fn an_index_in_a_file_serves_other_handles_and_goes_with_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::new("s");
    block_on(async {
        let store = jsonl(folder.path());
        append_some(&store, &session, 2_000, &mut Dice::new(5)).await;
        let search = LogSearch::new("common3 w17").in_session(session.clone());
        let found = store.search(&search).await.unwrap();
        let other = jsonl(folder.path());
        assert_eq!(kept(&other, &session).await.len(), 7);
        assert_eq!(other.search(&search).await.unwrap(), found);
        // The other handle deletes texts: no file has a word of them afterwards.
        prune_some(&other, &session, 2_000).await;
        assert_eq!(indexes(folder.path()), Vec::<String>::new());
        assert_found(&store, &session, "s").await;
        assert_eq!(indexes(folder.path()), ["s.jsonl.words"]);
        assert!(other.delete(&session).await.unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    });
}

/// An index would name the words, so that an encrypted store has none.
#[cfg(feature = "encryption")]
#[test]
fn an_encrypted_folder_has_no_index() {
    let folder = tempfile::tempdir().unwrap();
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    let store = JsonlStore::open_encrypted(folder.path(), options, crate::subjects::key(1)).unwrap();
    block_on(async {
        append_some(&store, &SessionId::new("s"), 2_000, &mut Dice::new(5)).await;
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
    });
    assert_eq!(indexes(folder.path()), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_searched() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let folder = tempfile::tempdir().unwrap();
    let store = jsonl(folder.path());
    block_on(async {
        append_some(&store, &SessionId::new("s"), 2_000, &mut Dice::new(5)).await;
        // A folder in the place of the file: it cannot be written by root either.
        fs::create_dir(folder.path().join("s.jsonl.words")).unwrap();
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
        fs::remove_dir(folder.path().join("s.jsonl.words")).unwrap();
        assert!(assert_found(&store, &SessionId::new("s"), "s").await > 0);
    });
    let index = fs::metadata(folder.path().join("s.jsonl.words")).unwrap();
    assert_eq!(index.permissions().mode() & 0o777, 0o600);
    assert!(index.size() > 1_000);
}

/// The documented repair of a damaged file cuts it. The index of the lines that are gone is none of those that come in their place.
#[test]
fn a_file_that_was_cut_has_no_index_of_what_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::new("s");
    let path = folder.path().join("s.jsonl");
    let count = TokenCount::new(Tokens(1), Basis::Estimated, "c".into());
    // The same texts in the same places, but for one.
    let say = async |store: &JsonlStore, token: &str, word: &str| {
        let text = |seq| if seq == 1_150 { word } else { "common1" };
        let entry = |seq| Entry::new(Message::user(text(seq)), Seq(seq), Turn(1), count.clone());
        let entries: Vec<Entry> = (1_100..1_400).map(entry).collect();
        store.append(&session, &Append::new(&AppendToken::new(token), Seq(1_100), &entries)).await.unwrap();
    };
    block_on(async {
        let store = jsonl(folder.path());
        append_some(&store, &session, 1_100, &mut Dice::new(11)).await;
        let whole = fs::metadata(&path).unwrap().len();
        say(&store, "one", "w17").await;
        assert_found(&store, &session, "s").await;
        assert_eq!(kept(&store, &session).await.len(), 5);
        fs::File::options().write(true).open(&path).unwrap().set_len(whole).unwrap();
        let store = jsonl(folder.path());
        say(&store, "two", "w18").await;
        assert_eq!(kept(&store, &session).await.len(), 4);
        assert_found(&store, &session, "s").await;
        assert_eq!(kept(&store, &session).await.len(), 5);
        assert_kept(&store, &session).await;
    });
}

/// A store in memory whose head is that of another time, and which may refuse to write the index.
#[derive(Debug, Default)]
struct Front {
    inner: MemoryStore,
    head: Option<Seq>,
    is_read_only: bool,
    pages: AtomicUsize,
    refused: AtomicUsize,
}

#[async_trait]
impl HistoryStore for Front {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.inner.append(session, append).await
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.inner.load(session).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.inner.appended(session, token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.inner.commit(session, record).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.inner.log(session, range, limit).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.inner.records(session, after, limit).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        self.inner.list(after, limit).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.inner.delete(session).await
    }
}

impl SessionWords for Front {
    async fn head(&self, session: &SessionId) -> Result<Option<Seq>, StoreError> {
        let head = SessionWords::head(&self.inner, session).await?;
        Ok(self.head.or(head))
    }

    async fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> Result<Option<KeptWords>, StoreError> {
        self.inner.words(session, blocks, terms).await
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        if self.is_read_only {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::new(StoreErrorKind::Unavailable, "it is read-only"));
        }
        self.inner.keep_words(session, stamp, block, rows).await
    }
}

/// The end of a session is no neighbour of the beginning of the next one, nor a message of another role.
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
    let expected = [(2, 700), (2, 0), (2, 701), (2, 600), (1, 1_299)];
    assert_eq!(all, expected.map(|(session, seq)| place(&format!("a/{session}"), seq)));
    let by_users = found(LogSearch::new("zebra quagga okapi").of_role(Role::User));
    assert_eq!(by_users.last(), Some(&place("a/1", 1_299)));
    assert_eq!(by_users.len(), 4);
    let by_model = found(LogSearch::new("zebra quagga okapi").of_role(Role::Assistant));
    assert_eq!(by_model, [place("a/2", 701)]);
}

/// A session was deleted and begun again between the list of a search and its look at the session: no short block is kept as a whole one.
#[test]
fn a_session_that_became_shorter_is_not_indexed_beyond_its_head() {
    block_on(async {
        let (mut store, session) =
            (Front { head: Some(Seq(5_000)), ..Front::default() }, SessionId::new("s"));
        append_some(&store, &session, 300, &mut Dice::new(3)).await;
        let search = LogSearch::new(WORDS).in_session(session.clone()).with_limit(u32::MAX);
        search_sessions(&store, &search).await.unwrap();
        store.head = None;
        append_some(&store, &session, 4_200, &mut Dice::new(4)).await;
        let found = search_sessions(&store, &search).await.unwrap();
        assert_eq!(found.len(), scan(&store, &search).await.unwrap().len());
        assert_kept(&store.inner, &session).await;
    });
}

/// Where the index cannot be written, a search reads each message once, and one block before it knows.
#[test]
fn a_store_that_cannot_be_written_is_read_once() {
    block_on(async {
        let (store, session) = (Front { is_read_only: true, ..Front::default() }, SessionId::new("s"));
        for _ in 0..3 {
            append_some(&store, &session, 4_096 * 10, &mut Dice::new(3)).await;
        }
        let search = LogSearch::new(WORDS).in_session(session.clone());
        let expected = scan(&store, &search).await.unwrap();
        let scanned = store.pages.swap(0, Ordering::Relaxed);
        assert_eq!(search_sessions(&store, &search).await.unwrap(), expected);
        assert_eq!(store.refused.load(Ordering::Relaxed), 1);
        // One wide block was read, sixteen pages of it, and the group at its beginning.
        let pages = store.pages.load(Ordering::Relaxed);
        assert!(pages > scanned && pages <= scanned + 20, "{pages} pages, {scanned} for all messages");
    });
}
