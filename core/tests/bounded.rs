//! A history of fixed capacity against a list that holds the same messages, through any series of operations.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use epitome_core::attribution::{AttributionView, Authority, Retention, SeqRange, SourceKind};
use epitome_core::message::{
    MessageView, PartView, Parts, Role, SimpleMessage, Text, ToolCallView, ToolResultView,
};
use epitome_core::{
    BoundedHistory, Budget, ClassEstimator, Draft, Full, Group, Outcome, Pass, Placed, Protection, Seq,
    Strategy as Rule, Verdict,
};
use proptest::prelude::*;
use proptest::sample::select;

type History = BoundedHistory<24, 900>;

/// A message that can be made of any text.
#[derive(Debug, Clone)]
struct Owned {
    role: Role,
    text: String,
    calls: Vec<String>,
    answers: Option<String>,
    response: Option<String>,
    pinned: bool,
}

impl Parts for Owned {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match &self.answers {
            Some(id) => visit(PartView::ToolResult(ToolResultView::new(id, &Text(&self.text)))),
            None => visit(PartView::Text(&self.text)),
        }
        for id in &self.calls {
            visit(PartView::ToolCall(ToolCallView::new(id, "tool", &self.text)));
        }
    }
}

impl MessageView for Owned {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(self.role.authority());
        if self.role == Role::System {
            attribution.source = SourceKind::Context;
        }
        if self.pinned {
            attribution.retention = Retention::Pinned;
        }
        attribution
    }

    fn response_id(&self) -> Option<&str> {
        self.response.as_deref()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Push(Owned),
    Clamp(Owned, usize),
    Stream {
        pieces: Vec<String>,
        finish: bool,
    },
    /// Drop what the mask says, where that is legal; then compact, summarize what would go, or do nothing.
    Plan {
        mask: u32,
        then: Then,
    },
    Summarize {
        first: u64,
        len: u64,
        text: String,
    },
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Compact,
    Summarize,
    Nothing,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z ä€𝄞\"]{0,24}", 1 => "[a-z\n]{40,200}"]
}

fn message() -> impl Strategy<Value = Owned> {
    let id = || select(vec!["a", "b", "c", ""]).prop_map(String::from);
    let role =
        select(vec![Role::System, Role::User, Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let response = proptest::option::weighted(0.4, select(vec!["r1", "r2"]).prop_map(String::from));
    let calls = prop_oneof![2 => Just(Vec::new()), 3 => proptest::collection::vec(id(), 1..3)];
    (role, text(), calls, id(), response, proptest::bool::weighted(0.05)).prop_map(
        |(role, text, calls, id, response, pinned)| Owned {
            role,
            text,
            calls: if role == Role::Assistant { calls } else { Vec::new() },
            answers: (role == Role::Tool).then_some(id),
            response: response.filter(|_| role == Role::Assistant),
            pinned,
        },
    )
}

fn operation() -> impl Strategy<Value = Op> {
    let then = select(vec![Then::Compact, Then::Compact, Then::Summarize, Then::Nothing]);
    prop_oneof![
        12 => message().prop_map(Op::Push),
        1 => (message(), 0..400_usize).prop_map(|(message, max)| Op::Clamp(message, max)),
        2 => (proptest::collection::vec(text(), 0..4), any::<bool>())
            .prop_map(|(pieces, finish)| Op::Stream { pieces, finish }),
        3 => (any::<u32>(), then).prop_map(|(mask, then)| Op::Plan { mask, then }),
        1 => (0..40_u64, 0..6_u64, "[a-z]{0,12}").prop_map(|(first, len, text)| Op::Summarize { first, len, text }),
        1 => Just(Op::Reset),
    ]
}

/// Drops the groups that the mask names.
#[derive(Debug)]
struct Masked(u32);

impl Rule for Masked {
    fn name(&self) -> &'static str {
        "masked"
    }

    fn protection(&self) -> Protection {
        Protection::default().with_keep_steps(0)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let leaders: Vec<u32> = draft.index().groups().map(|group| group.leader()).collect();
        for leader in leaders.into_iter().filter(|leader| self.0 >> (leader % 32) & 1 == 1) {
            // What is protected is refused.
            let _ = draft.drop_group(leader);
        }
    }
}

/// What the list knows of a message.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    seq: u64,
    anchor: u64,
    turn: u32,
    tokens: u32,
    said: String,
}

/// The list. Removing is what `Vec` does; nothing is encoded, moved or counted on the way.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    entries: Vec<Entry>,
    /// The numbers in projection order.
    order: Vec<u64>,
}

