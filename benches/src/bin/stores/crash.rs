//! Kills a process while it writes, and checks that each acknowledged write is stored and no write is stored in part.

use core::time::Duration;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use epitome::core::{Revision, Seq};
use epitome::history::{CompactionRecord, Entry, HistoryStore, SessionId, StoreError, StoreErrorKind};
use epitome_conformance::fixtures::{record, summarized, summary};
use futures::executor::block_on;

use crate::sessions::{Dice, append, counters, for_each_logged, fresh, open, said};

/// Number of messages of one append, and of the messages that one commit newly hides.
const BATCH: u64 = 3;

/// Maximum number of messages of a session before the next session begins: each check reads the whole session.
const MESSAGES_MAX: u64 = 600;

/// Length of the cycle of changes: the revision modulo this length selects the next change.
const CYCLE: u64 = 4;

/// Writes without end. After an append, hides the messages of older appends behind one summary, undoes that, hides them
/// again, or prunes the hidden texts. Prints an acknowledgement after each write.
pub(crate) fn child(url: &str, session: &str) {
    let (store, session) = (open(url), SessionId::new(session));
    let (mut head, mut revision) = counters(&*store, &session);
    loop {
        head = append(&*store, &session, &head.to_string(), head, &entries(head)).unwrap();
        say(head, revision);
        revision = change(&*store, &session, (head, revision)).unwrap();
        say(head, revision);
    }
}

/// Makes the change that leads to the revision after `revision`, and returns the new revision.
fn change(
    store: &dyn HistoryStore,
    session: &SessionId,
    (head, revision): (u64, u64),
) -> Result<u64, StoreError> {
    let made = match revision % CYCLE {
        0 | 2 => block_on(store.commit(session, &compaction(revision, head)))?,
        1 => block_on(store.uncompact(session, Revision(revision)))?,
        _ => block_on(store.prune(session, Revision(revision)))?.revision,
    };
    Ok(made.0)
}

/// The expected contents of a session at a revision, for any head.
#[derive(Debug, Clone, Copy)]
struct Expected {
    revision: u64,
}

impl Expected {
    /// Number of batches with all changes of the cycle.
    const fn done(self) -> u64 {
        self.revision / CYCLE
    }

    /// Number of hidden messages.
    const fn hidden(self) -> u64 {
        let hides_next = matches!(self.revision % CYCLE, 1 | 3);
        (self.done() + hides_next as u64) * BATCH
    }

    /// The revision that hid a message.
    fn hidden_by(self, seq: u64) -> Option<Revision> {
        let first = seq / BATCH * CYCLE;
        let made = [first + 3, first + 1].into_iter().find(|made| *made <= self.revision);
        made.filter(|_| seq < self.hidden()).map(Revision)
    }

    /// The revision that deleted the text of a message.
    fn pruned_by(self, seq: u64) -> Option<Revision> {
        (seq < self.done() * BATCH).then(|| Revision((seq / BATCH + 1) * CYCLE))
    }

    /// Number of records.
    const fn records(self) -> u64 {
        2 * self.done() + (self.revision % CYCLE).div_ceil(2)
    }
}

fn entries(head: u64) -> Vec<Entry> {
    (head..head + BATCH).map(said).collect()
}

/// The record that leads to the revision after `revision`: it replaces the summary of the record before.
fn compaction(revision: u64, head: u64) -> CompactionRecord {
    let covers = (0, (revision / CYCLE + 1) * BATCH - 1);
    summarized(record(revision, head, &[covers]), &[&[covers]])
}

fn say(head: u64, revision: u64) {
    let mut out = std::io::stdout();
    writeln!(out, "acknowledged {head} {revision}").unwrap();
    out.flush().unwrap();
}

/// Kills `kills` children, and checks the session after each.
pub(crate) fn prove(url: &str, kills: u64) {
    let mut session = fresh("crash");
    let (mut acknowledged, mut unsaid, mut head) = (0, 0, 0);
    for kill in 0..kills {
        if head >= MESSAGES_MAX {
            block_on(open(url).delete(&session)).unwrap();
            session = fresh("crash");
        }
        let (said, writes) = killed(url, &session, &Dice::new(kill));
        acknowledged += writes;
        // A child begins with an append; then commits and appends alternate.
        let next = if writes % 2 == 0 { (said.0 + BATCH, said.1) } else { (said.0, said.1 + 1) };
        let found = check(url, &session, said, next);
        unsaid += u64::from(found != said);
        head = found.0;
    }
    block_on(open(url).delete(&session)).unwrap();
    println!(
        "crash: {kills} kills, {acknowledged} acknowledged writes all there; {unsaid} times the last write was whole \
         without having been acknowledged, never half"
    );
    assert!(acknowledged >= kills, "the children were killed before they wrote anything");
}

