//! Runs a property over many cases, counts how often each nasty case occurred, and fails if one was too rare.

use core::cell::RefCell;
use std::collections::BTreeMap;

use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;
use epitome_core::{GroupKind, OpenCalls, OpenKind, Placed};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::live;
use crate::message::{Message, Part};

/// Number of occurrences of each case.
#[derive(Debug, Default)]
pub struct Census(RefCell<BTreeMap<&'static str, u64>>);

impl Census {
    /// Counts a case.
    pub fn count(&self, name: &'static str, holds: bool) {
        *self.0.borrow_mut().entry(name).or_default() += u64::from(holds);
    }

    /// Counts the nasty cases of a conversation: each at most once, however often it occurs.
    pub fn conversation(&self, messages: &[Message]) {
        let (index, placed) = live::index_of(messages);
        let any = |holds: &dyn Fn(&Message) -> bool| messages.iter().any(holds);
        let part = |holds: &dyn Fn(&Part) -> bool| any(&|message| message.parts.iter().any(holds));
        let id = |holds: &dyn Fn(&str) -> bool| part(&|part| matches!(part, Part::Call(id) if holds(id)));
        let group = |holds: &dyn Fn(&live::GroupFacts) -> bool| live::groups(index.view()).iter().any(holds);
        let is_place = |holds: &dyn Fn(&Placed) -> bool| placed.iter().any(holds);
        self.count("one message", messages.len() == 1);
        self.count("parallel calls", any(&|message| message.calls().len() > 1));
        self.count("reused id", reused(messages));
        self.count("empty id", id(&str::is_empty));
        self.count("id over 46 bytes", id(&|id| id.len() > 46));
        self.count("id over 64 bytes", id(&|id| id.len() > 64));
        self.count("orphan", is_place(&|place| place.orphan));
        self.count("late answer", is_place(&|place| place.late));
        self.count("open call", group(&|group| group.marks.1));
        self.count("abandoned call", group(&|group| group.marks.2));
        self.count("answer apart from its call", group(&|group| is_split(&group.positions)));
        self.count("joined by response", group(&|group| models(messages, group) > 1));
        self.count(
            "reasoning only",
            any(&|message| matches!(message.parts.as_slice(), [Part::Reasoning(_)])),
        );
        self.count("hosted call", part(&|part| matches!(part, Part::HostedCall(_))));
        self.count("hosted group", group(&|group| group.kind == GroupKind::Hosted));
        self.count("hosted result in the next message", any(&|message| continues(message)));
        self.count("sealed result", part(&|part| matches!(part, Part::Sealed(_))));
        self.count("approval answer", part(&|part| matches!(part, Part::Approves(_))));
        self.count("open request for approval", awaits(&index, true));
        self.count("abandoned request for approval", awaits(&index, false));
        self.count("instructions in mid-conversation", instructed(messages));
        self.count("context", any(&|message| message.source == SourceKind::Context));
        self.count("summary", group(&|group| group.kind == GroupKind::Summary));
        self.count("pin", any(&|message| message.retention == Retention::Pinned));
        self.count("ephemeral", any(&|message| message.retention == Retention::Ephemeral));
        self.count("no parts", any(&|message| message.parts.is_empty()));
        self.count("result of a user", any(&|message| message.role == Role::User && is_result(message)));
        self.count("full amount", group(&|group| group.tokens == u64::from(u32::MAX)));
    }
}

/// Checks `property` on `EPITOME_CASES` cases (256 by default). Each case in `per_mille` must occur at least that often
/// in a thousand.
///
/// # Panics
/// If the property fails, with the smallest case found; or if a case was too rare.
pub fn check<S: Strategy>(
    name: &'static str,
    strategy: S,
    per_mille: &[(&'static str, u64)],
    property: impl Fn(S::Value, &Census) -> Result<(), TestCaseError>,
) {
    let cases = count();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let census = Census::default();
    let mut runner = TestRunner::new(config);
    match runner.run(&strategy, |value| property(value, &census)) {
        Ok(()) => {}
        Err(TestError::Fail(why, value)) => panic!("{name}: {why}\nsmallest case: {value:#?}"),
        Err(other) => panic!("{name}: {other}"),
    }
    println!("{name}: {cases} cases");
    let counts = census.0.into_inner();
    for (case, count) in &counts {
        println!("  {count:>7}  {case}");
    }
    for (case, per_mille) in per_mille {
        let (seen, least) = (counts.get(case).copied().unwrap_or(0), u64::from(cases) * per_mille / 1_000);
        assert!(seen >= least, "{name}: {case} occurred {seen} times in {cases}, fewer than {least}");
    }
}

/// Least number of occurrences of each nasty case, in a thousand cases of a property over whole conversations: a third
/// of the number that was seen.
pub const NASTY: &[(&str, u64)] = &[
    ("abandoned call", 150),
    ("answer apart from its call", 150),
    ("abandoned request for approval", 30),
    ("approval answer", 100),
    ("context", 110),
    ("empty id", 100),
    ("ephemeral", 110),
    ("full amount", 20),
    ("hosted call", 110),
    ("hosted group", 80),
    ("hosted result in the next message", 30),
    ("sealed result", 50),
    ("id over 46 bytes", 150),
    ("id over 64 bytes", 130),
    ("instructions in mid-conversation", 140),
    ("joined by response", 160),
    ("late answer", 90),
    ("no parts", 90),
    ("one message", 30),
    ("open call", 120),
    ("open request for approval", 15),
    ("orphan", 180),
    ("parallel calls", 220),
    ("pin", 110),
    ("reasoning only", 140),
    ("result of a user", 80),
    ("reused id", 120),
    ("summary", 130),
];

/// Number of cases of each property.
#[must_use]
pub fn count() -> u32 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the number of cases is a question of patience, not of behaviour"
    )]
    let cases = std::env::var("EPITOME_CASES");
    cases.ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}

/// Whether a request for approval has no answer, in the current turn or an earlier one.
fn awaits(index: &live::Heap, now: bool) -> bool {
    let mut any = false;
    let turn = index.view().turn();
    index.open_calls().for_each(&mut |_, call| {
        any |= call.kind() == OpenKind::Approval && (call.turn == turn) == now;
    });
    any
}

fn reused(messages: &[Message]) -> bool {
    let mut ids: Vec<&str> = messages.iter().flat_map(Message::calls).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() < all
}

fn is_split(positions: &[usize]) -> bool {
    positions.windows(2).any(|pair| pair[1] != pair[0] + 1)
}

fn models(messages: &[Message], group: &live::GroupFacts) -> usize {
    group.positions.iter().filter(|at| messages[**at].role == Role::Assistant).count()
}

fn instructed(messages: &[Message]) -> bool {
    let user = messages.iter().position(|message| message.role == Role::User);
    messages.iter().skip(user.unwrap_or(messages.len())).any(|message| message.role == Role::System)
}

/// Whether a message of the model begins with the result of a hosted tool.
fn continues(message: &Message) -> bool {
    message.role == Role::Assistant
        && matches!(message.parts.first(), Some(Part::Result(_) | Part::Sealed(_)))
}

fn is_result(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Result(_) | Part::Sealed(_)))
}
