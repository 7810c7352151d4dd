//! Costs of a session with 200 visible messages, for logs of different lengths.

use core::time::Duration;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use epitome::core::Seq;
use epitome::history::{Entry, HistoryStore, SessionId};
use epitome_conformance::fixtures::{count, user};
use futures::executor::block_on;
use wait4::Wait4;

use crate::meter::{Counts, Meter};
use crate::sessions::{append, for_each_logged, fresh, hide, in_its_turn, open};

/// Number of visible messages.
const VISIBLE: u64 = 200;

/// Number of messages of one append while a session is filled.
const FILL: u64 = 1_000;

/// Number of compactions of the session that measures the effect of compactions.
const COMPACTIONS: u64 = 1_000;

/// Approximate length of a log line with a message of a few words, in bytes.
const LINE: usize = 400;

/// A filled session.
struct Filled {
    name: String,
    session: SessionId,
    head: u64,
    revision: u64,
}

/// Medians.
struct Figures {
    load: Duration,
    append: Duration,
    commit: Duration,
    cold: Option<Duration>,
}

pub(crate) fn measure(url: &str, sizes: &[u64], rounds: u32, most: f64) {
    let store = open(url);
    let mut sessions: Vec<Filled> = sizes.iter().map(|size| filled(&*store, *size)).collect();
    sessions.push(compacted(&*store));
    // All sessions have the same visible texts, so that the costs of the texts are the same.
    let texts = |filled: &Filled| -> Vec<_> {
        let live = block_on(store.load(&filled.session)).unwrap().live;
        live.into_iter().map(|live| live.entry.message).collect()
    };
    let first = texts(&sessions[0]);
    assert_eq!(first.len() as u64, VISIBLE);
    assert!(sessions.iter().all(|filled| texts(filled) == first));
    let is_kept = url != "memory:";
    // The counts would include the work of another handle.
    let waits = (!is_kept).then_some(store);
    let read: Option<Vec<Reads>> =
        Meter::of(url).map(|meter| sessions.iter_mut().map(|filled| reads(url, &meter, filled)).collect());
    let store = waits.unwrap_or_else(|| open(url));
    let mut figures: Vec<Figures> =
        sessions.iter_mut().map(|filled| figures(&*store, filled, rounds)).collect();
    // In turns, several times, because the speed of a disk varies.
    let (batches, singles) = (0..9).map(|_| batched(&*store)).unzip();
    let (batch, singles) = (median(batches), median(singles));
    if is_kept {
        drop(store);
        for (filled, figures) in sessions.iter().zip(&mut figures) {
            figures.cold = Some(cold(url, &filled.session));
        }
        streamed(url, &sessions[sizes.len() - 1]);
    }
    table(&sessions, &figures);
    if let Some(least) = flushed(url, rounds) {
        println!(
            "the least that an append can take here: {:.0} us for a line of {LINE} bytes that is flushed to the disk",
            least.as_secs_f64() * 1e6
        );
    }
    if let Some(read) = read {
        let worst = table_of_reads(&sessions, &read);
        assert!(worst <= most, "{worst:.2} times as much is read or written, of at most {most}");
    }
    println!("100 single appends over a batch of 100: {:.1} (>= 8 wanted)", ratio(singles, batch));
    if is_kept {
        let store = open(url);
        for filled in sessions {
            block_on(store.delete(&filled.session)).unwrap();
        }
    }
}

/// The message `seq` of a session of `size` messages. The newest messages have the same text for every size.
fn said(seq: u64, size: u64) -> Entry {
    let mut entry = in_its_turn(user(size - seq), seq);
    entry.anchor = Seq(seq);
    entry
}

fn filled(store: &dyn HistoryStore, size: u64) -> Filled {
    let (session, mut revision, mut hidden) = (fresh("flat"), 0, 0);
    for first in (0..size).step_by(usize::try_from(FILL).unwrap()) {
        let head = size.min(first + FILL);
        let entries: Vec<Entry> = (first..head).map(|seq| said(seq, size)).collect();
        append(store, &session, &first.to_string(), first, &entries).unwrap();
        if head - hidden > VISIBLE {
            let last = head - VISIBLE - 1;
            revision = hide(store, &session, (revision, head), (hidden, last)).unwrap();
            hidden = last + 1;
        }
    }
    Filled { name: format!("{size} stored"), session, head: size, revision }
}

