//! Many writers and compactors on one session: no message is lost or duplicated, and every writer makes progress.

use core::time::Duration;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use epitome::core::Seq;
use epitome::history::{HistoryStore, SessionId, StoreError, StoreErrorKind};
use epitome::message::{Message, Part};
use epitome_conformance::fixtures::{entry, record, summarized};
use futures::executor::block_on;

use crate::option;
use crate::sessions::{append, counters, for_each_logged, fresh, in_its_turn, open};

/// Number of messages of a session that a compactor leaves visible.
const KEPT: u64 = 20;

/// Maximum ratio of the writes of the fastest writer to those of the slowest.
const MOST_OVER_LEAST: u64 = 10;

/// Minimum number of writes of each writer, without regard to time: on a busy machine, the number of writes in the
/// given time is too small to compare shares.
const WRITES_MIN: u64 = 10;

#[derive(Debug, Clone)]
pub(crate) struct Options {
    millis: u64,
    processes: u64,
    writers: u64,
    compactors: u64,
    /// Number of the first writer in this process.
    first: u64,
}

impl Options {
    pub(crate) fn of(words: &[&str]) -> Self {
        Self {
            millis: option(words, "--millis", 1_000 * option(words, "--seconds", 30)),
            processes: option(words, "--processes", 1),
            writers: option(words, "--writers", 16),
            compactors: option(words, "--compactors", 4),
            first: option(words, "--first", 0),
        }
    }

    /// The options for the process of this number.
    fn share(&self, process: u64) -> Self {
        let share_of = |all: u64, process| all / self.processes + u64::from(process < all % self.processes);
        let (writers, compactors) = (share_of(self.writers, process), share_of(self.compactors, process));
        let first = (0..process).map(|earlier| share_of(self.writers, earlier)).sum();
        Self { processes: 1, writers, compactors, first, ..self.clone() }
    }

    fn words(&self) -> Vec<String> {
        let words = [("millis", self.millis), ("writers", self.writers), ("compactors", self.compactors)];
        let words = words.into_iter().chain([("first", self.first)]);
        words.flat_map(|(name, value)| [format!("--{name}"), value.to_string()]).collect()
    }
}

/// The work of one thread.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// The writer; `None` for a compactor.
    writer: Option<u64>,
    acknowledged: u64,
    conflicts: u64,
}

pub(crate) fn prove(url: &str, options: &Options) {
    let session = fresh("writers");
    let store = open(url);
    let done: Vec<Done> = if options.processes == 1 {
        run(&store, &session, options)
    } else {
        assert!(!url.starts_with("memory:"), "a store in memory is of one process");
        let share = |process| thread::spawn(worker(url, &session, &options.share(process)));
        let children: Vec<_> = (0..options.processes).map(share).collect();
        children.into_iter().flat_map(|child| child.join().unwrap()).collect()
    };
    let written = check(&*store, &session, &done);
    block_on(store.delete(&session)).unwrap();
    let writers = || done.iter().filter(|done| done.writer.is_some());
    let (least, most) =
        (writers().map(|it| it.acknowledged).min(), writers().map(|it| it.acknowledged).max());
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    let commits: u64 = done.iter().filter(|done| done.writer.is_none()).map(|done| done.acknowledged).sum();
    let conflicts: u64 = done.iter().map(|done| done.conflicts).sum();
    println!(
        "writers: {} writers and {} compactors in {} processes, {} ms: {written} appends, {commits} commits, {conflicts} \
         conflicts; nothing lost, nothing twice, in order; the busiest {most}, the slowest {least}",
        options.writers, options.compactors, options.processes, options.millis
    );
    assert!(least > 0 && most <= MOST_OVER_LEAST * least, "{most} over {least}");
    assert!(options.compactors == 0 || commits > 0);
}

/// Runs a share in a separate process, and reads its output.
fn worker(url: &str, session: &SessionId, share: &Options) -> impl FnOnce() -> Vec<Done> + use<> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["writers-child", url, session.as_str()]).args(share.words()).stdout(Stdio::piped());
    move || {
        let mut child = child.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let done = lines.map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
            let writer = (numbers[0] != u64::MAX).then_some(numbers[0]);
            Done { writer, acknowledged: numbers[1], conflicts: numbers[2] }
        });
        let done = done.collect();
        assert!(child.wait().unwrap().success());
        done
    }
}

pub(crate) fn child(url: &str, session: &str, options: &Options) {
    for done in run(&open(url), &SessionId::new(session), options) {
        println!("{} {} {}", done.writer.unwrap_or(u64::MAX), done.acknowledged, done.conflicts);
    }
}

