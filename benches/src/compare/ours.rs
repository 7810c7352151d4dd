//! Epitome as a contender.

use core::fmt;
use core::hint::black_box;
use core::time::Duration;
use std::sync::Arc;

use epitome::compactors::{ContextWindow, Pipeline, SlidingWindow, ToolResultClearing, Truncation, Window};
use epitome::core::{
    Budget, ClassEstimator, IndexBuf, OpenCallTree, Outcome, Pass, Plan, Planner, Profile, Span, Strategy,
    Tokens, Validator, count_message,
};
use epitome::history::{AppendToken, History, HistoryError, HistoryStore, MemoryStore, SessionId};
use epitome::message::{Message, Part, ToolCall};
use futures::executor::block_on;

use super::clock::{Instant, timed, timed_short};
use super::contender::{Contender, Keeping, Limits, Looping, Prepared, Returned, Round, Unit};
use super::said::{Said, SaidCall};

/// A strategy of Epitome, as a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ours {
    /// Drops the oldest messages.
    Truncation,
    /// Keeps the newest messages, beginning with a user's turn.
    SlidingWindow,
    /// Clears tool results, and truncates if that is not enough.
    ClearingAndTruncation,
    /// The preset `context_window`.
    ContextWindow,
}

impl Ours {
    /// All strategies.
    pub const ALL: [Self; 4] =
        [Self::Truncation, Self::SlidingWindow, Self::ClearingAndTruncation, Self::ContextWindow];

    fn with<T>(self, limit: u64, then: impl FnOnce(&dyn Strategy) -> T) -> T {
        match self {
            Self::Truncation => then(&Truncation::new()),
            Self::SlidingWindow => then(&SlidingWindow::new(Window::Goal)),
            Self::ClearingAndTruncation => {
                let (clearing, truncation) = (ToolResultClearing::new(), Truncation::new());
                then(&Pipeline::new(&[&clearing, &truncation]).unwrap())
            }
            Self::ContextWindow => then(&ContextWindow::new(limit, 0)),
        }
    }

    /// A budget that fills a window of `limit` tokens as far as possible; the preset has a budget of its own.
    fn budget(self, limit: u64) -> Budget {
        if self == Self::ContextWindow {
            return ContextWindow::new(limit, 0).budget().unwrap();
        }
        let whole = Budget::builder().window(limit).reserve(0).trigger(limit);
        whole.goal(limit.saturating_sub(1)).min_reclaim(0).build().unwrap()
    }
}

impl Contender for Ours {
    fn name(&self) -> String {
        format!("epitome {}", env!("CARGO_PKG_VERSION"))
    }

    fn call(&self) -> String {
        match self {
            Self::Truncation => "`Truncation`",
            Self::SlidingWindow => "`SlidingWindow(Goal)`",
            Self::ClearingAndTruncation => "`ToolResultClearing`, `Truncation`",
            Self::ContextWindow => "`ContextWindow`",
        }
        .to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Tokens
    }

    fn prepare(&self, said: &[Said]) -> Box<dyn Prepared> {
        Box::new(Grouped::new(*self, said))
    }

    fn begin(&self, limit: u64, keeping: Keeping) -> Option<Box<dyn Looping>> {
        // There is only one way to keep a history: Epitome never deletes messages.
        let going = || {
            let budget = Budget::builder().window(limit).reserve(0).trigger(limit).build().unwrap();
            Going { session: Session::of(*self, Vec::new()), budget, limit, heard: Vec::new() }
        };
        (keeping == Keeping::Whole).then(|| Box::new(going()) as Box<dyn Looping>)
    }
}

/// A grouped and counted history in a session.
pub struct Grouped {
    session: Session,
    messages: Vec<Message>,
}

impl fmt::Debug for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grouped").field("ours", &self.session.ours).finish_non_exhaustive()
    }
}

impl Grouped {
    /// Groups and counts the messages.
    #[must_use]
    pub fn new(ours: Ours, said: &[Said]) -> Self {
        let messages: Vec<_> = said.iter().map(message).collect();
        Self { session: Session::of(ours, messages.clone()), messages }
    }

    /// Times to count and to group all messages from the beginning.
    #[must_use]
    pub fn from_scratch(&self) -> (Duration, Duration) {
        let start = Instant::now();
        let sizes = black_box(count(&self.messages));
        (start.elapsed(), timed(|| group(&self.messages, &sizes)))
    }

    /// Makes a plan as a caller does, with memory of its own.
    fn planned<T>(&self, limit: u64, ask: impl FnOnce(&Plan<'_>) -> T) -> T {
        let Session { ours, history, .. } = &self.session;
        let (budget, mut planner) = (ours.budget(limit), Planner::new());
        ours.with(limit, |strategy| {
            match planner.plan(history.index(), &budget, Pass::Manual, strategy).unwrap() {
                Outcome::Planned(plan) => ask(&plan),
                Outcome::Unchanged(why) => panic!("the history is over the limit, but: {why:?}"),
            }
        })
    }

    /// Compares the plan with a session that was compacted by it: both must show the same messages.
    ///
    /// # Panics
    /// Panics if they differ, or if the kept messages are not legal, exceed the limit, or are fewer than would fit.
    pub fn assert_plan_is_right(&self, limit: u64) {
        let kept: Vec<u32> = self.planned(limit, |plan| plan.projection().flatten().collect());
        let kept: Vec<_> = kept.iter().map(|at| &self.messages[*at as usize]).collect();
        let returned = self.returned(limit).unwrap();
        assert!(kept.iter().map(|kept| said(kept)).eq(returned.said));
        let own = returned.own.unwrap();
        let groups = self.session.history.index().groups();
        let largest = groups.map(|group| group.tokens().as_u64()).max().unwrap_or(0);
        assert!(
            own <= limit && own + largest >= limit,
            "{own} tokens in {limit}, the largest group {largest}"
        );
        let mut validator = Validator::<OpenCallTree>::new(Profile::Anthropic);
        let mut illegal = |violation| panic!("{violation:?}");
        kept.iter().for_each(|kept| validator.push(*kept, &mut illegal).unwrap());
        validator.finish(&mut illegal);
    }
}

impl Prepared for Grouped {
    fn given(&self) -> Vec<Said> {
        self.messages.iter().map(said).collect()
    }

