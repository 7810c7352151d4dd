//! Random sequences of operations: the store and its naive twin must give equal answers and end with equal sessions.

use core::panic::AssertUnwindSafe;
use std::collections::BTreeMap;

use epitome_core::attribution::{Authority, SeqRange};
use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_history::{
    CompactionRecord, Entry, Live, Logged, MessageEdit, StoreError, StoreErrorKind, Summary,
};
use epitome_message::{Message, Part, Reasoning};
use futures::FutureExt;

use super::suite::said;
use super::support::{
    Room, answer, append, calls, commit, edit, entry, late, load, log, orphan, range, record, records,
    summary, unanswered, user,
};
use super::twin::{State, Twin};

mod ops;

use ops::{Claim, Commit, Kind, Op, ops};

/// Two handles run the operations in turn. Both must see the same state after each operation, and so must a handle that
/// is opened afterwards.
pub(super) async fn any_series_of_operations_is_answered_as_by_the_naive_twin(room: &Room<'_>) {
    let mut counts = Counts::default();
    let mut handles = vec![room.another().await, room.another().await];
    for seed in 0..u64::from(room.cases) {
        let ops = ops(seed);
        if let Some(why) = failure(&mut handles, &ops, &mut counts).await {
            let (ops, why) = shrunk(&mut handles, ops, why).await;
            panic!("{why}\nin case {seed}: {ops:#?}");
        }
    }
    for (case, count) in counts.0 {
        assert!(count >= room.cases / 20, "{case}: only {count}");
    }
}

/// The reason why the store fails this sequence; `None` if it passes.
async fn failure(handles: &mut Vec<Room<'_>>, ops: &[Op], counts: &mut Counts) -> Option<String> {
    let ran = AssertUnwindSafe(series(handles, ops, counts)).catch_unwind().await;
    ran.err().map(|panic| said(&*panic))
}

/// Shortens a failing sequence, by leaving out one operation after another while it still fails.
async fn shrunk(handles: &mut Vec<Room<'_>>, mut ops: Vec<Op>, mut why: String) -> (Vec<Op>, String) {
    for at in (0..ops.len()).rev() {
        let mut fewer = ops.clone();
        fewer.remove(at);
        if let Some(other) = failure(handles, &fewer, &mut Counts::default()).await {
            (ops, why) = (fewer, other);
        }
    }
    (ops, why)
}

async fn series(handles: &mut Vec<Room<'_>>, ops: &[Op], counts: &mut Counts) {
    handles[0].delete(&handles[0].session()).await.unwrap();
    let mut session = Session::default();
    for (turn, op) in ops.iter().enumerate() {
        session.run(op, &handles[turn % 2], counts).await;
        let state = session.twin.state();
        for handle in &*handles {
            check(handle, &state).await;
            if state.loaded.head > Seq(0) {
                assert_eq!(records(handle).await, session.twin.records());
            }
        }
    }
    let state = session.twin.state();
    let reopened = handles.swap_remove(0).reopened().await;
    check(&reopened, &state).await;
    handles.push(reopened);
    counts.saw("session with a revision above 3", state.loaded.revision > Revision(3));
}

async fn check(room: &Room<'_>, state: &State) {
    check_list(room, state).await;
    if state.loaded.head > Seq(0) {
        assert_eq!(load(room).await, state.loaded);
        assert_eq!(log(room).await, state.log);
    }
}

/// Checks the list, of at most one session, against `state`.
async fn check_list(room: &Room<'_>, state: &State) {
    let listed = room.list(None, 9).await.unwrap();
    assert_eq!(listed.len(), usize::from(state.loaded.head > Seq(0)));
    for info in listed {
        let tokens: u64 = state.loaded.live.iter().map(|live| live.entry.count.tokens.as_u64()).sum();
        assert_eq!(
            (info.id, info.head, info.revision),
            (room.session(), state.loaded.head, state.loaded.revision)
        );
        assert_eq!((info.live_messages, info.live_tokens), (state.loaded.live.len() as u64, tokens));
    }
}

/// Number of times that each special case occurred.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u32>);

impl Counts {
    fn saw(&mut self, case: &'static str, happened: bool) {
        *self.0.entry(case).or_default() += u32::from(happened);
    }
}

/// The twin, with the data that makes an operation fit the session.
#[derive(Default)]
struct Session {
    twin: Twin,
    last: Option<CompactionRecord>,
}