/// Runs each writer and each compactor in a thread.
fn run(store: &Arc<dyn HistoryStore>, session: &SessionId, options: &Options) -> Vec<Done> {
    let end = Instant::now() + Duration::from_millis(options.millis);
    thread::scope(|scope| {
        let writers = (options.first..options.first + options.writers)
            .map(|writer| scope.spawn(move || write(&**store, session, writer, end)));
        let compactors =
            (0..options.compactors).map(|it| scope.spawn(move || compact(&**store, session, it, end)));
        let threads: Vec<_> = writers.chain(compactors).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn write(store: &dyn HistoryStore, session: &SessionId, writer: u64, end: Instant) -> Done {
    let mut done = Done { writer: Some(writer), acknowledged: 0, conflicts: 0 };
    while Instant::now() < end || done.acknowledged < WRITES_MIN {
        let (head, _) = counters(store, session);
        let words = format!("{writer} {}", done.acknowledged);
        let said = in_its_turn(entry(Message::user(words.as_str()), head, 1), head);
        done.count(append(store, session, &words, head, &[said]));
    }
    done
}

/// Replaces all visible messages by one summary, except the newest messages.
fn compact(store: &dyn HistoryStore, session: &SessionId, compactor: u64, end: Instant) -> Done {
    let mut done = Done { writer: None, acknowledged: 0, conflicts: 0 };
    while Instant::now() < end {
        let (head, revision) = counters(store, session);
        let visible = match block_on(store.load(session)) {
            Ok(loaded) if loaded.revision.0 == revision => loaded.live,
            Ok(_) => continue,
            Err(error) if error.kind() == StoreErrorKind::NotFound => continue,
            Err(error) => panic!("{error}"),
        };
        let newest_covered =
            visible.first().and_then(|live| live.covers.last()).map_or(0, |range| range.last.0);
        let Some(last) = head.checked_sub(KEPT).filter(|last| *last > newest_covered) else {
            thread::yield_now();
            continue;
        };
        let mut record = summarized(record(revision, head, &[(0, last)]), &[&[(0, last)]]);
        // Two compactors with equal records would both succeed, so each record is different.
        let words = format!("by {compactor} of {}", std::process::id());
        let summary = &mut record.summaries[0];
        summary.message = summary.message.clone().with_parts(vec![Part::Text(words.into())]);
        done.count(block_on(store.commit(session, &record)));
    }
    done
}

impl Done {
    fn count<T>(&mut self, result: Result<T, StoreError>) {
        match result {
            Ok(_) => self.acknowledged += 1,
            Err(error) if error.kind() == StoreErrorKind::Conflict => self.conflicts += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks the log and the projection. The log has the messages of every writer once and in its order; every commit is a
/// record; the visible messages are those that the last commit left. Returns the number of messages.
fn check(store: &dyn HistoryStore, session: &SessionId, done: &[Done]) -> u64 {
    let writers = done.iter().filter_map(|done| done.writer).max().unwrap_or(0) + 1;
    let mut next = vec![0; usize::try_from(writers).unwrap()];
    let mut visible = Vec::new();
    for_each_logged(store, session, |logged| {
        let [Part::Text(said)] = logged.entry.message.parts() else {
            panic!("{} says something else", logged.seq)
        };
        let (writer, number) = said.split_once(' ').unwrap();
        let due = &mut next[writer.parse::<usize>().unwrap()];
        assert_eq!(number.parse::<u64>().unwrap(), *due, "of writer {writer} at {}", logged.seq);
        *due += 1;
        visible.extend(logged.hidden_by.is_none().then_some(logged.seq));
    });
    for done in done.iter().filter(|done| done.writer.is_some()) {
        let writer = usize::try_from(done.writer.unwrap()).unwrap();
        assert_eq!(next[writer], done.acknowledged, "of writer {writer}");
    }
    let commits: u64 = done.iter().filter(|done| done.writer.is_none()).map(|done| done.acknowledged).sum();
    let records = block_on(store.records(session, None, u32::MAX)).unwrap();
    assert_eq!(records.len() as u64, commits);
    let loaded = block_on(store.load(session)).unwrap();
    let written: u64 = next.iter().sum();
    assert_eq!((loaded.head, loaded.revision.0), (Seq(written), commits));
    if let Some(last) = records.last() {
        visible.insert(0, Seq(0));
        assert_eq!(loaded.live[0].entry.message, last.record.summaries[0].message);
    }
    assert_eq!(loaded.live.iter().map(|live| live.key).collect::<Vec<_>>(), visible);
    written
}