    fn own_tokens(&self) -> Option<u64> {
        Some(self.session.history.index().tokens())
    }

    /// The visible messages of a compacted session.
    fn returned(&self, limit: u64) -> Result<Returned, String> {
        let mut session = Session::of(self.session.ours, self.messages.clone());
        session.compact(&session.ours.budget(limit), limit, Pass::Manual).map_err(|error| match error {
            HistoryError::Plan(error) => error.to_string(),
            error => panic!("{error}"),
        })?;
        let kept = session.history.projection().map(said).collect();
        Ok(Returned { said: kept, own: Some(session.history.index().tokens()) })
    }

    /// Times of a plan with the list of its kept messages, and of the plan alone. Nothing is cloned or given away.
    fn round(&mut self, limit: u64) -> Round {
        let kept = timed_short(|| {
            self.planned(limit, |plan| {
                let live =
                    plan.projection().flatten().filter_map(|at| self.session.history.live().get(at as usize));
                black_box(live.map(|live| &live.entry.message).collect::<Vec<_>>()).len()
            })
        });
        let bare = timed_short(|| self.planned(limit, |plan| plan.tokens_after()));
        Round { kept: Some(kept), given_away: None, bare: Some(bare) }
    }
}

/// A session over a store in memory, as an agent uses it.
struct Session {
    ours: Ours,
    history: History,
    turn: u32,
}

impl Session {
    fn of(ours: Ours, messages: Vec<Message>) -> Self {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let history = History::open(store, SessionId::new("s"), Arc::new(ClassEstimator::new()));
        let mut session = Self { ours, history: block_on(history).unwrap(), turn: 0 };
        if !messages.is_empty() {
            session.append(messages);
        }
        session
    }

    fn append(&mut self, messages: Vec<Message>) {
        self.turn += 1;
        let token = AppendToken::new(format!("turn-{}", self.turn));
        block_on(self.history.append(&token, messages)).unwrap();
    }

    fn compact(&mut self, budget: &Budget, limit: u64, pass: Pass) -> Result<(), HistoryError> {
        let history = &mut self.history;
        self.ours.with(limit, |strategy| block_on(history.compact(budget, pass, strategy)).map(|_| ()))
    }
}

/// A session that continues turn by turn.
struct Going {
    session: Session,
    /// The default budget of a window: a compaction at a full window keeps half of it.
    budget: Budget,
    limit: u64,
    heard: Vec<Message>,
}

impl Looping for Going {
    fn hear(&mut self, turn: &[Said]) {
        self.heard = turn.iter().map(message).collect();
    }

    fn go_on(&mut self) -> usize {
        let session = &mut self.session;
        session.append(core::mem::take(&mut self.heard));
        if session.history.index().tokens() > self.limit {
            session.compact(&self.budget, self.limit, Pass::Proactive).unwrap();
        }
        session.history.projection().map(bytes).sum()
    }
}

/// The limits at which all contenders keep about the same amount: this many tokens, the number of messages that Epitome
/// keeps with them, and a fifth of that number in tool uses.
#[must_use]
pub fn limits(said: &[Said], tokens: u64) -> Limits {
    let grouped = Grouped::new(Ours::Truncation, said);
    let messages = grouped.returned(tokens).unwrap().said.len() as u64;
    Limits { tokens, messages, tool_uses: messages / 5 }
}

fn count(messages: &[Message]) -> Vec<Tokens> {
    messages.iter().map(|message| count_message(message, &ClassEstimator::new())).collect()
}

fn group(messages: &[Message], sizes: &[Tokens]) -> IndexBuf<Vec<Span>, OpenCallTree> {
    let mut index = IndexBuf::new();
    for (message, size) in messages.iter().zip(sizes) {
        index.push(message, *size).unwrap();
    }
    index
}

fn message(said: &Said) -> Message {
    if let Some(id) = &said.answers {
        return Message::tool(id.as_str(), said.text.as_str());
    }
    let text = (!said.text.is_empty()).then(|| Part::Text(said.text.as_str().into()));
    let calls = said.calls.iter().map(|call| {
        Part::ToolCall(ToolCall::new(call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
    });
    Message::new(said.role, text.into_iter().chain(calls).collect())
}

fn said(message: &Message) -> Said {
    let mut said = Said::text(message.role(), "");
    for part in message.parts() {
        match part {
            Part::Text(text) => said.text.push_str(text),
            Part::ToolCall(call) => said.calls.push(SaidCall {
                id: call.id.to_string(),
                name: call.name.to_string(),
                arguments: call.arguments.to_string(),
            }),
            Part::ToolResult(result) => {
                said.answers = Some(result.call_id.to_string());
                for part in &result.parts {
                    if let Part::Text(text) = part {
                        said.text.push_str(text);
                    }
                }
            }
            part => panic!("nobody said {part:?}"),
        }
    }
    said
}

fn bytes(message: &Message) -> usize {
    let part = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::ToolCall(call) => call.arguments.len(),
        Part::ToolResult(result) => result
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.len(),
                _ => 0,
            })
            .sum(),
        _ => 0,
    };
    message.parts().iter().map(part).sum()
}