/// Makes a session with many compactions of one message each.
fn compacted(store: &dyn HistoryStore) -> Filled {
    let (session, size) = (fresh("compacted"), VISIBLE + COMPACTIONS);
    let entries: Vec<Entry> = (0..size).map(|seq| said(seq, size)).collect();
    append(store, &session, "all", 0, &entries).unwrap();
    for revision in 0..COMPACTIONS {
        hide(store, &session, (revision, size), (revision, revision)).unwrap();
    }
    Filled { name: format!("{COMPACTIONS} compactions"), session, head: size, revision: COMPACTIONS }
}

fn figures(store: &dyn HistoryStore, filled: &mut Filled, rounds: u32) -> Figures {
    let (mut loads, mut appends, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (loaded, took) = timed(|| block_on(store.load(&filled.session)).unwrap());
        assert_eq!(loaded.live.len() as u64, VISIBLE);
        loads.push(took);
        let (head, entries) = (filled.head, [in_its_turn(user(filled.head), filled.head)]);
        let (appended, took) =
            timed(|| append(store, &filled.session, &format!("one {head}"), head, &entries).unwrap());
        appends.push(took);
        filled.head = appended;
        let oldest = loaded.live[0].key.0;
        let at = (filled.revision, filled.head);
        let (made, took) = timed(|| hide(store, &filled.session, at, (oldest, oldest)).unwrap());
        commits.push(took);
        filled.revision = made;
    }
    Figures { load: median(loads), append: median(appends), commit: median(commits), cold: None }
}

/// Counts of a load, an append and a commit, each for `COUNTED` operations.
struct Reads([Counts; 3]);

/// Number of counted operations of each kind. About one in a hundred additions to an index splits a page, which reads
/// and writes its neighbours too. Ten operations would have one such split or none, independent of the contents of the
/// session.
const COUNTED: u64 = 100;

/// Counts on a separate handle with an empty cache, without the cost to open it. A handle on a directory reads the file
/// of a session at the first access: that is reported as a cold open.
fn reads(url: &str, meter: &Meter, filled: &mut Filled) -> Reads {
    let counted = |work: &mut dyn FnMut(&dyn HistoryStore)| {
        let before = meter.read();
        let store = open(url);
        if url.contains("jsonl:") {
            block_on(store.load(&filled.session)).unwrap();
        }
        work(&*store);
        drop(store);
        let counts = meter.read().into_iter().zip(before);
        counts.map(|((name, after), (_, before))| (name, after - before)).collect::<Counts>()
    };
    let (session, mut head, mut revision) = (filled.session.clone(), filled.head, filled.revision);
    let nothing = counted(&mut |_| {});
    let only = |all: Counts| -> Counts {
        let less = all.into_iter().zip(&nothing);
        less.map(|((name, all), (_, open))| (name, all.saturating_sub(*open))).collect()
    };
    // Each load has its own handle: a second load would read from the cache.
    let mut loads = only(counted(&mut |store| drop(block_on(store.load(&session)).unwrap())));
    loads.iter_mut().for_each(|(_, count)| *count *= COUNTED);
    let appends = only(counted(&mut |store| {
        for _ in 0..COUNTED {
            let entries = [in_its_turn(user(head), head)];
            head = append(store, &session, &format!("counted {head}"), head, &entries).unwrap();
        }
    }));
    let first = block_on(open(url).load(&session)).unwrap().live[0].key.0;
    let commits = only(counted(&mut |store| {
        for oldest in first..first + COUNTED {
            revision = hide(store, &session, (revision, head), (oldest, oldest)).unwrap();
        }
    }));
    (filled.head, filled.revision) = (head, revision);
    Reads([loads, appends, commits])
}