impl Session {
    async fn run(&mut self, op: &Op, room: &Room<'_>, counts: &mut Counts) {
        match op {
            Op::Append { token, behind, messages } => {
                self.append(*token, *behind, messages, room, counts).await;
            }
            Op::Commit(op) => {
                let record = planned(op, &self.twin.state());
                self.commit(&record, room, counts).await;
                self.last = Some(record);
            }
            Op::Repeat => {
                if let Some(record) = self.last.clone() {
                    self.commit(&record, room, counts).await;
                }
            }
            Op::Delete => {
                let was_there = self.twin.state().loaded.head > Seq(0);
                *self = Self::default();
                assert_eq!(room.delete(&room.session()).await.unwrap(), was_there);
            }
        }
    }

    async fn append(
        &mut self,
        token: u8,
        behind: u8,
        messages: &[Kind],
        room: &Room<'_>,
        counts: &mut Counts,
    ) {
        let (state, token) = (self.twin.state(), token.to_string());
        let entries = entries(&state, messages);
        let head = state.loaded.head.0.saturating_sub(u64::from(behind));
        let expected = self.twin.append(&token, Seq(head), &entries);
        let hidden = |state: &State| state.log.iter().filter(|logged| logged.hidden_by.is_some()).count();
        counts.saw("late answer to a hidden group", hidden(&self.twin.state()) > hidden(&state));
        counts.saw("append conflict", expected == Err(StoreErrorKind::Conflict));
        assert_eq!(kinds(append(room, &token, head, &entries).await), expected);
    }

    async fn commit(&mut self, record: &CompactionRecord, room: &Room<'_>, counts: &mut Counts) {
        let state = self.twin.state();
        let expected = self.twin.commit(record);
        if state.loaded.head == Seq(0) {
            return;
        }
        let after = self.twin.state();
        let moved = after.loaded.revision > state.loaded.revision;
        let replaced = state.summaries.iter().any(|summary| !after.summaries.contains(summary));
        counts.saw("commit", moved);
        counts.saw("commit with edits", moved && !record.edits.is_empty());
        counts.saw("commit with nothing but edits", moved && record.hides.is_empty());
        let is_again = |edit: &MessageEdit| {
            let was = |live: &Live| live.key == edit.seq && !live.stand_ins.is_empty();
            state.loaded.live.iter().any(was)
        };
        counts.saw("message edited again", moved && record.edits.iter().any(is_again));
        counts.saw("commit that hides a summary", moved && replaced);
        let instructions = |state: &State| {
            state.loaded.live.iter().filter(|live| live.entry.message.role() == Role::System).count()
        };
        let left = after.loaded.live.iter().any(|live| live.key < record.head);
        let instructed = instructions(&after) < instructions(&state);
        counts.saw("instruction that is taken back behind others", moved && instructed && left);
        let claims =
            |claimed| record.summaries.iter().any(|it| it.message.attribution().authority == claimed);
        counts.saw("summary with the authority of the model", moved && claims(Authority::Assistant));
        counts.saw("commit repeated", expected.is_ok() && !moved);
        counts.saw("commit conflict", expected == Err(StoreErrorKind::Conflict));
        counts.saw("commit invalid", expected == Err(StoreErrorKind::Invalid));
        assert_eq!(kinds(commit(room, record).await), expected, "{record:?}");
    }
}

fn kinds<T>(result: Result<T, StoreError>) -> Result<T, StoreErrorKind> {
    result.map_err(|error| error.kind())
}

fn planned(op: &Commit, state: &State) -> CompactionRecord {
    let parent = state.loaded.revision.0.saturating_sub(u64::from(op.parent_off));
    let head = state.loaded.head.0.saturating_sub(u64::from(op.head_back));
    let hides = hides(op, state, head);
    let mut record = record(parent, head, &hides);
    let takes_back = op.takes_back_from.is_some();
    if !takes_back {
        record.edits = message_edits(state, &op.edits, (&hides, head), op.whole);
    }
    if op.summarize && !takes_back && !hides.is_empty() {
        record.summaries = vec![claiming(op, state, &shown(op, state, &hides))];
    }
    let first = hides.first().map(|(first, last)| range(*first, *last));
    let visible = |logged: &Logged| logged.hidden_by.is_none() && !logged.entry.orphan;
    let hidden = |logged: &&Logged| {
        first.is_some_and(|first| first.contains(logged.seq)) && (!op.whole || visible(logged))
    };
    for logged in state.log.iter().filter(hidden) {
        record.unanswered.extend((logged.seq.0 % 3 == 0).then(|| unanswered("a", logged.seq.0, 0)));
    }
    record
}

