//! Measures stores: appends and loads.

use core::error::Error;
use core::time::Duration;

use epitome::core::attribution::SeqRange;
use epitome::core::message::Role;
use epitome::core::{Head, Seq};
use epitome::history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, MemoryStore, SessionId, SqliteStore,
};
use epitome_benches::compare::clock::grouped;
use epitome_benches::generated::Message;
use epitome_benches::steps;
use futures::executor::block_on;

use crate::Sizes;
use crate::table::{Table, median, middle, ms, ratio, timed};

/// Number of visible messages that a load finds.
const VISIBLE: usize = 200;
const APPENDED: usize = 100;
const BATCH: usize = 1_000;

pub(crate) fn run(history: &[Message<'_>], sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let entries = steps::entries(&history[..sizes.stored.min(history.len())]);
    // The short session is the end of the long one: a load returns the same texts for both.
    let short = first_of_turn(&entries, entries.len().saturating_sub(1_000));
    let short = moved(&entries[short..], 0);
    let folder = tempfile::tempdir()?;
    let memory = MemoryStore::new();
    let sqlite = SqliteStore::open(folder.path().join("sessions.db"))?;
    let stores: [(&str, &dyn HistoryStore); 2] = [("MemoryStore", &memory), ("SqliteStore", &sqlite)];
    for (name, store) in stores {
        let (short_id, _) = filled(store, "short", &short)?;
        let (long_id, head) = filled(store, "long", &entries)?;
        // In turns, so that both loads have the same state of the heap.
        let (mut of_short, mut of_long) = (Vec::new(), Vec::new());
        for _ in 0..sizes.rounds * 5 {
            of_short.push(timed(|| block_on(store.load(&short_id)).unwrap()));
            of_long.push(timed(|| block_on(store.load(&long_id)).unwrap()));
        }
        let (of_short, of_long) = (middle(of_short), middle(of_long));
        let appending = appending(store, &long_id, head, &entries, sizes.rounds);
        table.row(
            &format!(
                "{name}: append {APPENDED} messages; load {VISIBLE} visible of {}, of {}",
                grouped(short.len()),
                grouped(entries.len())
            ),
            &format!("{}; {}, {}", ms(appending), ms(of_short), ms(of_long)),
            Some(("the last <= 2x the one before", ratio(of_long, of_short) <= 2.0)),
            "shows one acknowledged step of a run, and a load when nearly all is hidden; matters because a load must \
             cost what is visible, not what was ever said",
        );
    }
    Ok(())
}

/// Makes a session with `entries`. The newest entries and the instructions, which come first, are visible; all others
/// are hidden.
fn filled(
    store: &dyn HistoryStore,
    name: &str,
    entries: &[Entry],
) -> Result<(SessionId, Head), Box<dyn Error>> {
    let id = SessionId::new(name);
    let mut head = Head::default();
    for (at, batch) in entries.chunks(BATCH).enumerate() {
        head =
            block_on(store.append(&id, &Append::new(&AppendToken::new(format!("{at}")), head, batch)))?.head;
    }
    let first_visible = first_of_turn(entries, entries.len().saturating_sub(VISIBLE));
    let mut record = CompactionRecord::new(Default::default(), head);
    record.hides.push(SeqRange { first: Seq(1), last: Seq(first_visible as u64 - 1) });
    block_on(store.commit(&id, &record))?;
    let loaded = block_on(store.load(&id))?;
    let (live, kept) = (loaded.live.iter().map(|live| &live.entry), &entries[first_visible..]);
    let kept = entries[..1].iter().chain(kept);
    assert!(live.eq(kept), "what is loaded is what was not hidden");
    Ok((id, head))
}

fn appending(
    store: &dyn HistoryStore,
    id: &SessionId,
    mut head: Head,
    entries: &[Entry],
    rounds: usize,
) -> Duration {
    let batches: Vec<_> = (0..rounds as u64)
        .map(|round| {
            let token = AppendToken::new(format!("round-{round}"));
            (token, moved(&entries[..APPENDED], entries.len() as u64 + round * APPENDED as u64))
        })
        .collect();
    let mut batches = batches.iter();
    median(rounds, || {
        let (token, batch) = batches.next().unwrap();
        head = block_on(store.append(id, &Append::new(token, head, batch))).unwrap().head;
    })
}

/// The entries with their anchors shifted, for a session in which they begin at `first`.
fn moved(entries: &[Entry], first: u64) -> Vec<Entry> {
    let was = entries.first().map_or(0, |entry| entry.anchor.0);
    let mut moved = entries.to_vec();
    moved.iter_mut().for_each(|entry| entry.anchor = Seq(entry.anchor.0 - was + first));
    moved
}

fn first_of_turn(entries: &[Entry], from: usize) -> usize {
    let found = entries.iter().skip(from).position(|entry| entry.message.role() == Role::User);
    from + found.unwrap_or(0)
}
