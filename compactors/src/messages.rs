//! Compaction of messages without a session.

use std::format;
use std::vec::Vec;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{PartView, Role};
use epitome_core::{
    Budget, IndexBuf, OpenCallTree, Outcome, Pass, PlannedEdit, Planner, ReadyPlan, StandIn, Unchanged,
    Verdict,
};
use epitome_std::history::{Notes, PartStandIn, fill_with, part_text, shortened_messages};
use epitome_std::message::{Attribution, Message, Part, Str};
use epitome_std::session::{SessionError, SessionErrorKind};
use epitome_std::tokens::measure_all_with_parts;

use crate::{AnyStrategy, SummaryWriter};

/// The sizes before and after a compaction of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactedMessages {
    /// Tokens of the messages before the compaction.
    pub tokens_before: u64,
    /// Tokens of the messages after the compaction.
    pub tokens_after: u64,
    /// The reason why the messages are unchanged; `None` if they were changed.
    pub unchanged: Option<Unchanged>,
    /// Whether the messages have more tokens than the goal of the budget, because protected messages stay.
    pub goal_missed: bool,
}

/// Compacts the messages of a conversation in place, without a session and a store. Removed messages cannot be
/// restored.
///
/// Messages that stay are moved, not copied, in the order of a request: results directly behind their calls. A
/// result without a call is removed, and not counted. If there is nothing to compact, all messages stay unchanged.
/// A message with [`Retention::Pinned`](epitome_core::attribution::Retention::Pinned) in its attribution stays,
/// with its group.
///
/// The writer counts the messages and writes the stand-ins: ledgers and digests itself, summaries with its
/// [`Summarizer`](crate::Summarizer). Only a summary makes the future wait.
///
/// To undo a compaction, and to search hidden messages, keep the conversation in a
/// [`History`](epitome_std::history::History).
///
/// # Errors
/// `Infeasible` if the messages that always stay exceed the limit of the budget; `Unavailable` if there is no
/// summary. The messages are then unchanged.
///
/// # Cancel safety
/// If the future is dropped, the messages stay unchanged.
///
/// ```
/// use epitome_compactors::{SummaryWriter, compact_messages};
/// use epitome_core::{Budget, ClassEstimator};
/// use epitome_std::message::Message;
///
/// # futures::executor::block_on(async {
/// let mut messages = vec![Message::system("Answer briefly."), Message::user("Look into src/main.rs.")];
/// for step in 0..120 {
///     messages.push(Message::assistant(format!("Step {step} is done: src/step_{step}.rs is as it should be.")));
///     messages.push(Message::user("Go on with the next one, please."));
/// }
/// let budget = Budget::builder().window(8_000).goal(800).build()?;
/// let counter = ClassEstimator::new();
/// let done = compact_messages(&mut messages, &"agent".parse()?, &budget, &SummaryWriter::new(&counter)).await?;
/// assert!(done.tokens_before > 3_000 && done.tokens_after <= 800);
/// // A ledger names what is not shown any more.
/// assert!(messages.iter().any(|message| message.text().contains("[Identifiers]")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub async fn compact_messages(
    messages: &mut Vec<Message>,
    strategy: &AnyStrategy,
    budget: &Budget,
    writer: &SummaryWriter<'_>,
) -> Result<CompactedMessages, SessionError> {
    let counter = writer.counter();
    let mut index = IndexBuf::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
    let sizes = measure_all_with_parts(messages, counter, |_| {});
    // The messages without orphans, by position, and the index of each in `messages`.
    let mut all: Vec<&Message> = Vec::with_capacity(messages.len());
    let mut places: Vec<usize> = Vec::with_capacity(messages.len());
    for ((place, message), (size, parts)) in messages.iter().enumerate().zip(sizes) {
        if index.is_orphan(message) {
            index.skip();
            continue;
        }
        let tokens = |ordinal: u32, _: PartView<'_>| parts.get(ordinal as usize).copied().unwrap_or_default();
        // A table on the heap is never full.
        let _ = index.push_with_parts(message, size.tokens, tokens);
        all.push(message);
        places.push(place);
    }
    let made = strategy.for_messages(all.iter().copied());
    let failed = |kind, what: &str| SessionError::new(kind, format!("{}: {what}", strategy.name()));
    let is_missed = |tokens| budget.goal().is_some_and(|goal| tokens > goal);
    let mut planner = Planner::new();
    let plan = match planner.plan(index.view(), budget, Pass::Manual, &*made) {
        Ok(Outcome::Planned(plan)) => plan,
        Ok(Outcome::Unchanged(why)) => {
            let tokens = index.view().tokens();
            return Ok(CompactedMessages {
                tokens_before: tokens,
                tokens_after: tokens,
                unchanged: Some(why),
                goal_missed: is_missed(tokens),
            });
        }
        Err(error) => {
            return Err(failed(SessionErrorKind::Infeasible, "there is no plan").with_source(error));
        }
    };
    let tokens_before = plan.tokens_before();
    let mut written = Vec::new();
    for gap in plan.summaries() {
        let text = writer.write(&gap, &all).await;
        let no_summary =
            |error| failed(SessionErrorKind::Unavailable, "there is no summary").with_source(error);
        written.push(text.map_err(no_summary)?);
    }
    let stand_ins: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
    let text_of = |position: u32, ordinal| part_text(*all.get(position as usize)?, ordinal);
    let then = |ready: ReadyPlan<'_, '_>| (Projection::of(&ready, &all, &places), ready.tokens_after());
    let filled = fill_with(plan, &Notes::default(), &stand_ins, counter, text_of, then);
    let (projection, tokens_after) = filled
        .map_err(|error| failed(SessionErrorKind::Invalid, "the plan cannot be filled").with_source(error))?;
    projection.apply(messages);
    let goal_missed = is_missed(tokens_after);
    Ok(CompactedMessages { tokens_before, tokens_after, unchanged: None, goal_missed })
}