fn table_of_reads(sessions: &[Filled], reads: &[Reads]) -> f64 {
    println!("| session | load | append | commit |");
    println!("|---|---|---|---|");
    let first = &reads[0].0;
    let mut worst = (0.0, String::new());
    for (filled, Reads(of)) in sessions.iter().zip(reads) {
        let cells = of.iter().zip(first).zip(["load", "append", "commit"]).map(|((counts, first), what)| {
            let counts = counts.iter().zip(first).filter(|(_, first)| first.1 > 0);
            let each = counts.map(|((name, count), (_, first))| {
                let ratio = *count as f64 / *first as f64;
                if ratio > worst.0 {
                    worst = (ratio, format!("{name} of a {what}, {}", filled.name));
                }
                format!("{:.1} {name} ({ratio:.2}x)", *count as f64 / COUNTED as f64)
            });
            each.collect::<Vec<_>>().join(", ")
        });
        println!("| {} | {} |", filled.name, cells.collect::<Vec<_>>().join(" | "));
    }
    println!("read and written at most {:.2}x as much, {} (<= 1.2x wanted)", worst.0, worst.1);
    worst.0
}

/// Times of a hundred messages in one append, and in single appends.
fn batched(store: &dyn HistoryStore) -> (Duration, Duration) {
    let (one, many) = (fresh("batch"), fresh("singles"));
    let entries: Vec<Entry> = (0..100).map(user).collect();
    let (_, batch) = timed(|| append(store, &one, "all", 0, &entries).unwrap());
    let ((), singles) = timed(|| {
        for (head, entry) in (0..).zip(&entries) {
            append(store, &many, &head.to_string(), head, core::slice::from_ref(entry)).unwrap();
        }
    });
    let live = |session| block_on(store.load(session)).unwrap().live;
    assert_eq!(live(&one), live(&many));
    assert_eq!(live(&one)[0].entry.count, count(10));
    for session in [one, many] {
        block_on(store.delete(&session)).unwrap();
    }
    (batch, singles)
}

/// Time of a new handle until it has loaded the session.
fn cold(url: &str, session: &SessionId) -> Duration {
    timed(|| block_on(open(url).load(session)).unwrap().live.len()).1
}

/// Reads the whole log in a separate process, and prints how much memory that took.
fn streamed(url: &str, filled: &Filled) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["peak", url, filled.session.as_str()]).output().unwrap();
    assert!(output.status.success());
    let peak: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let mib = peak as f64 / 1_048_576.0;
    println!("streaming the log of {}: peak memory {mib:.0} MiB (<= 64 wanted)", filled.name);
}

/// Prints the largest resident set of a process that streams. This runs in a separate process, because the count of a
/// child includes the memory of its parent at the fork.
pub(crate) fn peak(url: &str, session: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let child = command.args(["stream", url, session]).stdout(Stdio::null()).spawn().unwrap();
    let used = child.wait4().unwrap();
    assert!(used.status.success());
    println!("{}", used.rusage.maxrss);
}

pub(crate) fn stream(url: &str, session: &str) {
    let (store, session, mut next) = (open(url), SessionId::new(session), 0);
    for_each_logged(&*store, &session, |logged| {
        assert_eq!(logged.seq, Seq(next));
        next += 1;
    });
    assert!(next > VISIBLE);
}

fn table(sessions: &[Filled], figures: &[Figures]) {
    println!("| session | load | append | commit | cold open and load |");
    println!("|---|---|---|---|---|");
    let first = &figures[0];
    for (filled, it) in sessions.iter().zip(figures) {
        let cell = |took: Duration, of: Duration| {
            format!("{:.0} us ({:.2}x)", took.as_secs_f64() * 1e6, ratio(took, of))
        };
        let cold = match (it.cold, first.cold) {
            (Some(cold), Some(of)) => cell(cold, of),
            _ => "-".to_owned(),
        };
        let (load, append) = (cell(it.load, first.load), cell(it.append, first.append));
        println!("| {} | {load} | {append} | {} | {cold} |", filled.name, cell(it.commit, first.commit));
    }
}

/// Time to append one line to a file and flush it, on the disk of a store that keeps files: no durable append is
/// faster.
fn flushed(url: &str, rounds: u32) -> Option<Duration> {
    let bare = url.strip_prefix("encrypted:").unwrap_or(url);
    let path = Path::new(bare.strip_prefix("sqlite:").or_else(|| bare.strip_prefix("jsonl:"))?);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::tempfile_in(folder).unwrap();
    let mut line = || {
        file.write_all(&[b' '; LINE]).unwrap();
        file.sync_data().unwrap();
    };
    Some(median((0..rounds).map(|_| timed(&mut line).1).collect()))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
