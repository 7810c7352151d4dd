//! Stores: appending and loading.

use core::error::Error;
use core::time::Duration;

use epitome::core::attribution::SeqRange;
use epitome::core::message::Role;
use epitome::core::{Head, Seq};
use epitome::std::history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, MemoryStore, SessionId, SqliteStore,
};
use epitome_benches::compare::clock::grouped;
use epitome_benches::generated::Message;
use epitome_benches::steps;
use futures::executor::block_on;

use crate::Sizes;
use crate::table::{Table, median, ms, ratio};

/// How many messages a load finds.
const VISIBLE: usize = 200;
const APPENDED: usize = 100;
const BATCH: usize = 1_000;

pub(crate) fn run(history: &[Message<'_>], sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let entries = steps::entries(&history[..sizes.stored.min(history.len())]);
    let short = entries.len().min(1_000);
    let folder = tempfile::tempdir()?;
    let memory = MemoryStore::new();
    let sqlite = SqliteStore::open(folder.path().join("sessions.db"))?;
    let stores: [(&str, &dyn HistoryStore); 2] = [("MemoryStore", &memory), ("SqliteStore", &sqlite)];
    for (name, store) in stores {
        let short = session(store, "short", &entries[..short], sizes.rounds)?;
        let long = session(store, "long", &entries, sizes.rounds)?;
        let loading = ratio(long.loading, short.loading);
        table.row(
            &format!("{name}: append {APPENDED} messages; load {VISIBLE} visible of {}, of {}", grouped(short.stored), grouped(long.stored)),
            &format!("{}; {}, {}", ms(long.appending), ms(short.loading), ms(long.loading)),
            Some(("the last <= 2x the one before", loading <= 2.0)),
            "shows one acknowledged step of a run, and a load when nearly all is hidden; matters because a load must \
             cost what is visible, not what was ever said",
        );
    }
    Ok(())
}

struct Times {
    stored: usize,
    appending: Duration,
    loading: Duration,
}

/// Fills a session, hides all but its newest messages, loads it, and appends to it.
fn session(
    store: &dyn HistoryStore,
    name: &str,
    entries: &[Entry],
    rounds: usize,
) -> Result<Times, Box<dyn Error>> {
    let id = SessionId::new(name);
    let mut head = Head::default();
    for (at, batch) in entries.chunks(BATCH).enumerate() {
        head =
            block_on(store.append(&id, &Append::new(&AppendToken::new(format!("{at}")), head, batch)))?.head;
    }
    let first_visible = first_of_turn(entries, entries.len().saturating_sub(VISIBLE));
    let mut record = CompactionRecord::new(Default::default(), head);
    record.hides.push(SeqRange { first: Seq(0), last: Seq(first_visible as u64 - 1) });
    block_on(store.commit(&id, &record))?;
    let loaded = block_on(store.load(&id))?;
    let (live, kept) = (loaded.live.iter().map(|live| &live.entry), entries[first_visible..].iter());
    assert!(live.eq(kept), "what is loaded is what was not hidden");
    let loading = median(rounds * 5, || block_on(store.load(&id)).unwrap());

    let base = entries.len() as u64;
    let mut round = 0_u64;
    let batches: Vec<Vec<Entry>> = (0..rounds as u64)
        .map(|round| {
            let moved = |entry: &Entry, by: u64| {
                let mut entry = entry.clone();
                entry.anchor = Seq(entry.anchor.0 + by);
                entry
            };
            let by = base + round * APPENDED as u64;
            entries[..APPENDED].iter().map(|entry| moved(entry, by)).collect()
        })
        .collect();
    let appending = median(rounds, || {
        let token = AppendToken::new(format!("round-{round}"));
        let batch = &batches[round as usize];
        head = block_on(store.append(&id, &Append::new(&token, head, batch))).unwrap().head;
        round += 1;
    });
    Ok(Times { stored: entries.len(), appending, loading })
}

fn first_of_turn(entries: &[Entry], from: usize) -> usize {
    let found = entries.iter().skip(from).position(|entry| entry.message.role() == Role::User);
    from + found.unwrap_or(0)
}