/// The messages after a plan.
struct Projection {
    /// The messages in the order of the request.
    order: Vec<Projected>,
    /// Stand-ins of shortened messages, by index.
    shortened: Vec<(usize, Vec<PartStandIn>)>,
}

/// A message of the request.
enum Projected {
    /// The message at this index before the compaction.
    Kept(usize),
    Summary(Message),
}

impl Projection {
    fn of(ready: &ReadyPlan<'_, '_>, messages: &[&Message], places: &[usize]) -> Self {
        let (plan, mut order) = (ready.plan(), Vec::new());
        let place = |position: u32| places.get(position as usize).copied();
        let mut summaries = ready.edits().filter_map(|edit| match edit {
            PlannedEdit::Summary(summary) => Some(summary),
            _ => None,
        });
        let mut next = summaries.next();
        for group in plan.index().groups() {
            let first = group.positions().next().map(|positions| positions.start);
            if let Some(summary) = next.filter(|summary| first == Some(summary.position)) {
                let covered = summary.covers().flatten().filter_map(|at| messages.get(at as usize));
                let authority = Authority::of_summary(covered.map(|it| it.attribution().authority));
                let attribution = Attribution::new("compaction", SourceKind::Compaction, authority);
                let text = Part::Text(Str::from(summary.stand_in.text));
                let message = Message::new(Role::Assistant, Vec::from([text]));
                order.push(Projected::Summary(message.with_attribution(attribution)));
                next = summaries.next();
            }
            if plan.verdict(&group) == Verdict::Keep {
                order.extend(group.positions().flatten().filter_map(place).map(Projected::Kept));
            }
        }
        let shortened = shortened_messages(ready).into_iter();
        Self { order, shortened: shortened.filter_map(|(at, parts)| Some((place(at)?, parts))).collect() }
    }

    /// Moves the messages that stay to their new places.
    fn apply(self, messages: &mut Vec<Message>) {
        for (place, stand_ins) in &self.shortened {
            if let Some(message) = messages.get_mut(*place) {
                *message = PartStandIn::apply(stand_ins, message);
            }
        }
        let mut old: Vec<Option<Message>> = core::mem::take(messages).into_iter().map(Some).collect();
        let take = |place| match place {
            Projected::Kept(place) => old.get_mut(place)?.take(),
            Projected::Summary(message) => Some(message),
        };
        messages.extend(self.order.into_iter().filter_map(take));
    }
}