fn said<M: MessageView + ?Sized>(message: &M) -> String {
    let mut said = format!("{:?} {:?} {:?}", message.role(), message.attribution(), message.response_id());
    message.for_each_part(&mut |part| {
        said += &format!(" {part:?}");
        if let PartView::ToolResult(result) = part {
            result.content.for_each_part(&mut |part| said += &format!("<{part:?}>"));
        }
    });
    said
}

const ALL: SeqRange = SeqRange { first: Seq(0), last: Seq(u64::MAX) };

/// Everything that a history shows.
fn shown(history: &History) -> Model {
    let stored: Vec<_> = history.messages_in(ALL).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for (at, message) in stored.iter().enumerate() {
        let at = u32::try_from(at).unwrap();
        let owner = |group: &Group<'_>| group.positions().any(|range| range.contains(&at));
        let mut groups = history.index().groups().filter(owner);
        let (group, None) = (groups.next().unwrap(), groups.next()) else { panic!("one group each") };
        let first = group.positions().next().unwrap().start as usize;
        entries.push(Entry {
            seq: message.seq().0,
            anchor: stored[first].seq().0,
            turn: group.turn().0,
            tokens: message.tokens().0,
            said: said(message),
        });
    }
    Model { entries, order: history.messages().map(|message| message.seq().0).collect() }
}

fn check(history: &History, model: &mut Model) {
    let now = shown(history);
    assert_eq!(now.entries, model.entries);
    assert_eq!(history.len(), model.entries.len());
    assert_eq!(history.tokens(), model.entries.iter().map(|entry| u64::from(entry.tokens)).sum::<u64>());
    // Each message is projected once, and those that were there before stand as they stood.
    let mut sorted = now.order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, model.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    let kept = |order: &[u64], other: &[u64]| {
        order.iter().copied().filter(|seq| other.contains(seq)).collect::<Vec<_>>()
    };
    assert_eq!(kept(&now.order, &model.order), kept(&model.order, &now.order));
    model.order = now.order;
    for group in history.index().groups() {
        let anchor = &model.entries[group.positions().next().unwrap().start as usize];
        let members = model.entries.iter().filter(|entry| entry.anchor == anchor.anchor);
        assert_eq!(group.tokens().0, members.map(|entry| entry.tokens).sum::<u32>());
    }
}

/// Adds what a push has stored.
fn note(history: &History, model: &mut Model, placed: Placed, expected: Option<String>) {
    if placed.orphan || placed.hidden {
        return;
    }
    let message = history.messages_in(ALL).last().unwrap();
    let said = expected.unwrap_or_else(|| said(&message));
    let (anchor, turn) = (placed.anchor.0, placed.turn.0);
    model.entries.push(Entry { seq: message.seq().0, anchor, turn, tokens: message.tokens().0, said });
}

fn budget() -> Budget {
    Budget::builder().window(100_000).trigger(80_000).without_goal().build().unwrap()
}

fn stream(history: &mut History, pieces: &[String], finish: bool) -> Result<Option<Placed>, Full> {
    let mut stream = history.begin(Role::Assistant)?;
    pieces.iter().try_for_each(|piece| stream.extend(piece))?;
    if finish { stream.finish(&ClassEstimator::new()).map(Some) } else { Ok(None) }
}

fn streamed(pieces: &[String]) -> String {
    let text = pieces.concat();
    said(&SimpleMessage::assistant(&text))
}

/// Makes a plan and returns the numbers of what it drops.
fn planned(history: &mut History, model: &Model, mask: u32) -> Vec<u64> {
    match history.plan(&budget(), Pass::Manual, &Masked(mask)) {
        Ok(Outcome::Planned(plan)) => {
            let gone = plan.index().groups().filter(|group| plan.verdict(group) == Verdict::Drop);
            gone.flat_map(|group| group.positions().flatten().collect::<Vec<_>>())
                .map(|at| model.entries[at as usize].seq)
                .collect()
        }
        Ok(Outcome::Unchanged(_)) => Vec::new(),
        Err(why) => panic!("{why}"),
    }
}

/// Replaces the messages in a range, if the history does.
fn summarize(history: &mut History, model: &mut Model, range: SeqRange, text: &str) -> bool {
    let before = history.free_bytes();
    if history.summarize(range, text, &ClassEstimator::new()).is_err() {
        return false;
    }
    assert!(history.free_bytes() > before);
    let covered = |entry: &Entry| range.contains(Seq(entry.seq));
    let first = model.entries.iter().position(covered).unwrap();
    assert!(model.entries.iter().all(|entry| covered(entry) == range.contains(Seq(entry.anchor))));
    let seq = model.entries[first].seq;
    let turn = model.entries[first].turn;
    let lowest = model.entries.iter().filter(|entry| covered(entry)).map(authority).min().unwrap();
    model.entries.retain(|entry| !covered(entry));
    let summary = history.messages_in(SeqRange { first: Seq(seq), last: Seq(seq) }).next().unwrap();
    assert_eq!(summary.attribution().authority, lowest);
    let derived = summary.attribution().derived_from[0];
    assert!(derived.first.0 == seq && derived.last.0 >= seq);
    let entry = Entry { seq, anchor: seq, turn, tokens: summary.tokens().0, said: said(&summary) };
    assert!(entry.said.contains(text));
    model.entries.insert(first, entry);
    true
}

