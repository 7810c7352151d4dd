//! Any sequence of operations: both stores and the naive twin give equal answers and end with equal sessions.

use core::cell::RefCell;
use std::collections::BTreeMap;

use epitome_core::{Revision, Seq};
use epitome_std::history::{Entry, HistoryStore, MemoryStore, SqliteStore, StoreError, StoreErrorKind};
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{
    answer, append, calls, commit, late, load, log, orphan, range, record, records, session, summary,
    unanswered, user,
};
use crate::twin::{State, Twin};

#[derive(Debug, Clone)]
enum Op {
    Append {
        token: u8,
        behind: u8,
        messages: Vec<Kind>,
    },
    /// Hides what lies between two places of the log, given in 256ths.
    Commit {
        places: Vec<(u8, u8)>,
        whole: bool,
        summarize: bool,
        parent_off: u8,
        head_back: u8,
    },
    Repeat,
    Delete,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    User,
    Calls(u8),
    /// The answer to a call of the group at a place of the log, given in 256ths.
    Answer(u8),
    Late(u8),
    Orphan,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::User),
        3 => (1..4_u8).prop_map(Kind::Calls),
        3 => any::<u8>().prop_map(Kind::Answer),
        2 => any::<u8>().prop_map(Kind::Late),
        1 => Just(Kind::Orphan),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let mostly = |often: u32| prop_oneof![often => Just(0_u8), 1 => any::<u8>()];
    let append = (0..32_u8, mostly(9), vec(kind(), 0..5)).prop_map(|(token, behind, messages)| Op::Append {
        token,
        behind,
        messages,
    });
    let commit = (vec(any::<(u8, u8)>(), 1..3), prop::bool::weighted(0.8), any::<bool>(), mostly(9), 0..4_u8)
        .prop_map(|(places, whole, summarize, parent_off, head_back)| Op::Commit {
            places,
            whole,
            summarize,
            parent_off,
            head_back,
        });
    prop_oneof![8 => append, 6 => commit, 2 => Just(Op::Repeat), 1 => Just(Op::Delete)]
}

/// The twin with the means to make an operation fit what is there.
#[derive(Default)]
struct Session {
    twin: Twin,
    last: Option<epitome_std::history::CompactionRecord>,
}

type Counts = RefCell<BTreeMap<&'static str, u32>>;

fn saw(counts: &Counts, case: &'static str, happened: bool) {
    *counts.borrow_mut().entry(case).or_default() += u32::from(happened);
}

fn place(state: &State, at: u8) -> u64 {
    state.loaded.head.0 * u64::from(at) / 256
}

fn entries(state: &State, messages: &[Kind]) -> Vec<Entry> {
    let group = |at| state.log.get(place(state, at) as usize).map_or(0, |logged| logged.entry.anchor.0);
    (state.loaded.head.0..)
        .zip(messages)
        .map(|(seq, kind)| match kind {
            Kind::User => user(seq),
            Kind::Calls(count) => calls(seq, &["a", "b", "a"][..usize::from(*count)]),
            Kind::Answer(at) => answer(group(*at), if at % 2 == 0 { "a" } else { "b" }),
            Kind::Late(at) => late(answer(group(*at), if at % 2 == 0 { "a" } else { "b" })),
            Kind::Orphan => orphan(answer(seq, "gone")),
        })
        .collect()
}

/// The ranges between the places; `whole` takes in what a group or a summary needs, and merges what touches.
fn hides(state: &State, places: &[(u8, u8)], whole: bool) -> Vec<(u64, u64)> {
    let between = |(one, other): &(u8, u8)| {
        let (one, other) = (place(state, *one), place(state, *other));
        (one.min(other), one.max(other))
    };
    let mut ranges: Vec<(u64, u64)> = places.iter().map(between).collect();
    if !whole {
        return ranges;
    }
    let mut numbers: std::collections::BTreeSet<u64> =
        ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
    for logged in &state.log {
        if state
            .log
            .iter()
            .any(|other| other.entry.anchor == logged.entry.anchor && numbers.contains(&other.seq.0))
        {
            numbers.insert(logged.seq.0);
        }
    }
    for summary in &state.summaries {
        let covers = &summary.message.attribution().derived_from;
        let all: Vec<u64> = covers.iter().flat_map(|range| range.first.0..=range.last.0).collect();
        if all.iter().any(|seq| numbers.contains(seq)) {
            numbers.extend(all);
        }
    }
    ranges.clear();
    for seq in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == seq => *last = seq,
            _ => ranges.push((seq, seq)),
        }
    }
    ranges
}

fn kinds<T>(result: Result<T, StoreError>) -> Result<T, StoreErrorKind> {
    result.map_err(|error| error.kind())
}

