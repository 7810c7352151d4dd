//! The measured steps of the engine on generated messages, in a form in which their instructions can be counted.
//!
//! None of these functions is inlined: callgrind selects them by name.

use epitome::compactors::{ToolResultClearing, Truncation};
use epitome::core::message::{MessageView, Role};
use epitome::core::{
    Basis, Budget, Cell, ClassEstimator, Index, IndexBuf, OpenCallTree, Outcome, PartSpan, Pass, Plan,
    Profile, Span, Tokens, Validator, Violation, ViolationKind, count_message, plan,
};
use epitome::history::{Entry, TokenCount};
use epitome::message::{Message as Owned, Part as OwnedPart, ToolCall};

use crate::generated::Message;

/// An index of groups.
pub type Grouped = IndexBuf<Vec<Span>, OpenCallTree>;
/// An index of groups, with the parts that a plan may shorten.
pub type Parted = IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>;

/// Groups messages whose sizes are known.
#[inline(never)]
#[must_use]
pub fn group(messages: &[Message<'_>], tokens: &[Tokens]) -> Grouped {
    let mut index = Grouped::new();
    for (message, tokens) in messages.iter().zip(tokens) {
        index.push(message, *tokens).unwrap();
    }
    index
}

/// Groups messages, with a row for each part that a plan may shorten. The sizes of the parts are known, as the sizes of
/// the messages are.
#[inline(never)]
#[must_use]
pub fn group_with_parts(messages: &[Message<'_>], tokens: &[Tokens]) -> Parted {
    let mut index = Parted::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
    for (message, tokens) in messages.iter().zip(tokens) {
        index.push_with_parts(message, *tokens, |_, _| *tokens).unwrap();
    }
    index
}

/// Clears all old tool results, and returns the size of the rest.
#[inline(never)]
#[must_use]
pub fn cleared(index: Index<'_>) -> u64 {
    let mut cells = vec![Cell::default(); index.cell_count()];
    match plan(index, &Budget::default(), Pass::Manual, &ToolResultClearing::new(), &mut cells).unwrap() {
        Outcome::Planned(plan) => plan.tokens_after(),
        Outcome::Unchanged(why) => panic!("there are old results, but: {why:?}"),
    }
}

/// Plans as a caller does, with memory of its own, and passes the plan to `ask`.
#[inline(never)]
pub fn planned<T>(index: Index<'_>, ask: impl FnOnce(&Plan<'_>) -> T) -> T {
    let mut cells = vec![Cell::default(); index.span_count()];
    match plan(index, &Budget::default(), Pass::Manual, &Truncation::new(), &mut cells).unwrap() {
        Outcome::Planned(plan) => ask(&plan),
        Outcome::Unchanged(why) => panic!("the history is larger than the goal, but: {why:?}"),
    }
}

/// Counts protocol violations. A history may end between a call and its result.
#[inline(never)]
#[must_use]
pub fn violations<'m>(messages: impl Iterator<Item = &'m (impl MessageView + 'm)>) -> usize {
    let mut found = 0;
    let mut count = |violation: Violation| found += usize::from(violation.kind != ViolationKind::PendingCall);
    let mut validator = Validator::<OpenCallTree>::new(Profile::OpenaiChat);
    for message in messages {
        validator.push(message, &mut count).unwrap();
    }
    validator.finish(&mut count);
    found
}

/// The messages as entries of a history: owned, grouped and counted.
#[must_use]
pub fn entries(history: &[Message<'_>]) -> Vec<Entry> {
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let mut entry = |message: &Message<'_>| {
        let owned = owned(message);
        let tokens: Tokens = count_message(&owned, &ClassEstimator::new());
        let placed = index.push(&owned, tokens).unwrap();
        let count = TokenCount::new(tokens, Basis::Estimated, ClassEstimator::NAME.into());
        Entry::new(owned, placed.anchor, placed.turn, count)
    };
    history.iter().map(&mut entry).collect()
}

fn owned(message: &Message<'_>) -> Owned {
    match (message.role(), message.answers()) {
        (_, Some(id)) => Owned::tool(id, message.text()),
        (Role::System, _) => Owned::system(message.text()),
        (Role::User, _) => Owned::user(message.text()),
        (_, None) if !message.text().is_empty() => Owned::assistant(message.text()),
        _ => {
            let calls = message.calls().map(|(id, name, arguments)| ToolCall::new(id, name, arguments));
            Owned::new(Role::Assistant, calls.map(OwnedPart::ToolCall).collect())
        }
    }
}