fn authority(entry: &Entry) -> Authority {
    let all = [
        Authority::Retrieved,
        Authority::Assistant,
        Authority::User,
        Authority::Developer,
        Authority::System,
    ];
    all.into_iter().find(|one| entry.said.contains(&format!("authority: {one:?}"))).unwrap()
}

fn reset(history: &mut History) {
    let mut page = [0xFF; History::snapshot_bytes_max()];
    let len = history.snapshot(&mut page).unwrap();
    let (before, head) = (shown(history), history.head());
    history.clear();
    assert!(history.restore(&page[..len - 1]).is_err() && history.is_empty());
    history.restore(&page).unwrap();
    assert_eq!((shown(history), history.head()), (before, head));
}

/// Which of the nasty cases came, to be counted over all runs.
#[derive(Debug, Default)]
struct Seen {
    full: u32,
    late: u32,
    hidden: u32,
    orphans: u32,
    compactions: u32,
    summaries: u32,
    clamped: u32,
}

fn apply(history: &mut History, model: &mut Model, op: &Op, seen: &mut Seen) {
    let before = shown(history);
    let counter = ClassEstimator::new();
    let mut pushed = |history: &History, model: &mut Model, result: Result<Placed, Full>, said| match result {
        Ok(placed) => {
            note(history, model, placed, said);
            seen.late += u32::from(placed.late && !placed.hidden);
            seen.hidden += u32::from(placed.hidden);
            seen.orphans += u32::from(placed.orphan);
        }
        Err(Full) => {
            seen.full += 1;
            assert_eq!(shown(history), before);
        }
    };
    match op {
        Op::Push(message) => {
            let result = history.push(message, &counter);
            pushed(history, model, result, Some(said(message)));
        }
        Op::Clamp(message, max) => {
            let free = history.free_bytes();
            let result = history.push_clamped(message, *max, &counter);
            assert!(free - history.free_bytes() <= *max);
            pushed(history, model, result, None);
            seen.clamped += u32::from(result.is_ok());
        }
        Op::Stream { pieces, finish } => match stream(history, pieces, *finish) {
            Ok(Some(placed)) => pushed(history, model, Ok(placed), Some(streamed(pieces))),
            Ok(None) => assert_eq!(shown(history), before),
            Err(Full) => pushed(history, model, Err(Full), None),
        },
        Op::Plan { mask, then } => {
            let gone = planned(history, model, *mask);
            if *then == Then::Compact && !gone.is_empty() {
                history.compact().unwrap();
                model.entries.retain(|entry| !gone.contains(&entry.seq));
                seen.compactions += 1;
            } else if let (Then::Summarize, Some(range)) = (then, history.span_to_summarize()) {
                seen.summaries += u32::from(summarize(history, model, range, "s"));
            }
        }
        Op::Summarize { first, len, text } => {
            let range = SeqRange { first: Seq(*first), last: Seq(first + len) };
            seen.summaries += u32::from(summarize(history, model, range, text));
        }
        Op::Reset => reset(history),
    }
    check(history, model);
}

/// How many cases: few by default, many with `EPITOME_CASES`.
#[expect(clippy::disallowed_methods, reason = "`./check soak` says in the environment how many")]
fn cases() -> u32 {
    std::env::var("EPITOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96)
}

#[test]
fn it_holds_what_a_list_holds() {
    let mut seen = Seen::default();
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let seen_by = core::cell::RefCell::new(&mut seen);
    let result = runner.run(&proptest::collection::vec(operation(), 0..80), |operations| {
        let (mut history, mut model) = (History::new(), Model::default());
        for op in &operations {
            apply(&mut history, &mut model, op, &mut seen_by.borrow_mut());
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
    println!("{seen:?}");
    let Seen { full, late, hidden, orphans, compactions, summaries, clamped } = seen;
    for (times, what) in [
        (full, "full"),
        (late, "late answers"),
        (hidden, "hidden answers"),
        (orphans, "orphans"),
        (compactions, "compactions"),
        (summaries, "summaries"),
        (clamped, "clamped"),
    ] {
        assert!(times >= cases() / 10, "{what} came only {times} times");
    }
}