/// A summary of `covers` with the authority that the operation claims.
fn claiming(op: &Commit, state: &State, covers: &[(u64, u64)]) -> Summary {
    let mut summary = summary(covers);
    let mut attribution = summary.message.attribution().clone();
    let is_source = |live: &&Live| {
        let at = |(first, last): &(u64, u64)| (*first..=*last).contains(&live.key.0);
        covers.iter().any(at)
    };
    let sources = state.loaded.live.iter().filter(is_source);
    attribution.authority = match op.claims {
        Claim::Least => Authority::Retrieved,
        Claim::AsMuchAsItMay => {
            Authority::of_summary(sources.map(|live| live.entry.message.attribution().authority))
        }
        Claim::TooMuch => Authority::User,
    };
    summary.message = summary.message.with_attribution(attribution);
    summary
}

/// The part of these ranges that is visible, or covered by a visible summary. A record that need not fit keeps the
/// ranges unchanged.
fn shown(op: &Commit, state: &State, hides: &[(u64, u64)]) -> Vec<(u64, u64)> {
    if !op.whole {
        return hides.to_vec();
    }
    let covers = |live: &Live| match live.covers.as_slice() {
        [] => vec![range(live.key.0, live.key.0)],
        covers => covers.to_vec(),
    };
    let visible: Vec<SeqRange> = state.loaded.live.iter().flat_map(covers).collect();
    let numbers = hides.iter().flat_map(|(first, last)| *first..=*last);
    runs(numbers.filter(|seq| visible.iter().any(|range| range.contains(Seq(*seq)))))
}

/// Numbers in ascending order, as ranges.
fn runs(numbers: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for seq in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == seq => *last = seq,
            _ => runs.push((seq, seq)),
        }
    }
    runs
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
            Kind::Instruction => entry(Message::system(format!("rule {seq}")), seq, 1),
            Kind::Orphan => orphan(answer(seq, "gone")),
            Kind::Thinks => {
                let parts = vec![Part::Reasoning(Reasoning::new("Hm.")), Part::Text("So it is.".into())];
                entry(Message::new(Role::Assistant, parts), seq, 1)
            }
        })
        .collect()
}

/// The ranges between the places, or everything from one place on. A whole record is extended to groups and summaries,
/// and merges adjacent ranges.
fn hides(op: &Commit, state: &State, head: u64) -> Vec<(u64, u64)> {
    let between = |(one, other): &(u8, u8)| {
        let (one, other) = (place(state, *one), place(state, *other));
        (one.min(other), one.max(other))
    };
    let ranges: Vec<(u64, u64)> = match op.takes_back_from {
        Some(from) => vec![(place(state, from), head.saturating_sub(1).max(place(state, from)))],
        None => op.places.iter().map(between).collect(),
    };
    if !op.whole {
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
    let stays = |seq: &u64| {
        let logged = state.log.get(usize::try_from(*seq).unwrap_or(usize::MAX));
        op.takes_back_from.is_none()
            && logged.is_some_and(|logged| logged.entry.message.role() == Role::System)
    };
    runs(numbers.into_iter().filter(|seq| !stays(seq)))
}

/// Edits of messages at these places. With `legal`, only messages that may be edited are edited, and they become
/// smaller.
fn message_edits(
    state: &State,
    edits: &[(u8, u8, u8, u8)],
    (hides, head): (&[(u64, u64)], u64),
    legal: bool,
) -> Vec<MessageEdit> {
    let mut found: BTreeMap<u64, MessageEdit> = BTreeMap::new();
    for (at, ordinal, what, less) in edits {
        let seq = place(state, *at);
        let live = state.loaded.live.iter().find(|live| live.key == Seq(seq) && live.covers.is_empty());
        let is_hidden = hides.iter().any(|(first, last)| (*first..=*last).contains(&seq));
        let stays = live.is_some_and(|live| live.entry.message.role() == Role::System);
        if legal && (live.is_none() || is_hidden || stays || seq >= head) {
            continue;
        }
        let parts = state.log.get(seq as usize).map_or(&[][..], |logged| logged.entry.message.parts());
        let ordinal = usize::from(*ordinal) % if legal { parts.len() } else { usize::MAX };
        let removes = if legal { matches!(parts[ordinal], Part::Reasoning(_)) } else { what % 2 == 0 };
        let text = match (what % 4, &parts.get(ordinal)) {
            (0, Some(Part::Text(said))) => format!("{}[cut]", said.get(..said.len() / 2).unwrap_or_default()),
            (1, _) if !legal || what % 16 == 1 => format!("-{what}"),
            _ => format!("[{what}]"),
        };
        let stand_ins = [(u32::try_from(ordinal).unwrap(), (!removes).then_some(text.as_str()))];
        let less = if legal { u32::from(*less).max(1) } else { u32::from(*less) };
        let tokens = live.map_or(9, |live| live.entry.count.tokens.0).saturating_sub(less);
        found.insert(seq, edit(seq, &stand_ins, tokens));
    }
    found.into_values().collect()
}
