//! Counts that are stored with their messages, and the cases in which they are counted again.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use epitome_core::{Basis, TokenCounter, Tokens, count_message};
use epitome_std::history::{AppendToken, History, HistoryStore, SessionId, SqliteStore};
use epitome_std::message::Message;
use futures::executor::block_on;

/// Counts a text as its bytes divided by `bytes`, and records the number of counts.
struct Spy {
    name: &'static str,
    bytes: usize,
    asked: AtomicUsize,
}

impl Spy {
    fn new(name: &'static str, bytes: usize) -> Arc<Self> {
        Arc::new(Self { name, bytes, asked: AtomicUsize::new(0) })
    }

    /// Number of counts since the last call.
    fn take(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

impl TokenCounter for Spy {
    fn name(&self) -> &str {
        self.name
    }

    fn basis(&self) -> Basis {
        Basis::Counted
    }

    fn count(&self, text: &str) -> Tokens {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Tokens::from_u64(text.len().div_ceil(self.bytes) as u64)
    }
}

fn said() -> Vec<Message> {
    let words = |at: usize| "word ".repeat(at + 1);
    (0..20)
        .map(|at| if at % 2 == 0 { Message::user(words(at)) } else { Message::assistant(words(at)) })
        .collect()
}

/// Opens the file again, as another process would.
fn open(path: &std::path::Path, counter: &Arc<Spy>) -> (Arc<dyn HistoryStore>, History) {
    let store: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open(path).unwrap());
    let counter: Arc<dyn TokenCounter + Send + Sync> = Arc::clone(counter) as _;
    let history = block_on(History::open(Arc::clone(&store), SessionId::new("session"), counter)).unwrap();
    (store, history)
}

/// The names of the counters that the file has for its messages, and the sum of the counts.
fn stored(store: &Arc<dyn HistoryStore>) -> (Vec<String>, u64) {
    let loaded = block_on(store.load(&SessionId::new("session"))).unwrap();
    let counts = || loaded.live.iter().map(|live| &live.entry.count);
    (
        counts().map(|count| count.counter.to_string()).collect(),
        counts().map(|count| count.tokens.as_u64()).sum(),
    )
}

#[test]
fn a_file_is_counted_once_by_each_counter_that_opens_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let (bytes, fours) = (Spy::new("bytes", 1), Spy::new("fours", 4));
    let sum = |spy: &Spy| said().iter().map(|message| count_message(message, spy).as_u64()).sum::<u64>();
    let (by_bytes, by_fours) = (sum(&bytes), sum(&fours));
    bytes.take();
    fours.take();

    let (store, mut history) = open(&path, &bytes);
    block_on(history.append(&AppendToken::new("a"), said())).unwrap();
    assert_eq!((bytes.take(), history.index().tokens()), (20, by_bytes));
    assert_eq!(stored(&store), (vec!["bytes".to_owned(); 20], by_bytes));
    drop((store, history));

    // The same counter reuses the stored counts.
    let (store, history) = open(&path, &bytes);
    assert_eq!((bytes.take(), history.index().tokens()), (0, by_bytes));
    drop((store, history));

    // Another counter counts each message again, once; its counts also apply to its appends.
    let (store, mut history) = open(&path, &fours);
    assert_eq!((fours.take(), history.index().tokens()), (20, by_fours));
    block_on(history.append(&AppendToken::new("b"), vec![Message::user("one more")])).unwrap();
    assert_eq!((fours.take(), stored(&store).0.last().map(String::as_str)), (1, Some("fours")));
    drop((store, history));

    // The first counter counts only the messages that the other one has counted.
    let (_store, history) = open(&path, &bytes);
    assert_eq!(bytes.take(), 1);
    let more = count_message(&Message::user("one more"), &*bytes).as_u64();
    assert_eq!(history.index().tokens(), by_bytes + more);
}