fn run(op: &Op, session: &mut Session, stores: &[&dyn HistoryStore; 2], counts: &Counts) {
    let state = session.twin.state();
    match op {
        Op::Append { token, behind, messages } => {
            let entries = entries(&state, messages);
            let head = state.loaded.head.0.saturating_sub(u64::from(*behind));
            let expected = session.twin.append(&token.to_string(), Seq(head), &entries);
            let hidden = session.twin.state().log.iter().filter(|logged| logged.hidden_by.is_some()).count();
            let before = state.log.iter().filter(|logged| logged.hidden_by.is_some()).count();
            saw(counts, "late answer to a hidden group", hidden > before);
            saw(counts, "append conflict", expected == Err(StoreErrorKind::Conflict));
            for store in stores {
                assert_eq!(kinds(append(*store, &token.to_string(), head, &entries)), expected);
            }
        }
        Op::Commit { places, whole, summarize, parent_off, head_back } => {
            let parent = state.loaded.revision.0.saturating_sub(u64::from(*parent_off));
            let head = state.loaded.head.0.saturating_sub(u64::from(*head_back));
            let hides = hides(&state, places, *whole);
            let mut record = record(parent, head, &hides);
            if *summarize {
                record.summaries = vec![summary(&hides)];
            }
            for logged in state.log.iter().filter(|logged| range(hides[0].0, hides[0].1).contains(logged.seq))
            {
                record.unanswered.extend((logged.seq.0 % 3 == 0).then(|| unanswered("a", logged.seq.0, 0)));
            }
            commits(&record, &state, session, stores, counts);
            session.last = Some(record);
        }
        Op::Repeat => {
            if let Some(record) = session.last.clone() {
                commits(&record, &state, session, stores, counts);
            }
        }
        Op::Delete => {
            *session = Session::default();
            for store in stores {
                assert_eq!(
                    block_on(store.delete(&crate::support::session())).unwrap(),
                    state.loaded.head > Seq(0)
                );
            }
        }
    }
}

fn commits(
    record: &epitome_std::history::CompactionRecord,
    state: &State,
    session: &mut Session,
    stores: &[&dyn HistoryStore; 2],
    counts: &Counts,
) {
    let expected = session.twin.commit(record);
    if state.loaded.head > Seq(0) {
        let after = session.twin.state();
        let moved = after.loaded.revision > state.loaded.revision;
        let replaced = state.summaries.iter().any(|summary| !after.summaries.contains(summary));
        saw(counts, "commit", moved);
        saw(counts, "commit that hides a summary", moved && replaced);
        saw(counts, "commit repeated", expected.is_ok() && !moved);
        saw(counts, "commit conflict", expected == Err(StoreErrorKind::Conflict));
        saw(counts, "commit invalid", expected == Err(StoreErrorKind::Invalid));
        for store in stores {
            assert_eq!(kinds(commit(*store, record)), expected, "{record:?}");
        }
    }
}

/// What a list says of the only session.
fn check_list(store: &dyn HistoryStore, state: &State) {
    let listed = block_on(store.list(None, 9)).unwrap();
    assert_eq!(listed.len(), usize::from(state.loaded.head > Seq(0)));
    for info in listed {
        let tokens: u64 = state.loaded.live.iter().map(|live| live.entry.count.tokens.as_u64()).sum();
        assert_eq!(
            (info.id, info.head, info.revision),
            (session(), state.loaded.head, state.loaded.revision)
        );
        assert_eq!((info.live_messages, info.live_tokens), (state.loaded.live.len() as u64, tokens));
    }
}

fn check(store: &dyn HistoryStore, state: &State) {
    check_list(store, state);
    if state.loaded.head > Seq(0) {
        assert_eq!(load(store), state.loaded);
        assert_eq!(log(store), state.log);
    }
}

#[test]
fn both_stores_answer_as_their_naive_twin_does() {
    let counts = Counts::default();
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let sqlite = RefCell::new(SqliteStore::open(&path).unwrap());
    let outcome = TestRunner::new(config).run(&vec(op(), 1..40), |ops| {
        let mut model = Session::default();
        {
            let (memory, sqlite) = (MemoryStore::new(), sqlite.borrow());
            block_on(sqlite.delete(&session())).unwrap();
            for op in &ops {
                run(op, &mut model, &[&memory, &*sqlite], &counts);
                let state = model.twin.state();
                for store in [&memory as &dyn HistoryStore, &*sqlite] {
                    check(store, &state);
                    if state.loaded.head > Seq(0) {
                        assert_eq!(records(store), model.twin.records());
                    }
                }
            }
        }
        *sqlite.borrow_mut() = SqliteStore::open(&path).unwrap();
        check(&*sqlite.borrow(), &model.twin.state());
        saw(&counts, "session with a revision above 3", model.twin.state().loaded.revision > Revision(3));
        Ok(())
    });
    outcome.map_err(|failure| failure.to_string()).unwrap();
    println!("{counts:?}");
    for (case, count) in counts.into_inner() {
        assert!(count >= 10, "{case}: only {count}");
    }
}
