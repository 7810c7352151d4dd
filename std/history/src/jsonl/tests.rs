//! Tests of the cache of sessions, and of the reads that it saves.

use std::fs;
use std::path::Path;

use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_message::Message;

use super::directory::Directory;
use super::options::{Fsync, JsonlOptions};
use super::read;
use super::report::Cuts;
use super::session::{execute, texts};
use crate::encryption::Vault;
use crate::kernel::{Extent, Op};
use crate::{Append, AppendToken, CompactionRecord, Entry, Loaded, SessionId, TokenCount};

fn open(folder: &Path) -> Directory {
    let options = JsonlOptions::default().with_fsync(Fsync::Never);
    Directory::open(folder, options, Vault::default(), Cuts::default()).unwrap()
}

fn run(directory: &mut Directory, session: &SessionId, op: Op<'_>) {
    execute(directory, session, &op, &texts(&op).unwrap()).unwrap();
}

fn load(directory: &mut Directory, session: &SessionId) -> Loaded {
    read::load(directory, session, Extent::All).unwrap()
}

/// Appends messages, a hundred at a time.
fn fill(directory: &mut Directory, session: &SessionId, from: u64, to: u64) {
    for first in (from..to).step_by(100) {
        let count = TokenCount::new(Tokens(10), Basis::Estimated, "test".into());
        let entries: Vec<Entry> = (first..to.min(first + 100))
            .map(|seq| {
                Entry::new(Message::user(format!("question {seq:09}")), Seq(seq), Turn(1), count.clone())
            })
            .collect();
        let token = AppendToken::new(first.to_string());
        run(directory, session, Op::Append(Append::new(&token, Seq(first), &entries), None));
    }
}

fn hide(directory: &mut Directory, session: &SessionId, parent: u64, first: u64, last: u64) {
    let mut record = CompactionRecord::new(Revision(parent), Seq(last + 1));
    record.hides = vec![SeqRange { first: Seq(first), last: Seq(last) }];
    run(directory, session, Op::commit(&record).unwrap());
}

#[test]
fn what_was_used_longest_ago_is_forgotten_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut directory = open(folder.path());
    directory.remembered_max = 250;
    let ids = ["a", "b", "c"].map(SessionId::new);
    for id in &ids {
        fill(&mut directory, id, 0, 100);
    }
    assert_eq!(directory.remembered(), ["b", "c"]);
    load(&mut directory, &ids[1]);
    assert_eq!(load(&mut directory, &ids[0]).live.len(), 100);
    assert_eq!(directory.remembered(), ["a", "b"]);
    // A session that is too large by itself is remembered alone.
    fill(&mut directory, &ids[2], 100, 400);
    assert_eq!(directory.remembered(), ["c"]);
    assert_eq!(load(&mut directory, &ids[2]).live.len(), 400);
}

/// Bytes and calls of this thread's reads of files so far.
#[cfg(target_os = "linux")]
fn reads() -> [u64; 2] {
    let counters = fs::read_to_string("/proc/thread-self/io").unwrap();
    ["rchar: ", "syscr: "].map(|name| {
        let line = counters.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    })
}

/// A session of 50 visible messages has the same cost, independent of its hidden messages.
#[cfg(target_os = "linux")]
#[test]
fn an_operation_reads_what_is_visible() {
    let folder = tempfile::tempdir().unwrap();
    let mut costs = Vec::new();
    for stored in [1_000, 10_000] {
        let (mut directory, id) = (open(folder.path()), SessionId::new(stored.to_string()));
        fill(&mut directory, &id, 0, stored);
        for (parent, first) in (0..).zip((0..stored - 50).step_by(190)) {
            hide(&mut directory, &id, parent, first, stored.min(first + 240) - 51);
        }
        let revision = load(&mut directory, &id).revision.0;
        let mut cost = |run: &mut dyn FnMut(&mut Directory)| {
            let before = reads();
            run(&mut directory);
            let after = reads();
            [after[0] - before[0], after[1] - before[1]]
        };
        costs.push([
            cost(&mut |directory| assert_eq!(load(directory, &id).live.len(), 50)),
            cost(&mut |directory| fill(directory, &id, stored, stored + 1)),
            cost(&mut |directory| hide(directory, &id, revision, stored - 50, stored - 50)),
            cost(&mut |directory| assert_eq!(load(directory, &id).live.len(), 50)),
        ]);
        // A new handle reads the whole file once.
        let size = fs::metadata(folder.path().join(format!("{stored}.jsonl"))).unwrap().len();
        let (before, mut other) = (reads(), open(folder.path()));
        load(&mut other, &id);
        assert!(reads()[0] - before[0] > size);
    }
    println!("{costs:?}");
    for (small, large) in costs[0].iter().zip(&costs[1]) {
        for (small, large) in small.iter().zip(large) {
            assert!(large * 10 <= small * 12, "{costs:?}");
        }
    }
}