/// Lets a child write and kills it at a random moment. Returns the head and revision of its last acknowledgement, and
/// the number of acknowledgements.
fn killed(url: &str, session: &SessionId, dice: &Dice) -> ((u64, u64), u64) {
    let before = counters(&*open(url), session);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash-child", url, session.as_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut said, mut writes, kill_after) = (before, 0, 1 + dice.below(8));
    for line in lines.map_while(Result::ok) {
        let (head, revision) = line.strip_prefix("acknowledged ").and_then(|it| it.split_once(' ')).unwrap();
        said = (head.parse().unwrap(), revision.parse().unwrap());
        writes += 1;
        if writes == kill_after {
            kill_within(&mut child, Duration::from_micros(dice.below(4_000)));
        }
    }
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "the child has ended by itself: {status}");
    (said, writes)
}

/// Kills a child after `delay`. This waits busily, because a scheduler cannot wait for so short a time.
fn kill_within(child: &mut Child, delay: Duration) {
    let began = Instant::now();
    while began.elapsed() < delay {
        core::hint::spin_loop();
    }
    child.kill().unwrap();
}

/// Checks that the session is complete after the last acknowledged write, or after the next write. Returns which of the
/// two.
fn check(url: &str, session: &SessionId, acknowledged: (u64, u64), unsaid: (u64, u64)) -> (u64, u64) {
    let store = open(url);
    let loaded = match block_on(store.load(session)) {
        Err(error) if error.kind() == StoreErrorKind::NotFound && acknowledged.0 == 0 => return (0, 0),
        loaded => loaded.unwrap(),
    };
    let found = (loaded.head.0, loaded.revision.0);
    assert!(found == acknowledged || found == unsaid, "{found:?} after {acknowledged:?}");
    let (head, expected) = (found.0, Expected { revision: found.1 });
    let hidden = expected.hidden();
    let keys: Vec<u64> = loaded.live.iter().map(|live| live.key.0).collect();
    assert_eq!(keys, (0..head).filter(|seq| *seq >= hidden || *seq == 0).collect::<Vec<_>>());
    if hidden > 0 {
        assert_eq!(loaded.live[0].entry.message, summary(&[(0, hidden - 1)]).message);
    }
    let mut next = 0;
    for_each_logged(&*store, session, |logged| {
        let by = (expected.hidden_by(next), expected.pruned_by(next));
        assert_eq!((logged.hidden_by, logged.pruned_by), by, "{next} of {head}");
        let mut entry = said(next);
        if by.1.is_some() {
            entry.message = entry.message.into_pruned();
        }
        assert_eq!((logged.seq, &logged.entry), (Seq(next), &entry));
        next += 1;
    });
    assert_eq!(next, head);
    check_repetitions(&*store, session, found);
    found
}

/// Repeats the calls of a writer that has lost the last answers, and checks that nothing is done twice.
fn check_repetitions(store: &dyn HistoryStore, session: &SessionId, (head, revision): (u64, u64)) {
    let records = block_on(store.records(session, None, u32::MAX)).unwrap();
    let expected = Expected { revision };
    assert_eq!(records.len() as u64, expected.records());
    if let (Some(last), Some(first)) = (records.last(), head.checked_sub(BATCH)) {
        assert_eq!(block_on(store.commit(session, &last.record)).unwrap(), last.revision);
        assert_eq!(append(store, session, &first.to_string(), first, &entries(first)).unwrap(), head);
    }
    let begun = expected.done() * CYCLE;
    if revision - begun >= 2 {
        assert_eq!(change(store, session, (head, begun + 1)).unwrap(), begun + 2);
    }
    if revision == begun && begun > 0 {
        let again = block_on(store.prune(session, Revision(begun - 1))).unwrap();
        // The replaced summary, and the summary that was undone.
        let summaries = 1 + u64::from(begun > CYCLE);
        assert_eq!((again.revision.0, again.messages, again.summaries), (begun, BATCH, summaries));
    }
    assert_eq!(counters(store, session), (head, revision));
}
